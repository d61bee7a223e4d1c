"""What plausible repairs weigh: their odds, what is suspicious about them, how far they agree."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from suture.repair.answering import Answered, Call
from suture.repair.editing.edits import Edit, mutated
from suture.repair.search_result import Findings
from suture.repair.trials.records import Proposal

WARNED = 0.4
"""What each warning leaves of a score."""
IDLE = 0.1
"""What each block that it guards, and that no test runs, leaves of it: it was written to be run. Only beside
others of the same place does that say anything."""
EXAMPLE = 0.2
"""What a broken example of a docstring leaves of it."""


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
    alike: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What plausible repairs were asked.

    Attributes:
        calls: File, function and arguments as people read them.
        answered: What each repair answered.
        broken: Of each, the examples in the code's own words that it does not answer as they say.
    """

    calls: Sequence[Call]
    answered: Sequence[Answered]
    broken: Sequence[int]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How the texts of a language are read.

    Attributes:
        warnings: What is suspicious about a change, by its path and both texts.
        distance: By path, text before, edits and text after, what is left of a score for how far the change
            goes, and for what it writes without need.
    """

    warnings: Callable[[str, str, str], tuple[str, ...]]
    distance: Callable[[str, str, Sequence[Edit], str], float]


async def score_repairs(
    findings: Findings, proposals: Sequence[Proposal], asked: Asked, reading: Reading
) -> list[tuple[Repair, Answered]]:
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
        text = mutated(before, proposal.edits)
        warnings = reading.warnings(proposal.path, before, text)
        score = proposal.score * WARNED ** len(warnings) * EXAMPLE ** min(1, asked.broken[number])
        score *= 0.6 + 0.4 * _agreement(number, behaviour, proposals)
        score *= 0.85 + 0.3 * naturalness(before, proposal)
        score *= IDLE ** findings.idle.get((proposal.path, proposal.edits), 0)
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
