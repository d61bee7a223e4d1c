"""Common lines of two texts, also of texts that make the search slow on purpose."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suture.project.workspace import apply_diff, unified_diff
from suture.project.workspace.line_matching import changed_ranges, common_ranges

LINES = st.lists(st.sampled_from(["a", "b", "c", ""]) | st.integers(0, 50).map(str), max_size=40)


@given(old=LINES, new=LINES)
def test_what_is_common_is_common_and_the_rest_is_changed(old: list[str], new: list[str]) -> None:
    common = common_ranges(old, new)
    assert all(old[a:b] == new[c:d] != [] for a, b, c, d in common)
    made = list(new)
    for start, end, other, stop in reversed(changed_ranges(old, new)):
        assert (start, other) != (end, stop)
        made[other:stop] = old[start:end]
    assert made == old


@given(old=LINES, new=LINES)
def test_short_texts_are_compared_as_ever(old: list[str], new: list[str]) -> None:
    one, two = ([f"{line}\n" for line in text] for text in (old, new))
    wanted = "".join(difflib.unified_diff(one, two, "a/f", "b/f"))
    before, after = "".join(one).encode(), "".join(two).encode()
    diff = unified_diff({"f": before}, {"f": after})
    assert diff.removeprefix("diff --git a/f b/f\n") == wanted


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
def test_no_text_makes_it_long(name: str) -> None:
    # Nothing here looks at the clock: without a bound the first of them needs more than the suite's 120 s.
    old, new = HOSTILE[name]
    files = {"f": "\n".join(old).encode()}, {"f": "\n".join(new).encode()}
    diff = unified_diff(*files)
    assert apply_diff(files[0], diff) == files[1]


def test_a_few_changes_in_a_long_text_stay_few() -> None:
    old = [f"    value = {n}" if n % 5 else "" for n in range(5_000)]
    new = [*old[:1_000], "    new", *old[1_000:3_000], *old[3_001:4_000], "    other", *old[4_001:]]
    assert changed_ranges(old, new) == [
        (1_000, 1_000, 1_000, 1_001),
        (3_000, 3_001, 3_001, 3_001),
        (4_000, 4_001, 4_000, 4_001),
    ]
