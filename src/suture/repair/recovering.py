"""A source that is no Python: texts that compile are tried first, and the best of them is searched further.

A fault of syntax hides every other: where no such text passes all tests, the search for a small change begins
anew on those that pass most.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from suture.checks.command.test_command import TestCommand
from suture.errors import UsageError
from suture.repair.editing.edits import edits_between, mutated
from suture.repair.gaming.warnings import literals_of, warnings_about
from suture.repair.limits import SearchLimits
from suture.repair.search_result import Findings
from suture.repair.searching.search import search
from suture.repair.syntax import Readable, readable_texts
from suture.repair.trials.records import Proposal, Trial

READING_SHARE = 0.15
"""Of the seconds, the most that looking for texts which compile may take."""
RUNNING_SHARE = 0.5
"""Of the seconds: when they are over, no further text that compiles is run."""
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
    """A text that compiles, and what the tests said of it."""

    readable: Readable
    passed: int
    failed: frozenset[str]


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
    began_s = time.monotonic()
    found = Findings(texts=texts, ended="no small change makes it Python")
    offered = await asyncio.to_thread(readable_texts, texts[path], seconds=limits.seconds * READING_SHARE)
    runs = await _run_all(command, files, path, offered[:MOST_RUN], began_s + RUNNING_SHARE * limits.seconds)
    found.tried = len(runs)
    found.plausible = [_proposal(run, texts, path) for run in runs if run.passed and not run.failed]
    if found.plausible:
        found.first_s = time.monotonic() - began_s
        found.ended = "the texts that compile were tried"
    elif runs:
        await _search_on(runs, found, command, files, path, limits, list(tests), began_s)
    found.seconds = time.monotonic() - began_s
    return found


async def _run_all(
    command: TestCommand,
    files: Mapping[str, bytes],
    path: str,
    offered: Sequence[Readable],
    end_s: float,
) -> list[_Run]:
    """What the tests say of each text, those first of which most pass."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(readable: Readable) -> _Run | None:
        async with gate:
            left_s = end_s - time.monotonic()
            if left_s <= 0:
                return None
            changed = {**files, path: readable.text.encode("utf-8", "surrogateescape")}
            outcomes = await command.run_some(changed, (), min(RUN_S, max(1.0, left_s)))
            failed = frozenset(o.check_id for o in outcomes if not o.passed and o.status != "skipped")
            return _Run(readable=readable, passed=sum(o.passed for o in outcomes), failed=failed)

    runs = [run for run in await asyncio.gather(*map(one, offered)) if run is not None]
    return sorted(runs, key=lambda run: (-run.passed, len(run.failed), -round(run.readable.score, 6)))


async def _search_on(
    runs: Sequence[_Run],
    found: Findings,
    command: TestCommand,
    files: Mapping[str, bytes],
    path: str,
    limits: SearchLimits,
    tests: Sequence[str],
    began_s: float,
) -> None:
    """Search on the texts that pass most, one after the other, for one change more."""
    first = found.tried
    for number, run in enumerate(runs[:MOST_SEARCHED]):
        left_s = limits.seconds - (time.monotonic() - began_s)
        if left_s < 1.0 or found.plausible:
            break
        onward = command.on({**files, path: run.readable.text.encode("utf-8", "surrogateescape")})
        try:
            await onward.collect()
        except UsageError:
            continue
        share = left_s if number + 1 == min(MOST_SEARCHED, len(runs)) else left_s / 2
        now = replace(limits, seconds=share, candidates=max(0, limits.candidates - found.tried + first))
        inner = await search(onward, {**found.texts, path: run.readable.text}, run.failed, now, tests)
        _take_over(inner, run, found, path, literals_of(tests))


def _take_over(inner: Findings, run: _Run, found: Findings, path: str, literals: frozenset[str]) -> None:
    """What a search on a text that compiles found, as changes of the text that does not."""
    base = run.readable

    def whole(proposal: Proposal) -> Proposal:
        text = mutated(base.text, proposal.edits)
        warnings = warnings_about(base.text, text, literals)
        return replace(
            proposal,
            edits=edits_between(found.texts[path], text),
            label=f"{base.label}; {proposal.label}",
            score=base.score * proposal.score * WARNED ** len(warnings),
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
