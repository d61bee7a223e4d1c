"""Table-driven tests in Go: each row of the table gives the arguments of a call."""

from __future__ import annotations

import pytest

from suture.judge.extraction.literal_calls import expand_table_rows
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree, get_field, walk

LOOP = '\tfor _, c := range cases {\n\t\tt.Run("x", func(t *testing.T) { f(c.in, 2, c.by) })\n\t}\n'
ROW = "type row struct{ in []int; by, want int }"
OTHER_TABLE = "var others = []struct{ in, by string }{{`x`, `y`}}\n"


def expand_rows(table: str, before: str = "", loop: str = LOOP) -> list[str]:
    text = f"package a\n\n{OTHER_TABLE}{before}\nfunc TestF(t *testing.T) {{\n\tcases := {table}\n{loop}}}\n"
    tree = SyntaxTree(text, "a_test.go", "go")
    calls = (node for node in walk(tree.root) if node.type == "call_expression")
    call = next(node for node in calls if tree.text(node).startswith("f("))
    arguments = get_field(call, "arguments")
    assert arguments is not None
    return expand_table_rows(tree, arguments)


@pytest.mark.parametrize(
    ("table", "before"),
    [
        ("[]struct {\n\t\tin []int\n\t\tby, want int\n\t}{{[]int{1}, 3, 4}, {nil, 5, 6} /* no */}", ""),
        (
            "[]row{{by: 3, in: []int{1}}, {in: nil, want: 1, by: 5}}",
            ROW,
        ),
        (
            'map[string]row{"a": {by: 3, in: []int{1}}, "b": {nil, 5, 6}}',
            ROW,
        ),
    ],
)
def test_each_row_gives_the_fields_that_a_call_names(table: str, before: str) -> None:
    assert expand_rows(table, before) == ["[]int{1}, 2, 3", "nil, 2, 5"]


def test_rows_without_a_used_field_and_calls_without_fields_give_none() -> None:
    assert expand_rows("[]struct{ in, by int }{{in: 1}, {in: 2, by: 3}}") == ["2, 2, 3"]
    assert expand_rows("[]struct{ in, by int }{{1, 2}}", loop="\tf(1, 2)\n") == []


def test_another_tests_table_is_used_if_a_test_has_none() -> None:
    assert expand_rows("1") == ["`x`, 2, `y`"]
