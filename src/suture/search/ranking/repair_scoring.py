"""What plausible repairs weigh: their odds, what is suspicious about them, how far they agree."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from suture.judge.trials.trial_records import Proposal
from suture.mutation.edits import Edit, apply_edits
from suture.project.python_source.parsing import parsed
from suture.search.ranking.call_outcomes import CallOutcomes, Call
from suture.search.ranking.expression_distance import measure_distance
from suture.search.search_result import SearchResult

WARNED = 0.4
"""What each warning leaves of a score."""
IDLE = 0.1
"""What each block that it guards, and that no test runs, leaves of it: it was written to be run. Only beside
others of the same place does that say anything."""
EXAMPLE = 0.2
"""What a broken example of a docstring leaves of it."""


MOST_COMPARED = 16
"""Repairs that answer the same calls; they share the seconds below."""
COMPARE_S = 6.0
"""Seconds that repairs are asked for answers on new inputs, after the search has ended."""
CLOSE = 0.25
"""Of the score of a repair, what a rival has to have: less likely ones say little against it."""


@dataclass(frozen=True, kw_only=True)
class Repair:
    """A change with which all tests pass.

    Attributes:
        proposal: The change.
        text: The changed file.
        score: For ordering.
        warnings: What is suspicious about it.
        alike: Other repairs that are known to do the same: by all answers to calls that come to what they
            change, or by their expressions.
        apart: Its rivals: others that answer otherwise, or are about as likely and not known to do the same.
    """

    proposal: Proposal
    text: str
    score: float
    warnings: tuple[str, ...] = ()
    equivalent_labels: tuple[str, ...] = ()
    rival_labels: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CallComparison:
    """What plausible repairs were asked.

    Attributes:
        calls: File, function and arguments as people read them.
        answered: What each repair answered.
        broken: Of each, the examples in the code's own words that it does not answer as they say.
    """

    calls: Sequence[Call]
    answered: Sequence[CallOutcomes]
    broken: Sequence[int]


@dataclass(frozen=True, kw_only=True)
class LanguageReading:
    """How the texts of a language are read.

    Attributes:
        warnings: What is suspicious about a change, by its path and both texts.
        distance: By path, text before, edits and text after, what is left of a score for how far the change
            goes, and for what it writes without need.
        is_python: Whether equal expressions are known by their syntax tree.
    """

    warnings: Callable[[str, str, str], tuple[str, ...]]
    distance: Callable[[str, str, Sequence[Edit], str], float]
    is_python: bool = False


@dataclass(frozen=True, kw_only=True)
class Difference:
    """An input that tells repairs apart.

    Attributes:
        call: The call, as source.
        answers: Label of a repair -> what it answers, for the likeliest and the next that differs.
        by_repair: What each repair answers, in their order.
    """

    call: str
    answers: Mapping[str, str]
    by_repair: tuple[str, ...]

    @property
    def apart(self) -> tuple[str, str]:
        """The likeliest repair's answer, and the other one."""
        first = self.by_repair[0]
        return first, next(answer for answer in self.by_repair if answer != first)


async def rank_compared(
    findings: SearchResult,
    proposals: Sequence[Proposal],
    asked: CallComparison,
    reading: LanguageReading,
    shown: Callable[[str], str],
) -> tuple[tuple[Repair, ...], Difference | None]:
    """Plausible repairs, the likeliest first, one for each behaviour; and what tells the first two apart.

    Args:
        findings: What a search found.
        proposals: The plausible ones that are compared.
        asked: What they answered.
        reading: How their language is read.
        shown: An answer, for people.
    """
    scored = await score_repairs(findings, proposals, asked, reading)
    distinct = group_by_behaviour(scored, findings.texts if reading.is_python else {})
    return tuple(repair for repair, _ in distinct), find_difference(distinct, asked.calls, shown)


async def score_repairs(
    findings: SearchResult, proposals: Sequence[Proposal], asked: CallComparison, reading: LanguageReading
) -> list[tuple[Repair, CallOutcomes]]:
    """Repairs with their answers, the likeliest first.

    Args:
        findings: What a search found.
        proposals: The plausible ones that are compared.
        asked: What they answered.
        reading: How their language is read.
    """
    behaviour = [one.answers for one in asked.answered]
    repairs = []
    for number, proposal in enumerate(proposals):
        await asyncio.sleep(0)  # reading a long file takes a moment, and the run's time may be up
        before = findings.texts[proposal.path]
        text = apply_edits(before, proposal.edits)
        warnings = reading.warnings(proposal.path, before, text)
        score = proposal.score * WARNED ** len(warnings) * EXAMPLE ** min(1, asked.broken[number])
        score *= 0.6 + 0.4 * _agreement(number, behaviour, proposals)
        score *= 0.85 + 0.3 * naturalness(before, proposal)
        score *= IDLE ** findings.idle_block_counts.get((proposal.path, proposal.edits), 0)
        score *= reading.distance(proposal.path, before, proposal.edits, text)
        repair = Repair(proposal=proposal, text=text, score=score, warnings=warnings)
        repairs.append((repair, asked.answered[number]))
    return sorted(repairs, key=lambda pair: -round(pair[0].score, 6))


def _agreement(number: int, behaviour: Sequence[tuple[str, ...]], proposals: Sequence[Proposal]) -> float:
    """How far the others, each as likely as it is, answer alike; 1 where there is nothing to compare."""
    own, weight, agreed = behaviour[number], 0.0, 0.0
    for other, answers in enumerate(behaviour):
        pairs = list(zip(own, answers, strict=False))
        if other != number and pairs:
            weight += proposals[other].score
            agreed += proposals[other].score * sum(a == b for a, b in pairs) / len(pairs)
    return agreed / weight if weight else 1.0


def naturalness(text: str, proposal: Proposal) -> float:
    """The share of a change's new words' neighbourhoods that the file has elsewhere, 0.5 where it has none.

    Args:
        text: The file as it was.
        proposal: The change.
    """
    known = _known_pairs(text)
    pairs = {pair for edit in proposal.edits for pair in _pairs(edit.text)}
    return sum(pair in known for pair in pairs) / len(pairs) if pairs else 0.5


@lru_cache(maxsize=16)
def _known_pairs(text: str) -> frozenset[tuple[str, str]]:
    return frozenset(_pairs(text))


def _pairs(text: str) -> list[tuple[str, str]]:
    words = "".join(sign if sign.isalnum() or sign == "_" else f" {sign} " for sign in text).split()
    return list(pairwise(words))


def group_by_behaviour(
    repairs: Sequence[tuple[Repair, CallOutcomes]], texts: Mapping[str, str]
) -> list[tuple[Repair, CallOutcomes]]:
    """The best of each behaviour, with its rivals: what is not known to do the same stands for itself.

    Args:
        repairs: Each with its answers, the likeliest first.
        texts: Path -> text, before.
    """
    kept: list[tuple[Repair, CallOutcomes]] = []
    for repair, answered in repairs:
        same = (n for n, other in enumerate(kept) if _same((repair, answered), other, texts))
        place = next(same, None)
        if place is None:
            kept.append((repair, answered))
        else:
            first, own = kept[place]
            chosen, left = (repair, first) if _is_plainer(repair, first, texts) else (first, repair)
            alike = (*first.equivalent_labels, left.proposal.label)
            kept[place] = (replace(chosen, score=first.score, alike=alike), own)
    return [(replace(one, apart=_rivals(number, kept)), own) for number, (one, own) in enumerate(kept)]


def _same(one: tuple[Repair, CallOutcomes], other: tuple[Repair, CallOutcomes], texts: Mapping[str, str]) -> bool:
    (first, ours), (second, theirs) = one, other
    if first.proposal.path != second.proposal.path:
        return False
    if ours.answers and theirs.answers and ours.answers != theirs.answers:
        return False
    return bool(ours.reached and theirs.reached) or _is_one_expression(first, second, texts)


def _is_one_expression(one: Repair, other: Repair, texts: Mapping[str, str]) -> bool:
    path = one.proposal.path
    return path in texts and measure_distance(texts[path], one.proposal.edits, other.proposal.edits) == 0


def _is_plainer(one: Repair, other: Repair, texts: Mapping[str, str]) -> bool:
    """Whether it says the same with less, as `n - 1` for `n - 2 + 1`, and nothing more is suspicious."""
    plainer = len(one.warnings) <= len(other.warnings) and _parts(one.text) < _parts(other.text)
    return plainer and _is_one_expression(one, other, texts)


def _parts(text: str) -> int:
    tree = parsed(text)
    return sum(1 for _ in ast.walk(tree)) if tree is not None else 0


def _rivals(number: int, kept: Sequence[tuple[Repair, CallOutcomes]]) -> tuple[str, ...]:
    """Those that are known to do otherwise, and of those that may the ones that are about as likely."""
    own, ours = kept[number]
    return tuple(
        other.proposal.label
        for place, (other, theirs) in enumerate(kept)
        if place != number
        and (
            (ours.answers and theirs.answers and ours.answers != theirs.answers)
            or other.score >= CLOSE * own.score
        )
    )


def find_difference(
    repairs: Sequence[tuple[Repair, CallOutcomes]], calls: Sequence[Call], shown: Callable[[str], str]
) -> Difference | None:
    """What tells the first from the next that answers otherwise; `None` where nothing does.

    Args:
        repairs: With their answers, the likeliest first.
        calls: What they were asked.
        shown: An answer, for people.
    """
    first, ours = repairs[0]
    for other, theirs in repairs[1:]:
        pairs = zip(calls, ours.answers, theirs.answers, strict=False)
        for number, ((_, name, given), one, two) in enumerate(pairs):
            if shown(one) != shown(two):
                return Difference(
                    call=f"{name}{given.replace(',)', ')')}",
                    answers={first.proposal.label: shown(one), other.proposal.label: shown(two)},
                    by_repair=tuple(shown(own.answers[number]) if own.answers else "" for _, own in repairs),
                )
    return None
