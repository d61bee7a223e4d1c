"""A full, outdated or unreachable database gives a one-line error with its exit code and loses no data."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import text

from interfaces.cli.conftest import Cli
from storage.database.sample_runs import write_run
from suture.storage.database.connection_options import DATABASE_FILE, VERSION_TABLE
from suture.storage.database.store import open_store

FULL_DISK_PROGRAM = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
from suture.interfaces.cli.app import app
app()
"""


@pytest.mark.heavy
def test_a_full_disk_is_a_one_line_error_and_a_rebuild_recovers(
    cli: Cli, environ: dict[str, str], home: Path
) -> None:
    ledgers = [write_run(home, f"run-{number}", 40, statement="x" * 9000).ledger_path for number in range(60)]
    before = [path.read_bytes() for path in ledgers]
    assert cli("db", "init").exit_code == 0

    (home / DATABASE_FILE).unlink()
    command = [sys.executable, "-c", FULL_DISK_PROGRAM, "db", "rebuild"]
    result = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=100)
    assert result.returncode == 6, result.stderr
    assert result.stdout == ""
    assert result.stderr.splitlines()[0].startswith("error: the database ")
    assert "free some disk space" in result.stderr
    assert "Traceback" not in result.stderr
    assert [path.read_bytes() for path in ledgers] == before
    assert cli("db", "rebuild").exit_code == 0
    assert cli("db", "check").exit_code == 0


def test_a_database_of_an_earlier_checkout_is_refused_by_every_command_that_reads_it(
    cli: Cli, home: Path
) -> None:
    write_run(home, "run-1", 4)
    with open_store(None, home) as store, store.write_transaction() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '0002'"))
    before = (home / DATABASE_FILE).read_bytes()

    for arguments in (("db", "check"), ("db", "rebuild"), ("memory", "list"), ("history", "--search", "x")):
        result = cli(*arguments)
        assert result.exit_code == 3, result.stderr
        assert "has version '0002'" in result.stderr
        assert "nothing was changed" in result.stderr

    assert (home / DATABASE_FILE).read_bytes() == before

    (home / DATABASE_FILE).unlink()  # the remedy
    assert "1 runs read" in cli("db", "rebuild").stdout
    assert cli("db", "check").exit_code == 0


@pytest.mark.parametrize(
    ("url", "exit_code"),
    [
        ("mysql://me:hunter2@host/name", 2),
        ("no address at all", 2),
        ("postgresql://me:hunter2@127.0.0.1:1/name", 6),
        ("sqlite:////dev/null/x.db", 6),
    ],
)
def test_an_unusable_database_address_has_its_exit_code(cli: Cli, url: str, exit_code: int) -> None:
    for arguments in (("db", "stats"), ("memory", "list"), ("metrics",)):
        result = cli(*arguments, env={"SUTURE_DATABASE_URL": url})
        assert result.exit_code == exit_code, (arguments, result.stderr)
        assert result.stdout == ""
        assert result.stderr.startswith("error: ")
        assert "hunter2" not in result.stderr
        assert "Traceback" not in result.stderr
