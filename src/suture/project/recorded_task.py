"""What a run's events add to its task: the test that a person accepted, and what `python` meant in it.

A model wrote that test for an issue; from the person's word on it is part of the task.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from suture.core.ledger import Event, RunFolder, last_payload
from suture.core.ledger.kinds import RunStarted, TestAccepted
from suture.core.records import Task, decode_record
from suture.project.languages import Interpreter
from suture.project.test_commands import escape_glob


def add_accepted_test(task: Task, events: Iterable[Event]) -> Task:
    """A task with the test that a person accepted in its run; the task as it was where there is none."""
    accepted = last_payload(tuple(events), TestAccepted)
    if accepted is None:
        return task
    return replace(
        task,
        files={**task.files, accepted.path: accepted.source.encode()},
        test_command=accepted.command,
        protected=(*task.protected, escape_glob(accepted.path)),
    )


def get_accepted_files(events: Iterable[Event]) -> dict[str, bytes]:
    """The file of the accepted test, which is handed over beside the change; empty where there is none."""
    accepted = last_payload(tuple(events), TestAccepted)
    return {accepted.path: accepted.source.encode()} if accepted else {}


def load_interpreter(started: RunStarted, folder: RunFolder, home: Path) -> Interpreter | None:
    """The program while it is there; `None` where it is gone, there was none, or the run is somebody else's.

    A stranger's record names no program that is started here.

    Args:
        started: The first event of the run.
        folder: The run's folder.
        home: Where the runs of whoever asks lie.

    Raises:
        ValueError: The event is damaged.
    """
    if not started.interpreter or not is_own_run(folder, home):
        return None
    program = decode_record(Interpreter, started.interpreter)
    return program if Path(program.executable).exists() else None


def is_own_run(folder: RunFolder, home: Path) -> bool:
    """Whether a run lies among those of whoever asks."""
    return home.resolve() in folder.path.resolve().parents
