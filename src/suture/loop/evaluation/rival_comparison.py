"""Compare a repair of the search with its rivals: which calls distinguish them, and what each of them answers."""

from __future__ import annotations

from dataclasses import replace

from suture.core.ledger import last_payload
from suture.core.ledger.kinds import (
    CandidateProposed,
    ComparedCall,
    ComparedChange,
    RepairUndetermined,
    SearchFinished,
)
from suture.core.records import Candidate
from suture.judge.mutation_testing.mutant_runs import MutationResult
from suture.loop.context import RunContext

LABEL_PREFIX = "mutation, "
"""How the label of a candidate of the search begins; the label of the repair follows."""


def compare_with_rivals(
    candidate: Candidate, mutation: MutationResult, context: RunContext
) -> RepairUndetermined:
    """Return a repair beside its rivals, as the search recorded them.

    Args:
        candidate: The repair, which may have been minimised.
        mutation: How well the tests guard it.
    """
    search = last_payload(context.ledger.events, SearchFinished) or SearchFinished()
    proposal = context.candidates.find_search_proposal(candidate)
    labels = _find_labels(proposal)
    positions: list[int] = []
    for label in labels:
        positions += [
            n for n, repair in enumerate(search.repairs) if repair.label == label and n not in positions
        ][:1]
    found = [search.repairs[position] for position in positions]
    changes = tuple(ComparedChange(label=repair.label, diff=repair.diff) for repair in found)
    return RepairUndetermined(
        changes=changes or (ComparedChange(label=candidate.label, diff=""),),
        calls=tuple(call for call in select_answers(search.compared_calls, positions)),
        noticed=mutation.killed,
        mistakes=len(mutation.mutants),
    )


def _find_labels(proposal: CandidateProposed | None) -> list[str]:
    """Return the label of a repair and those of its rivals."""
    if proposal is None:
        return []
    return [proposal.label.removeprefix(LABEL_PREFIX), *proposal.rival_descriptions]


def select_answers(calls: tuple[ComparedCall, ...], positions: list[int]) -> list[ComparedCall]:
    """Return the calls that distinguish some of the repairs, with the answers of these repairs only."""
    selected = [
        replace(call, answers=tuple(call.answers[position] for position in positions)) for call in calls
    ]
    return [call for call in selected if len(set(filter(None, call.answers))) > 1]
