"""What earlier runs teach about this one: asked once, and read from the ledger ever after."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from suture.core.ledger import Event, last_of
from suture.core.ledger.kinds import MemoryRecalled
from suture.core.records import Verdict
from suture.loop.context import RunContext
from suture.storage.memory import recalled_for


async def recall(verdict: Verdict | None, context: RunContext) -> None:
    """Look for memories, where the settings want them used, and write down what was found.

    A run that does another again, goes on or is a fork has what was recalled then: its prompts and the
    order of its search are the same.

    Args:
        verdict: On the code as it is; `None` where there is none to mend.
        context: The run.
    """
    if last_of(context.ledger.events, MemoryRecalled) is not None:
        return
    if context.spec.replays:
        recalled = last_of(context.spec.recorded, MemoryRecalled)
    elif context.settings.memory.use == "off":
        return
    else:
        recalled = await asyncio.to_thread(recalled_for, context.settings, context.task, verdict)
    if recalled is not None:
        context.ledger.append(recalled)


def recalled_factors(events: Sequence[Event]) -> Mapping[str, float]:
    """Operator of the search -> how much likelier its changes are taken for."""
    recalled = last_of(events, MemoryRecalled)
    return recalled.factors if recalled is not None else {}


def recalled_lines(role: str, context: RunContext) -> tuple[str, ...]:
    """What a role's prompts tell of earlier runs, where the recipe gives it a memory."""
    recalled = last_of(context.ledger.events, MemoryRecalled)
    return recalled.told if recalled is not None and role in context.recipe.helpers.memory else ()
