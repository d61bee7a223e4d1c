"""Advice on running the tests without those that no change of the code can fix."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Iterator, Sequence

from suture.core.ledger import Event, last_payload
from suture.core.ledger.kinds import RunStarted, TaskPrepared, TriageFinished
from suture.interfaces.narrative.plain_text import format_count
from suture.project.languages import is_pytest_command

MAX_DESELECTED = 12
"""The number of tests that are named one by one."""


def deselection_arguments(triaged: TriageFinished, command: Sequence[str]) -> str:
    """Return the `--test` option that leaves out the excluded tests, or an empty string.

    Empty means that there is no useful advice: nothing was excluded, every failing test was, or the command
    is not pytest's. With many tests the option names functions, or whole files: pytest deselects by prefix.
    """
    is_beside = triaged.code_failure_count and triaged.cause in (None, "environment")
    if not is_beside or not triaged.non_code_failures or not is_pytest_command(command):
        return ""
    tests = [_pytest_node_id(one.test, triaged.rootdir) for one in triaged.non_code_failures]
    for shorter in (lambda test: test.partition("[")[0], lambda test: test.partition("::")[0]):
        if len(tests) > MAX_DESELECTED:
            tests = list(dict.fromkeys(map(shorter, tests)))
    left_out = [word for test in tests for word in ("--deselect", test)]
    return f"--test {shlex.quote(shlex.join([*command, *left_out]))}"


def _pytest_node_id(test: str, rootdir: str) -> str:
    """Return a test's id relative to pytest's rootdir, which can differ from the project's root."""
    path, separator, name = test.partition("::")
    return posixpath.relpath(path, rootdir) + separator + name


def deselection_hint(events: Sequence[Event]) -> Iterator[str]:
    """Yield the advice at the end of a run that could not heal because of excluded tests."""
    started, prepared = last_payload(events, RunStarted), last_payload(events, TaskPrepared)
    triaged = last_payload(events, TriageFinished)
    if started is None or prepared is None or triaged is None:
        return
    if way := deselection_arguments(triaged, prepared.test_command):
        yield (
            f"{format_count(len(triaged.non_code_failures), 'test')} cannot pass by any change of the "
            f"code, so the "
            f"run cannot count as healed. Leave them out: suture heal {shlex.quote(started.project)} {way}"
        )
