"""A source that cannot be read: texts that can are tried first, and the best of them is searched further.

A fault of syntax hides every other: where no such text passes all tests, the search for a small change begins
anew on those that pass most.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from suture.checks.command.test_command import TestCommand
from suture.errors import UsageError
from suture.records import CheckOutcome
from suture.repair.editing.edits import edits_between, mutated
from suture.repair.gaming.warnings import literals_of, warnings_about
from suture.repair.limits import SearchLimits
from suture.repair.search_result import Findings
from suture.repair.searching.search import search
from suture.repair.syntax import Readable, readable_texts
from suture.repair.trials.records import Proposal, Trial

READING_SHARE = 0.15
"""Of the seconds, the most that looking for texts which can be read may take."""
RUNNING_SHARE = 0.5
"""Of the seconds: when they are over, no further text that can be read is run."""
MOST_RUN = 32
"""Texts that compile, the likeliest first, on which the tests are run at all."""
MOST_SEARCHED = 3
"""Of those, the best, on which a search begins: each gets half of the time left, the last one all of it."""
AT_ONCE = 2
"""Whole runs of the tests side by side, for a machine of two cores."""
RUN_S = 10.0
"""Wall-clock seconds of the tests on one text, at most: a text in which something never ends is none."""
WARNED = 0.4
"""What each warning leaves of a score."""
OPERATOR = "syntax"


@dataclass(frozen=True, kw_only=True)
class _Run:
    """A text that can be read, and what the tests said of it."""

    readable: Readable
    outcomes: tuple[CheckOutcome, ...]

    @property
    def passed(self) -> int:
        return sum(outcome.passed for outcome in self.outcomes)

    @property
    def failed(self) -> frozenset[str]:
        return frozenset(o.check_id for o in self.outcomes if not o.passed and o.status != "skipped")


@dataclass(frozen=True, kw_only=True)
class Means:
    """How the files of a language are read and searched.

    Attributes:
        called: The language.
        offered: Texts that can be read, found in so many seconds, the likeliest first.
        search_on: A search by a command that is collected, on files and the texts that may be changed, after
            these outcomes.
        warnings: What is suspicious about a change of a text into another.
        run_s: Wall-clock seconds of the tests on one text, at most.
        rivals: Texts that are run after the first with which all tests pass.
        most_run: Texts that are run at most.
    """

    called: str
    offered: Callable[[float], list[Readable]]
    search_on: Callable[
        [TestCommand, Mapping[str, bytes], Mapping[str, str], Sequence[CheckOutcome], SearchLimits],
        Awaitable[Findings],
    ]
    warnings: Callable[[str, str], Sequence[str]]
    run_s: float = RUN_S
    rivals: int = MOST_RUN
    most_run: int = MOST_RUN


async def recover(
    command: TestCommand,
    files: Mapping[str, bytes],
    texts: Mapping[str, str],
    path: str,
    limits: SearchLimits,
    tests: Iterable[str] = (),
) -> Findings:
    """Search for changes with which all tests pass, where a file cannot be read.

    Args:
        command: The project's pytest command, collected.
        files: The project.
        texts: Path -> text of the files that may be changed.
        path: The file that is no Python.
        limits: What it may use.
        tests: Sources of the tests.

    Raises:
        SandboxError: The wall failed.
    """
    held = list(tests)
    literals = literals_of(held)

    async def search_on(
        onward: TestCommand,
        changed: Mapping[str, bytes],
        readable: Mapping[str, str],
        outcomes: Sequence[CheckOutcome],
        now: SearchLimits,
    ) -> Findings:
        failed = frozenset(o.check_id for o in outcomes if not o.passed and o.status != "skipped")
        return await search(onward, readable, failed, now, held)

    means = Means(
        called="Python",
        offered=lambda seconds: readable_texts(texts[path], seconds=seconds),
        search_on=search_on,
        warnings=lambda before, after: warnings_about(before, after, literals),
    )
    return await recover_by(means, command, files, texts, path, limits)


async def recover_by(
    means: Means,
    command: TestCommand,
    files: Mapping[str, bytes],
    texts: Mapping[str, str],
    path: str,
    limits: SearchLimits,
) -> Findings:
    """As `recover`, in any language.

    Args:
        means: How its files are read and searched.
        command: The project's test command, collected.
        files: The project.
        texts: Path -> text of the files that may be changed.
        path: The file that cannot be read.
        limits: What it may use.

    Raises:
        SandboxError: The wall failed.
    """
    began_s = time.monotonic()
    found = Findings(texts=texts, ended=f"no small change makes it {means.called}")
    offered = await asyncio.to_thread(means.offered, limits.seconds * READING_SHARE)
    end_s = began_s + RUNNING_SHARE * limits.seconds
    runs = await _run_all(means, command, files, path, offered[: means.most_run], end_s)
    found.tried = len(runs)
    found.plausible = [_proposal(run, texts, path) for run in runs if run.passed and not run.failed]
    if found.plausible:
        found.first_s = time.monotonic() - began_s
        found.ended = "the texts that can be read were tried"
    elif runs:
        await _search_on(means, runs, found, command, files, path, limits, began_s)
    found.seconds = time.monotonic() - began_s
    return found


async def _run_all(
    means: Means,
    command: TestCommand,
    files: Mapping[str, bytes],
    path: str,
    offered: Sequence[Readable],
    end_s: float,
) -> list[_Run]:
    """What the tests say of each text, those first of which most pass."""
    gate = asyncio.Semaphore(AT_ONCE)
    last = len(offered)

    async def one(place: int, readable: Readable) -> _Run | None:
        nonlocal last
        async with gate:
            left_s = end_s - time.monotonic()
            if left_s <= 0 or place > last:
                return None
            changed = {**files, path: readable.text.encode("utf-8", "surrogateescape")}
            outcomes = await command.run_some(changed, (), min(means.run_s, max(1.0, left_s)))
            run = _Run(readable=readable, outcomes=tuple(outcomes))
            if run.passed and not run.failed:
                last = min(last, place + means.rivals)
            return run

    tried = [one(place, readable) for place, readable in enumerate(offered)]
    runs = [run for run in await asyncio.gather(*tried) if run is not None]
    return sorted(runs, key=lambda run: (-run.passed, len(run.failed), -round(run.readable.score, 6)))


async def _search_on(
    means: Means,
    runs: Sequence[_Run],
    found: Findings,
    command: TestCommand,
    files: Mapping[str, bytes],
    path: str,
    limits: SearchLimits,
    began_s: float,
) -> None:
    """Search on the texts that pass most, one after the other, for one change more."""
    first = found.tried
    for number, run in enumerate(runs[:MOST_SEARCHED]):
        left_s = limits.seconds - (time.monotonic() - began_s)
        candidates = limits.candidates - found.tried + first
        if left_s < 1.0 or candidates <= 0 or found.plausible:
            break
        changed = {**files, path: run.readable.text.encode("utf-8", "surrogateescape")}
        onward = command.on(changed)
        try:
            await onward.collect()
        except UsageError:
            continue
        is_last = number + 1 == min(MOST_SEARCHED, len(runs))
        share, beyond_s = (left_s, limits.beyond_s) if is_last else (left_s / 2, 0.0)
        now = replace(limits, seconds=share, beyond_s=beyond_s, candidates=candidates)
        readable = {**found.texts, path: run.readable.text}
        inner = await means.search_on(onward, changed, readable, run.outcomes, now)
        _take_over(inner, run, found, path, means)


def _take_over(inner: Findings, run: _Run, found: Findings, path: str, means: Means) -> None:
    """What a search on a text that can be read found, as changes of the text that cannot."""
    base = run.readable

    def whole(proposal: Proposal) -> Proposal:
        text = mutated(base.text, proposal.edits)
        return replace(
            proposal,
            edits=edits_between(found.texts[path], text),
            label=f"{base.label}; {proposal.label}",
            score=base.score * proposal.score * WARNED ** len(means.warnings(base.text, text)),
            operators=(OPERATOR, *proposal.operators),
            swap=False,
        )

    if not found.faults:
        found.faults, found.spectrum = inner.faults, inner.spectrum
    found.plausible += [whole(proposal) for proposal in inner.plausible if proposal.path == path]
    partial: list[tuple[Proposal, Trial]] = [
        (whole(proposal), trial) for proposal, trial in inner.partial if proposal.path == path
    ]
    found.partial += partial
    found.tried += inner.tried
    found.broken += inner.broken
    found.ended = inner.ended
    if found.plausible and found.first_s is None:
        found.first_s = inner.first_s


def _proposal(run: _Run, texts: Mapping[str, str], path: str) -> Proposal:
    return Proposal(
        path=path,
        edits=edits_between(texts[path], run.readable.text),
        label=run.readable.label,
        score=run.readable.score,
        operators=(OPERATOR,),
        swap=False,
    )
