"""JavaScript, TypeScript and Go, parsed by tree-sitter, with trials by drivers or by the user's command."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial

from suture.core.records import Language
from suture.judge.signs import TamperingWarning
from suture.judge.signs.tree_signs import collect_tree_literals, find_tree_warnings
from suture.judge.trials.command_trials import CandidateRunner, start_command_trials
from suture.judge.trials.drivers.driver_trials import EarlyBaseline, start_early_baseline
from suture.judge.trials.target_tests import FailingProject
from suture.judge.trials.trial_records import Spectrum
from suture.mutation import Mutant, generate_tree_mutants
from suture.mutation.changes import FaultReporter
from suture.mutation.syntax_repair import ParsableText
from suture.mutation.syntax_repair.tree_repair import find_parsable_trees, tree_has_error
from suture.mutation.tree_sitter.tree_locations import find_tree_block_stops, find_tree_location
from suture.project.languages import LANGUAGES, is_source
from suture.project.workspace import decode_text
from suture.search import tuning
from suture.search.languages.language_adapter import CommandSession, LanguageAdapter
from suture.search.languages.python_adapter import PYTHON
from suture.search.ordering.candidate_order import ObservedValues
from suture.search.ranking.tree_calls import answer_calls, render_answer
from suture.search.search_records import SearchLimits


def build_tree_adapter(language: Language) -> LanguageAdapter:
    """Return the adapter of a language that has a grammar."""

    def generate(
        path: str,
        text: str,
        lines: Mapping[int, float],
        on_fault: FaultReporter | None,
        observed: ObservedValues,
    ) -> Iterator[Mutant]:
        return generate_tree_mutants(text, path, language, lines, differences=observed.differences)

    def find_warnings(
        path: str, before: str, after: str, literals: frozenset[str]
    ) -> tuple[TamperingWarning, ...]:
        return find_tree_warnings(before, after, path, language, literals)

    calls = LANGUAGES[language].calls
    is_compiled = calls is not None and calls.compiles
    return LanguageAdapter(
        generate_mutants=generate,
        find_location=partial(find_tree_location, language),
        find_block_stops=partial(find_tree_block_stops, language),
        collect_literals=lambda tests: collect_tree_literals(tests.items(), language),
        find_warnings=find_warnings,
        open_session=lambda project, limits: DriverSession(project, limits),
        parses=lambda path, text: not tree_has_error(text, path, language),
        find_parsable_texts=_find_parsable_texts,
        answer_calls=answer_calls,
        render_answer=partial(render_answer, language),
        compound_after=tuning.LIKELIEST_SINGLES,
        tries_pairs=True,
        compare_s=tuning.COMPILED_COMPARE_S if is_compiled else tuning.COMPARE_S,
        max_texts_run=tuning.MAX_TREE_TEXTS_RUN,
        max_text_rivals=tuning.TREE_TEXT_RIVALS,
        text_patience=tuning.TREE_TEXT_PATIENCE,
    )


def _find_parsable_texts(
    project: FailingProject, path: str, reported_line: int, seconds: float
) -> list[ParsableText]:
    """Return versions of a broken file that parse; other sources show which tokens are likely."""
    language = project.language
    sources = {
        name: decode_text(content) for name, content in project.files.items() if is_source(name, language)
    }
    texts = {**sources, **project.texts}
    return find_parsable_trees(path, texts, language, seconds=seconds, reported_line=reported_line)


class DriverSession(CommandSession):
    """Trials by a driver; by runs of the user's command if no driver can run the tests.

    Args:
        early: A baseline run that was started before.
    """

    def __init__(
        self, project: FailingProject, limits: SearchLimits, early: EarlyBaseline | None = None
    ) -> None:
        self._early = early or start_early_baseline(project, limits.max_seconds)
        generate = build_tree_adapter(project.language).generate_mutants
        super().__init__(project, limits, self._early or _NoBaseline(), generate)

    async def start_runners(
        self, spectrum: Spectrum, full_spectrum: asyncio.Task[Spectrum]
    ) -> Sequence[CandidateRunner]:
        """Return the driver if it reports failing tests, otherwise runs of the command."""
        if self._early is not None and spectrum.target_tests:
            return [self._early.trials]
        return await super().start_runners(spectrum, full_spectrum)

    async def start_fallback(self) -> Sequence[CandidateRunner] | None:
        """Return runs of the command if the driver could not run any test."""
        if self._early is None or not self._early.trials.is_lost:
            return None
        return await start_command_trials(self._project, self._limits.max_seconds)


class _NoBaseline:
    """Stands for a baseline run that shows nothing, where no driver can run the tests."""

    async def run_failing_tests(self) -> Spectrum:
        """Return an empty spectrum."""
        return Spectrum()

    async def run_all_tests(self) -> Spectrum:
        """Return an empty spectrum."""
        return Spectrum()

    async def close(self) -> None:
        """Do nothing."""


@lru_cache(maxsize=8)
def get_adapter(language: Language) -> LanguageAdapter:
    """Return the adapter of a language: with Python's own parser, or with tree-sitter."""
    return PYTHON if LANGUAGES[language].parsed else build_tree_adapter(language)
