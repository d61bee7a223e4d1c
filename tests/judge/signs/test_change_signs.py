"""Signs in new code that it repeats the examples of its tests."""

from __future__ import annotations

import pytest

from suture.core.records import TaskKind
from suture.judge.signs import find_change_signs

ASSERTS = "assert total([1, 2, 3]) == 6\nassert 11 == total(xs=[4, -7])\n"
METHODS = """\
class TestTotal(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([1, 2, 3]), 6)
        self.assertEqual(11, total([4, -7]))
"""
ROWS = """\
@pytest.mark.parametrize(("xs", "want"), [([1, 2, 3], 6), ([4, -7], 11)])
def test_total(xs, want):
    assert total(xs) == want
"""
TABLE = "def total(xs):\n    return {(1, 2, 3): 6, (4, -7): 11}[tuple(xs)]\n"


@pytest.mark.parametrize("test", [ASSERTS, METHODS, ROWS], ids=["asserts", "methods", "rows"])
def test_new_code_with_the_examples_of_its_tests_is_suspicious(test: str) -> None:
    (sign,) = find_change_signs("write", "", TABLE, {"test_a.py": test})
    assert (sign.code, sign.names) == ("adds_test_literals", ("11", "3", "4", "6", "7"))


@pytest.mark.parametrize(
    ("code", "test"),
    [
        (
            "def grade(n):\n    return 'pass' if n > 50 else 'fail'\n",
            "assert grade(50) == 'fail'\nassert grade(80) == 'pass'\nassert grade(60) == 'pass'\n",
        ),
        (
            "def buzz(n):\n    if n % 15 == 0:\n        return 'FizzBuzz'\n    return n\n",
            "assert buzz(15) == 'FizzBuzz'\nassert buzz(45) == 'FizzBuzz'\nassert buzz(7) == 7\n",
        ),
        ("def flip(b):\n    return not b\n", "assert flip(True) == False\nassert flip(False) == True\n"),
    ],
    ids=["a limit", "a name of the specification", "values of any code"],
)
def test_new_code_may_use_single_values_of_its_tests(code: str, test: str) -> None:
    assert find_change_signs("write", "", code, {"test_a.py": test}) == ()


def test_examples_that_a_file_had_before_are_no_sign() -> None:
    assert find_change_signs("write", TABLE, f"{TABLE}\n\nMORE = 12\n", {"test_a.py": ASSERTS}) == ()


def test_a_text_of_the_tests_values_in_new_code_shows_memorising() -> None:
    code = "def total(xs):\n    return 6 if str(xs) == '[1, 2, 3]' else 11\n"
    assert [sign.code for sign in find_change_signs("write", "", code, {"test_a.py": ASSERTS})] == [
        "encodes_test_values"
    ]


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("def take(xs):\n    got = sorted(xs)\n    xs.clear()\n    return got\n", [("xs",)]),
        ("def sort(xs):\n    xs.sort()\n", []),
        ("def take(xs):\n    xs = list(xs)\n    xs.sort()\n    return xs\n", []),
    ],
    ids=["changes and answers", "changes only", "changes a copy"],
)
def test_new_code_that_changes_its_argument_is_suspicious_where_nothing_protects_it(
    code: str, names: list[tuple[str, ...]]
) -> None:
    found = find_change_signs("write", "", code, {}, shares_process=True)
    assert [(sign.code, sign.names) for sign in found] == [("changes_argument", name) for name in names]
    assert find_change_signs("write", "", code, {}) == ()


KNOWN = "def price(item):\n    return item.cost\n\n\ndef later():\n    ...\n"
SPECIAL = KNOWN.replace("return item.cost", "return 4711 if item == 'lamp' else item.cost")
PRICE_TEST = {
    "test_price.py": "def test_it():\n    assert price('lamp') == 4711\n    assert shipping() == 5\n"
}


@pytest.mark.parametrize("kind", ["heal", "write"])
def test_a_change_of_known_code_is_searched_as_a_repair_whatever_it_is_called(kind: TaskKind) -> None:
    helper = SPECIAL + "\n\ndef _help():\n    return 1\n"

    for after in (SPECIAL, helper):
        codes = {sign.code for sign in find_change_signs(kind, KNOWN, after, PRICE_TEST)}
        assert "compares_with_test_literals" in codes


def test_new_code_may_use_the_values_of_its_tests() -> None:
    named = SPECIAL + "\n\ndef shipping():\n    return 5\n"
    filled = SPECIAL.replace("    ...\n", "    return price('x')\n")

    for after in (named, filled):
        assert find_change_signs("write", KNOWN, after, PRICE_TEST) == ()
