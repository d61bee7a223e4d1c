"""Trials by runs of the user's command, one for each batch of candidates."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from suture.core.ledger.kinds import SearchEnding
from suture.judge.trials.candidate_runner import CandidateRunner
from suture.judge.trials.command_trials import start_command_trials
from suture.judge.trials.failing_project import FailingProject
from suture.judge.trials.trial_records import Spectrum
from suture.search.engine.baseline_candidates import Baseline, BaselineCandidates
from suture.search.languages.language_adapter import TrialSession
from suture.search.ordering.candidate_order import MutantGenerator
from suture.search.search_records import SearchLimits


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
