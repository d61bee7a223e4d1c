"""How often each kind of move solved a task, by model: what a bandit knows before a run begins.

One small JSON file in the home folder, replaced as a whole; a run notes in its ledger what it was told, so
that a replay draws alike.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from suture.errors import StorageError
from suture.ledger import Event
from suture.ledger.kinds import ForkPoint, MovesRemembered, RunStarted
from suture.loop.progress import Tried

__all__ = ["MoveRecord", "add_to_record", "read_record", "recorded_moves"]

MoveRecord = Mapping[str, tuple[int, int]]
"""Kind of move -> (candidates of it that solved the task, candidates of it)."""
FILE = "moves.json"


def read_record(home: Path, model: str) -> MoveRecord:
    """What earlier runs with a model saw; empty where there were none, or where the file is damaged."""
    return {
        kind: (solved, tried)
        for kind, (solved, tried) in _read(home / FILE).get(model, {}).items()
        if 0 <= solved <= tried
    }


def recorded_moves(events: Iterable[Event]) -> MoveRecord | None:
    """What a run was told when it began; `None` where it was told nothing, and may read the record now.

    A fork is told what the run was that it began in, and nothing where that had no use for it.
    """
    told: MoveRecord | None = None
    for event in events:
        match event.payload:
            case MovesRemembered(record=record):
                return {kind: (solved, tried) for kind, (solved, tried) in record.items()}
            case RunStarted(forks=ForkPoint()):
                told = {}
    return told


def add_to_record(home: Path, model: str, tried: Iterable[Tried]) -> None:
    """Count the candidates of a run that has ended.

    Raises:
        StorageError: The file cannot be written.
    """
    judged = [one for one in tried if one.origin in ("sample", "repair")]
    if not judged:
        return
    try:
        home.mkdir(parents=True, exist_ok=True)
        with (home / f"{FILE}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            known = _read(home / FILE)
            counts = known.setdefault(model, {})
            for one in judged:
                solved, total = counts.get(one.origin, (0, 0))
                counts[one.origin] = (solved + one.solved, total + 1)
            _replace(home / FILE, json.dumps(known, indent=1, sort_keys=True))
    except OSError as fault:
        raise StorageError(f"the record of moves in {str(home)!r} cannot be written: {fault}") from fault


def _read(path: Path) -> dict[str, dict[str, Any]]:
    with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
        known = json.loads(path.read_text("utf-8"))
        return {
            str(model): {str(kind): (int(solved), int(total)) for kind, (solved, total) in counts.items()}
            for model, counts in known.items()
        }
    return {}


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text, "utf-8")
    temporary.replace(path)
