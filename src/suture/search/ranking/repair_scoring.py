"""Scores plausible repairs, and groups those that behave alike.

The score of a repair starts from its prior. Tampering warnings, broken examples, idle blocks, and calls that end with
an error where others return a value lower it. Agreement with the other repairs on the same calls, and naturalness of
the new code, raise it. An idle block is one that the repair guards with a condition or a handler, and that no test
runs. `suture.search.tuning` explains the factors.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, pairwise

from suture.core.ledger.kinds import ComparedCall, DistinguishingInput
from suture.judge.signs import TamperingWarning
from suture.judge.trials.target_tests import FailingProject
from suture.judge.trials.trial_records import Proposal
from suture.mutation import apply_edits
from suture.search.languages.language_adapter import LanguageAdapter
from suture.search.languages.tree_adapter import get_adapter
from suture.search.ranking.call_outcomes import Call, CallOutcomes, RepairAnswers, crashes_alone
from suture.search.search_records import SearchResult, change_key
from suture.search.tuning import (
    AGREEMENT_SHARE,
    BROKEN_EXAMPLE_FACTOR,
    CLOSE_RIVAL_SHARE,
    CRASH_FACTOR,
    IDLE_BLOCK_FACTOR,
    MAX_COMPARED_CALLS,
    MAX_COMPARED_REPAIRS,
    MAX_SHOWN_ANSWER_CHARS,
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
        equivalents: Labels of repairs that are known to behave alike: they give the same answers to calls that
            reach the change, or their expressions are equal.
        rivals: Labels of repairs that answer differently, or that are about as likely and not known to behave
            alike.
    """

    proposal: Proposal
    text: str
    score: float
    warnings: tuple[TamperingWarning, ...] = ()
    equivalents: tuple[str, ...] = ()
    rivals: tuple[str, ...] = ()


ScoredRepair = tuple[Repair, CallOutcomes]
"""A repair with its answers to calls."""


@dataclass(frozen=True, kw_only=True)
class PlausibleRepairs:
    """The repairs of a search with which all tests pass.

    Attributes:
        repairs: The repairs, the most likely first.
        difference: An input that distinguishes the first repair from the likeliest one that behaves differently; `None`
            if none is known.
        compared_calls: Calls that distinguish the repairs.
    """

    repairs: tuple[Repair, ...] = ()
    difference: DistinguishingInput | None = None
    compared_calls: tuple[ComparedCall, ...] = ()


async def rank_repairs(
    result: SearchResult, project: FailingProject, *, seed: int = 0, seconds: float = math.inf
) -> PlausibleRepairs:
    """Return plausible repairs, one for each behaviour, and calls that distinguish them.

    Args:
        result: The result of the search.
        seed: Seed of the generated inputs.
        seconds: Wall-clock seconds for calling the repairs with these inputs, at most
            `LanguageAdapter.compare_s`.

    Raises:
        SandboxError: The sandbox failed.
    """
    proposals = result.plausible[:MAX_COMPARED_REPAIRS]
    if not proposals:
        return PlausibleRepairs()
    adapter = get_adapter(project.language)
    seconds = min(seconds, adapter.compare_s)
    answers = await adapter.answer_calls(result, proposals, project, seed, seconds)
    literals = adapter.collect_literals(project.test_texts())
    scored = await score_repairs(result, proposals, answers, adapter, literals)
    distinct = group_by_behaviour(scored, result.texts, adapter)
    return PlausibleRepairs(
        repairs=tuple(repair for repair, _ in distinct),
        difference=find_difference(distinct, answers.calls, adapter.render_answer),
        compared_calls=select_compared_calls(distinct, answers, adapter.render_answer),
    )


async def score_repairs(
    result: SearchResult,
    proposals: Sequence[Proposal],
    answers: RepairAnswers,
    adapter: LanguageAdapter,
    literals: frozenset[str],
) -> list[ScoredRepair]:
    """Return repairs with their answers, the likeliest first.

    Args:
        literals: The literals of the tests.
    """
    answer_lists = [outcomes.answers for outcomes in answers.outcomes]
    repairs = []
    for number, proposal in enumerate(proposals):
        await asyncio.sleep(0)  # parsing a long file takes a moment, and the run's time may be up
        before = result.texts[proposal.path]
        text = apply_edits(before, proposal.edits)
        warnings = adapter.find_warnings(proposal.path, before, text, literals)
        score = proposal.score * WARNING_FACTOR ** len(warnings)
        if answers.broken_examples[number]:  # however many: one is enough to doubt the repair (by judgement)
            score *= BROKEN_EXAMPLE_FACTOR
        if crashes_alone(number, answer_lists):
            score *= CRASH_FACTOR
        # Agreement can only lower a score. Naturalness is centred on 1, which an unknown value of 0.5 leaves as
        # it is.
        score *= 1 - AGREEMENT_SHARE + AGREEMENT_SHARE * _agreement(number, answer_lists, proposals)
        score *= 1 - NATURALNESS_SPREAD / 2 + NATURALNESS_SPREAD * measure_naturalness(before, proposal)
        score *= IDLE_BLOCK_FACTOR ** result.idle_block_counts.get(change_key(proposal), 0)
        score *= adapter.distance_factor(before, proposal.edits, text)
        repair = Repair(proposal=proposal, text=text, score=score, warnings=warnings)
        repairs.append((repair, answers.outcomes[number]))
    # Rounded, so that repairs whose scores differ only by floating-point noise keep their given order.
    return sorted(repairs, key=lambda pair: -round(pair[0].score, 6))


def _agreement(number: int, answer_lists: Sequence[tuple[str, ...]], proposals: Sequence[Proposal]) -> float:
    """Return the share of equal answers of the other repairs, weighted by their scores.

    It is 1 if nothing can be compared. A repair that was not run has no answers.
    """
    total_weight = agreeing_weight = 0.0
    for other, answers in enumerate(answer_lists):
        pairs = list(zip(answer_lists[number], answers, strict=False))
        if other != number and pairs:
            total_weight += proposals[other].score
            agreeing_weight += proposals[other].score * sum(a == b for a, b in pairs) / len(pairs)
    return agreeing_weight / total_weight if total_weight else 1.0


def measure_naturalness(text: str, proposal: Proposal) -> float:
    """Return the share of the new code's pairs of adjacent tokens that the file already has.

    It is 0.5 if the new code has no such pairs.
    """
    file_pairs = _token_pairs_of_file(text)
    pairs = {pair for edit in proposal.edits for pair in _token_pairs(edit.text)}
    return sum(pair in file_pairs for pair in pairs) / len(pairs) if pairs else 0.5


@lru_cache(maxsize=16)
def _token_pairs_of_file(text: str) -> frozenset[tuple[str, str]]:
    return frozenset(_token_pairs(text))


def _token_pairs(text: str) -> list[tuple[str, str]]:
    tokens = "".join(char if char.isalnum() or char == "_" else f" {char} " for char in text).split()
    return list(pairwise(tokens))


def group_by_behaviour(
    repairs: Sequence[ScoredRepair], texts: Mapping[str, str], adapter: LanguageAdapter
) -> list[ScoredRepair]:
    """Return the best repair of each behaviour, with its equivalents and rivals.

    Repairs that are not known to behave alike are in groups of their own.

    Args:
        repairs: Repairs with their answers, the likeliest first.
        texts: Path -> unchanged source.
    """
    groups: list[ScoredRepair] = []

    def are_equal(left: Repair, right: Repair) -> bool:
        path, changes = left.proposal.path, (left.proposal.edits, right.proposal.edits)
        return path == right.proposal.path and adapter.are_equal(texts[path], *changes)

    def is_simpler(repair: Repair, other: Repair) -> bool:
        """Return whether a repair is a shorter form of another, as `n - 1` is of `n - 2 + 1`."""
        has_fewer_warnings = len(repair.warnings) <= len(other.warnings)
        return has_fewer_warnings and adapter.is_shorter(repair.text, other.text) and are_equal(repair, other)

    for repair, outcomes in repairs:
        alike = (n for n, group in enumerate(groups) if _behave_alike((repair, outcomes), group, are_equal))
        index = next(alike, None)
        if index is None:
            groups.append((repair, outcomes))
            continue
        best, best_outcomes = groups[index]
        chosen, dropped = (repair, best) if is_simpler(repair, best) else (best, repair)
        equivalents = (*best.equivalents, dropped.proposal.label)
        groups[index] = (replace(chosen, score=best.score, equivalents=equivalents), best_outcomes)
    return [
        (replace(repair, rivals=_rival_labels(number, groups)), outcomes)
        for number, (repair, outcomes) in enumerate(groups)
    ]


def _behave_alike(
    left: ScoredRepair, right: ScoredRepair, are_equal: Callable[[Repair, Repair], bool]
) -> bool:
    """Return whether two repairs are known to behave alike."""
    (left_repair, left_outcomes), (right_repair, right_outcomes) = left, right
    if left_repair.proposal.path != right_repair.proposal.path or left_outcomes.differs_from(right_outcomes):
        return False
    is_observed = bool(left_outcomes.reached and right_outcomes.reached)
    return is_observed or are_equal(left_repair, right_repair)


def _rival_labels(number: int, groups: Sequence[ScoredRepair]) -> tuple[str, ...]:
    """Return the labels of repairs that answer differently, and of those about as likely that may differ."""
    repair, outcomes = groups[number]
    min_score = CLOSE_RIVAL_SHARE * repair.score
    return tuple(
        other.proposal.label
        for index, (other, other_outcomes) in enumerate(groups)
        if index != number and (outcomes.differs_from(other_outcomes) or other.score >= min_score)
    )


def find_difference(
    repairs: Sequence[ScoredRepair], calls: Sequence[Call], render_answer: Callable[[str], str]
) -> DistinguishingInput | None:
    """Return the first call that the first repair answers unlike another; `None` if there is no such call.

    The other repairs are compared with the first one in their order, and the first that differs is named.

    Args:
        repairs: Repairs with their answers, the likeliest first.
        render_answer: Returns an answer as people read it.
    """
    best, best_outcomes = repairs[0]
    for other, other_outcomes in repairs[1:]:
        # Not strict: a repair that was not run has no answers.
        answered = zip(calls, best_outcomes.answers, other_outcomes.answers, strict=False)
        for number, ((_, name, arguments), best_answer, other_answer) in enumerate(answered):
            if render_answer(best_answer) != render_answer(other_answer):
                answers = (outcomes.answers for _, outcomes in repairs)
                return DistinguishingInput(
                    call=_render_call(name, arguments),
                    answers={
                        best.proposal.label: render_answer(best_answer),
                        other.proposal.label: render_answer(other_answer),
                    },
                    answers_by_repair=tuple(render_answer(a[number]) if a else "" for a in answers),
                )
    return None


def select_compared_calls(
    repairs: Sequence[ScoredRepair], answers: RepairAnswers, render_answer: Callable[[str], str]
) -> tuple[ComparedCall, ...]:
    """Return few calls that together distinguish as many repairs as possible, the most telling first."""

    def render(texts: Sequence[str], index: int) -> str:
        """Return an answer for people; empty if the code ended before it answered this call."""
        return render_answer(texts[index]) if index < len(texts) else ""

    answer_lists = [outcomes.answers for _, outcomes in repairs]
    rows = [tuple(render(texts, index) for texts in answer_lists) for index in range(len(answers.calls))]
    alike = set(combinations(range(len(repairs)), 2))
    selected: list[ComparedCall] = []
    while rows and alike and len(selected) < MAX_COMPARED_CALLS:
        separated = [{(a, b) for a, b in alike if row[a] and row[b] and row[a] != row[b]} for row in rows]
        # Of equally telling calls, the first: it is the closest to those of the tests.
        best = max(range(len(rows)), key=lambda index: (len(separated[index]), -index))
        if not separated[best]:
            break
        alike -= separated[best]
        _, name, arguments = answers.calls[best]
        selected.append(
            ComparedCall(
                call=_shorten(_render_call(name, arguments)),
                before=_shorten(render(answers.unchanged, best)),
                answers=tuple(map(_shorten, rows[best])),
            )
        )
    return tuple(selected)


def _shorten(text: str) -> str:
    """Return a call or an answer without its middle if it is too long to be shown."""
    excess = len(text) - MAX_SHOWN_ANSWER_CHARS
    half = MAX_SHOWN_ANSWER_CHARS // 2
    return text if excess <= 0 else f"{text[:half]} ... {text[-half:]}"


def _render_call(name: str, arguments: str) -> str:
    """Return a call as people write it: only the outermost tuple loses the comma after its single element."""
    return f"{name}{arguments.removesuffix(',)')})" if arguments.endswith(",)") else f"{name}{arguments}"
