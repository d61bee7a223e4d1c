"""The database in both engines: tables, versions, full-text search, and error messages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import func, select, text
from sqlalchemy.exc import OperationalError

import suture.storage.database
from suture.errors import PrerequisiteError, StorageError, UsageError
from suture.storage.database.connection_options import (
    DATABASE_FILE,
    LATEST_VERSION,
    VERSION_TABLE,
    VERSIONS,
)
from suture.storage.database.run_index import open_index_of_store
from suture.storage.database.run_queries import query_runs
from suture.storage.database.run_query import RunQuery
from suture.storage.database.search_words import index_text
from suture.storage.database.store import (
    Store,
    is_compared_by_alembic,
    map_database_errors,
    open_store,
)
from suture.storage.database.tables import METADATA, failures, tasks

UNSTORABLE_TEXT = "zero \x00, half a pair \ud800, é"


def insert_failure(store: Store, key: str, *texts: str, namespace: str = "") -> None:
    """Insert a failure that full-text search finds by the words of its texts."""
    with store.write_transaction() as connection:
        connection.execute(
            failures.insert().values(
                namespace=namespace or store.namespace,
                run_id="r",
                key=key,
                created_s=1.5,
                text=" ".join(texts),
                search_text=index_text(*texts),
            )
        )


def test_the_migrations_create_the_declared_tables(store: Store) -> None:
    with store.read_transaction() as connection:
        options = {
            "version_table": VERSION_TABLE,
            "include_object": is_compared_by_alembic,
            "compare_type": True,
        }
        context = MigrationContext.configure(connection, opts=options)

        assert compare_metadata(context, METADATA) == []


def test_every_version_has_a_migration_script() -> None:
    config = Config()
    config.set_main_option(
        "script_location", str(Path(suture.storage.database.__file__).parent / "migrations")
    )
    scripts = ScriptDirectory.from_config(config)
    assert tuple(script.revision for script in scripts.walk_revisions())[::-1] == VERSIONS


def test_a_row_round_trips(store: Store) -> None:
    with store.write_transaction() as connection:
        connection.execute(
            failures.insert().values(
                namespace="n",
                run_id="r",
                key="k",
                created_s=1.25,
                text=UNSTORABLE_TEXT,
            )
        )
    with store.read_transaction() as connection:
        row = connection.execute(select(failures)).mappings().one()

    assert row["text"] == "zero \ufffd, half a pair ?, é"
    assert (row["repaired"], row["created_s"]) == (False, 1.25)


def test_a_failed_transaction_leaves_no_row(store: Store) -> None:
    def fail_half_way() -> None:
        with store.write_transaction() as connection:
            connection.execute(tasks.insert().values(namespace="n", run_id="r"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_half_way()
    with store.read_transaction() as connection:
        assert connection.execute(select(func.count()).select_from(tasks)).scalar() == 0


def test_a_second_row_of_the_same_event_is_refused(store: Store) -> None:
    insert_failure(store, "k", "once")
    with pytest.raises(StorageError, match="failed"):
        insert_failure(store, "k", "twice")


def test_full_text_search_follows_updates_and_deletions(store: Store) -> None:
    texts = {
        "a": "KeyError: 'total_price' in os.path.join(root, 'x.py')",
        "b": "the total is wrong; wrong again",
    }
    with store.write_transaction() as connection:
        for run_id, content in texts.items():
            row = {"namespace": store.namespace, "run_id": run_id, "search_text": index_text(content)}
            connection.execute(tasks.insert().values(**row))

    def find_keys(query: str) -> list[str]:
        with open_index_of_store(store, Path()) as index:
            return [row["run_id"] for row in query_runs(index, RunQuery(search=query), 9)[0]]

    assert find_keys("price") == find_keys("keyerror") == find_keys("Key") == find_keys("os.path") == ["a"]
    assert find_keys("total wrong") == ["b"]
    assert find_keys("nothing") == find_keys("-- ' \" & | ()") == []

    with store.write_transaction() as connection:
        connection.execute(tasks.update().where(tasks.c.run_id == "b").values(search_text="other"))
        connection.execute(tasks.delete().where(tasks.c.run_id == "a"))
    assert (find_keys("total"), find_keys("other")) == ([], ["b"])


def test_several_processes_can_create_the_database_at_once(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from suture.storage.database.store import open_store\n"
        "with open_store(None, Path(sys.argv[1])) as store, store.read_transaction():\n"
        "    print(store.location)"
    )
    children = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(3)
    ]
    outputs = [child.communicate(timeout=100) for child in children]

    assert [child.returncode for child in children] == [0] * 3, outputs
    assert (tmp_path / DATABASE_FILE).is_file()


@pytest.mark.parametrize("version", ["0001", "0002", "0003", "0004", "9999"])
def test_a_database_of_an_unknown_version_is_refused(database: str, tmp_path: Path, version: str) -> None:
    with open_store(database, tmp_path, init=True) as store, store.write_transaction() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '{version}'"))
    with pytest.raises(PrerequisiteError, match=f"has version '{version}'") as caught:
        open_store(database, tmp_path, init=True)
    assert repr(LATEST_VERSION) in caught.value.message
    remedy = "delete the file and run `suture db rebuild`" if "sqlite" in database else "another database"
    assert remedy in caught.value.remedy
    assert "nothing was changed" in caught.value.remedy


def test_postgresql_tables_are_created_only_on_request(postgres_url: str, tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteError, match="has none") as caught:
        open_store(postgres_url, tmp_path)
    assert caught.value.remedy == "suture db init"


def test_text_round_trips_without_a_database_encoding(postgres_host: str, tmp_path: Path) -> None:
    """A database without an encoding, as `initdb` creates it without a locale."""
    with psycopg.connect(f"postgresql://postgres@/postgres?host={postgres_host}", autocommit=True) as server:
        server.execute(
            "CREATE DATABASE bare ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        )
    url = f"postgresql://postgres@/bare?host={postgres_host}"

    with open_store(url, tmp_path, init=True) as store:
        insert_failure(store, "k", "é and ß")
        with store.read_transaction() as connection:
            assert connection.execute(select(failures.c.text)).scalar_one() == "é and ß"


def test_tables_of_another_program_are_not_touched(postgres_url: str, tmp_path: Path) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE tasks (mine text)")
        connection.execute("INSERT INTO tasks VALUES ('still here')")
        connection.execute("CREATE TABLE alembic_version (version_num text)")
    with open_store(postgres_url, tmp_path, init=True) as store, store.write_transaction() as connection:
        connection.execute(tasks.insert().values(namespace="n", run_id="r"))

    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT * FROM public.tasks").fetchall() == [("still here",)]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("mysql://user:secret@host/name", "mysql"),
        ("no address", "no address"),
        ("sqlite://", "cannot use"),
        ("sqlite:///:memory:", "cannot use"),
    ],
)
def test_an_invalid_url_is_refused(url: str, expected: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        open_store(url, tmp_path)
    assert "secret" not in str(caught.value)
    assert expected in caught.value.message or expected in url


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        ('extension "vector" is not available', "install pgvector there"),
        ('extension "vector": must be superuser to create this extension', "install pgvector there"),
        ('operator class "bit_hamming_ops" does not exist for access method "hnsw"', "install pgvector 0.8"),
        ('invalid configuration parameter name "hnsw.iterative_scan"', "install pgvector 0.8"),
    ],
)
def test_a_server_without_pgvector_or_with_an_old_one_has_a_remedy(reason: str, remedy: str) -> None:
    with pytest.raises(StorageError) as caught, map_database_errors("'a'"):
        raise OperationalError("CREATE", {}, Exception(reason))
    assert caught.value.remedy.startswith(remedy)


def test_an_unreachable_server_is_reported_without_the_password(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="failed") as caught:
        open_store("postgresql://me:secret@127.0.0.1:1/name", tmp_path)
    assert "\n" not in caught.value.message
    assert "secret" not in str(caught.value)
    assert "store.url" in caught.value.remedy


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / DATABASE_FILE).write_bytes(b"something else entirely" * 100)
    with pytest.raises(StorageError, match="not a database") as caught:
        open_store(None, tmp_path)
    assert "rebuild" in caught.value.remedy


def test_a_lost_connection_is_reported_and_the_next_one_works(postgres_url: str, tmp_path: Path) -> None:
    def lose_connection_while_writing(store: Store) -> None:
        with store.write_transaction() as connection:
            connection.execute(tasks.insert().values(namespace="n", run_id="r"))
            with psycopg.connect(postgres_url, autocommit=True) as administration:
                administration.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE pid <> pg_backend_pid() AND application_name = 'suture'"
                )
            connection.execute(tasks.insert().values(namespace="n", run_id="s"))

    with open_store(postgres_url, tmp_path, init=True) as store:
        with pytest.raises(StorageError, match="failed") as caught:
            lose_connection_while_writing(store)
        assert "\n" not in caught.value.message
        with store.read_transaction() as connection:
            assert connection.execute(select(func.count()).select_from(tasks)).scalar() == 0
