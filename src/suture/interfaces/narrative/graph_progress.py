"""How far a run has come in the graph of its recipe, derived from its ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from suture.core.ledger import Event, RunFolder, find_final_event, first_payload, kinds, read_ledger
from suture.errors import UsageError

if TYPE_CHECKING:
    from suture.loop import Recipe

START, END = "__start__", "__end__"
"""LangGraph's names for the nodes before the first and after the last one."""
NODE_OF_EVENT: dict[type, str] = {
    kinds.RunStarted: "prepare",
    kinds.TaskPrepared: "prepare",
    kinds.TriageFinished: "prepare",
    kinds.FlakyTestsInvestigated: "investigate",
    kinds.PlanMade: "equip",
    kinds.MemoryRecalled: "equip",
    kinds.SearchStarted: "mutate",
    kinds.SearchFinished: "try_repairs",
    kinds.RepairChosen: "try_repairs",
    kinds.TestAccepted: "accept_test",
    kinds.AdviceGiven: "reflect",
    kinds.CandidateCriticised: "reflect",
    kinds.CandidateOptimised: "reflect",
    kinds.DebuggerStepped: "reflect",
    kinds.DiagnosisMade: "reflect",
    kinds.LessonsDrawn: "reflect",
    kinds.TestsAssessed: "reflect",
    kinds.ProposerRan: "gate",
    kinds.ChangeJudged: "gate",
    kinds.ExamplesConfirmed: "confirm_examples",
    kinds.CertificateWritten: "finish",
    kinds.RepairUndetermined: "finish",
    kinds.RunFinished: "finish",
}
"""Event kinds that only one node writes, or that the next node starts with."""
NODE_OF_QUESTION = {"distinguish": "try_repairs", "test": "accept_test", "examples": "confirm_examples"}
"""Questions that a node other than `review` asks."""
NODE_OF_MOVE = {
    "investigate": "investigate",
    "mutate": "mutate",
    "gate": "gate",
    "ask": "confirm_examples",
    "stop": "finish",
}
"""The node that a decided move leads to; every other move leads to `propose`."""


def _edges() -> tuple[tuple[str, str], ...]:
    from suture.loop.graph import graph_edges  # importing LangGraph takes a second

    return graph_edges()


def graph_as_json(run: RunFolder) -> dict[str, Any]:
    """Return the graph of a run's recipe: nodes and edges with visit counts, and the active node."""
    events = read_ledger(run.ledger_path).events
    path = visited_nodes(events)
    visits, passages = Counter(path), Counter(pairwise(path))
    end = find_final_event(events)
    is_finished = end is not None and isinstance(end.payload, kinds.RunFinished)
    started = first_payload(events, kinds.RunStarted)
    recipe = _load_packaged_recipe(started.recipe) if started is not None else None
    impossible = ("mutate", "try_repairs") if recipe is not None and not recipe.mutate else ()
    edges = _edges()
    names = dict.fromkeys(name for edge in edges for name in edge)
    return {
        "run": run.id,
        "recipe": started.recipe if started is not None else "",
        "active": None if is_finished or not path else path[-1],
        "nodes": [
            {"name": name, "visits": visits[name], "possible": name in visits or name not in impossible}
            for name in names
            if name not in (START, END)
        ],
        "edges": [
            {"from": start, "to": end, "visits": passages[start, end]}
            for start, end in edges
            if start != START and end != END
        ],
    }


def visited_nodes(events: Sequence[Event]) -> tuple[str, ...]:
    """Return the nodes that a run has entered, in order; parallel branches count each node once.

    Some nodes write no event. They are inferred: they lie on the shortest path between two nodes that do.
    """
    path: list[str] = []
    for event in events:
        is_decision = isinstance(event.payload, kinds.MovesDecided)
        previous = path[-1] if path else ""
        node_of_event = _node_of(event, previous)
        for node in ("decide", node_of_event) if is_decision else (node_of_event,):
            if node and (is_decision or node != previous):
                path.extend(_nodes_between(path[-1], node) if path else ())
                path.append(node)
    return tuple(path)


@cache
def _nodes_between(start: str, end: str) -> tuple[str, ...]:
    """Return the nodes on the shortest path between two nodes; empty if there is no path."""
    paths: list[tuple[str, ...]] = [(start,)]
    visited = {start}
    while paths:
        path = paths.pop(0)
        for source, target in _edges():
            if source == path[-1] and target == end:
                return path[1:]
            if source == path[-1] and target not in visited:
                visited.add(target)
                paths.append((*path, target))
    return ()


def _node_of(event: Event, previous: str) -> str:
    """Return the node that wrote an event, or an empty string if that is not known.

    `previous` is the node that the run entered last.
    """
    match event.payload:
        case kinds.MovesDecided(moves=moves):
            return NODE_OF_MOVE.get(moves[0].kind, "propose") if moves else ""
        case kinds.ReviewAsked(stage=stage) | kinds.ReviewAnswered(stage=stage):
            return NODE_OF_QUESTION.get(stage, "review")
        case kinds.CandidateProposed(origin=origin):
            # A model that is asked about the repairs of the search may write another one.
            return "try_repairs" if origin in ("mutation", "fix") or previous == "try_repairs" else "check"
        case kinds.CandidateChecked():
            # The nodes besides `check` that judge candidates.
            judging_nodes = ("prepare", "try_repairs", "reflect", "finish", "accept_test", "confirm_examples")
            return "" if previous in judging_nodes else "check"
        case kinds.TestsWritten(role=role):
            if role == "reproducer":
                return "accept_test"
            return "equip" if previous in ("prepare", "equip") else "reflect"
        case kinds.AgentStepped() | kinds.SubtaskStepped():
            return "" if previous == "check" else "propose"  # another parallel branch has moved on already
        case kinds.RunResumed(next_nodes=next_nodes):
            return next_nodes[0] if next_nodes else ""
        case payload:
            return NODE_OF_EVENT.get(type(payload), "")


def _load_packaged_recipe(name: str) -> Recipe | None:
    """Return a recipe that ships with Suture; a recipe file of the user may have changed since the run."""
    from suture.loop import describe_recipe, list_recipes

    try:
        return describe_recipe(name) if name in list_recipes() else None
    except UsageError:
        return None
