"""Lines that hold data, or minified code, cost the search nothing."""

from __future__ import annotations

import pytest

from suture.mutation.tree_sitter.tree_mutants import generate_tree_mutants
from suture.mutation.tuning import MAX_NODES_PER_LINE

SUM = "func sum(a int, b int) int {\n\treturn a - b\n}\n"


def make_table(rows: int) -> str:
    numbers = ", ".join(str(n) for n in range(rows))
    return f"package codes\n\nvar table = []int{{{numbers}}}\n\n{SUM}"


@pytest.mark.parametrize("rows", [MAX_NODES_PER_LINE, 4 * MAX_NODES_PER_LINE])
def test_a_line_of_data_has_no_changes_and_the_rest_of_its_file_has(rows: int) -> None:
    mutants = list(generate_tree_mutants(make_table(rows), "codes.go", "go"))
    code = list(generate_tree_mutants(make_table(1), "codes.go", "go"))
    assert {mutant.line for mutant in mutants} == {mutant.line for mutant in code} - {3}


def test_a_short_list_of_numbers_is_code() -> None:
    mutants = generate_tree_mutants(make_table(4), "codes.go", "go")
    assert any(mutant.line == 3 for mutant in mutants)
