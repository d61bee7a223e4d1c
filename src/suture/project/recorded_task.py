"""Read from the events of a run what belongs to its task but is not recorded in the task itself.

This is the interpreter of the test command, and a test that a person accepted. A model writes such a test for
an issue. Once a person has accepted it, it is part of the task.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from suture.core.ledger import Event, RunFolder, last_payload
from suture.core.ledger.kinds import RunStarted, TestAccepted
from suture.core.records import Task, decode_record
from suture.project.languages import Interpreter
from suture.project.test_commands import escape_glob

if TYPE_CHECKING:
    pass


def add_accepted_test(task: Task, events: Iterable[Event]) -> Task:
    """Return a task with the test that a person accepted in its run; unchanged if there is none."""
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
    """Return the file of the accepted test, which is delivered with the change; empty if there is none."""
    accepted = last_payload(tuple(events), TestAccepted)
    return {accepted.path: accepted.source.encode()} if accepted else {}


def load_interpreter(started: RunStarted, folder: RunFolder, home: Path) -> Interpreter | None:
    """Return the interpreter of a recorded run.

    Return `None` if the run had none, if the interpreter is gone, or if the run is not the user's own: a run of another
    user must not name a program that is started here.

    Raises:
        ValueError: The event is damaged.
    """
    if not started.interpreter or not is_own_run(folder, home):
        return None
    program = decode_record(Interpreter, started.interpreter)
    return program if Path(program.executable).exists() else None


def is_own_run(folder: RunFolder, home: Path) -> bool:
    """Return whether a run is in the user's own state folder."""
    return home.resolve() in folder.path.resolve().parents
