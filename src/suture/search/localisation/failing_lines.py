"""Find the lines that failing tests run, without a search."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from weakref import WeakKeyDictionary

from suture.core.ledger.kinds import SuspectLine
from suture.judge.runners.test_command import TestCommand
from suture.judge.trials.baseline import trace_tests
from suture.search.localisation.fault_ranking import rank_suspects

_located: WeakKeyDictionary[TestCommand, dict[frozenset[str], tuple[SuspectLine, ...]]] = WeakKeyDictionary()
"""Test command -> failing tests -> the lines. A command belongs to files that do not change."""


async def locate_failing_lines(
    command: TestCommand, texts: Mapping[str, str], failing: Collection[str], timeout_s: float
) -> tuple[SuspectLine, ...]:
    """Return the lines that the failing tests run, the most suspicious first.

    The failing tests and some passing ones run with tracing, once for each command.

    Args:
        command: A collected pytest command.
        texts: Path -> text of the files that may change.
        timeout_s: Wall-clock seconds for all of it.

    Raises:
        SandboxError: The sandbox failed.
    """
    known = _located.setdefault(command, {})
    key = frozenset(failing)
    if key not in known:
        known[key] = rank_suspects(await trace_tests(command, texts, failing, timeout_s), texts)
    return known[key]
