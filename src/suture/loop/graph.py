"""The graph: prepare, a search, rounds of propose, check and decide, then finish. This file only wires."""

from __future__ import annotations

from typing import Any, Literal

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Send

from suture.loop.context import RunContext
from suture.loop.nodes import Branch, check, decide_next, finish, mutate, prepare, propose
from suture.loop.state import LoopState

__all__ = ["Compiled", "build_graph"]

Compiled = CompiledStateGraph[LoopState, RunContext, LoopState, LoopState]


def build_graph(checkpointer: BaseCheckpointSaver[Any]) -> Compiled:
    """The state machine of one run.

    Args:
        checkpointer: Where the state is kept after each step.
    """
    graph = StateGraph(LoopState, context_schema=RunContext)
    graph.add_node("prepare", prepare)
    graph.add_node("propose", propose, input_schema=Branch)
    graph.add_node("mutate", mutate, input_schema=Branch)
    graph.add_node("check", check)
    graph.add_node("decide", decide_next)
    graph.add_node("finish", finish)
    graph.add_edge(START, "prepare")
    graph.add_edge("prepare", "decide")
    graph.add_conditional_edges("decide", _fan_out, ["mutate", "propose", "finish"])
    graph.add_edge("mutate", "decide")
    graph.add_edge("propose", "check")
    graph.add_edge("check", "decide")
    graph.add_edge("finish", END)
    return graph.compile(checkpointer=checkpointer)


def _fan_out(state: LoopState) -> list[Send] | Literal["finish"]:
    """One branch for each move; no move is left when an outcome was decided."""
    if [move["kind"] for move in state["moves"]] == ["mutate"]:
        return [Send("mutate", Branch(move=state["moves"][0], branch=0, state=state))]
    branches = (Branch(move=move, branch=n, state=state) for n, move in enumerate(state["moves"]))
    return [Send("propose", branch) for branch in branches] or "finish"
