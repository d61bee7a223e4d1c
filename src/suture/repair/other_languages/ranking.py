"""Repairs in other languages, the likeliest first: few warnings, and words that the file has elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

from suture.records import Language
from suture.repair.answering import Answered
from suture.repair.editing.edits import mutated
from suture.repair.other_languages.gaming import tree_literals, tree_warnings
from suture.repair.ranking import MOST_COMPARED, WARNED, Repair, naturalness, told_apart
from suture.repair.search_result import Findings


def rank_elsewhere(found: Findings, tests: Mapping[str, str], language: Language) -> tuple[Repair, ...]:
    """What a search found, in the order in which it is to be judged.

    Args:
        found: What it found.
        tests: Path -> text of the tests.
        language: What the project is written in.
    """
    literals = tree_literals(tests.items(), language) if found.plausible else frozenset()
    repairs = []
    for proposal in found.plausible[: 2 * MOST_COMPARED]:
        before = found.texts[proposal.path]
        text = mutated(before, proposal.edits)
        warnings = tree_warnings(before, text, proposal.path, language, literals)
        score = proposal.score * WARNED ** len(warnings)
        score *= 0.85 + 0.3 * naturalness(before, proposal)
        repairs.append(Repair(proposal=proposal, text=text, score=score, warnings=warnings))
    repairs.sort(key=lambda repair: -round(repair.score, 6))
    return tuple(repair for repair, _ in told_apart([(repair, Answered()) for repair in repairs], {}))
