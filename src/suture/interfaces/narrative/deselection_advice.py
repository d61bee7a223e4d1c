"""How to test without what no change of the code can mend, in words that can be copied."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Iterator, Sequence

from suture.core.ledger import Event, last_of
from suture.core.ledger.kinds import RunStarted, TaskPrepared, TriageFinished
from suture.interfaces.narrative.plain_text import format_count
from suture.project.languages import is_pytest_command

MAX_DESELECTED = 12
"""Tests that are named one by one."""


def deselection_arguments(triaged: TriageFinished, command: Sequence[str]) -> str:
    """How to test without those, where others are the code's: no change can make them pass; else empty.

    Where they are many they are left out by function, or by file: what pytest leaves out is what begins so.
    """
    is_beside = triaged.code_faults and triaged.cause in (None, "environment")
    if not is_beside or not triaged.set_apart or not is_pytest_command(command):
        return ""
    tests = [_as_pytest_counts(one.test, triaged.rootdir) for one in triaged.set_apart]
    for shorter in (lambda test: test.partition("[")[0], lambda test: test.partition("::")[0]):
        if len(tests) > MAX_DESELECTED:
            tests = list(dict.fromkeys(map(shorter, tests)))
    left_out = [word for test in tests for word in ("--deselect", test)]
    return f"--test {shlex.quote(shlex.join([*command, *left_out]))}"


def _as_pytest_counts(test: str, rootdir: str) -> str:
    """A test's id as pytest has it: its own root need not be the project's."""
    path, separator, name = test.partition("::")
    return posixpath.relpath(path, rootdir) + separator + name


def deselection_hint(events: Sequence[Event]) -> Iterator[str]:
    """What to type at the end of a run that could not heal for such tests; nothing where there are none."""
    started, prepared = last_of(events, RunStarted), last_of(events, TaskPrepared)
    triaged = last_of(events, TriageFinished)
    if started is None or prepared is None or triaged is None:
        return
    if way := deselection_arguments(triaged, prepared.test_command):
        yield (
            f"{format_count(len(triaged.set_apart), 'test')} cannot pass by any change of the code, so nothing "
            f"could count as healed. Heal without: suture heal {shlex.quote(started.project)} {way}"
        )
