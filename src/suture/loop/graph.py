"""The graph: prepare, a search, rounds of propose, check and decide, a person where wanted. Wiring only."""

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
from suture.loop.nodes.decide import decide_next
from suture.loop.nodes.finish import finish
from suture.loop.nodes.mutate import mutate
from suture.loop.nodes.prepare import equip, prepare
from suture.loop.nodes.propose import Branch, propose
from suture.loop.nodes.reflect import reflect
from suture.loop.nodes.review import needs_review, review
from suture.loop.nodes.try_repairs import try_repairs
from suture.loop.nodes.write_test import accept_test, wants_test, write_test
from suture.loop.state import LoopState, proposals_in

Compiled = CompiledStateGraph[LoopState, RunContext, LoopState, LoopState]


def build_graph(checkpointer: BaseCheckpointSaver[Any] | None) -> Compiled:
    """The state machine of one run.

    Args:
        checkpointer: Where the state is kept after each step; none where it is only looked at.
    """
    graph = StateGraph(LoopState, context_schema=RunContext)
    graph.add_node("prepare", prepare)
    graph.add_node("equip", equip)
    graph.add_node("propose", propose, input_schema=Branch)
    graph.add_node("mutate", mutate, input_schema=Branch)
    graph.add_node("try_repairs", try_repairs)
    graph.add_node("check", check)
    graph.add_node("reflect", reflect)
    graph.add_node("decide", decide_next)
    graph.add_node("review", review)
    graph.add_node("finish", finish)
    graph.add_edge(START, "prepare")
    graph.add_node("write_test", write_test)
    graph.add_node("accept_test", accept_test)
    graph.add_conditional_edges("prepare", _after_prepare, ["write_test", "equip"])
    graph.add_conditional_edges("write_test", _after_test, ["accept_test", "finish"])
    graph.add_conditional_edges("accept_test", _after_answer, ["prepare", "write_test", "finish"])
    graph.add_edge("equip", "decide")
    graph.add_conditional_edges("decide", _after_decide, ["review", "mutate", "propose", "finish"])
    graph.add_conditional_edges("review", _after_review, ["mutate", "propose", "check", "decide", "finish"])
    graph.add_edge("mutate", "try_repairs")
    graph.add_edge("try_repairs", "decide")
    graph.add_edge("propose", "check")
    graph.add_conditional_edges("check", _after_check, ["reflect", "finish"])
    graph.add_edge("reflect", "decide")
    graph.add_edge("finish", END)
    return graph.compile(checkpointer=checkpointer)


@cache
def graph_edges() -> tuple[tuple[str, str], ...]:
    """From which node to which a run may go, with LangGraph's names for its beginning and end."""
    return tuple((edge.source, edge.target) for edge in build_graph(None).get_graph().edges)


def _after_prepare(state: LoopState, runtime: Runtime[RunContext]) -> Literal["write_test", "equip"]:
    return "write_test" if wants_test(state, runtime.context) else "equip"


def _after_test(state: LoopState) -> Literal["accept_test", "finish"]:
    return "finish" if state["outcome"] else "accept_test"


def _after_answer(state: LoopState) -> Literal["prepare", "write_test", "finish"]:
    """With the test that was accepted the code is looked at anew: it has a failing test now."""
    if state["outcome"]:
        return "finish"
    return "prepare" if state.get("written_test") else "write_test"


def _after_decide(state: LoopState, runtime: Runtime[RunContext]) -> list[Send] | Literal["review", "finish"]:
    return "review" if needs_review(state, runtime.context) else _fan_out(state)


def _after_review(state: LoopState) -> list[Send] | Literal["check", "decide", "finish"]:
    """On as decided; else to a person's own candidate, or to another decision. Forks begin here too."""
    if state["moves"] or state["outcome"]:
        return _fan_out(state)
    waits = any(proposal.round == state["round"] for proposal in proposals_in(state))
    return "check" if waits else "decide"


def _after_check(state: LoopState) -> Literal["reflect", "finish"]:
    """To the end where a person who was asked about the safety scan stopped the run."""
    return "finish" if state["outcome"] else "reflect"


def _fan_out(state: LoopState) -> list[Send] | Literal["finish"]:
    """One branch for each move; no move is left when an outcome was decided."""
    if [move["kind"] for move in state["moves"]] == ["mutate"]:
        return [Send("mutate", Branch(move=state["moves"][0], branch=0, state=state))]
    branches = (Branch(move=move, branch=n, state=state) for n, move in enumerate(state["moves"]))
    return [Send("propose", branch) for branch in branches] or "finish"
