"""Reverting the hunks of a recent change, and favouring its lines."""

from __future__ import annotations

from suture.mutation.edits import apply_edits
from suture.search.ordering.reverts import (
    compute_hunks,
    favour_changed_lines,
    find_changed_lines,
    generate_reverts,
)

BEFORE = "a = 1\nb = 2\nc = 3\nd = 4\ne = 5\nf = 6\ng = 7\nh = 8\n"
AFTER = "a = 1\nb = 20\nc = 3\nd = 4\ne = 5\nf = 6\ng = 7\nG = 70\nh = 8\n"
LATER = "# é\n" + AFTER + "tail = 0\n"
"""The same file later: lines have moved, and byte offsets differ from character offsets."""


def test_hunks_are_reverted_one_by_one_and_then_together() -> None:
    proposals = generate_reverts(compute_hunks({"m.py": BEFORE}, {"m.py": AFTER}), {"m.py": LATER})
    assert [apply_edits(LATER, proposal.edits) for proposal in proposals] == [
        LATER.replace("b = 20", "b = 2"),
        LATER.replace("G = 70\n", ""),
        "# é\n" + BEFORE + "tail = 0\n",
    ]
    assert proposals[0].score > proposals[2].score


def test_a_hunk_with_a_missing_or_ambiguous_place_is_left_out() -> None:
    hunks = compute_hunks({"m.py": BEFORE}, {"m.py": AFTER})
    assert generate_reverts(hunks, {"m.py": LATER + LATER}) == ()
    assert (
        generate_reverts(hunks, {"m.py": LATER.replace("b = 20", "b = 21").replace("g = 7", "g = 8")}) == ()
    )
    assert generate_reverts(hunks, {}) == ()


def test_a_new_file_has_no_hunks() -> None:
    assert compute_hunks({}, {"m.py": AFTER}) == ()


def test_changed_lines_come_first() -> None:
    lines = find_changed_lines(compute_hunks({"m.py": BEFORE}, {"m.py": AFTER}), {"m.py": LATER})
    assert lines == {"m.py": frozenset({3, 9})}
    scores = favour_changed_lines({"m.py": {3: 0.5, 4: 0.9}, "other.py": {1: 1.0}}, lines)
    assert scores["m.py"][3] == 0.5 > scores["m.py"][4]
    assert scores["other.py"][1] < 0.5


def test_scores_stay_if_no_changed_line_ran() -> None:
    scores = {"m.py": {4: 0.9}}
    assert favour_changed_lines(scores, {"m.py": frozenset({3})}) == scores
    assert favour_changed_lines(scores, {}) == scores
