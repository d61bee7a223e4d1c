"""Which checks decide: the task's own, and the generated ones that have earned trust so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from suture.core.records import Check, decode_record
from suture.judge import Suite
from suture.loop.context import RunContext
from suture.loop.state import RoleContributions


async def deciding_suite(aids: RoleContributions, context: RunContext) -> Suite:
    """What candidates are judged by now.

    Raises:
        UsageError: The test command cannot start, or there are no tests.
        SandboxError: The wall failed.
    """
    return with_generated(await context.load_suite(), checks_in(aids.deciding, context))


def with_generated(suite: Suite, generated: Sequence[Check]) -> Suite:
    """A task's own suite, and checks that a model wrote, with the trust that they have earned."""
    own = {check.id for check in suite.task.checks}
    new = tuple(check for check in generated if check.id not in own)
    return replace(suite, task=replace(suite.task, checks=(*suite.task.checks, *new))) if new else suite


def checks_in(blob: str, context: RunContext) -> tuple[Check, ...]:
    """The checks that a blob of the run's folder holds; none for no blob."""
    if not blob:
        return ()
    return tuple(decode_record(Check, plain) for plain in context.folder.get_json(blob)["checks"])
