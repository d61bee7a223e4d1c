"""Trials by runs of the user's command, for projects whose tests no driver can run, or whose tests use services.

Each trial is slow.
"""

from __future__ import annotations

import asyncio
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence

from suture.core.records import CheckOutcome
from suture.judge.failures import hit_time_limit
from suture.judge.runners.test_command import TestCommand
from suture.judge.trials import tuning
from suture.judge.trials.target_tests import FailingProject
from suture.judge.trials.trial_records import Proposal, TestLines, Trial
from suture.judge.trials.trial_worker import TrialWorker
from suture.judge.trials.tuning import CALL_CPU_S, CALL_GRACE_S, CALL_WORKER_SPARE_S
from suture.mutation import apply_edits
from suture.mutation.edits import encode_source


class CandidateRunner(ABC):
    """Tries candidates on the tests, a batch at a time.

    Attributes:
        notes: What the user should know about the trials.
        can_extend_timeouts: Whether a candidate that timed out can be tried again with longer timeouts.
        min_run_s: Wall-clock seconds below which it is not worthwhile to run a batch.
        max_overrun_s: Wall-clock seconds by which a batch may exceed its timeout.
        waits_for_compounds: Whether a batch takes so long that it waits for compound changes that are being generated.
    """

    notes: list[str]
    can_extend_timeouts: bool = False
    min_run_s: float = 0.0
    max_overrun_s: float = 1.0
    waits_for_compounds: bool = False

    @property
    def usable(self) -> bool:
        """Whether candidates can be tried here."""
        return True

    @property
    def can_finish(self) -> bool:
        """Whether a trial can run all tests."""
        return True

    @property
    def batch_size(self) -> int:
        """Candidates that the next batch should have."""
        return 1

    def ends_batch(self, proposal: Proposal) -> bool:
        """Return whether a batch ends with a candidate, because its trial is slow."""
        return False

    @property
    @abstractmethod
    def max_rivals(self) -> int:
        """Candidates that are tried after the first plausible repair."""

    async def wait_for_spectrum(self, timeout_s: float) -> bool:
        """Wait until a trial can run all tests, and return whether it can."""
        return self.can_finish

    @abstractmethod
    async def run_batch(
        self, proposals: Sequence[Proposal], timeout_s: float, extra_cpu_s: float = 0.0
    ) -> Sequence[TrialReport]:
        """Try candidates in their order, as many as fit into the time.

        Args:
            extra_cpu_s: CPU seconds that each test may take in addition to its limit, if `can_extend_timeouts`.

        Raises:
            SandboxError: The sandbox failed.
        """

    async def trace_lines(self, proposal: Proposal) -> TestLines:
        """Return the lines that failing tests run with a change; empty if they cannot be traced."""
        return {}


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
        # A command that fails as a whole has an outcome "error" in addition to its tests, unlike one that passes.
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
    """Return runners that work in parallel; none if the failing tests pass when the unchanged code runs here.

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
        timeout_s = tuning.COMMAND_TIMEOUT_FACTOR * (time.monotonic() - began_s)
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


TrialReport = tuple[Proposal, Trial | None]
"""A candidate and its trial; `None` if it could not be tried at all."""


AnsweredCalls = Mapping[int, list[str]]
"""Position of a candidate -> one answer for each call."""


async def compare_calls(
    command: TestCommand,
    proposals: Sequence[Proposal],
    calls: Sequence[tuple[str, str, str]],
    texts: Mapping[str, str],
    timeout_s: float,
    *,
    call_cpu_s: float = CALL_CPU_S,
    is_enough: Callable[[AnsweredCalls], bool] = lambda answered: False,
) -> dict[int, list[str]]:
    """Make the same calls on several candidates, and return their answers.

    Args:
        calls: (path, top-level function, arguments as the source of a tuple) of each call.
        timeout_s: Wall-clock seconds for all candidates.
        is_enough: Called with the answers after each candidate; if it returns true, the others are skipped.

    Returns:
        Position in `proposals` -> one string for each call, for candidates that made all of them. A string that begins
        with `!` stands for an exception or a time-out.
    """
    worker = TrialWorker(command, texts, (), timeout_s + CALL_WORKER_SPARE_S)
    answered: dict[int, list[str]] = {}
    end_s = time.monotonic() + timeout_s
    try:
        # No failure of the process may lose the search's repairs, so the answers received so far are used.
        async with asyncio.timeout(timeout_s + CALL_GRACE_S):
            await worker.start()
            for number, proposal in enumerate(proposals):
                left_s = end_s - time.monotonic()
                if left_s <= 0 or not worker.alive:
                    break
                report = await worker.call(proposal, number, calls, call_cpu_s, left_s)
                answers = decode_answers(report.answers[: len(calls)]) if report is not None else None
                # There are fewer if a call has ended the process.
                if answers is not None and len(answers) == len(calls):
                    answered[number] = answers
                    if is_enough(answered):
                        break
    except TimeoutError:
        pass
    finally:
        await worker.close()
    return answered


def decode_answers(encoded: Sequence[str]) -> list[str] | None:
    """Return the answers of a report; `None` if code under test wrote anything other than strings."""
    answers = []
    for text in encoded:
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if not isinstance(answer, str):
            return None
        answers.append(answer)
    return answers
