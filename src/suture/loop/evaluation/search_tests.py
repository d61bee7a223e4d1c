"""Which tests steer the search for a repair: those of pytest, or the unittest ones as pytest runs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from suture.checks import Suite
from suture.checks.command.test_command import TestCommand
from suture.errors import UsageError
from suture.languages import pytest_equivalent
from suture.ledger.kinds import SearchSkipped
from suture.loop.context import RunContext
from suture.records import CheckOutcome, Verdict


@dataclass(frozen=True, kw_only=True)
class Guide:
    """Tests that can be run one by one, many times over.

    Attributes:
        command: A collected pytest command.
        failing: Ids of its tests that fail on the code as it is.
        outcomes: How each of its tests ended there.
    """

    command: TestCommand
    failing: frozenset[str]
    outcomes: Mapping[str, str] = field(default_factory=dict)


async def guide_of(suite: Suite, base: Verdict | None, context: RunContext) -> Guide | None:
    """What the search is steered by; `None` where the project's tests cannot be run one by one.

    A unittest command is searched by way of pytest, where the project's interpreter has it. The search only
    proposes: what it finds is judged by the user's own command.

    Args:
        suite: The trusted suite.
        base: Its verdict on the code as it is.
        context: The run; it is written down where there is no guide.

    Raises:
        SandboxError: The wall failed.
    """
    if suite.command is None or context.interpreter is None:
        return None
    if suite.command.is_pytest:
        return _guide(suite.command, base.outcomes if base is not None else ())
    argv = pytest_equivalent(context.task.test_command)
    if argv is None:
        return None
    task = replace(context.task, test_command=argv)
    command = TestCommand(task, context.sandbox, context.settings.sandbox, context.interpreter)
    try:
        await command.collect()
    except UsageError as fault:
        context.ledger.append(SearchSkipped(command=tuple(argv), message=str(fault)))
        return None
    return _guide(command, (await command.run(task.files)).outcomes)


def failing_of(outcomes: Sequence[CheckOutcome]) -> tuple[frozenset[str], dict[str, str]]:
    """Ids of the tests that fail, and how each test ended."""
    failing = frozenset(o.check_id for o in outcomes if not o.passed and o.status != "skipped")
    return failing, {o.check_id: o.status for o in outcomes}


def _guide(command: TestCommand, outcomes: Sequence[CheckOutcome]) -> Guide:
    failing, ended = failing_of(outcomes)
    return Guide(command=command, failing=failing, outcomes=ended)
