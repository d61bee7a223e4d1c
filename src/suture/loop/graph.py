"""The graph of a run: prepare, search, rounds of propose, check and decide, and reviews. Only the wiring."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from suture.loop.context import RunContext
from suture.loop.nodes.check import check
from suture.loop.nodes.confirm_examples import confirm_examples
from suture.loop.nodes.decide import decide_moves
from suture.loop.nodes.finish import finish
from suture.loop.nodes.gate import gate
from suture.loop.nodes.investigate import investigate
from suture.loop.nodes.prepare import equip, prepare
from suture.loop.nodes.propose import RoundBranch, propose
from suture.loop.nodes.reflect import reflect
from suture.loop.nodes.review import needs_review, review
from suture.loop.nodes.search_repairs import mutate, try_repairs
from suture.loop.nodes.write_test import accept_test, needs_test, write_test
from suture.loop.state import LoopState, proposed_attempts

CompiledGraph = CompiledStateGraph[LoopState, RunContext, LoopState, LoopState]


def build_graph(checkpointer: BaseCheckpointSaver[Any] | None) -> CompiledGraph:
    """Return the state machine of one run.

    Args:
        checkpointer: Stores the state after each step; `None` to look at the graph only.
    """
    graph = StateGraph(LoopState, context_schema=RunContext)
    graph.add_node("prepare", prepare)
    graph.add_node("write_test", write_test)
    graph.add_node("accept_test", accept_test)
    graph.add_node("equip", equip)
    graph.add_node("decide", decide_moves)
    graph.add_node("investigate", investigate)
    graph.add_node("review", review)
    graph.add_node("mutate", mutate, input_schema=RoundBranch)
    graph.add_node("try_repairs", try_repairs)
    graph.add_node("gate", gate, input_schema=RoundBranch)
    graph.add_node("confirm_examples", confirm_examples)
    graph.add_node("propose", propose, input_schema=RoundBranch)
    graph.add_node("check", check)
    graph.add_node("reflect", reflect)
    graph.add_node("finish", finish)
    graph.add_edge(START, "prepare")
    graph.add_conditional_edges("prepare", _after_prepare, ["write_test", "equip"])
    graph.add_conditional_edges("write_test", _after_write_test, ["accept_test", "finish"])
    graph.add_conditional_edges("accept_test", _after_accept_test, ["prepare", "write_test", "finish"])
    graph.add_edge("equip", "decide")
    graph.add_conditional_edges(
        "decide",
        _after_decide,
        ["investigate", "review", "mutate", "gate", "propose", "confirm_examples", "finish"],
    )
    graph.add_edge("investigate", "decide")
    graph.add_conditional_edges("review", _after_review, ["mutate", "propose", "check", "decide", "finish"])
    graph.add_edge("mutate", "try_repairs")
    graph.add_edge("try_repairs", "decide")
    graph.add_edge("gate", "finish")
    graph.add_conditional_edges("confirm_examples", _after_question, {"next": "decide", "end": "finish"})
    graph.add_edge("propose", "check")
    graph.add_conditional_edges("check", _after_question, {"next": "reflect", "end": "finish"})
    graph.add_edge("reflect", "decide")
    graph.add_edge("finish", END)
    return graph.compile(checkpointer=checkpointer)


@cache
def graph_edges() -> tuple[tuple[str, str], ...]:
    """Return the edges of the graph, with LangGraph's names for its start and end."""
    return tuple((edge.source, edge.target) for edge in build_graph(None).get_graph().edges)


def _after_prepare(state: LoopState, runtime: Runtime[RunContext]) -> Literal["write_test", "equip"]:
    return "write_test" if needs_test(state, runtime.context) else "equip"


def _after_write_test(state: LoopState) -> Literal["accept_test", "finish"]:
    return "finish" if state["outcome"] else "accept_test"


def _after_accept_test(state: LoopState) -> Literal["prepare", "write_test", "finish"]:
    """With an accepted test the code has a failing test, so it is prepared again."""
    if state["outcome"]:
        return "finish"
    return "prepare" if state.get("issue_test") else "write_test"


def _after_decide(state: LoopState, runtime: Runtime[RunContext]) -> list[Send] | Literal["review", "finish"]:
    return "review" if needs_review(state, runtime.context) else _fan_out(state)


def _after_review(state: LoopState) -> list[Send] | Literal["check", "decide", "finish"]:
    """Continue as decided, check a person's own candidate, or decide again. A fork begins with this choice too."""
    if state["moves"] or state["outcome"]:
        return _fan_out(state)
    has_proposal = any(attempt.round == state["round"] for attempt in proposed_attempts(state))
    return "check" if has_proposal else "decide"


def _after_question(state: LoopState) -> Literal["next", "end"]:
    """End the run if the answer of a person stopped it."""
    return "end" if state["outcome"] else "next"


def _fan_out(state: LoopState) -> list[Send] | Literal["finish"]:
    """Return one branch for each move; no move is left when an outcome was decided."""
    kinds = [move["kind"] for move in state["moves"]]
    if kinds == ["ask"]:
        return [Send("confirm_examples", state)]
    if kinds == ["investigate"]:
        return [Send("investigate", state)]
    if kinds in (["mutate"], ["gate"]):
        move = state["moves"][0]
        return [Send(move["kind"], RoundBranch(move=move, branch=0, state=state))]
    branches = (RoundBranch(move=move, branch=n, state=state) for n, move in enumerate(state["moves"]))
    return [Send("propose", branch) for branch in branches] or "finish"
