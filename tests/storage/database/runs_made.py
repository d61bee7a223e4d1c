"""Runs for tests of the database: ledgers of every age, and one written by several processes."""

from __future__ import annotations

import shutil
from pathlib import Path

from suture.core.ledger import Ledger, RunFolder
from suture.core.ledger.kinds import AttemptsNearLimit, RunFinished, RunStarted

AGES = sorted((Path(__file__).parents[2] / "ledger" / "ages").glob("*.jsonl"))


def home_with_runs(home: Path) -> list[RunFolder]:
    """A folder of state with one run of each age; their blobs are gone."""
    runs = []
    for age in AGES:
        folder = home / "runs" / f"2026-{age.stem}"
        folder.mkdir(parents=True)
        shutil.copy(age, folder / "ledger.jsonl")
        runs.append(RunFolder(folder))
    return runs


def write_run(home: Path, name: str, events: int, *, statement: str = "") -> RunFolder:
    """A run of so many events, each forced to disk on its own."""
    folder = RunFolder(home / "runs" / name)
    folder.path.mkdir(parents=True)
    with Ledger(folder.ledger_path) as ledger:
        started = RunStarted(
            schema_version=2,
            kind="write",
            statement=statement,
            task="",
            recipe="greedy",
            model="scripted:x",
            unpriced_models=(),
            default_model="",
            sandbox="bubblewrap",
            limits={},
            settings="",
            interpreter=None,
        )
        ledger.append(started)
        for number in range(events - 2):
            ledger.append(AttemptsNearLimit(used=number, limit=None))
        ledger.append(
            RunFinished(outcome="healed", reason="r", best=None, confidence=0.5, warnings=(), result="")
        )
    return folder
