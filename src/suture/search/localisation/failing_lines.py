"""Find the lines that failing tests run, without a search."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping

from suture.core.ledger.kinds import SuspectLine
from suture.judge.runners.test_command import TestCommand
from suture.judge.trials.baseline import BaselineRun
from suture.judge.trials.trial_worker import TrialWorker
from suture.search.localisation.fault_ranking import rank_suspects


async def locate_failing_lines(
    command: TestCommand, texts: Mapping[str, str], failing: Collection[str], timeout_s: float
) -> tuple[SuspectLine, ...]:
    """Return the lines that the failing tests run, the most suspicious first.

    The failing tests run once with tracing, and for a moment the tests near them, which tell what passing tests
    run too.

    Args:
        command: A collected pytest command.
        texts: Path -> text of the files that may change.
        timeout_s: Wall-clock seconds for all of it.

    Raises:
        SandboxError: The sandbox failed.
    """
    workers = [TrialWorker(command, {}, list(texts), 2 * timeout_s) for _ in range(2)]
    baseline = BaselineRun(workers, texts, failing, None, timeout_s)
    try:
        return rank_suspects(await baseline.run_failing_tests(), texts)
    finally:
        await baseline.close()
        await asyncio.gather(*(worker.close() for worker in workers))
