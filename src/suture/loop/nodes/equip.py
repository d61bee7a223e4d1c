"""Equip: what helpers contribute before there is any code: a plan, and tests from the task alone."""

from __future__ import annotations

from typing import Any

from langgraph.runtime import Runtime

from suture.loop.context import RunContext
from suture.loop.helpers.generated_tests import tests_from_the_task
from suture.loop.helpers.planning import planned
from suture.loop.state import LoopState, aids_of
from suture.records import to_plain


async def equip(state: LoopState, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """Ask the helpers that the recipe wants once, before the first move."""
    if state["not_code"] or runtime.context.task.kind != "write":
        return {}  # the run is over; or there is code already, and nothing to plan
    aids = aids_of(state)
    found = await planned(aids, runtime.context)
    found = await tests_from_the_task(found, runtime.context)
    return {"aids": to_plain(found)} if found != aids else {}
