"""Scores plausible repairs: their prior, warnings, agreement with each other, and naturalness."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from suture.core.ledger.kinds import DistinguishingInput
from suture.judge.tampering import TamperingWarning
from suture.judge.trials.trial_records import Proposal
from suture.mutation import Edit, apply_edits
from suture.project.python_source.parsing import parse_module
from suture.search.ranking.call_outcomes import Call, CallOutcomes
from suture.search.ranking.expression_distance import measure_distance
from suture.search.search_records import SearchResult, change_key
from suture.search.tuning import (
    AGREEMENT_SHARE,
    BROKEN_EXAMPLE_FACTOR,
    CLOSE_RIVAL_SHARE,
    IDLE_BLOCK_FACTOR,
    NATURALNESS_SPREAD,
    WARNING_FACTOR,
)


@dataclass(frozen=True, kw_only=True)
class Repair:
    """A change with which all tests pass.

    Attributes:
        proposal: The change.
        text: The changed file.
        score: For ordering.
        warnings: What makes it doubtful.
        equivalents: Labels of repairs known to behave alike: by all answers to calls that reach what they
        change,
            or by their expressions.
        rivals: Labels of repairs that answer differently, or are about as likely and not known to behave
        alike.
    """

    proposal: Proposal
    text: str
    score: float
    warnings: tuple[TamperingWarning, ...] = ()
    equivalents: tuple[str, ...] = ()
    rivals: tuple[str, ...] = ()


ScoredRepair = tuple[Repair, CallOutcomes]


@dataclass(frozen=True, kw_only=True)
class RepairAnswers:
    """The answers of plausible repairs to the same calls.

    Attributes:
        calls: The calls, with their arguments as people read them.
        outcomes: The answers of each repair.
        broken_examples: For each repair, the examples in docstrings or comments that it does not fulfil.
    """

    calls: Sequence[Call]
    outcomes: Sequence[CallOutcomes]
    broken_examples: Sequence[int]


@dataclass(frozen=True, kw_only=True)
class RankingMethods:
    """How the repairs of a language are judged and shown.

    Attributes:
        find_warnings: Returns the warnings about a change, by its path and both texts.
        distance_factor: Returns the factor on a score for the size of a change and what it writes without
        need,
            by path, text before, edits and text after.
        render_answer: Returns an answer as people read it.
        is_python: Whether equal expressions can be recognised by their syntax tree.
    """

    find_warnings: Callable[[str, str, str], tuple[TamperingWarning, ...]]
    distance_factor: Callable[[str, str, Sequence[Edit], str], float]
    render_answer: Callable[[str], str]
    is_python: bool = False


async def rank_repairs(
    result: SearchResult, proposals: Sequence[Proposal], answers: RepairAnswers, methods: RankingMethods
) -> tuple[tuple[Repair, ...], DistinguishingInput | None]:
    """Return plausible repairs, one for each behaviour, and what distinguishes the likeliest two.

    Args:
        result: The result of the search.
        proposals: The plausible repairs to rank.
        answers: Their answers to the same calls.
        methods: How repairs of their language are judged.
    """
    scored = await score_repairs(result, proposals, answers, methods)
    distinct = group_by_behaviour(scored, result.texts if methods.is_python else {})
    difference = find_difference(distinct, answers.calls, methods.render_answer)
    return tuple(repair for repair, _ in distinct), difference


async def score_repairs(
    result: SearchResult, proposals: Sequence[Proposal], answers: RepairAnswers, methods: RankingMethods
) -> list[ScoredRepair]:
    """Return repairs with their answers, the likeliest first; the arguments are those of `rank_repairs`."""
    answer_lists = [outcomes.answers for outcomes in answers.outcomes]
    repairs = []
    for number, proposal in enumerate(proposals):
        await asyncio.sleep(0)  # parsing a long file takes a moment, and the run's time may be up
        before = result.texts[proposal.path]
        text = apply_edits(before, proposal.edits)
        warnings = methods.find_warnings(proposal.path, before, text)
        score = proposal.score * WARNING_FACTOR ** len(warnings)
        score *= BROKEN_EXAMPLE_FACTOR ** min(1, answers.broken_examples[number])
        score *= 1 - AGREEMENT_SHARE + AGREEMENT_SHARE * _agreement(number, answer_lists, proposals)
        score *= 1 - NATURALNESS_SPREAD / 2 + NATURALNESS_SPREAD * measure_naturalness(before, proposal)
        score *= IDLE_BLOCK_FACTOR ** result.idle_block_counts.get(change_key(proposal), 0)
        score *= methods.distance_factor(proposal.path, before, proposal.edits, text)
        repair = Repair(proposal=proposal, text=text, score=score, warnings=warnings)
        repairs.append((repair, answers.outcomes[number]))
    return sorted(repairs, key=lambda pair: -round(pair[0].score, 6))


def _agreement(number: int, answer_lists: Sequence[tuple[str, ...]], proposals: Sequence[Proposal]) -> float:
    """Return how far the other repairs, weighted by score, answer alike; 1 if nothing can be compared."""
    own, weight, agreed = answer_lists[number], 0.0, 0.0
    for other, answers in enumerate(answer_lists):
        pairs = list(zip(own, answers, strict=False))
        if other != number and pairs:
            weight += proposals[other].score
            agreed += proposals[other].score * sum(a == b for a, b in pairs) / len(pairs)
    return agreed / weight if weight else 1.0


def measure_naturalness(text: str, proposal: Proposal) -> float:
    """Return the share of the new text's token pairs that the rest of the file has; 0.5 if there are none.

    Args:
        text: The unchanged file.
        proposal: The change.
    """
    file_pairs = _token_pairs_of_file(text)
    pairs = {pair for edit in proposal.edits for pair in _token_pairs(edit.text)}
    return sum(pair in file_pairs for pair in pairs) / len(pairs) if pairs else 0.5


@lru_cache(maxsize=16)
def _token_pairs_of_file(text: str) -> frozenset[tuple[str, str]]:
    return frozenset(_token_pairs(text))


def _token_pairs(text: str) -> list[tuple[str, str]]:
    tokens = "".join(sign if sign.isalnum() or sign == "_" else f" {sign} " for sign in text).split()
    return list(pairwise(tokens))


def group_by_behaviour(repairs: Sequence[ScoredRepair], texts: Mapping[str, str]) -> list[ScoredRepair]:
    """Return the best repair of each behaviour, with its equivalents and rivals.

    Repairs that are not known to behave alike are in groups of their own.

    Args:
        repairs: Repairs with their answers, the likeliest first.
        texts: Path -> unchanged text of files whose expressions can be compared.
    """
    groups: list[ScoredRepair] = []
    for repair, outcomes in repairs:
        equal = (
            number for number, other in enumerate(groups) if _behave_alike((repair, outcomes), other, texts)
        )
        place = next(equal, None)
        if place is None:
            groups.append((repair, outcomes))
        else:
            first, own = groups[place]
            chosen, other_repair = (repair, first) if _is_simpler(repair, first, texts) else (first, repair)
            equivalents = (*first.equivalents, other_repair.proposal.label)
            groups[place] = (replace(chosen, score=first.score, equivalents=equivalents), own)
    return [
        (replace(repair, rivals=_rival_labels(number, groups)), own)
        for number, (repair, own) in enumerate(groups)
    ]


def _behave_alike(one: ScoredRepair, other: ScoredRepair, texts: Mapping[str, str]) -> bool:
    (first, ours), (second, theirs) = one, other
    if first.proposal.path != second.proposal.path or ours.differs_from(theirs):
        return False
    return bool(ours.reached and theirs.reached) or _are_equal_expressions(first, second, texts)


def _are_equal_expressions(one: Repair, other: Repair, texts: Mapping[str, str]) -> bool:
    path = one.proposal.path
    return path in texts and measure_distance(texts[path], one.proposal.edits, other.proposal.edits) == 0


def _is_simpler(one: Repair, other: Repair, texts: Mapping[str, str]) -> bool:
    """Return whether a repair is a shorter form, as `n - 1` for `n - 2 + 1`, without more warnings."""
    is_smaller = len(one.warnings) <= len(other.warnings) and _node_count(one.text) < _node_count(other.text)
    return is_smaller and _are_equal_expressions(one, other, texts)


def _node_count(text: str) -> int:
    tree = parse_module(text)
    return sum(1 for _ in ast.walk(tree)) if tree is not None else 0


def _rival_labels(number: int, groups: Sequence[ScoredRepair]) -> tuple[str, ...]:
    """Return the labels of repairs that differ, and of those about as likely that may differ."""
    own, ours = groups[number]
    return tuple(
        other.proposal.label
        for place, (other, theirs) in enumerate(groups)
        if place != number and (ours.differs_from(theirs) or other.score >= CLOSE_RIVAL_SHARE * own.score)
    )


def find_difference(
    repairs: Sequence[ScoredRepair], calls: Sequence[Call], render_answer: Callable[[str], str]
) -> DistinguishingInput | None:
    """Return what distinguishes the first repair from the next different one; `None` if nothing does.

    Args:
        repairs: Repairs with their answers, the likeliest first.
        calls: The calls that they answered.
        render_answer: Returns an answer as people read it.
    """
    first, ours = repairs[0]
    for other, theirs in repairs[1:]:
        pairs = zip(calls, ours.answers, theirs.answers, strict=False)
        for number, ((_, name, arguments), one, two) in enumerate(pairs):
            if render_answer(one) != render_answer(two):
                return DistinguishingInput(
                    call=f"{name}{arguments.replace(',)', ')')}",
                    answers={
                        first.proposal.label: render_answer(one),
                        other.proposal.label: render_answer(two),
                    },
                    answers_by_repair=tuple(
                        render_answer(own.answers[number]) if own.answers else "" for _, own in repairs
                    ),
                )
    return None
