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
NOW = "# é\n" + AFTER + "tail = 0\n"
"""The same later on: lines have moved, and bytes are not characters."""


def test_each_hunk_is_taken_back_alone_and_then_all_together() -> None:
    proposals = generate_reverts(compute_hunks({"m.py": BEFORE}, {"m.py": AFTER}), {"m.py": NOW})
    assert [apply_edits(NOW, proposal.edits) for proposal in proposals] == [
        NOW.replace("b = 20", "b = 2"),
        NOW.replace("G = 70\n", ""),
        "# é\n" + BEFORE + "tail = 0\n",
    ]
    assert proposals[0].score > proposals[2].score


def test_a_hunk_whose_place_is_gone_or_not_the_only_one_is_left_out() -> None:
    hunks = compute_hunks({"m.py": BEFORE}, {"m.py": AFTER})
    assert generate_reverts(hunks, {"m.py": NOW + NOW}) == ()
    assert generate_reverts(hunks, {"m.py": NOW.replace("b = 20", "b = 21").replace("g = 7", "g = 8")}) == ()
    assert generate_reverts(hunks, {}) == ()


def test_a_file_that_is_new_has_no_hunks() -> None:
    assert compute_hunks({}, {"m.py": AFTER}) == ()


def test_lines_that_a_change_touched_come_before_all_others() -> None:
    lines = find_changed_lines(compute_hunks({"m.py": BEFORE}, {"m.py": AFTER}), {"m.py": NOW})
    assert lines == {"m.py": frozenset({3, 9})}
    scores = favour_changed_lines({"m.py": {3: 0.5, 4: 0.9}, "other.py": {1: 1.0}}, lines)
    assert scores["m.py"][3] == 0.5 > scores["m.py"][4]
    assert scores["other.py"][1] < 0.5


def test_without_a_change_that_was_run_scores_stay() -> None:
    scores = {"m.py": {4: 0.9}}
    assert favour_changed_lines(scores, {"m.py": frozenset({3})}) == scores
    assert favour_changed_lines(scores, {}) == scores
