"""One run, from its first event to its last: the loop's edge, where faults become outcomes."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver

from suture.errors import (
    BudgetExceeded,
    Cancelled,
    PrerequisiteError,
    SandboxError,
    StorageError,
    UsageError,
)
from suture.ledger import read_ledger
from suture.loop.context import RunContext
from suture.loop.graph import build_graph
from suture.loop.nodes.finish import prove_best, write_result
from suture.loop.progress import best_of
from suture.loop.salvage import with_judged_candidates
from suture.loop.state import SCHEMA_VERSION, LoopState, first_state
from suture.records import Outcome, Result, from_plain, to_plain

__all__ = ["run_task"]


async def run_task(context: RunContext, checkpointer: BaseCheckpointSaver[Any]) -> Result:
    """Run a task to its outcome.

    Every way to end leaves its last event in the ledger: `run.refused` where the task cannot be worked with,
    else `run.finished` with the best candidate so far.

    Args:
        context: What the run works with.
        checkpointer: Where LangGraph keeps its state; the thread is the run's id.

    Raises:
        UsageError: The task cannot be worked with.
        PrerequisiteError: Something is missing: a sandbox, a model, a key.
        ModelAuthError: The provider refused the key.
        Cancelled: The user stopped it.
        StorageError: The run folder cannot be written.
    """
    ledger, folder = context.ledger, context.folder
    task = context.task
    ledger.append(
        "run.started",
        {
            "schema_version": SCHEMA_VERSION,
            "kind": task.kind,
            "statement": task.statement[:2000],
            "task": folder.put_json(to_plain(task)),
            "recipe": context.recipe.name,
            "model": context.model.name,
            "sandbox": context.sandbox.name,
            "limits": vars(context.budget.limits),
        },
    )
    graph = build_graph(checkpointer)
    config: RunnableConfig = {"configurable": {"thread_id": folder.id}, "recursion_limit": 10_000}
    try:
        await graph.ainvoke(first_state(folder.id), config, context=context, durability="sync")
    except asyncio.CancelledError:
        await _end(context, graph, config, "cancelled", "stopped by the user")
        raise Cancelled("stopped", remedy=f"see `suture show {folder.id}`") from None
    except BudgetExceeded as fault:
        return await _end(context, graph, config, "budget_exhausted", str(fault))
    except StorageError:
        raise  # there is nowhere left to write to
    except (UsageError, PrerequisiteError) as fault:
        ledger.append("run.refused", {"kind": type(fault).__name__, "message": str(fault)})
        raise
    except Exception as fault:
        result = await _end(context, graph, config, "infra_error", f"{type(fault).__name__}: {fault}")
        if isinstance(fault, SandboxError):
            return result
        raise
    return _result_of(context)


async def _end(
    context: RunContext, graph: Any, config: RunnableConfig, outcome: Outcome, reason: str
) -> Result:
    """Name the outcome of a run that did not reach its last node, and keep the best it had."""
    snapshot = await graph.aget_state(config)
    state = cast(LoopState, {**first_state(context.folder.id), **snapshot.values})
    state = with_judged_candidates(state, context)
    best = best_of([context.tried(entry) for entry in state["tried"]])
    proven = None
    if best is not None and best.solved and best.origin != "user":
        if outcome == "budget_exhausted":
            proven = await prove_best(state, context)
        outcome, reason = "healed", f"every trusted check passes ({reason})"
    return write_result(state, context, outcome, reason, proven)


def _result_of(context: RunContext) -> Result:
    events = read_ledger(context.folder.ledger_path).events
    blob = next(event.data["result"] for event in reversed(events) if event.kind == "run.finished")
    return from_plain(Result, context.folder.get_json(blob))
