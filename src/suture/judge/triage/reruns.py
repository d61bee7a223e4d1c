"""Running failing tests again: together, alone, and after others."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from suture.judge.runners.test_command import TestCommand
from suture.judge.suite import Suite

MOST_ALONE = 8
"""Tests that are tried by themselves; of more failing tests the first ones stand for the rest."""


@dataclass(kw_only=True)
class Reruns:
    """The task's own tests on the task's own files, once more.

    Attributes:
        suite: The task's checks, ready to run.
        command: Its test command.
        wall_s: The most seconds of one rerun.
    """

    suite: Suite
    command: TestCommand
    wall_s: float

    async def fail_of(self, tests: Collection[str]) -> frozenset[str]:
        """Those of these tests that fail when only they run.

        Raises:
            SandboxError: The wall failed.
        """
        outcomes = await self.command.run_selected(self.suite.task.files, tests, self.wall_s)
        return frozenset(o.check_id for o in outcomes if not o.passed)

    async def fail_among_all(self) -> frozenset[str]:
        """The tests that fail when the whole command runs once more.

        Raises:
            SandboxError: The wall failed.
        """
        run = await self.command.run(self.suite.task.files)
        return frozenset(o.check_id for o in run.outcomes if not o.passed)

    async def fail_and_pass_alone(self, tests: Sequence[str]) -> tuple[frozenset[str], frozenset[str]]:
        """Those of these tests that fail when only they run, and those that pass when each runs by itself.

        Of many only the first few run by themselves. Both are of one process that imports the project once.

        Raises:
            SandboxError: The wall failed.
        """
        tried = tests[:MOST_ALONE]
        files = self.suite.task.files
        together, apart = await self.command.run_together_and_isolated(files, tests, tried, self.wall_s)
        failed = frozenset(o.check_id for o in together if not o.passed)
        return failed, frozenset(o.check_id for o in apart if o.passed)

    async def polluter_of(self, victim: str, before: Sequence[str]) -> str:
        """The one test after which the victim fails, found by halving; empty where no single one is.

        Args:
            victim: A test that passes by itself.
            before: The tests that run before it.

        Raises:
            SandboxError: The wall failed.
        """
        suspects = list(before)
        while len(suspects) > 1:
            half = suspects[: len(suspects) // 2]
            rest = suspects[len(half) :]
            suspects = half if victim in await self.fail_of([*half, victim]) else rest
        if suspects and victim in await self.fail_of([*suspects, victim]):
            return suspects[0]
        return ""
