"""Plausible is not correct: repairs that pass are told apart by what they do beyond the tests, and ranked."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from suture.checks.command.test_command import TestCommand
from suture.pysource.parsing import parsed
from suture.repair.answering import (
    LATE,
    NOTHING_SEEN,
    Answered,
    Call,
    answers_of,
    broken_examples,
    calls_near,
    examples_in,
)
from suture.repair.editing.edits import Edit
from suture.repair.gaming.warnings import literals_of, warnings_about
from suture.repair.ordering.expressions import apart, needless
from suture.repair.scoring import Asked, Reading, Repair, score_repairs
from suture.repair.search_result import Findings

MOST_COMPARED = 16
"""Repairs that answer the same calls; they share the seconds below."""
COMPARE_S = 6.0
"""Seconds that repairs are asked for answers on new inputs, after the search has ended."""
FAR = 0.5
"""What a change takes away that is as far from the code as it is as one of an expression can be."""
CLOSE = 0.25
"""Of the score of a repair, what a rival has to have: less likely ones say little against it."""
NEEDLESS = 0.3
"""What each operation leaves of it that it writes and that changes nothing: nobody writes `+ 0`."""


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


async def rank_repairs(
    findings: Findings,
    command: TestCommand,
    tests: Sequence[str],
    *,
    seed: int = 0,
    seconds: float = COMPARE_S,
) -> tuple[tuple[Repair, ...], Difference | None]:
    """Plausible repairs, the likeliest first, one for each behaviour; and what tells the first two apart.

    Args:
        findings: What a search found.
        command: The command that it was found with.
        tests: Sources of the tests.
        seed: Of the inputs that are tried.
        seconds: Wall-clock seconds that running them may take; never more than a few.

    Raises:
        SandboxError: The wall failed.
    """
    proposals = findings.plausible[:MOST_COMPARED]
    if not proposals:
        return (), None
    calls = calls_near(findings.spectrum, proposals, findings.texts, random.Random(seed))
    changed = {proposal.path: findings.texts[proposal.path] for proposal in proposals}
    examples = examples_in(changed)
    made = [*calls, *(call for call, _ in examples)]
    answered: list[Answered] = [Answered() for _ in proposals]
    if made and len(proposals) > 1:
        answered = await answers_of(proposals, made, findings.texts, command, min(seconds, COMPARE_S))
    broken = [broken_examples(one.answers, examples, len(calls)) for one in answered]
    literals = literals_of(tests)
    reading = Reading(
        warnings=lambda path, before, after: warnings_about(before, after, literals),
        distance=_distance,
    )
    scored = await score_repairs(
        findings, proposals, Asked(calls=made, answered=answered, broken=broken), reading
    )
    distinct = told_apart(scored, findings.texts)
    return tuple(repair for repair, _ in distinct), difference_of(distinct, made, _shown)


def _distance(path: str, before: str, edits: Sequence[Edit], after: str) -> float:
    return (1 - FAR * apart(before, edits, ())) * NEEDLESS ** max(0, needless(after) - needless(before))


def told_apart(
    repairs: Sequence[tuple[Repair, Answered]], texts: Mapping[str, str]
) -> list[tuple[Repair, Answered]]:
    """The best of each behaviour, with its rivals: what is not known to do the same stands for itself.

    Args:
        repairs: Each with its answers, the likeliest first.
        texts: Path -> text, before.
    """
    kept: list[tuple[Repair, Answered]] = []
    for repair, answered in repairs:
        same = (n for n, other in enumerate(kept) if _same((repair, answered), other, texts))
        place = next(same, None)
        if place is None:
            kept.append((repair, answered))
        else:
            first, own = kept[place]
            chosen, left = (repair, first) if _is_plainer(repair, first, texts) else (first, repair)
            alike = (*first.alike, left.proposal.label)
            kept[place] = (replace(chosen, score=first.score, alike=alike), own)
    return [(replace(one, apart=_rivals(number, kept)), own) for number, (one, own) in enumerate(kept)]


def _same(one: tuple[Repair, Answered], other: tuple[Repair, Answered], texts: Mapping[str, str]) -> bool:
    (first, ours), (second, theirs) = one, other
    if first.proposal.path != second.proposal.path:
        return False
    if ours.answers and theirs.answers and ours.answers != theirs.answers:
        return False
    return bool(ours.reached and theirs.reached) or _is_one_expression(first, second, texts)


def _is_one_expression(one: Repair, other: Repair, texts: Mapping[str, str]) -> bool:
    path = one.proposal.path
    return path in texts and apart(texts[path], one.proposal.edits, other.proposal.edits) == 0


def _is_plainer(one: Repair, other: Repair, texts: Mapping[str, str]) -> bool:
    """Whether it says the same with less, as `n - 1` for `n - 2 + 1`, and nothing more is suspicious."""
    plainer = len(one.warnings) <= len(other.warnings) and _parts(one.text) < _parts(other.text)
    return plainer and _is_one_expression(one, other, texts)


def _parts(text: str) -> int:
    tree = parsed(text)
    return sum(1 for _ in ast.walk(tree)) if tree is not None else 0


def _rivals(number: int, kept: Sequence[tuple[Repair, Answered]]) -> tuple[str, ...]:
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


def difference_of(
    repairs: Sequence[tuple[Repair, Answered]], calls: Sequence[Call], shown: Callable[[str], str]
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


def _shown(answer: str) -> str:
    """An answer without the arguments behind it, where it can be read."""
    if answer.startswith("!"):
        return "no end in time" if answer == LATE else f"raises {answer[1:]}"
    try:
        return repr(ast.literal_eval(answer.removeprefix(NOTHING_SEEN))[0])
    except (SyntaxError, ValueError, TypeError, IndexError):
        return answer.removeprefix(NOTHING_SEEN)
