"""Trials by runs of the user's command, for projects whose tests no driver can run, or whose tests use services.

Each trial is slow.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from suture.core.records import CheckOutcome
from suture.judge.failures import hit_time_limit
from suture.judge.trials import tuning
from suture.judge.trials.candidate_runner import CandidateRunner, TrialReport
from suture.judge.trials.failing_project import FailingProject
from suture.judge.trials.trial_records import Proposal, Trial
from suture.mutation import apply_edits
from suture.mutation.edits import encode_source

SERVICES_NOTE = (
    "each change was tried by a run of the test command, because services start afresh for each run"
)


class CommandTrials(CandidateRunner):
    """Tries one candidate after the other: the failing files first, if the runner can select them, then all tests.

    Args:
        timeout_s: Wall-clock timeout of one run.
    """

    max_rivals = tuning.COMMAND_RIVALS

    def __init__(self, project: FailingProject, timeout_s: float) -> None:
        self._project, self._timeout_s = project, timeout_s
        self.notes = [SERVICES_NOTE] if project.command.has_services else []
        # A command that fails as a whole has an outcome "error" beside its tests, unlike one that passes.
        self._expected = {o.check_id for o in project.outcomes if o.status not in ("skipped", "error")}
        self._failing = _failing_tests(project)

    async def run_batch(
        self, proposals: Sequence[Proposal], timeout_s: float, extra_cpu_s: float = 0.0
    ) -> list[TrialReport]:
        """Try candidates, each by one or two runs of the command."""
        end_s = time.monotonic() + timeout_s
        reports: list[TrialReport] = []
        for proposal in proposals:
            if not reports or time.monotonic() < end_s:
                reports.append((proposal, await self._try(proposal, end_s)))
        return reports

    async def _try(self, proposal: Proposal, end_s: float) -> Trial:
        text = apply_edits(self._project.texts[proposal.path], proposal.edits)
        files = {**self._project.files, proposal.path: encode_source(text)}
        fixes = await self._passes(files, self._failing, self._failing, end_s)
        # Without a selection, the command runs all tests.
        passes = fixes and await self._passes(files, set(), self._expected, end_s)
        count = len(self._failing)
        return Trial(
            passing=count if fixes else 0,
            failing=0 if fixes else count,
            broken=int(fixes and not passes),
            is_plausible=passes,
            timed_out=False,
        )

    async def _passes(
        self, files: dict[str, bytes], selected: set[str], expected: set[str], end_s: float
    ) -> bool:
        wall_s = min(self._timeout_s, max(tuning.MIN_COMMAND_RUN_S, end_s - time.monotonic()))
        return all_passed(await self._project.command.run_selected(files, selected, wall_s=wall_s), expected)


async def start_command_trials(project: FailingProject, max_seconds: float) -> list[CommandTrials]:
    """Return runners that work side by side; none if the failing tests pass when the unchanged code runs here.

    Args:
        max_seconds: Wall-clock seconds for all trials.

    Raises:
        SandboxError: The sandbox failed.
    """
    if any(map(hit_time_limit, project.outcomes)):
        # A command that was stopped has no duration from which a timeout could be derived.
        timeout_s = tuning.HUNG_COMMAND_SHARE * max_seconds
    else:
        began_s = time.monotonic()
        outcomes = await project.command.run_selected(project.files, _failing_tests(project))
        if outcomes and all(outcome.passed for outcome in outcomes):
            return []
        timeout_s = tuning.COMMAND_PATIENCE * (time.monotonic() - began_s)
    timeout_s = max(tuning.MIN_COMMAND_TIMEOUT_S, timeout_s)
    return [CommandTrials(project, timeout_s) for _ in range(tuning.PARALLEL_RUNS)]


def _failing_tests(project: FailingProject) -> set[str]:
    """Return the ids of failing tests, without that of a command that failed as a whole."""
    return {o.check_id for o in project.outcomes if o.status not in ("passed", "skipped", "error")}


def was_whole_command_stopped(outcome: CheckOutcome) -> bool:
    """Return whether a command judged by its exit status was stopped, so that no test of it is visible."""
    return outcome.evidence == "exit_status" and hit_time_limit(outcome)


def all_passed(outcomes: Iterable[CheckOutcome], expected: set[str]) -> bool:
    """Return whether all expected tests ran and passed, and no other test failed."""
    by_test = {outcome.check_id: outcome for outcome in outcomes}
    if any(not outcome.passed and outcome.status != "skipped" for outcome in by_test.values()):
        return False
    # A file that failed as a whole has an id without a test name; once it loads, its tests have other ids.
    tests = {name for name in expected if "::" in name} or expected
    return all(name in by_test and by_test[name].passed for name in tests)
