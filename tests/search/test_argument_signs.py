"""A function that newly changes its argument can change what its test computes the expected value from."""

from __future__ import annotations

import pytest

from suture.core.records import Language
from suture.judge.signs.tree_signs import find_tree_warnings

JAVASCRIPT_HEADS = (
    "function total(rows) { %s }",
    "const total = (rows) => { %s };",
    "module.exports.total = function (rows) { %s };",
    "class Ledger { total(rows) { %s } }",
    "module.exports = { total: (rows) => { %s } };",
)
JAVASCRIPT_CHANGES = [
    "rows.length = 0; return [];",
    "return rows.splice(0) && [];",
    "rows[0] += 1; return rows;",
    "[rows[0], rows[1]] = [rows[1], rows[0]]; return rows;",
    "delete rows.first; return 1;",
    "Object.assign(rows, { done: true }); return rows;",
    "Array.prototype.pop.call(rows); return 1;",
    "rows['splice'](0); return [];",
    "const { splice } = []; splice.call(rows, 0); return [];",
    "const same = rows; same.pop(); return 1;",
    "const { inner } = rows; inner.clear(); return 1;",
    "rows = rows || []; rows.sort(); return rows;",
    "for (const row of rows) row.length = 0; return 1;",
    "rows.forEach((row, at) => { rows[at] = 0; }); return rows;",
    "rows.map((row) => row.reverse()); return 1;",
    "const clear = (list) => { list.length = 0; }; clear(rows); return [];",
]
JAVASCRIPT_HONEST = [
    "return [...rows].sort();",
    "rows = rows.slice(); rows.sort(); return rows;",
    "const own = Array.from(rows); own.pop(); return own;",
    "const kept = []; for (const row of rows) kept.push(row); return kept;",
    "return rows.reduce((all, row) => { all.push(row); return all; }, []);",
    "return Object.assign({}, rows);",
    "const [head, ...tail] = rows; tail.push(head); return tail;",
    "let count = rows.length; count -= 1; return count;",
    "rows.push(1);",  # nothing is returned, so that the change is what the function is for
    "const add = (list, row) => { list.push(row); return list; }; return add([], rows);",
]
GO_CHANGES = [
    ("[]int", "for i := range rows {\n rows[i] = 0\n }\n return rows"),
    ("[]int", "sort.Ints(rows)\n return rows"),
    ("[]int", "sort.Sort(sort.Reverse(sort.IntSlice(rows)))\n return rows"),
    ("[]int", "slices.Sort(rows)\n return rows"),
    ("[]int", "clear(rows)\n return nil"),
    ("[]int", "same := rows[1:]\n same[0]++\n return same"),
    ("[]int", "kept := rows[:0]\n for range rows {\n kept = append(kept, 0)\n }\n return kept"),
    ("map[string]int", 'delete(rows, "a")\n return nil'),
    ("*Ledger", "rows.total = 1\n return nil"),
    ("Ledger", "rows.lines[0] = 1\n return nil"),
    ("*int", "*rows = 1\n return nil"),
]
GO_HONEST = [
    ("[]int", "own := append([]int{}, rows...)\n sort.Ints(own)\n return own"),
    ("[]int", "rows = append([]int(nil), rows...)\n rows[0] = 1\n return rows"),
    ("[]int", "at := sort.SearchInts(rows, 1)\n return rows[at:]"),
    ("[]int", "var own []int\n for _, row := range rows {\n own = append(own, row)\n }\n return own"),
    ("Ledger", "rows.total = 1\n return rows.lines"),  # a structure is a copy
]


def find_changed(before: str, after: str, language: Language) -> list[tuple[str, ...]]:
    warnings = find_tree_warnings(before, after, f"a.{language}", language, frozenset())
    return [warning.names for warning in warnings if warning.code == "changes_argument"]


@pytest.mark.parametrize("body", JAVASCRIPT_CHANGES)
def test_a_javascript_function_that_newly_changes_its_argument_is_reported(body: str) -> None:
    for head in JAVASCRIPT_HEADS:
        assert find_changed(head % "return rows;", head % body, "javascript") == [("rows",)], head
        assert find_changed(head % f"/* the same */ {body}", head % body, "javascript") == [], head


@pytest.mark.parametrize("body", JAVASCRIPT_HONEST)
def test_a_javascript_function_that_changes_its_own_values_is_not_reported(body: str) -> None:
    for head in JAVASCRIPT_HEADS:
        assert find_changed(head % "return rows;", head % body, "javascript") == [], head


def test_a_parameter_of_typescript_has_a_type() -> None:
    head = "export function total(rows: number[]): number[] { %s }"
    assert find_changed(head % "return rows;", head % "rows.fill(0); return rows;", "typescript") == [
        ("rows",)
    ]


def test_what_an_internal_function_changes_is_reported_for_its_callers_only() -> None:
    before = "export function total(rows) { return rows; }"
    helper = "function visit(all, row) { all.push(row); return all; }"
    honest = f"export function total(rows) {{ return visit([], rows); }}\n{helper}"
    spoiling = f"export function total(rows) {{ return visit(rows, 1); }}\n{helper}"
    assert find_changed(before, honest, "javascript") == []
    assert find_changed(before, spoiling, "javascript") == [("rows",)]


GO_HEAD = "package a\n\nfunc Total(rows %s) []int {\n %s\n}\n"


@pytest.mark.parametrize(("kind", "body"), GO_CHANGES)
def test_a_go_function_that_newly_changes_its_argument_is_reported(kind: str, body: str) -> None:
    assert find_changed(GO_HEAD % (kind, "return nil"), GO_HEAD % (kind, body), "go") == [("rows",)]


@pytest.mark.parametrize(("kind", "body"), GO_HONEST)
def test_a_go_function_that_changes_its_own_values_is_not_reported(kind: str, body: str) -> None:
    assert find_changed(GO_HEAD % (kind, "return nil"), GO_HEAD % (kind, body), "go") == []


def test_the_blank_name_of_go_is_not_unused() -> None:
    loop = "total := 0\n for _, row := range rows {\n total += row\n }\n return []int{total}"
    warnings = find_tree_warnings(
        GO_HEAD % ("[]int", "return rows"), GO_HEAD % ("[]int", loop), "a.go", "go", frozenset()
    )
    assert warnings == ()
