"""The structured log contains each event of the ledger once, in rotating files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from suture.api import WriteOptions, solve
from suture.core.ledger import Ledger, find_run, read_ledger
from suture.core.ledger.event_log import EventLog
from suture.core.ledger.kinds import AttemptsNearLimit, MoveFailed
from suture.core.settings import PathSettings, Settings, load_settings
from suture.core.settings.schema import LogSettings
from suture.testing import ScriptedModel

WRONG, RIGHT = "```python\ndef f(n):\n    return n\n```", "```python\ndef f(n):\n    return n + 1\n```"

FIELDS = ("timestamp", "level", "task_id", "iteration", "phase", "event", "data")


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("ascii").splitlines()]


async def test_the_log_contains_the_events_of_the_ledger(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "suture.jsonl"
    settings = Settings(paths=PathSettings(home=tmp_path / "home"), log=LogSettings(file=log))

    for _ in range(2):  # a second run appends to the same file
        result = await solve(
            "Write f(n).\n\n>>> f(1)\n2\n",
            WriteOptions(settings=settings, model=ScriptedModel([WRONG, *[RIGHT] * 4])),
        )

    events = read_ledger(find_run(settings.paths.home, result.run_id).ledger_path).events
    entries = read_lines(log)
    assert len({entry["task_id"] for entry in entries}) == 2
    run_entries = [entry for entry in entries if entry["task_id"] == result.run_id]
    assert [(entry["event"], entry["data"]) for entry in run_entries] == [
        (event.kind, dict(event.data)) for event in events
    ]
    assert {tuple(entry) for entry in run_entries} == {FIELDS}
    assert all(entry["timestamp"].endswith("+00:00") for entry in run_entries)
    steps = [entry["iteration"] for entry in run_entries]
    assert steps == sorted(steps)
    assert steps[-1] == sum(event.kind == "moves.decided" for event in events)
    phases = {entry["event"]: entry["phase"] for entry in run_entries}
    assert phases["model.called"] == "model"
    assert phases["candidate.checked"] == "candidates"
    assert {entry["level"] for entry in run_entries if entry["phase"] == "budget"} == {"DEBUG"}
    assert run_entries[-1]["level"] == "INFO"


def test_a_rotating_log_loses_no_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = EventLog(path, max_bytes=2000, backups=9)
    with Ledger(tmp_path / "ledger.jsonl") as ledger:
        for number in range(40):
            log.write(ledger.append(AttemptsNearLimit(used=number, limit=None)))
        for event in ledger.events:  # events that were written already are skipped
            log.write(event)
    log.close()
    files = [*sorted(tmp_path.glob("log.*"), reverse=True), path]

    assert len(files) > 2
    assert max(file.stat().st_size for file in files) <= 2000
    assert [line["data"]["used"] for file in files for line in read_lines(file)] == list(range(40))


def test_a_failure_has_the_level_warning(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "log", max_bytes=2000, backups=1)
    with Ledger(tmp_path / "ledger.jsonl") as ledger:
        log.write(ledger.append(MoveFailed(error_type="MalformedReply", message="no code")))
    log.close()
    assert read_lines(tmp_path / "log")[0]["level"] == "WARNING"


def test_an_unwritable_log_causes_one_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = EventLog(tmp_path, max_bytes=2000, backups=1)  # a folder, which cannot be written as a file
    with Ledger(tmp_path / "ledger.jsonl") as ledger:
        log.write(ledger.append(AttemptsNearLimit(used=1, limit=None)))
    log.close()
    (warning,) = caplog.messages
    assert "the run continues" in warning


def test_a_project_cannot_choose_the_log_file(tmp_path: Path) -> None:
    from suture.errors import UsageError

    (tmp_path / "suture.toml").write_text('[log]\nfile = "/tmp/x"\n')
    with pytest.raises(UsageError, match="no say"):
        load_settings(tmp_path, {}, {"HOME": str(tmp_path)})
    (tmp_path / "suture.toml").unlink()
    loaded = load_settings(tmp_path, {}, {"HOME": str(tmp_path), "SUTURE_LOG": str(tmp_path / "log")})
    assert loaded.settings.log.file == tmp_path / "log"
