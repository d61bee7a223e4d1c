"""Where in its recipe's graph a run stands: told from its ledger, as all else is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

from suture.core.ledger import Event, RunFolder, first_payload, find_final_event, read_ledger
from suture.core.ledger.kinds import (
    Advised,
    AgentStepped,
    CandidateChecked,
    CandidateProposed,
    CertificateWritten,
    Criticised,
    DebuggerStepped,
    Decided,
    Diagnosed,
    LessonsDrawn,
    MemoryRecalled,
    Optimised,
    PartStepped,
    Planned,
    ProposerRan,
    ReviewAnswered,
    ReviewAsked,
    Reviewed,
    RunFinished,
    RunResumed,
    RunStarted,
    SearchFinished,
    SearchStarted,
    TaskPrepared,
    TestAccepted,
    TestsAssessed,
    TestsWritten,
    TriageFinished,
)
from suture.errors import UsageError
from suture.loop import Recipe, describe_recipe, list_recipes

START, END = "__start__", "__end__"
ALWAYS: dict[type, str] = {
    **dict.fromkeys((RunStarted, TaskPrepared, TriageFinished), "prepare"),
    **dict.fromkeys((Planned, MemoryRecalled), "equip"),
    **dict.fromkeys(
        (Advised, Criticised, DebuggerStepped, Diagnosed, LessonsDrawn, Optimised, Reviewed, TestsAssessed),
        "reflect",
    ),
    **dict.fromkeys((CertificateWritten, RunFinished), "finish"),
    SearchStarted: "mutate",
    SearchFinished: "try_repairs",
    TestAccepted: "accept_test",
}
"""Kinds of event that one node alone brings about, or that the next node begins with."""
ASKING = {"distinguish": "try_repairs", "test": "accept_test"}
"""Questions that another node than `review` asks."""
NEXT = {"mutate": "mutate", "stop": "finish"}
"""Where a decided move leads to; any other, to `propose`."""


def _edges() -> tuple[tuple[str, str], ...]:
    from suture.loop.graph import graph_edges  # LangGraph takes a second

    return graph_edges()


def graph_as_json(run: RunFolder) -> dict[str, Any]:
    """The graph of a run's recipe: its nodes with how often each was entered, its edges, the active node.

    Raises:
        StorageError: The ledger cannot be read.
    """
    events = read_ledger(run.ledger_path).events
    way = visited_nodes(events)
    visits = Counter(way)
    end = find_final_event(events)
    ended = end is not None and isinstance(end.payload, RunFinished)
    started = first_payload(events, RunStarted)
    recipe = _recipe(started.recipe) if started is not None else None
    edges = _edges()
    names = [name for name in dict.fromkeys(name for edge in edges for name in edge)]
    return {
        "run": run.id,
        "recipe": started.recipe if started is not None else "",
        "active": None if ended or not way else way[-1],
        "nodes": [
            {"name": name, "visits": visits[name], "possible": name in visits or _is_possible(name, recipe)}
            for name in names
            if name not in (START, END)
        ],
        "edges": [{"from": one, "to": other} for one, other in edges if one != START and other != END],
    }


def visited_nodes(events: Sequence[Event]) -> tuple[str, ...]:
    """The nodes that a run has entered, in order; of parallel branches each node once.

    A node that does its work without an event lies on the one short way between two that have some.
    """
    way: list[str] = []
    for event in events:
        decided = isinstance(event.payload, Decided)
        before = way[-1] if way else ""
        for node in ("decide", _node(event, before)) if decided else (_node(event, before),):
            if node and (decided or node != before):
                way.extend(_between(way[-1], node) if way else ())
                way.append(node)
    return tuple(way)


@cache
def _between(one: str, other: str) -> tuple[str, ...]:
    """The nodes that lie on the shortest way from one to another; none where there is no way."""
    ways: list[tuple[str, ...]] = [(one,)]
    seen = {one}
    while ways:
        way = ways.pop(0)
        for source, target in _edges():
            if source == way[-1] and target == other:
                return way[1:]
            if source == way[-1] and target not in seen:
                seen.add(target)
                ways.append((*way, target))
    return ()


def _node(event: Event, before: str) -> str:
    """The node that is at work when this has happened; empty where it tells nothing."""
    match event.payload:
        case Decided(moves=moves):
            return NEXT.get(moves[0].kind, "propose") if moves else ""
        case ReviewAsked(stage=stage) | ReviewAnswered(stage=stage):
            return ASKING.get(stage, "review")
        case CandidateProposed(origin=origin):
            return "try_repairs" if origin == "mutation" else "check"
        case CandidateChecked():
            return "" if before in ("prepare", "try_repairs", "reflect", "finish", "accept_test") else "check"
        case TestsWritten(role=role):
            if role == "reproducer":
                return "accept_test"
            return "equip" if before in ("prepare", "equip") else "reflect"
        case AgentStepped() | PartStepped() | ProposerRan():
            return "" if before == "check" else "propose"  # another branch of the round is further on
        case RunResumed(at=at):
            return at[0] if at else ""
        case payload:
            return ALWAYS.get(type(payload), "")


def _recipe(name: str) -> Recipe | None:
    """The recipe where it ships with Suture; what a file of the user's own said is not looked for."""
    try:
        return describe_recipe(name) if name in list_recipes() else None
    except UsageError:
        return None


def _is_possible(node: str, recipe: Recipe | None) -> bool:
    """Whether a recipe lets a run get there at all, as far as is known."""
    if recipe is None:
        return True
    if node in ("mutate", "try_repairs"):
        return recipe.mutate
    return True
