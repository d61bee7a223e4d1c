"""Repairs files that do not parse: parsable texts are run first, and the best of them are searched further.

A syntax error hides every other fault. Where no parsable text passes all tests, the search for a small
change starts again on the texts that pass most tests.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from suture.core.records import CheckOutcome
from suture.errors import UsageError
from suture.judge.tampering import TamperingWarning, collect_literals, find_tampering_warnings
from suture.judge.trials.trial_records import Proposal
from suture.mutation import apply_edits
from suture.mutation.edits import compute_line_edits
from suture.mutation.syntax_repair import ParsableText, find_parsable_texts
from suture.search.engine.python_search import search_python
from suture.search.search_records import FailingProject, SearchLimits, SearchResult
from suture.search.tuning import (
    MAX_TEXTS_RUN,
    MAX_TEXTS_SEARCHED,
    PARALLEL_RUNS,
    PARSE_SEARCH_SHARE,
    TEXT_RUN_TIMEOUT_S,
    TEXT_RUNS_SHARE,
    WARNING_FACTOR,
)

OPERATOR = "syntax"


@dataclass(frozen=True, kw_only=True)
class _TextRun:
    """A parsable text and the outcomes of the tests on it."""

    parsable: ParsableText
    outcomes: tuple[CheckOutcome, ...]

    @property
    def passed_count(self) -> int:
        return sum(outcome.passed for outcome in self.outcomes)

    @property
    def failed(self) -> frozenset[str]:
        return frozenset(o.check_id for o in self.outcomes if not o.passed and o.status != "skipped")

    @property
    def is_plausible(self) -> bool:
        return bool(self.passed_count) and not self.failed


@dataclass(frozen=True, kw_only=True)
class RecoveryMethods:
    """How the files of a language are parsed and searched.

    Attributes:
        find_texts: Returns parsable texts, the likeliest first, within some seconds.
        search: Searches a project whose files all parse.
        find_warnings: Returns the warnings about a change of one text into another.
        run_timeout_s: Wall-clock timeout of the tests on one text.
        max_rivals: Texts that are run after the first with which all tests pass.
        max_run: Texts that are run at most.
    """

    find_texts: Callable[[float], list[ParsableText]]
    search: Callable[[FailingProject, SearchLimits], Awaitable[SearchResult]]
    find_warnings: Callable[[str, str], Sequence[TamperingWarning]]
    run_timeout_s: float = TEXT_RUN_TIMEOUT_S
    max_rivals: int = MAX_TEXTS_RUN
    max_run: int = MAX_TEXTS_RUN


async def recover_python(
    project: FailingProject, path: str, limits: SearchLimits, tests: Iterable[str] = ()
) -> SearchResult:
    """Search for changes with which all tests pass, where a Python file does not parse.

    Args:
        project: The project; its command is pytest.
        path: The file that does not parse.
        limits: The limits of the search.
        tests: Sources of the tests.

    Raises:
        SandboxError: The sandbox failed.
    """
    sources = list(tests)
    literals = collect_literals(sources)

    async def search(parsable: FailingProject, limits: SearchLimits) -> SearchResult:
        failed = frozenset(o.check_id for o in parsable.outcomes if not o.passed and o.status != "skipped")
        return await search_python(parsable.command, parsable.texts, failed, limits, sources)

    methods = RecoveryMethods(
        find_texts=lambda seconds: find_parsable_texts(project.texts[path], seconds=seconds),
        search=search,
        find_warnings=lambda before, after: find_tampering_warnings(before, after, literals),
    )
    return await recover_with(methods, project, path, limits)


async def recover_with(
    methods: RecoveryMethods, project: FailingProject, path: str, limits: SearchLimits
) -> SearchResult:
    """Search for changes with which all tests pass, where a file of any language does not parse.

    Args:
        methods: How files of the language are parsed and searched.
        project: The project.
        path: The file that does not parse.
        limits: The limits of the search.

    Raises:
        SandboxError: The sandbox failed.
    """
    result = SearchResult(texts=project.texts, ending="no_parsable_text")
    recovery = _Recovery(methods, project, path, limits, result)
    offered = await asyncio.to_thread(methods.find_texts, limits.max_seconds * PARSE_SEARCH_SHARE)
    runs = await recovery.run_texts(offered[: methods.max_run])
    result.tried_count = len(runs)
    result.plausible = [recovery.proposal(run.parsable) for run in runs if run.is_plausible]
    if result.plausible:
        result.first_repair_s = recovery.now_s()
        result.ending = "parsable_texts_tried"
    elif runs:
        await recovery.search_texts(runs)
    result.seconds = recovery.now_s()
    return result


class _Recovery:
    """The recovery of one file; the arguments are those of `recover_with`, and its result."""

    def __init__(
        self,
        methods: RecoveryMethods,
        project: FailingProject,
        path: str,
        limits: SearchLimits,
        result: SearchResult,
    ) -> None:
        self._methods, self._project = methods, project
        self._path, self._limits, self._result = path, limits, result
        self._began_s = time.monotonic()

    def now_s(self) -> float:
        """Return the seconds since the recovery began."""
        return time.monotonic() - self._began_s

    def _files_with(self, parsable: ParsableText) -> dict[str, bytes]:
        return {**self._project.files, self._path: parsable.text.encode("utf-8", "surrogateescape")}

    async def run_texts(self, offered: Sequence[ParsableText]) -> list[_TextRun]:
        """Run the tests on each text; return the runs, those that pass most tests first."""
        semaphore = asyncio.Semaphore(PARALLEL_RUNS)
        last = len(offered)

        async def run(place: int, parsable: ParsableText) -> _TextRun | None:
            nonlocal last
            async with semaphore:
                left_s = TEXT_RUNS_SHARE * self._limits.max_seconds - self.now_s()
                if left_s <= 0 or place > last:
                    return None
                timeout_s = min(self._methods.run_timeout_s, max(1.0, left_s))
                outcomes = await self._project.command.run_selected(self._files_with(parsable), (), timeout_s)
                text_run = _TextRun(parsable=parsable, outcomes=tuple(outcomes))
                if text_run.is_plausible:
                    last = min(last, place + self._methods.max_rivals)
                return text_run

        runs = await asyncio.gather(*(run(place, parsable) for place, parsable in enumerate(offered)))
        return sorted(
            (one for one in runs if one is not None),
            key=lambda one: (-one.passed_count, len(one.failed), -round(one.parsable.score, 6)),
        )

    async def search_texts(self, runs: Sequence[_TextRun]) -> None:
        """Search the texts that pass most tests, one after the other, for one more change."""
        result, limits, first = self._result, self._limits, self._result.tried_count
        for number, run in enumerate(runs[:MAX_TEXTS_SEARCHED]):
            left_s = limits.max_seconds - self.now_s()
            candidates = limits.max_candidates - result.tried_count + first
            if left_s < 1.0 or candidates <= 0 or result.plausible:
                break
            files = self._files_with(run.parsable)
            command = self._project.command.copy_with_files(files)
            try:
                await command.collect()
            except UsageError:
                continue
            is_last = number + 1 == min(MAX_TEXTS_SEARCHED, len(runs))
            seconds, reserve_s = (left_s, limits.reserve_s) if is_last else (left_s / 2, 0.0)
            own_limits = replace(limits, max_seconds=seconds, reserve_s=reserve_s, max_candidates=candidates)
            texts = {**result.texts, self._path: run.parsable.text}
            parsable_project = replace(
                self._project, command=command, files=files, texts=texts, outcomes=run.outcomes
            )
            self._add(await self._methods.search(parsable_project, own_limits), run.parsable)

    def _add(self, inner: SearchResult, base: ParsableText) -> None:
        """Add the result of a search on a parsable text, as changes of the original file."""
        result, path = self._result, self._path
        if not result.suspect_lines:
            result.suspect_lines, result.spectrum = inner.suspect_lines, inner.spectrum
        result.plausible += [self.proposal(base, one) for one in inner.plausible if one.path == path]
        result.partial += [(self.proposal(base, one), t) for one, t in inner.partial if one.path == path]
        result.tried_count += inner.tried_count
        result.operator_failures += inner.operator_failures
        result.ending = inner.ending
        if result.plausible and result.first_repair_s is None:
            result.first_repair_s = inner.first_repair_s

    def proposal(self, base: ParsableText, further: Proposal | None = None) -> Proposal:
        """Return the change of the file into a parsable text, and by a further change of that text."""
        text = base.text if further is None else apply_edits(base.text, further.edits)
        alone = Proposal(
            path=self._path,
            edits=compute_line_edits(self._result.texts[self._path], text),
            label=base.label,
            score=base.score,
            operators=(OPERATOR,),
            is_swappable=False,
        )
        if further is None:
            return alone
        warnings = self._methods.find_warnings(base.text, text)
        return replace(
            alone,
            label=f"{base.label}; {further.label}",
            score=base.score * further.score * WARNING_FACTOR ** len(warnings),
            operators=(OPERATOR, *further.operators),
        )
