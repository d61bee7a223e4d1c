"""A look at the unchanged code, begun before it is known whether there will be a search."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from suture.judge.runners.test_command import TestCommand
from suture.judge.trials.trial_records import Spectrum
from suture.search.failing_project import FailingProject
from suture.search.search_limits import SearchLimits
from suture.search.tree_sitter.command_trials import was_whole_command_stopped
from suture.search.tree_sitter.driver_protocol import find_driver
from suture.search.tree_sitter.driver_trials import DriverTrials

LOOKING_SHARE = 0.3
"""Of a search's seconds, the most that a look at the unchanged code may take."""
SLOWER = 2.5
"""Times that a run may take, where a look at all of its tests does: it notes the lines too."""


class EarlyBaseline:
    """One look, in the background.

    Args:
        driving: The trials that it is the first part of.
        seconds: That it may take.
    """

    def __init__(self, driving: DriverTrials, seconds: float) -> None:
        self.driving = driving
        self._look = asyncio.create_task(driving.look(seconds))

    @property
    def is_a_rerun(self) -> bool:
        """Whether the project's own runner runs the tests in it: what fails there has failed once more."""
        return self.driving.by_own_runner

    def is_of(self, command: TestCommand | None, texts: Mapping[str, str]) -> bool:
        """Whether it is a look at the same files, by the same command."""
        project = self.driving.project
        return command is project.command and texts == project.texts

    async def spectrum(self) -> Spectrum:
        """What was seen.

        Raises:
            SandboxError: The wall failed.
        """
        return await self._look

    async def failing_again(self) -> frozenset[str]:
        """Ids of tests that failed before and here; that of the whole command where it alone was judged.

        Raises:
            SandboxError: The wall failed.
        """
        return self.driving.failed_again(await self._look)

    async def close(self) -> None:
        """Look no more; safe to call twice."""
        self._look.cancel()
        await asyncio.gather(self._look, return_exceptions=True)


def start_early_baseline(project: FailingProject, limits: SearchLimits, run_s: float = 0.0) -> EarlyBaseline | None:
    """Begin to look at the unchanged code; `None` where no driver can run the tests.

    Args:
        project: What is looked at.
        limits: What the search may use.
        run_s: Wall-clock seconds of one run of the command: a look that is cut off has seen nothing.
    """
    if any(map(was_whole_command_stopped, project.outcomes)):
        return None
    driver = find_driver(project.argv, project.files, project.language)
    if driver is None:
        return None
    return EarlyBaseline(DriverTrials(driver, project), max(LOOKING_SHARE * limits.max_seconds, SLOWER * run_s))
