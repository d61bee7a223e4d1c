"""A source that cannot be read: texts that can are tried first, and the best of them is searched further.

A fault of syntax hides every other: where no such text passes all tests, the search for a small change begins
anew on those that pass most.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from suture.core.records import CheckOutcome
from suture.errors import UsageError
from suture.judge.tampering import literals_of, warnings_about
from suture.judge.trials.trial_records import Proposal
from suture.mutation.edits import compute_line_edits, apply_edits
from suture.mutation.syntax_repair import ParsableText, find_parsable_texts
from suture.search.failing_project import FailingProject
from suture.search.search_limits import SearchLimits
from suture.search.ranking.repair_scoring import WARNED
from suture.search.search_result import SearchResult
from suture.search.engine.python_search import search_python

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
OPERATOR = "syntax"


@dataclass(frozen=True, kw_only=True)
class _Run:
    """A text that can be read, and what the tests said of it."""

    readable: ParsableText
    outcomes: tuple[CheckOutcome, ...]

    @property
    def passed(self) -> int:
        return sum(outcome.passed for outcome in self.outcomes)

    @property
    def failed(self) -> frozenset[str]:
        return frozenset(o.check_id for o in self.outcomes if not o.passed and o.status != "skipped")


@dataclass(frozen=True, kw_only=True)
class RecoveryMethods:
    """How the files of a language are read and searched.

    Attributes:
        called: The language.
        offered: Texts that can be read, found in so many seconds, the likeliest first.
        search_on: A search for a project whose files can all be read.
        warnings: What is suspicious about a change of a text into another.
        run_s: Wall-clock seconds of the tests on one text, at most.
        rivals: Texts that are run after the first with which all tests pass.
        most_run: Texts that are run at most.
    """

    called: str
    offered: Callable[[float], list[ParsableText]]
    search_on: Callable[[FailingProject, SearchLimits], Awaitable[SearchResult]]
    warnings: Callable[[str, str], Sequence[str]]
    run_s: float = RUN_S
    rivals: int = MOST_RUN
    most_run: int = MOST_RUN


async def recover_python(
    project: FailingProject, path: str, limits: SearchLimits, tests: Iterable[str] = ()
) -> SearchResult:
    """Search for changes with which all tests pass, where a file cannot be read.

    Args:
        project: It; its command is pytest.
        path: The file that is no Python.
        limits: What it may use.
        tests: Sources of the tests.

    Raises:
        SandboxError: The wall failed.
    """
    held = list(tests)
    literals = literals_of(held)

    async def search_on(onward: FailingProject, now: SearchLimits) -> SearchResult:
        failed = frozenset(o.check_id for o in onward.outcomes if not o.passed and o.status != "skipped")
        return await search_python(onward.command, onward.texts, failed, now, held)

    means = RecoveryMethods(
        called="Python",
        offered=lambda seconds: find_parsable_texts(project.texts[path], seconds=seconds),
        search_on=search_on,
        warnings=lambda before, after: warnings_about(before, after, literals),
    )
    return await recover_with(means, project, path, limits)


async def recover_with(means: RecoveryMethods, project: FailingProject, path: str, limits: SearchLimits) -> SearchResult:
    """As `recover`, in any language.

    Args:
        means: How its files are read and searched.
        project: What fails, and how its tests are run.
        path: The file that cannot be read.
        limits: What it may use.

    Raises:
        SandboxError: The wall failed.
    """
    found = SearchResult(texts=project.texts, ending=f"no small change makes it {means.called}")
    recovery = _Recovery(means, project, path, limits, found)
    offered = await asyncio.to_thread(means.offered, limits.max_seconds * READING_SHARE)
    runs = await recovery.run_all(offered[: means.most_run])
    found.tried_count = len(runs)
    found.plausible = [recovery.proposal(run.readable) for run in runs if run.passed and not run.failed]
    if found.plausible:
        found.first_repair_s = recovery.now_s()
        found.ending = "the texts that can be read were tried"
    elif runs:
        await recovery.search_on(runs)
    found.seconds = recovery.now_s()
    return found


class _Recovery:
    """One file that cannot be read; the arguments are those of `recover_by`, and what is found."""

    def __init__(
        self,
        means: RecoveryMethods,
        project: FailingProject,
        path: str,
        limits: SearchLimits,
        found: SearchResult,
    ) -> None:
        self._means, self._project = means, project
        self._path, self._limits, self._found = path, limits, found
        self._began_s = time.monotonic()

    def now_s(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self._began_s

    def _with(self, readable: ParsableText) -> dict[str, bytes]:
        return {**self._project.files, self._path: readable.text.encode("utf-8", "surrogateescape")}

    async def run_all(self, offered: Sequence[ParsableText]) -> list[_Run]:
        """What the tests say of each text, those first of which most pass."""
        gate = asyncio.Semaphore(AT_ONCE)
        last = len(offered)

        async def one(place: int, readable: ParsableText) -> _Run | None:
            nonlocal last
            async with gate:
                left_s = RUNNING_SHARE * self._limits.max_seconds - self.now_s()
                if left_s <= 0 or place > last:
                    return None
                wall_s = min(self._means.run_s, max(1.0, left_s))
                outcomes = await self._project.command.run_selected(self._with(readable), (), wall_s)
                run = _Run(readable=readable, outcomes=tuple(outcomes))
                if run.passed and not run.failed:
                    last = min(last, place + self._means.rivals)
                return run

        tried = [one(place, readable) for place, readable in enumerate(offered)]
        runs = [run for run in await asyncio.gather(*tried) if run is not None]
        return sorted(runs, key=lambda run: (-run.passed, len(run.failed), -round(run.readable.score, 6)))

    async def search_on(self, runs: Sequence[_Run]) -> None:
        """Search on the texts that pass most, one after the other, for one change more."""
        found, limits, first = self._found, self._limits, self._found.tried_count
        for number, run in enumerate(runs[:MOST_SEARCHED]):
            left_s = limits.max_seconds - self.now_s()
            candidates = limits.max_candidates - found.tried_count + first
            if left_s < 1.0 or candidates <= 0 or found.plausible:
                break
            changed = self._with(run.readable)
            command = self._project.command.copy_with_files(changed)
            try:
                await command.collect()
            except UsageError:
                continue
            is_last = number + 1 == min(MOST_SEARCHED, len(runs))
            share, beyond_s = (left_s, limits.reserve_s) if is_last else (left_s / 2, 0.0)
            now = replace(limits, seconds=share, beyond_s=beyond_s, candidates=candidates)
            texts = {**found.texts, self._path: run.readable.text}
            onward = replace(
                self._project, command=command, files=changed, texts=texts, outcomes=run.outcomes
            )
            inner = await self._means.search_on(onward, now)
            self._take_over(inner, run.readable)

    def _take_over(self, inner: SearchResult, base: ParsableText) -> None:
        """What a search on a text that can be read found, as changes of the text that cannot."""
        found, path = self._found, self._path
        if not found.suspect_lines:
            found.suspect_lines, found.spectrum = inner.suspect_lines, inner.spectrum
        found.plausible += [self.proposal(base, one) for one in inner.plausible if one.path == path]
        found.partial += [(self.proposal(base, one), t) for one, t in inner.partial if one.path == path]
        found.tried_count += inner.tried_count
        found.operator_failures += inner.operator_failures
        found.ending = inner.ending
        if found.plausible and found.first_repair_s is None:
            found.first_repair_s = inner.first_repair_s

    def proposal(self, base: ParsableText, then: Proposal | None = None) -> Proposal:
        """The change of the file into a text that can be read, and of that by another change."""
        text = base.text if then is None else apply_edits(base.text, then.edits)
        alone = Proposal(
            path=self._path,
            edits=compute_line_edits(self._found.texts[self._path], text),
            label=base.label,
            score=base.score,
            operators=(OPERATOR,),
            swap=False,
        )
        if then is None:
            return alone
        return replace(
            alone,
            label=f"{base.label}; {then.label}",
            score=base.score * then.score * WARNED ** len(self._means.warnings(base.text, text)),
            operators=(OPERATOR, *then.operators),
        )
