"""Structured logs: each event of the ledger once, in rotating files."""

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


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("ascii").splitlines()]


async def test_a_log_says_what_the_ledger_says(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "suture.jsonl"
    settings = Settings(paths=PathSettings(home=tmp_path / "home"), log=LogSettings(file=log))
    for _ in range(2):  # a second run goes on in the same file
        result = await solve(
            "Write f(n).\n\n>>> f(1)\n2\n",
            WriteOptions(settings=settings, model=ScriptedModel([WRONG, *[RIGHT] * 4])),
        )
    events = read_ledger(find_run(settings.paths.home, result.run_id).ledger_path).events
    written = lines(log)
    assert len({one["task_id"] for one in written}) == 2
    mine = [one for one in written if one["task_id"] == result.run_id]
    assert [(one["event"], one["data"]) for one in mine] == [(e.kind, dict(e.data)) for e in events]
    assert {tuple(one) for one in mine} == {FIELDS}
    assert all(one["timestamp"].endswith("+00:00") for one in mine)
    steps = [one["iteration"] for one in mine]
    assert steps == sorted(steps)
    assert steps[-1] == sum(event.kind == "moves.decided" for event in events)
    phases = {one["event"]: one["phase"] for one in mine}
    assert phases["model.called"] == "model"
    assert phases["candidate.checked"] == "candidates"
    assert {one["level"] for one in mine if one["phase"] == "budget"} == {"DEBUG"}
    assert mine[-1]["level"] == "INFO"


def test_a_log_rotates_and_loses_no_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = EventLog(path, max_bytes=2000, backups=9)
    with Ledger(tmp_path / "ledger.jsonl") as ledger:
        for number in range(40):
            log.write(ledger.append(AttemptsNearLimit(used=number, limit=None)))
        for event in ledger.events:  # those that were written are passed over
            log.write(event)
    log.close()
    files = [*sorted(tmp_path.glob("log.*"), reverse=True), path]
    assert len(files) > 2
    assert max(file.stat().st_size for file in files) <= 2000
    assert [one["data"]["used"] for file in files for one in lines(file)] == list(range(40))


def test_what_went_wrong_has_its_level(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "log", max_bytes=2000, backups=1)
    with Ledger(tmp_path / "ledger.jsonl") as ledger:
        log.write(ledger.append(MoveFailed(error_type="MalformedReply", message="no code")))
    log.close()
    assert lines(tmp_path / "log")[0]["level"] == "WARNING"


def test_a_log_that_cannot_be_written_costs_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = EventLog(tmp_path, max_bytes=2000, backups=1)  # a folder
    with Ledger(tmp_path / "ledger.jsonl") as ledger:
        log.write(ledger.append(AttemptsNearLimit(used=1, limit=None)))
    log.close()
    (said,) = caplog.messages
    assert "the run continues" in said


def test_a_project_cannot_choose_the_file(tmp_path: Path) -> None:
    from suture.errors import UsageError

    (tmp_path / "suture.toml").write_text('[log]\nfile = "/tmp/x"\n')
    with pytest.raises(UsageError, match="no say"):
        load_settings(tmp_path, {}, {"HOME": str(tmp_path)})
    (tmp_path / "suture.toml").unlink()
    loaded = load_settings(tmp_path, {}, {"HOME": str(tmp_path), "SUTURE_LOG": str(tmp_path / "log")})
    assert loaded.settings.log.file == tmp_path / "log"
