"""Sample runs for database tests: complete runs of both kinds, and a run with any number of events."""

from __future__ import annotations

from pathlib import Path

from suture.core.ledger import Ledger, RunFolder
from suture.core.ledger.kinds import (
    AttemptsNearLimit,
    BudgetReserved,
    BudgetSettled,
    CandidateChecked,
    CandidateProposed,
    ModelCalled,
    MovesDecided,
    RunFinished,
    RunStarted,
    SearchFinished,
    TaskPrepared,
)
from suture.core.records import Move, Reason, TaskKind


def write_sample_runs(home: Path) -> list[RunFolder]:
    """Write three healed runs of each kind into a home folder; their blobs are missing."""
    kinds: tuple[TaskKind, ...] = ("write", "heal")
    return [write_healed_run(home, f"2026-{number}-{kind}", kind) for number in (1, 2, 3) for kind in kinds]


def write_healed_run(home: Path, name: str, kind: TaskKind) -> RunFolder:
    """Write a run that fails its checks, searches, calls a model and is healed."""
    folder = make_run_folder(home, name)
    with Ledger(folder.ledger_path) as ledger:
        ledger.append(RunStarted(kind=kind, statement="Sum a cart.", recipe="adaptive", model="scripted:x"))
        ledger.append(TaskPrepared(checks=2))
        ledger.append(CandidateChecked(candidate="c0", passed=1, failed=1, verdict="v0", seconds=0.25))
        ledger.append(MovesDecided(decision=1, round=1, moves=(Move(kind="mutate"),)))
        ledger.append(SearchFinished(candidates_tried=7, seconds=1.5))
        ledger.append(MovesDecided(decision=2, round=2, moves=(Move(kind="repair"),)))
        reserved = ledger.append(BudgetReserved(role="coder", move="repair", attempts=1, tokens=90))
        ledger.append(
            ModelCalled(
                move="repair",
                model="scripted:x",
                prompt_tokens=40,
                completion_tokens=10,
                finish_reason="stop",
                seconds=2.0,
            )
        )
        ledger.append(
            BudgetSettled(
                reservation=reserved.seq,
                attempts=1,
                prompt_tokens=40,
                completion_tokens=10,
                model_calls=1,
            )
        )
        ledger.append(CandidateProposed(candidate="c1", blob="b1", origin="repair"))
        ledger.append(CandidateChecked(candidate="c1", passed=2, failed=0, verdict="v1", seconds=0.5))
        ledger.append(
            MovesDecided(
                decision=3, round=3, moves=(Move(kind="stop", reason=Reason(code="checks_pass")),), best="c1"
            )
        )
        ledger.append(make_healed_event())
    return folder


def write_run(home: Path, name: str, events: int, *, statement: str = "") -> RunFolder:
    """Write a healed run with this many events, each of which is flushed to disk separately."""
    folder = make_run_folder(home, name)
    with Ledger(folder.ledger_path) as ledger:
        ledger.append(RunStarted(kind="write", statement=statement, recipe="greedy", model="scripted:x"))
        for number in range(events - 2):
            ledger.append(AttemptsNearLimit(used=number, limit=None))
        ledger.append(make_healed_event())
    return folder


def make_run_folder(home: Path, name: str) -> RunFolder:
    """Create the folder of a run."""
    folder = RunFolder(home / "runs" / name)
    folder.path.mkdir(parents=True)
    return folder


def make_healed_event() -> RunFinished:
    """Return the event that ends a healed run."""
    return RunFinished(
        outcome="healed",
        reason=Reason(code="checks_pass"),
        best=None,
        confidence=0.5,
        warnings=(),
        result="",
    )
