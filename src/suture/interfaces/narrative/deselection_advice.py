"""Advice on running the tests without those that no change of the code can fix."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Sequence

from suture.core.ledger import Event, last_payload
from suture.core.ledger.kinds import RunStarted, TaskPrepared, TriageFinished
from suture.interfaces.narrative.plain_text import format_count
from suture.project.languages import is_pytest_command

MAX_DESELECTED = 12
"""With more excluded tests than this, the advice names functions or whole files instead of single tests. Chosen by
judgement; not measured."""


def deselecting_command(triaged: TriageFinished, command: Sequence[str]) -> str:
    """Return the test command that leaves out the excluded tests, or an empty string.

    Empty means that there is no useful advice: nothing was excluded, every failing test was, or the command
    is not pytest's. With many tests the command names functions, or whole files: pytest deselects by prefix.
    """
    # By judgement, a suspect test is not to be left out: it may have to be corrected.
    has_code_failures = triaged.code_failure_count and triaged.cause in (None, "environment")
    excluded = _list_excluded_tests(triaged)
    if not has_code_failures or not excluded or not is_pytest_command(command):
        return ""
    tests = [_pytest_node_id(test, triaged.rootdir) for test in excluded]
    for separator in ("[", "::"):  # first without parameters, then only the file
        if len(tests) > MAX_DESELECTED:
            tests = list(dict.fromkeys(test.partition(separator)[0] for test in tests))
    options = [word for test in tests for word in ("--deselect", test)]
    return shlex.join([*command, *options])


def _list_excluded_tests(triaged: TriageFinished) -> list[str]:
    """Return the tests without which the run could heal. Flaky tests do not decide, and so may stay."""
    failures = triaged.non_code_failures
    return [failure.test for failure in failures if failure.test not in triaged.flaky_tests]


def _pytest_node_id(test: str, rootdir: str) -> str:
    """Return a test's id relative to pytest's rootdir, which can differ from the project's root."""
    path, separator, name = test.partition("::")
    return posixpath.relpath(path, rootdir) + separator + name


def deselection_hint(events: Sequence[Event]) -> str:
    """Return the advice for a run that could not heal because of excluded tests, or an empty string."""
    started, prepared = last_payload(events, RunStarted), last_payload(events, TaskPrepared)
    triaged = last_payload(events, TriageFinished)
    if started is None or prepared is None or triaged is None:
        return ""
    command = deselecting_command(triaged, prepared.test_command)
    if not command:
        return ""
    return (
        f"{format_count(len(_list_excluded_tests(triaged)), 'test')} cannot pass by any change of the code, so the "
        f"run cannot count as healed. Leave them out: "
        f"suture heal {shlex.quote(started.project)} --test {shlex.quote(command)}"
    )
