"""The test that a model wrote for an issue and a person accepted: part of the task from then on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from suture.ledger import Event, last_of
from suture.ledger.kinds import TestAccepted
from suture.records import Task
from suture.tasks.commands import literal_glob


def with_accepted_test(task: Task, events: Iterable[Event]) -> Task:
    """A task with the test that a person accepted in its run; the task as it was where there is none.

    Args:
        task: As the run was given it.
        events: The run's.
    """
    accepted = last_of(tuple(events), TestAccepted)
    if accepted is None:
        return task
    return replace(
        task,
        files={**task.files, accepted.path: accepted.source.encode()},
        test_command=accepted.command,
        protected=(*task.protected, literal_glob(accepted.path)),
    )


def accepted_files(events: Iterable[Event]) -> dict[str, bytes]:
    """The file of the accepted test, which is handed over beside the change; empty where there is none."""
    accepted = last_of(tuple(events), TestAccepted)
    return {accepted.path: accepted.source.encode()} if accepted else {}
