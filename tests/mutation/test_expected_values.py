"""Literals are changed as the actual value of a failing test differs from the expected one."""

from __future__ import annotations

import pytest

from suture.core.records import CheckOutcome, Counterexample, Language
from suture.mutation import apply_edits, generate_mutants, generate_tree_mutants
from suture.mutation.changes import compare_values
from suture.mutation.tuning import MAX_DIFFERENCES
from suture.search.languages.python_adapter import PYTHON
from suture.search.ordering.candidate_order import ObservedValues, find_differences, order_single_changes


@pytest.mark.parametrize(
    ("source", "expected", "actual", "repaired"),
    [
        ("a + ',' + b", "'x, y'", "'x,y'", "a + ', ' + b"),
        ("'%s-%s' % (a, b)", "'2/3'", "'2-3'", "'%s/%s' % (a, b)"),
        ("f'{a}:{b:02}'", "'1.02'", "'1:02'", "f'{a}.{b:02}'"),
        ("'line\\n' + a", "'line\\r\\nx'", "'line\\nx'", "'line\\r\\n' + a"),
        ("[a + ' minuts']", "['5 minutes']", "['5 minuts']", "[a + ' minutes']"),
        ('"a %s" % b', "'a \"x'", "'a x'", '"a \\"%s" % b'),
        ("f'a {b}'", "'a{ x'", "'a x'", "f'a{{ {b}'"),
        ('"""a "%s" b""" % a', "'c \"x\" d'", "'c \"x\" b'", '"""a "%s" d""" % a'),
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
        (repr("ab" * 1000), repr("ba" * 1000)),
    ],
)
def test_values_with_little_in_common_show_no_wrong_literal(expected: str, actual: str) -> None:
    assert compare_values(expected, actual) == ()


def test_a_long_text_is_compared_between_its_equal_ends() -> None:
    (difference,) = compare_values(repr("ab" * 800 + "x" + "ab" * 800), repr("ab" * 800 + "y" + "ab" * 800))
    assert (difference.actual, difference.expected, len(difference.before)) == ("y", "x", 1600)


def test_differences_of_mappings_are_in_the_order_of_the_expected_one() -> None:
    expected = {letter: ord(letter) for letter in "zyxwvutsrq"}
    differences = compare_values(repr(expected), repr(dict.fromkeys(expected, 0)))
    assert [difference.expected for difference in differences] == list(expected.values())[:MAX_DIFFERENCES]


@pytest.mark.parametrize(("expected", "actual"), [("0.5", "2"), ("1e999", "1"), (str(10**400), "1.5")])
@pytest.mark.parametrize("number", ["1" + "0" * 400, "7"])
def test_numbers_without_bound_are_no_constants(number: str, expected: str, actual: str) -> None:
    code = f"def f(a):\n    return a + {number}\n"
    for mutant in generate_mutants(
        code, operators={"expected_value"}, differences=compare_values(expected, actual)
    ):
        assert "inf" not in apply_edits(code, mutant.edits)


async def test_the_literal_that_a_failing_test_points_to_is_tried_first() -> None:
    code = "def f(a, b):\n    if a > b:\n        a, b = b, a\n    return str(a) + ' to' + str(b)\n"
    example = Counterexample(check_id="t", call="f(1, 2)", expected="'1 to 2'", actual="'1 to2'")
    outcome = CheckOutcome(check_id="t", status="failed", counterexample=example)
    singles = await order_single_changes(
        {"m.py": {2: 1.0, 3: 1.0, 4: 1.0}},
        {"m.py": code},
        {},
        generate=PYTHON.generate_mutants,
        observed=ObservedValues(differences=find_differences([outcome])),
    )
    assert "' to '" in apply_edits(code, singles[0].edits)
