"""Minimising a change by delta debugging, first by lines and then by whole units of code."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suture.judge.minimisation.delta_debugging import find_unneeded_removals, minimise, minimise_lines

LINES = [f"line_{number} = {number}" for number in range(30)]
BASE = {"a.txt": ("\n".join(LINES) + "\n").encode(), "b.txt": b"one\ntwo\n"}


async def test_only_needed_edits_are_left() -> None:
    lines = [f"{line}  # touched" for line in LINES]
    lines[7], lines[20] = "line_7 = 'mended'", "line_20 = 'mended'"
    files = {"a.txt": "\n".join(lines) + "\n", "b.txt": "one\nthree\n"}

    async def passes(part: Mapping[str, str]) -> bool:
        return part.get("a.txt", "").count("mended") == 2

    result = await minimise_lines(BASE, files, passes, max_runs=200)
    expected = [*LINES]
    expected[7], expected[20] = lines[7], lines[20]

    assert result.files == {"a.txt": "\n".join(expected) + "\n"}
    assert (result.summary.edits_found, result.summary.edits, result.summary.is_minimal) == (31, 2, True)


@given(needed=st.sets(st.integers(0, 11)), extra=st.lists(st.sampled_from(["x", "y"]), max_size=4))
async def test_every_remaining_edit_is_needed(needed: set[int], extra: list[str]) -> None:
    base = {"a.txt": "".join(f"{n}\n" for n in range(12)).encode()}
    text = "".join(f"{n}!\n" for n in range(12)) + "".join(f"{mark}\n" for mark in extra)
    expected = {f"{n}!" for n in needed}

    async def passes(part: Mapping[str, str]) -> bool:
        return expected <= set(part.get("a.txt", "").split("\n")) if part else not expected

    result = await minimise_lines(base, {"a.txt": text}, passes, max_runs=500)

    assert result.summary.is_minimal
    assert result.summary.edits == max(1, len(needed))
    assert await passes(result.files)


async def test_the_limit_of_runs_holds_and_the_result_still_passes() -> None:
    text = "\n".join(f"{line}!" for line in LINES) + "\n"
    calls = itertools.count()

    async def passes(part: Mapping[str, str]) -> bool:
        next(calls)
        return all(f"{line}!" in part.get("a.txt", "") for line in LINES[::3])

    result = await minimise_lines(BASE, {"a.txt": text}, passes, max_runs=9)

    assert (result.summary.runs, next(calls), result.summary.is_minimal) == (9, 9, False)
    assert await passes(result.files)


async def test_halves_that_do_not_parse_cost_no_run() -> None:
    base = {"m.py": b"def f(x):\n    return x\n"}
    text = "def f(x):\n    if x is None:\n        return 0\n    return x\n"
    tried: list[str] = []

    async def passes(part: Mapping[str, str]) -> bool:
        tried.append(part["m.py"])
        return part["m.py"] == text

    result = await minimise_lines(base, {"m.py": text}, passes, max_runs=50)
    assert result.files == {"m.py": text}
    assert result.summary.is_minimal

    for source in tried:
        compile(source, "m.py", "exec")


async def test_an_unneeded_file_is_dropped() -> None:
    async def passes(part: Mapping[str, str]) -> bool:
        return "new.txt" in part

    result = await minimise(BASE, {"new.txt": "x\ny", "b.txt": "1\n2\n"}, passes, max_runs=50)
    assert set(result.files) == {"new.txt"}


SHOP = """\
BOOK = {}
LIMIT = 3


def add(name, price):
    BOOK[name] = price


def price_of(name):
    return BOOK.get(name)


def same(one, other):
    return one == other


def half(n):
    return n / 2


def rounded(n):
    return round(half(n))


class Till:
    def open(self):
        self.sum = 0

    def take(self, n):
        self.sum = n
"""


async def minimise_to(text: str, needed: str, answers_equally: bool = True) -> tuple[str, tuple[str, ...]]:
    """Return what remains of a change if the tests need one line of it, and the dropped parts."""

    async def passes(part: Mapping[str, str]) -> bool:
        return needed in part.get("shop.py", "")

    async def is_equivalent(part: Mapping[str, str]) -> bool:
        return answers_equally

    result = await minimise(
        {"shop.py": SHOP.encode()}, {"shop.py": text}, passes, max_runs=50, is_equivalent=is_equivalent
    )
    return result.files["shop.py"], result.summary.left_out


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("one == other", "one.lower() == other"), ("== other", "== other.lower()")),  # one line
        (("return one", "# both sides\n    return one"), ("== other", "is other")),  # one function
        (("BOOK[name]", "BOOK[name.lower()]"), ("get(name)", "get(name.lower())")),  # one variable
        (("LIMIT = 3", "LIMIT = 4"), ("return n / 2", "return min(LIMIT, n / 2)")),  # a constant and its user
        (("return n / 2", "return n // 2"), ("round(half(n))", "half(n)")),  # a function and its caller
        (("self.sum = 0", "self.all = 0"), ("self.sum = n", "self.all = n")),  # one class
    ],
)
async def test_edits_of_one_unit_stay_together(one: tuple[str, str], other: tuple[str, str]) -> None:
    text = SHOP.replace(*one).replace(*other)
    for needed in (one[1], other[1]):
        assert await minimise_to(text, needed.partition("\n")[2] or needed) == (text, ())


async def test_an_unneeded_part_is_left_out_and_named() -> None:
    fixed = SHOP.replace("one == other", "one.lower() == other.lower()")
    text = fixed.replace("self.sum = n", "self.sum += n").replace("self.sum = 0", "self.sum = 0.0")
    assert await minimise_to(text, "one.lower()") == (fixed, ("shop.py (Till)",))


async def test_a_part_that_changes_an_answer_is_kept() -> None:
    text = SHOP.replace("one == other", "one.lower() == other.lower()").replace("n / 2", "n // 2")
    assert await minimise_to(text, "one.lower()", answers_equally=False) == (text, ())


async def test_only_the_part_that_changes_an_answer_is_restored() -> None:
    fixed = SHOP.replace("one == other", "one is other")
    restored = fixed.replace("n / 2", "n // 2")
    text = restored.replace("self.sum = n", "self.sum += n")

    async def passes(part: Mapping[str, str]) -> bool:
        return "one is other" in part.get("shop.py", "")

    async def is_equivalent(part: Mapping[str, str]) -> bool:
        return "n // 2" in part["shop.py"]

    result = await minimise(
        {"shop.py": SHOP.encode()}, {"shop.py": text}, passes, max_runs=50, is_equivalent=is_equivalent
    )

    assert (result.files, result.summary.left_out) == ({"shop.py": restored}, ("shop.py (Till)",))


async def test_files_that_name_each_other_stay_together() -> None:
    before = {"shop.py": SHOP.encode(), "README.md": b"A shop.\n"}
    files = {
        "shop.py": f"from cases import fold\n{SHOP.replace('one == other', 'fold(one) == fold(other)')}",
        "cases.py": "def fold(text):\n    return text.lower()\n",
        "README.md": "A shop.\nNow with cases.\n",
        "notes.txt": "done\n",
    }

    async def passes(part: Mapping[str, str]) -> bool:
        return "fold(one)" in part.get("shop.py", "")

    result = await minimise(before, files, passes, max_runs=50)

    assert set(result.files) == {"shop.py", "cases.py", "README.md"}  # the README names `cases`
    assert result.summary.left_out == ("notes.txt",)


PRICES_PY = "import os\n\ndef price(n):\n    if n < 0:\n        raise ValueError\n    a = 1\n    return n\n"
PRICES_JS = "function price(n) {\n  if (n < 0) throw n;\n  // one\n  let a = 1;\n  return n;\n}\n"
PRICES_GO = "package a\n\nfunc price(n int) int {\n\tcheck(n)\n\tlog(n)\n\treturn n\n}\n"


@pytest.mark.parametrize(
    ("path", "text", "removed", "lines"),
    [
        ("a.py", PRICES_PY, ["    if n < 0:\n        raise ValueError\n"], [4]),
        ("a.py", PRICES_PY, ["import os\n"], []),
        ("a.js", PRICES_JS, ["  if (n < 0) throw n;\n", "  // one\n"], [2]),
        ("a.go", PRICES_GO, ["\tcheck(n)\n"], [4]),
    ],
)
@pytest.mark.parametrize("is_needed", [False, True])
async def test_code_that_a_change_removes_for_no_test_is_found(
    path: str, text: str, removed: list[str], lines: list[int], is_needed: bool
) -> None:
    changed = text.replace("return n", "return 2 * n")
    for part in removed:
        assert part in changed
        changed = changed.replace(part, "")

    async def passes(files: Mapping[str, str]) -> bool:
        return "2 * n" in files[path] and (not is_needed or removed[0] not in files[path])

    found = await find_unneeded_removals({path: text.encode()}, {path: changed}, passes)
    assert found == ([] if is_needed else [(path, line) for line in lines])


async def test_a_change_that_only_removes_or_moves_code_removes_what_it_must() -> None:
    async def passes(files: Mapping[str, str]) -> bool:
        return True

    only_removed = PRICES_JS.replace("  let a = 1;\n", "")
    assert not await find_unneeded_removals({"a.js": PRICES_JS.encode()}, {"a.js": only_removed}, passes)
    moved = only_removed.replace("function price(n) {\n", "function price(n) {\n  let a = 1;\n")
    assert not await find_unneeded_removals({"a.js": PRICES_JS.encode()}, {"a.js": moved}, passes)
