"""Common lines of two texts, including texts made to slow the comparison down."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suture.project.workspace import apply_diff, unified_diff
from suture.project.workspace.line_matching import changed_ranges, common_ranges

LINES = st.lists(st.sampled_from(["a", "b", "c", ""]) | st.integers(0, 50).map(str), max_size=40)


@given(old=LINES, new=LINES)
def test_common_lines_are_equal_and_the_others_are_changed(old: list[str], new: list[str]) -> None:
    common = common_ranges(old, new)
    assert all(old[a:b] == new[c:d] != [] for a, b, c, d in common)

    rebuilt = list(new)
    for start, end, other, stop in reversed(changed_ranges(old, new)):
        assert (start, other) != (end, stop)
        rebuilt[other:stop] = old[start:end]
    assert rebuilt == old


@given(old=LINES, new=LINES)
def test_short_texts_are_compared_as_by_difflib(old: list[str], new: list[str]) -> None:
    old_lines, new_lines = ([f"{line}\n" for line in text] for text in (old, new))
    expected = "".join(difflib.unified_diff(old_lines, new_lines, "a/f", "b/f"))
    before, after = "".join(old_lines).encode(), "".join(new_lines).encode()
    diff = unified_diff({"f": before}, {"f": after})
    assert diff.removeprefix("diff --git a/f b/f\n") == expected


HOSTILE = {
    "one line": (["x"] * 40_000, ["x"] * 39_000),
    "two lines by turns": (["x", "y"] * 20_000, ["y", "y", "x"] * 13_000),
    "blocks that shift": ([f"{n % 200}" for n in range(40_000)], [f"{n % 199}" for n in range(40_000)]),
    "upside down": ([f"{n}" for n in range(40_000)], [f"{n}" for n in reversed(range(40_000))]),
    "every second one": (
        [f"{n}" if n % 2 else "" for n in range(40_000)],
        [f"{n}" if n % 2 else "pass" for n in range(40_000)],
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_compared_in_time(name: str) -> None:
    # The time limit of the suite, 120 s, is the check: without a bound the first text takes longer.
    old, new = HOSTILE[name]
    files = {"f": "\n".join(old).encode()}, {"f": "\n".join(new).encode()}
    diff = unified_diff(*files)
    assert apply_diff(files[0], diff) == files[1]


def test_a_few_changes_of_a_long_text_are_found_exactly() -> None:
    old = [f"    value = {n}" if n % 5 else "" for n in range(5_000)]
    new = [*old[:1_000], "    new", *old[1_000:3_000], *old[3_001:4_000], "    other", *old[4_001:]]

    assert changed_ranges(old, new) == [
        (1_000, 1_000, 1_000, 1_001),
        (3_000, 3_001, 3_001, 3_001),
        (4_000, 4_001, 4_000, 4_001),
    ]
