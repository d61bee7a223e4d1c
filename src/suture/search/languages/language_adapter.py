"""The contracts between the search engine and a language.

The engine owns every policy: localisation, the order of candidates, turns, limits, endings, rivals and ranking. An
adapter parses and changes code, and runs trials and calls.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suture.core.ledger.kinds import SearchEnding
from suture.judge.signs import TamperingWarning
from suture.judge.trials.command_trials import CandidateRunner, start_command_trials
from suture.judge.trials.target_tests import FailingProject
from suture.judge.trials.trial_records import Proposal, Spectrum
from suture.mutation import Edit
from suture.mutation.edits import EditLocation
from suture.mutation.syntax_repair import ParsableText
from suture.search.ordering.candidate_order import Baseline, BaselineCandidates, MutantGenerator
from suture.search.search_records import SearchLimits, SearchResult
from suture.search.tuning import COMPARE_S, COMPOUND_AFTER, MAX_TEXTS_RUN

if TYPE_CHECKING:
    from suture.search.ordering.candidate_order import BaselineCandidates, MutantGenerator
    from suture.search.ranking.call_outcomes import RepairAnswers


LocationFinder = Callable[[str, str, Sequence[Edit]], EditLocation | None]
"""Takes the path and the source of a file and the edits of a change. Returns the smallest location that holds it;
`None` if it spans several."""
BlockStopper = Callable[[str, str, int], Sequence[tuple[Edit, ...]]]
"""Takes the path and the source of a file and an `EditLocation.start`. Returns, for each block of the statement there,
edits that raise an error in the block."""


class TrialSession(ABC):
    """The trials of one search: the baseline run of the unchanged code, then runners for candidates."""

    @abstractmethod
    def start(self) -> BaselineCandidates:
        """Start the baseline run and the generation of candidates in the background."""

    @abstractmethod
    async def start_runners(
        self, spectrum: Spectrum, full_spectrum: asyncio.Task[Spectrum]
    ) -> Sequence[CandidateRunner]:
        """Return what tries candidates; empty if trials show no failing test.

        Args:
            spectrum: What the baseline run showed so far.
            full_spectrum: A task that returns the complete spectrum.
        """

    async def start_fallback(self) -> Sequence[CandidateRunner] | None:
        """Return slower runners if the first ones proved unable to run any test; `None` if they did not.

        It is empty if the slower trials show no failing test.
        """
        return None

    @abstractmethod
    def explain_no_runner(self, spectrum: Spectrum) -> SearchEnding:
        """Return why trials show no failing test."""

    @abstractmethod
    async def close(self) -> None:
        """End the processes of the session; safe to call twice."""


@dataclass(frozen=True, kw_only=True)
class LanguageAdapter:
    """Parses, changes and runs code of one language.

    Attributes:
        generate_mutants: Yields the single changes of a file.
        find_location: Finds the statement that holds a change.
        find_block_stops: Finds the edits that raise an error in the blocks of a statement.
        collect_literals: Returns the distinctive literals of test files (path -> text).
        find_warnings: Takes a path, the source before and after a change, and the literals of the tests. Returns the
            tampering warnings about the change.
        open_session: Opens the trials of a search.
        parses: Takes a path and a source. Returns whether the source parses.
        find_parsable_texts: Takes a project, the path of a broken file, the line at which the runtime rejects it (0 if
            the parser knows better), and seconds. Returns versions of the file that parse, the likeliest first.
        answer_calls: Takes a search's result, some repairs, the project, a seed, and seconds. Runs the same calls on
            all of these repairs.
        render_answer: Takes an answer of such a call. Returns it as people read it.
        distance_factor: Takes the source before a change, its edits, and the source after it. Returns a factor on its
            score, which is lower for a change that is far from the original, or redundant such as `+ 0`.
        are_equal: Takes a source and two changes of it. Returns whether they are known to write equal expressions.
        is_shorter: Takes two sources. Returns whether the first one has fewer nodes.
        compound_after: Tried candidates after which compound changes are tried even if none is promising.
        tries_pairs: Whether pairs of likely changes are tried when all others are used up.
        compare_s: Maximum wall-clock seconds for comparing repairs on the same calls.
        max_texts_run: Number of parsable sources of a broken file on which the tests are run.
        max_text_rivals: How many of them after the first with which all tests pass.
        text_patience: The timeout of the tests on a parsable source is at least this multiple of their time on the
            broken file.
    """

    generate_mutants: MutantGenerator
    find_location: LocationFinder
    find_block_stops: BlockStopper
    collect_literals: Callable[[Mapping[str, str]], frozenset[str]]
    find_warnings: Callable[[str, str, str, frozenset[str]], tuple[TamperingWarning, ...]]
    open_session: Callable[[FailingProject, SearchLimits], TrialSession]
    parses: Callable[[str, str], bool]
    find_parsable_texts: Callable[[FailingProject, str, int, float], list[ParsableText]]
    answer_calls: Callable[
        [SearchResult, Sequence[Proposal], FailingProject, int, float], Awaitable[RepairAnswers]
    ]
    render_answer: Callable[[str], str]
    distance_factor: Callable[[str, Sequence[Edit], str], float] = lambda before, edits, after: 1.0
    are_equal: Callable[[str, Sequence[Edit], Sequence[Edit]], bool] = lambda text, left, right: False
    is_shorter: Callable[[str, str], bool] = lambda text, other: False
    compound_after: int = COMPOUND_AFTER
    tries_pairs: bool = False
    compare_s: float = COMPARE_S
    max_texts_run: int = MAX_TEXTS_RUN
    max_text_rivals: int = MAX_TEXTS_RUN
    text_patience: float = 0.0


class CommandSession(TrialSession):
    """Runs of the user's command.

    Args:
        baseline: The trials of the unchanged code, which show the suspicious lines.
        generate: Generates the mutants of a file.
    """

    def __init__(
        self, project: FailingProject, limits: SearchLimits, baseline: Baseline, generate: MutantGenerator
    ) -> None:
        self._project, self._limits = project, limits
        self._baseline, self._generate = baseline, generate
        self._candidates: BaselineCandidates | None = None

    def start(self) -> BaselineCandidates:
        """Start the baseline run and the generation of candidates."""
        self._candidates = BaselineCandidates(
            self._baseline, self._project.texts, self._limits, self._generate, self._project.outcomes
        )
        return self._candidates

    async def start_runners(
        self, spectrum: Spectrum, full_spectrum: asyncio.Task[Spectrum]
    ) -> Sequence[CandidateRunner]:
        """Return runs of the command; none if the failing tests pass when it runs again."""
        return await start_command_trials(self._project, self._limits.max_seconds)

    def explain_no_runner(self, spectrum: Spectrum) -> SearchEnding:
        """Return that the tests pass in a trial of the unchanged code."""
        return "trials_disagree"

    async def close(self) -> None:
        """End the baseline run and its processes."""
        await (self._candidates or self._baseline).close()
