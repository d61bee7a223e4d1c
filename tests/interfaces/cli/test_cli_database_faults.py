"""A database that is full, newer or unreachable: one line, the right exit code, and nothing lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import text

from interfaces.cli.conftest import Cli
from storage.database.sample_runs import write_run
from suture.storage.database.store import DATABASE_FILE, VERSION_TABLE, open_store

FULL = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
from suture.interfaces.cli.app import app
app()
"""


@pytest.mark.heavy
def test_a_full_disk_is_one_line_and_a_rebuild_makes_up_for_it(
    cli: Cli, environ: dict[str, str], home: Path
) -> None:
    ledgers = [write_run(home, f"run-{number}", 40, statement="x" * 9000).ledger_path for number in range(60)]
    before = [path.read_bytes() for path in ledgers]
    assert cli("db", "init").exit_code == 0
    (home / DATABASE_FILE).unlink()
    command = [sys.executable, "-c", FULL, "db", "rebuild"]
    full = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=100)
    assert full.returncode == 6, full.stderr
    assert full.stdout == ""
    said = full.stderr.splitlines()
    assert said[0].startswith("error: the database ")
    assert "free some disk space" in full.stderr
    assert "Traceback" not in full.stderr
    assert [path.read_bytes() for path in ledgers] == before
    assert cli("db", "rebuild").exit_code == 0
    assert cli("db", "check").exit_code == 0


def test_a_newer_database_is_refused_by_every_command_that_reads_it(cli: Cli, home: Path) -> None:
    with open_store(None, home) as store, store.write_transaction() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    before = (home / DATABASE_FILE).read_bytes()
    for arguments in (("db", "check"), ("db", "rebuild"), ("memory", "list"), ("history", "--search", "x")):
        done = cli(*arguments)
        assert done.exit_code == 3, done.stderr
        assert "has version '9999'" in done.stderr
        assert "nothing was changed" in done.stderr
    assert (home / DATABASE_FILE).read_bytes() == before


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("mysql://me:hunter2@host/name", 2),
        ("no address at all", 2),
        ("postgresql://me:hunter2@127.0.0.1:1/name", 6),
        ("sqlite:////dev/null/x.db", 6),
    ],
)
def test_an_address_that_leads_nowhere_has_its_exit_code(cli: Cli, url: str, code: int) -> None:
    for arguments in (("db", "stats"), ("memory", "list"), ("metrics",)):
        done = cli(*arguments, env={"SUTURE_DATABASE_URL": url})
        assert done.exit_code == code, (arguments, done.stderr)
        assert done.stdout == ""
        assert done.stderr.startswith("error: ")
        assert "hunter2" not in done.stderr
        assert "Traceback" not in done.stderr
