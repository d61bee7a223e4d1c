"""Find the lines that failing tests run, without a search."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from suture.core.ledger.kinds import SuspectLine
from suture.judge.runners.test_command import TestCommand
from suture.judge.trials.baseline import trace_tests
from suture.search.localisation.fault_ranking import rank_suspects


async def locate_failing_lines(
    command: TestCommand, texts: Mapping[str, str], failing: Collection[str], timeout_s: float
) -> tuple[SuspectLine, ...]:
    """Return the lines that the failing tests run, the most suspicious first.

    The failing tests and some passing ones run once with tracing.

    Args:
        command: A collected pytest command.
        texts: Path -> text of the files that may change.
        timeout_s: Wall-clock seconds for all of it.

    Raises:
        SandboxError: The sandbox failed.
    """
    return rank_suspects(await trace_tests(command, texts, failing, timeout_s), texts)
