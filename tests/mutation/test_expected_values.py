"""Literals are changed as the actual value of a failing test differs from the expected one."""

from __future__ import annotations

import pytest

from suture.core.records import CheckOutcome, Counterexample, Language
from suture.mutation import apply_edits, generate_mutants, generate_tree_mutants
from suture.mutation.expected_values import compare_values
from suture.search.languages.python_adapter import PYTHON
from suture.search.ordering.candidate_order import find_differences, order_single_changes


@pytest.mark.parametrize(
    ("source", "expected", "actual", "repaired"),
    [
        ("a + ',' + b", "'x, y'", "'x,y'", "a + ', ' + b"),
        ("'%s-%s' % (a, b)", "'2/3'", "'2-3'", "'%s/%s' % (a, b)"),
        ("f'{a}:{b:02}'", "'1.02'", "'1:02'", "f'{a}.{b:02}'"),
        ("'line\\n' + a", "'line\\r\\nx'", "'line\\nx'", "'line\\r\\n' + a"),
        ("[a + ' minuts']", "['5 minutes']", "['5 minuts']", "[a + ' minutes']"),
        ("a * 100", "360", "100", "a * 360"),
        ("a + 7", "15", "10", "a + 12"),
        ("{'n': a * 4}", "{'n': 30}", "{'n': 20}", "{'n': a * 6}"),
    ],
)
def test_the_difference_of_two_values_is_made_in_a_literal(
    source: str, expected: str, actual: str, repaired: str
) -> None:
    code = f"def f(a, b):\n    return {source}\n"
    mutants = generate_mutants(
        code, operators={"expected_value"}, differences=compare_values(expected, actual)
    )
    assert code.replace(source, repaired) in [apply_edits(code, mutant.edits) for mutant in mutants]


@pytest.mark.parametrize(
    ("language", "path", "source", "repaired"),
    [
        ("javascript", "a.js", "x = `${a}-${b}`;", "x = `${a}/${b}`;"),
        ("javascript", "a.js", "x = a + '-' + b;", "x = a + '/' + b;"),
        ("go", "a.go", 'package a\nvar x = "a-b"', 'package a\nvar x = "a/b"'),
    ],
)
def test_literals_of_other_languages_are_changed_alike(
    language: Language, path: str, source: str, repaired: str
) -> None:
    differences = compare_values("'a/b'", "'a-b'")
    mutants = generate_tree_mutants(source, path, language, differences=differences)
    assert repaired in [apply_edits(source, mutant.edits) for mutant in mutants]


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("'abc'", "'xyz'"),
        ("True", "1"),
        ("open", "'a'"),
        ("[1]", "[1, 2]"),
        ("'a'", "'a'"),
        ("1" * 5000, "2"),
    ],
)
def test_values_with_little_in_common_show_no_wrong_literal(expected: str, actual: str) -> None:
    assert compare_values(expected, actual) == ()


async def test_the_literal_that_a_failing_test_points_to_is_tried_first() -> None:
    code = "def f(a, b):\n    if a > b:\n        a, b = b, a\n    return str(a) + ' to' + str(b)\n"
    example = Counterexample(check_id="t", call="f(1, 2)", expected="'1 to 2'", actual="'1 to2'")
    outcome = CheckOutcome(check_id="t", status="failed", counterexample=example)
    singles = await order_single_changes(
        {"m.py": {2: 1.0, 3: 1.0, 4: 1.0}},
        {"m.py": code},
        {},
        generate=PYTHON.generate_mutants,
        differences=find_differences([outcome]),
    )
    assert "' to '" in apply_edits(code, singles[0].edits)
