"""Recall what earlier runs taught: once at the beginning of a run, and from the ledger afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from suture.core.ledger import Event, last_payload
from suture.core.ledger.kinds import MemoryRecalled
from suture.core.records import Verdict
from suture.loop.context import RunContext
from suture.storage.memory import recall_for_run


async def recall_memories(verdict: Verdict | None, context: RunContext) -> None:
    """Look for memories, if the settings want them used, and record what was found.

    A run that replays, resumes or forks another one uses what was recalled there, so that its prompts and the
    order of its search are the same. A replay takes it from the recorded run; otherwise the ledger holds it already.

    Args:
        verdict: The verdict on the user's code; `None` if there is no code yet.
    """
    if last_payload(context.ledger.events, MemoryRecalled) is not None:
        return
    if context.spec.replays:
        recalled = last_payload(context.spec.recorded_events, MemoryRecalled)
    elif context.settings.memory.use == "off":
        return
    else:
        recalled = await asyncio.to_thread(recall_for_run, context.settings, context.task, verdict)
    if recalled is not None:
        context.ledger.append(recalled)


def recalled_operator_factors(events: Sequence[Event]) -> Mapping[str, float]:
    """Return how much more likely memories make each operator of the search: operator -> factor."""
    recalled = last_payload(events, MemoryRecalled)
    return recalled.factors if recalled is not None else {}


def recalled_lessons(role: str, context: RunContext) -> tuple[str, ...]:
    """Return the lessons of earlier runs for a role's prompts, if the recipe gives it a memory."""
    recalled = last_payload(context.ledger.events, MemoryRecalled)
    return recalled.prompt_texts if recalled is not None and role in context.recipe.helpers.memory else ()
