"""Call functions of candidates with the same arguments, in the sandbox, and return what they answer."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence

from suture.judge.runners.test_command import TestCommand
from suture.judge.trials.trial_records import Proposal
from suture.judge.trials.trial_worker import TrialWorker
from suture.judge.trials.tuning import CALL_CPU_S, CALL_GRACE_S, CALL_WORKER_SPARE_S

AnsweredCalls = Mapping[int, list[str]]
"""Position of a candidate -> one answer for each call."""


async def compare_calls(
    command: TestCommand,
    proposals: Sequence[Proposal],
    calls: Sequence[tuple[str, str, str]],
    texts: Mapping[str, str],
    timeout_s: float,
    *,
    call_cpu_s: float = CALL_CPU_S,
    is_enough: Callable[[AnsweredCalls], bool] = lambda answered: False,
) -> dict[int, list[str]]:
    """Make the same calls on several candidates, and return their answers.

    Args:
        calls: (path, top-level function, arguments as the source of a tuple) of each call.
        timeout_s: Wall-clock seconds for all candidates.
        is_enough: Called with the answers after each candidate; if it returns true, the others are skipped.

    Returns:
        Position in `proposals` -> one text for each call, for candidates that made all of them. A text that
        begins with `!` stands for an exception or a time-out.
    """
    worker = TrialWorker(command, texts, (), timeout_s + CALL_WORKER_SPARE_S)
    answered: dict[int, list[str]] = {}
    end_s = time.monotonic() + timeout_s
    try:
        # Nothing that the process does may cost the search its repairs, so the answers until then are used.
        async with asyncio.timeout(timeout_s + CALL_GRACE_S):
            await worker.start()
            for number, proposal in enumerate(proposals):
                left_s = end_s - time.monotonic()
                if left_s <= 0 or not worker.alive:
                    break
                report = await worker.call(proposal, number, calls, call_cpu_s, left_s)
                answers = decode_answers(report.answers[: len(calls)]) if report is not None else None
                if answers is not None:
                    answered[number] = answers
                    if is_enough(answered):
                        break
    except TimeoutError:
        pass
    finally:
        await worker.close()
    return answered


def decode_answers(encoded: Sequence[str]) -> list[str] | None:
    """Return the answers of a report; `None` if code under test wrote something else than texts."""
    answers = []
    for text in encoded:
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if not isinstance(answer, str):
            return None
        answers.append(answer)
    return answers
