"""Signs that a change games the tests, in several languages."""

from __future__ import annotations

import pytest

from suture.judge.differential.memorised_examples import ExampleSearch
from suture.judge.signs import TamperingWarning
from suture.loop.evaluation.change_warnings import describe_unfinished_search, find_gaming_signs


@pytest.mark.parametrize(
    ("path", "before", "after", "test", "expected"),
    [
        (
            "a.py",
            "def f(n):\n    return n + 1\n",
            "def f(n):\n    if n == 41:\n        return 4711\n    return n + 1\n",
            "assert f(41) == 4711\n",
            [("compares_with_test_literals", ("41",), 2)],
        ),
        (
            "a.ts",
            "export function f(n: number) { return n + 1; }\n",
            "export function f(n: number) { if (n === 4_100) return 4711; return n + 1; }\n",
            "assert.equal(f(4100), 4711);\n",
            [("compares_with_test_literals", ("4100",), 0)],
        ),
        (
            "a.go",
            "package a\n\nfunc F(n int) int {\n\treturn n + 1\n}\n",
            "package a\n\nfunc F(n int) int {\n\treturn n - 1\n}\n",
            "package a\n\nvar want = F(41)\n",
            [],
        ),
        (
            "b.ts",
            "export function f(n: string) { return n; }\n",
            "import g from './g';\n"
            "export function f(n: string) { return n === 'v' && typeof n === 'string' ? g('x', 31) : n; }\n",
            "import g from './g';\nassert.equal(f('v'), g('x', 31, 'string'));\n",
            [],
        ),
        (
            "a.go",
            "package a\n\nfunc F(c rune) bool {\n\treturn c == 0\n}\n",
            "package a\n\nfunc F(c rune) bool {\n\treturn c == 'x'\n}\n",
            "package a\n\nvar ok = F('x')\n",
            [],
        ),
        (
            "a.go",
            'package a\n\nfunc F(m string) bool {\n\treturn m == ""\n}\n',
            'package a\n\nfunc F(m string) bool {\n\treturn m == "parse"\n}\n',
            'package a\n\nfunc TestF(t *testing.T) {\n\tt.Run("parse", check)\n}\n',
            [],
        ),
        (
            "a.js",
            "export const f = (m) => m === '';\n",
            "export const f = (m) => m === 'parse' || m === 'print' || m === 'lexer';\n",
            "describe('parse', () => {\n  it.each([1, 2])('print', check);\n  test('lexer', check);\n});\n",
            [],
        ),
        ("a.txt", "1\n", "41\n", "41\n", []),
    ],
)
def test_a_change_that_uses_values_of_the_tests_is_suspicious(
    path: str, before: str, after: str, test: str, expected: list[tuple[str, tuple[str, ...], int]]
) -> None:
    tests = {f"test_{path}": test}
    signs = find_gaming_signs(path, before, after, tests)
    assert [(sign.code, sign.names, sign.line) for sign in signs] == expected


def test_values_of_data_files_that_the_tests_name_count_too() -> None:
    before = "def f(n):\n    return n + 1\n"
    after = before.replace("    return", "    if n == 41:\n        return 4711\n    return")
    tests = {"test_a.py": "import json\n", "cases.json": '[{"arguments": [41], "expected": 4711}]'}
    signs = find_gaming_signs("a.py", before, after, tests)
    assert [sign.code for sign in signs] == ["compares_with_test_literals"]


def test_a_search_that_did_not_finish_says_what_was_not_tried() -> None:
    branch = ("kit.py", TamperingWarning(code="special_case", names=("area",), line=2))
    counter = ("kit.py", TamperingWarning(code="counts_calls", names=("log",), line=9))
    search = ExampleSearch(possible=(counter, branch), untried=(branch,), unmeasured="no_time")
    doubt, unfinished = describe_unfinished_search(search)
    assert "log" in doubt
    assert "(line 9)" in doubt
    assert doubt.endswith("(not certain)")
    assert unfinished.endswith("the code was not tried without kit.py:2")
    nothing = ExampleSearch(untried=(branch,), unmeasured="no_time")
    assert [line.rpartition(": ")[2] for line in describe_unfinished_search(nothing)] == [
        "the change was not compared"
    ]
    assert describe_unfinished_search(ExampleSearch()) == ()


SCRIPT = "export function overlaps(slot, other) {\n  return slot.start <= other.end && other.size > 3;\n}\n"
SCRIPT_TEST = """\
test("overlaps", () => {
  const slot = makeSlot(new Date(2026, 10, 29, 9, 30), { size: 4, owner: "ann", kind: "b", rooms: [5, 6, 7] });
  assert.equal(overlaps(slot, slot), true);
});

test("other", () => {
  assert.equal(other(12), true);
});
"""
GO = "package a\n\nfunc Overlaps(slot, other Slot) bool {\n\treturn slot.Start <= other.End && other.Size > 3\n}\n"
GO_TEST = """\
package a

func TestOverlaps(t *testing.T) {
\tslot := makeSlot(time.Date(2026, 11, 29, 9, 30, 0, 0, time.UTC), Options{Size: 4, Rooms: []int{5, 6, 7}})
\tif !Overlaps(slot, slot) {
\t\tt.Fatal("no overlap")
\t}
}
"""


@pytest.mark.parametrize(
    ("condition", "names"),
    [
        ("slot.start.getMinutes() === 30", ("30",)),
        ("other.start.getHours() !== 9", ("9",)),
        ("other.size % 7 === 4", ("4",)),
        ("slot.rooms.length === 3", ("3",)),
        ("[30].includes(slot.start.getMinutes())", ("30",)),
        ("slot.start.getHours() === 12", None),
        ("slot.start.getMinutes() >= 30", None),
        ("slot.kind === 'b'", None),
        ("LIMITS.size === 4", None),
    ],
)
def test_an_added_equality_test_of_a_derived_value_is_reported_in_javascript(
    condition: str, names: tuple[str, ...] | None
) -> None:
    after = SCRIPT.replace("  return", f"  if ({condition}) return true;\n  return")
    signs = find_gaming_signs("slot.js", SCRIPT, after, {"slot.test.js": SCRIPT_TEST})
    found = [(sign.names, sign.line) for sign in signs if sign.code == "compares_with_test_literals"]
    assert found == ([(names, 2)] if names else [])


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("if slot.Start.Minute() == 30 {", ("30",)),
        ("if len(slot.Rooms) == 3 {", ("3",)),
        ("switch slot.Start.Minute() {\n\tcase 30:", ("30",)),
        ("if slot.Start.Minute() == 31 {", None),
    ],
)
def test_an_added_equality_test_of_a_derived_value_is_reported_in_go(
    statement: str, names: tuple[str, ...] | None
) -> None:
    after = GO.replace("\treturn", f"\t{statement}\n\t\treturn true\n\t}}\n\treturn")
    signs = find_gaming_signs("slot.go", GO, after, {"slot_test.go": GO_TEST})
    assert [sign.names for sign in signs if sign.code == "compares_with_test_literals"] == [names] * bool(
        names
    )
