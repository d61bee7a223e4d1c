"""What candidates answer to the same calls, behind the wall."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence

from suture.judge.runners.test_command import TestCommand
from suture.judge.trials.trial_records import Proposal, Spectrum
from suture.judge.trials.trial_worker import TrialWorker

CALL_S = 0.15
"""CPU seconds of one call; one that takes longer counts as late."""
GRACE_S = 2.0
"""Seconds after its time in which an answer that is on its way is still taken."""


async def compare_calls(
    command: TestCommand,
    proposals: Sequence[Proposal],
    calls: Sequence[tuple[str, str, str]],
    texts: Mapping[str, str],
    seconds: float,
    *,
    call_s: float = CALL_S,
    enough: Callable[[Mapping[int, list[str]]], bool] = lambda answered: False,
) -> dict[int, list[str]]:
    """What candidates answer to calls.

    Args:
        command: A pytest command.
        proposals: The candidates.
        calls: File, function at its top level, and arguments as the source of a tuple.
        texts: Path -> text of the files that candidates change.
        seconds: Wall-clock seconds for all of them.
        call_s: CPU seconds of one call.
        enough: Asked after each candidate, with what is answered: whether no other need be asked.

    Returns:
        Position in `proposals` -> one text for each call, as far as they were made. It begins with `!` where
        an exception came, or no answer in time.

    Raises:
        SandboxError: The wall failed.
    """
    worker = TrialWorker(command, texts, (), seconds + 10)
    answered: dict[int, list[str]] = {}
    try:
        # What was answered by then must do: nothing that a process does may cost the repairs themselves.
        async with asyncio.timeout(seconds + GRACE_S):
            await _ask(worker, proposals, calls, call_s, seconds, answered, enough)
    except TimeoutError:
        pass
    finally:
        await worker.close()
    return answered


async def _ask(
    worker: TrialWorker,
    proposals: Sequence[Proposal],
    calls: Sequence[tuple[str, str, str]],
    call_s: float,
    seconds: float,
    answered: dict[int, list[str]],
    enough: Callable[[Mapping[int, list[str]]], bool],
) -> None:
    end_s = time.monotonic() + seconds
    await worker.start()
    for number, proposal in enumerate(proposals):
        left_s = end_s - time.monotonic()
        if left_s <= 0 or not worker.alive:
            break
        reply = await worker.call(proposal, number, calls, call_s, left_s)
        answers = [_text(answer) for answer in reply.answers[: len(calls)]] if reply is not None else []
        if reply is not None and None not in answers:
            answered[number] = [text for text in answers if text is not None]
            if enough(answered):
                break


def _text(answer: str) -> str | None:
    try:
        text = json.loads(answer)
    except (ValueError, RecursionError):
        return None
    return text if isinstance(text, str) else None


def unguided(spectrum: Spectrum) -> str:
    """Why nothing can be searched for, where no failing test fails in a trial of its own."""
    red = [one for one in spectrum.disagreements if one.run not in ("passed", "skipped")]
    if not red:
        unseen = spectrum.failing_in_suite - {one.id for one in spectrum.tests}
        if unseen:
            return f"{len(unseen)} failing test(s) were not reached in a trial: the time for looking was up"
        return "no test fails here"
    shown = ", ".join(one.test for one in red[:3]) + (", ..." if len(red) > 3 else "")
    if all(one.only_in_isolation for one in red):
        return (
            f"{len(red)} failing test(s) pass where they run alone, so nothing can be tried on them: {shown}"
        )
    return f"our trial disagrees with your run: {len(red)} test(s) fail there and pass here: {shown}"
