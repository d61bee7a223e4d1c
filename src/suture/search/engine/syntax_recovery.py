"""The search as a whole: a file that does not parse is made to parse first, then likely changes are tried.

A *parsable source* (`ParsableText`) is a version of the file that parses and differs little from it. The tests are run
on the likeliest parsable sources. Often one of them passes all tests. If none does, the syntax error was hiding another
fault. Then the usual search for a small change starts on each of the parsable sources that pass most tests.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from suture.core.records import CheckOutcome
from suture.errors import UsageError
from suture.judge.trials.target_tests import FailingProject
from suture.judge.trials.trial_records import Proposal
from suture.judge.trials.tuning import PARALLEL_RUNS
from suture.mutation import apply_edits
from suture.mutation.edits import compute_line_edits
from suture.mutation.syntax_repair import ParsableText
from suture.search import tuning
from suture.search.engine.search_engine import search_repairs
from suture.search.languages.language_adapter import TrialSession
from suture.search.languages.tree_adapter import get_adapter
from suture.search.ordering.reverts import Hunk
from suture.search.search_records import SearchLimits, SearchResult

REJECTIONS = ("SyntaxError", "IndentationError", "TabError")
"""Exceptions of runtimes for sources that they reject, even if a parser finds no error."""
PARSE_MESSAGES = re.compile(
    r"(?i)syntax|indent|unexpected|expect(?:ed|ing)|unterminated|unclosed|missing|pars(?:e|ing)|transform|taberror"
)
"""Matches what runners report about a file that they cannot parse."""
OPERATOR = "syntax"
"""What `Proposal.operators` names for a change that makes the file parse."""


@dataclass(frozen=True, kw_only=True)
class _TextRun:
    """A parsable source and the outcomes of the tests on it."""

    parsable: ParsableText
    outcomes: tuple[CheckOutcome, ...]

    @property
    def passed_count(self) -> int:
        return sum(outcome.passed for outcome in self.outcomes)

    @property
    def failing_tests(self) -> frozenset[str]:
        return _failing_tests(self.outcomes)

    @property
    def is_plausible(self) -> bool:
        return bool(self.passed_count) and not self.failing_tests


def _failing_tests(outcomes: Iterable[CheckOutcome]) -> frozenset[str]:
    return frozenset(o.check_id for o in outcomes if not o.passed and o.status != "skipped")


@dataclass(frozen=True, kw_only=True)
class UnparsableFile:
    """A file that does not parse.

    Attributes:
        path: Its path from the project's root.
        line: The line that the runtime reports; 0 if the parser finds an error itself, which is more exact.
    """

    path: str
    line: int = 0


def find_unparsable_file(project: FailingProject) -> UnparsableFile | None:
    """Return the editable file that does not parse according to a failing test; `None` if there is none.

    A file that our parser rejects comes before one that only the runtime rejects.
    """
    adapter, texts = get_adapter(project.language), project.texts
    counterexamples = [o.counterexample for o in project.outcomes if o.counterexample is not None]
    messages = [(example.file, f"{example.exception} {example.actual}") for example in counterexamples]
    for path, text in sorted(texts.items()):
        is_named = any(
            (file == path or path in message) and PARSE_MESSAGES.search(message) for file, message in messages
        )
        if is_named and not adapter.parses(path, text):
            return UnparsableFile(path=path)
    for example in counterexamples:
        if example.exception.startswith(REJECTIONS) and example.file in texts and example.line:
            return UnparsableFile(path=example.file, line=example.line)
    return None


async def recover_file(
    project: FailingProject, unparsable: UnparsableFile, limits: SearchLimits
) -> SearchResult:
    """Search for changes with which all tests pass, where a file does not parse.

    Args:
        limits: The limits of the search.

    Raises:
        SandboxError: The sandbox failed.
    """
    return await _FileRecovery(project, unparsable, limits).run()


class _FileRecovery:
    """The recovery of one file."""

    def __init__(self, project: FailingProject, unparsable: UnparsableFile, limits: SearchLimits) -> None:
        self._project, self._unparsable, self._limits = project, unparsable, limits
        self._adapter, self._path = get_adapter(project.language), unparsable.path
        self._literals = self._adapter.collect_literals(project.test_texts())
        self._began_s = time.monotonic()
        self._result = SearchResult(texts=project.texts, ending="no_parsable_text")

    async def run(self) -> SearchResult:
        """Run the tests on the parsable sources, and search further if none of them passes all tests."""
        result = self._result
        seconds = self._limits.max_seconds * tuning.PARSE_SEARCH_SHARE
        parsable_texts = await asyncio.to_thread(
            self._adapter.find_parsable_texts, self._project, self._path, self._unparsable.line, seconds
        )
        runs = await self._run_texts(parsable_texts[: self._adapter.max_texts_run])
        result.tried_count = len(runs)
        result.plausible = [self._build_proposal(run.parsable) for run in runs if run.is_plausible]
        if result.plausible:
            result.first_repair_s = self._now_s()
            result.ending = "parsable_texts_tried"
        elif runs:
            await self._search_texts(runs)
        result.seconds = self._now_s()
        return result

    def _now_s(self) -> float:
        """Return the seconds since the recovery began."""
        return time.monotonic() - self._began_s

    def _files_with(self, parsable: ParsableText) -> dict[str, bytes]:
        return {**self._project.files, self._path: parsable.text.encode("utf-8", "surrogateescape")}

    async def _run_texts(self, parsable_texts: Sequence[ParsableText]) -> list[_TextRun]:
        """Run the tests on each parsable source; return the runs, those with most passing tests first."""
        semaphore = asyncio.Semaphore(PARALLEL_RUNS)
        last_index, max_s = (
            len(parsable_texts),
            max(tuning.TEXT_RUN_TIMEOUT_S, self._adapter.text_patience * self._project.wall_s),
        )
        text_runs: dict[int, _TextRun] = {}

        async def run(index: int, parsable: ParsableText) -> None:
            nonlocal last_index
            async with semaphore:
                remaining_s = tuning.TEXT_RUNS_SHARE * self._limits.max_seconds - self._now_s()
                if remaining_s <= 0 or index > last_index:
                    return
                timeout_s = min(max_s, max(tuning.MIN_TEXT_RUN_S, remaining_s))
                outcomes = await self._project.command.run_selected(self._files_with(parsable), (), timeout_s)
                text_runs[index] = _TextRun(parsable=parsable, outcomes=tuple(outcomes))
                if text_runs[index].is_plausible:
                    last_index = min(last_index, index + self._adapter.max_text_rivals)

        await asyncio.gather(*(run(index, parsable) for index, parsable in enumerate(parsable_texts)))
        # Scores are rounded, so that those that differ only by a floating-point error keep their order.
        return sorted(
            (text_runs[index] for index in sorted(text_runs)),
            key=lambda run: (-run.passed_count, len(run.failing_tests), -round(run.parsable.score, 6)),
        )

    async def _search_texts(self, runs: Sequence[_TextRun]) -> None:
        """Search for one more change of the parsable sources that pass most tests, one after the other."""
        result, limits = self._result, self._limits
        for number, run in enumerate(runs[: tuning.MAX_TEXTS_SEARCHED]):
            remaining_s = limits.max_seconds - self._now_s()
            # The parsable sources themselves do not count as candidates of these searches.
            max_candidates = limits.max_candidates - (result.tried_count - len(runs))
            if remaining_s < tuning.MIN_TEXT_SEARCH_S or max_candidates <= 0 or result.plausible:
                break
            files = self._files_with(run.parsable)
            command = self._project.command.copy_with_files(files)
            try:
                await command.collect()
            except UsageError:  # no test can be collected with this version
                continue
            is_last = number + 1 == min(tuning.MAX_TEXTS_SEARCHED, len(runs))
            text_limits = replace(
                limits,
                max_seconds=remaining_s if is_last else tuning.TEXT_SEARCH_SHARE * remaining_s,
                reserve_s=limits.reserve_s if is_last else 0.0,
                max_candidates=max_candidates,
            )
            project = replace(
                self._project,
                command=command,
                files=files,
                texts={**result.texts, self._path: run.parsable.text},
                outcomes=run.outcomes,
            )
            self._add_result(await search_repairs(project, text_limits), run.parsable)

    def _add_result(self, inner: SearchResult, base: ParsableText) -> None:
        """Add what a search on a parsable source has found, as changes of the original file.

        Changes of other files are left out: they need the change that makes this file parse, and a proposal
        changes only one file.
        """
        result = self._result
        if not result.suspect_lines:
            result.suspect_lines, result.spectrum = inner.suspect_lines, inner.spectrum
        for proposal in inner.plausible:
            if proposal.path == self._path:
                result.plausible.append(self._build_proposal(base, proposal))
        for proposal, trial in inner.partial:
            if proposal.path == self._path:
                result.partial.append((self._build_proposal(base, proposal), trial))
        for proposal, trial in inner.near_misses:
            if proposal.path == self._path:
                result.near_misses.append((self._build_proposal(base, proposal), trial))
        result.tried_count += inner.tried_count
        result.operator_failures += inner.operator_failures
        result.ending = inner.ending
        if result.plausible and result.first_repair_s is None:
            result.first_repair_s = inner.first_repair_s

    def _build_proposal(self, base: ParsableText, further: Proposal | None = None) -> Proposal:
        """Return the change that turns the file into a parsable source."""
        text = base.text if further is None else apply_edits(base.text, further.edits)
        proposal = Proposal(
            path=self._path,
            edits=compute_line_edits(self._result.texts[self._path], text),
            label=base.label,
            score=base.score,
            operators=(OPERATOR,),
            is_swappable=False,  # no process can have imported a file that does not parse
        )
        if further is None:
            return proposal
        warnings = self._adapter.find_warnings(self._path, base.text, text, self._literals)
        return replace(
            proposal,
            label=f"{base.label}; {further.label}",
            score=base.score * further.score * tuning.WARNING_FACTOR ** len(warnings),
            operators=(OPERATOR, *further.operators),
        )


async def find_repairs(
    project: FailingProject,
    limits: SearchLimits,
    hunks: Sequence[Hunk] = (),
    session: TrialSession | None = None,
) -> SearchResult:
    """Search for changes with which all tests pass, also where a file does not parse.

    Args:
        limits: The limits of the search.
        hunks: What changed when the tests began to fail. Reverts of it are tried before anything else.
        session: Trials that were started for this search; they end with it.

    Raises:
        SandboxError: The sandbox failed.
    """
    unparsable = find_unparsable_file(project)
    if unparsable is None:
        return await search_repairs(project, limits, hunks, session)
    if hunks:
        # No operator applies to a file that does not parse, so this search only reverts changes.
        result = await search_repairs(project, limits, hunks, session)
        remaining = limits.minus(result.seconds, result.tried_count)
        return result if result.plausible else await recover_file(project, unparsable, remaining)
    if session is not None:
        await session.close()  # No test ran in it, because the file does not parse.
    # A line is given if only the runtime rejects the file, for a reason that may not be its syntax.
    is_certain = not unparsable.line
    recovery_s = limits.max_seconds * (1.0 if is_certain else tuning.UNCERTAIN_RECOVERY_SHARE)
    result = await recover_file(project, unparsable, replace(limits, max_seconds=recovery_s))
    remaining = limits.minus(result.seconds, result.tried_count)
    is_over = remaining.max_seconds < tuning.MIN_SEARCH_S or not remaining.max_candidates
    if result.plausible or (result.tried_count and is_certain) or is_over:
        return result
    return await search_repairs(project, remaining)
