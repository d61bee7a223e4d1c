"""Files that hold code beside its tests: which they are, and which of their statements a change may touch."""

from __future__ import annotations

import pytest

from suture.project.mixed_files import (
    combine_code_and_tests,
    find_mixed_files,
    find_test_lines,
    keeps_tests,
)

TEXT = """import math
from math import isclose

import pytest

WANTED = {"a": 1}
RATE = 2


def rate(a):
    return a + RATE


class Cart:
    def total(self):
        return 1


def check(value):
    assert value


@pytest.fixture
def cart():
    return Cart()


def test_rate(cart):
    check(isclose(rate(1), WANTED["a"]))
    assert sum([cart.total()]) == 1
"""
OTHER_TESTS = TEXT.replace("== 1", "== 2")
OTHER_CODE = TEXT.replace("return a + RATE", "return math.floor(a * RATE)")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return a + RATE", "return a * RATE"),
        ("RATE = 2", "RATE = 3"),
        ("        return 1\n", "        return 1\n\n    def test_total(self):\n        return 2\n"),
        ("\n\ndef rate", "\n\ndef helper():\n    return 1\n\n\ndef rate"),
        ("import math\n", "# what a test must not notice\nimport math\nimport re\n"),
    ],
)
def test_a_change_of_the_code_keeps_the_tests(old: str, new: str) -> None:
    assert TEXT.count(old) == 1
    assert keeps_tests(TEXT, TEXT.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("== 1\n", "== 2\n"),
        ("def test_rate", "def untested_rate"),
        ('{"a": 1}', '{"a": 3}'),
        ("    assert value", "    assert True"),
        ("    return Cart()", "    return None"),
        ("from math import isclose", "def isclose(a, b):\n    return True\n"),
        ("def rate", "def sum(values):\n    return 1\n\n\ndef rate"),
        ("RATE = 2", "RATE = 2\nif RATE:\n    sum = len"),
        ("RATE = 2", "from cheats import *\n\nRATE = 2"),
        ("def rate(a):", "def rate(a):\n    global WANTED\n    WANTED = {'a': 3}"),
        ("class Cart:", "del WANTED\n\n\nclass Cart:"),
        ("RATE = 2", "RATE = 2\npytestmark = pytest.mark.skip"),
        ("RATE = 2", "RATE = 2\n\n\ndef setup_function():\n    WANTED['a'] = 3"),
        ("RATE = 2", "RATE = 2\n\n\n@pytest.fixture(autouse=True)\ndef cheat():\n    WANTED['a'] = 3"),
        ("def rate", "def rate("),
    ],
)
def test_a_change_of_what_decides_does_not_keep_the_tests(old: str, new: str) -> None:
    assert TEXT.count(old) == 1
    assert not keeps_tests(TEXT, TEXT.replace(old, new))


@pytest.mark.parametrize(
    ("others", "is_mixed"),
    [
        ({}, True),
        ({"pyproject.toml": b"", "conftest.py": b"def pytest_configure():\n    pass\n"}, True),
        ({"test_more.py": b"def test_more():\n    pass\n"}, True),
        ({"shop.py": b"def total():\n    return 1\n"}, False),
        ({"shop.py": b"def total():\n    return 1\n\n\ndef test_bit():\n    return total()\n"}, False),
    ],
)
def test_only_in_a_project_without_other_code_is_code_beside_tests_repaired(
    others: dict[str, bytes], is_mixed: bool
) -> None:
    mixed = find_mixed_files({"test_rate.py": TEXT.encode(), **others})
    assert mixed == (frozenset({"test_rate.py"}) if is_mixed else frozenset())


def test_tests_whose_functions_only_assert_hold_no_code() -> None:
    text = "def check(a):\n    assert a\n\n\ndef test_one():\n    check(1)\n"
    assert not find_mixed_files({"test_one.py": text.encode()})


def test_the_code_of_one_version_is_combined_with_the_tests_of_another() -> None:
    assert combine_code_and_tests(TEXT, OTHER_TESTS) == OTHER_TESTS
    assert combine_code_and_tests(OTHER_CODE, TEXT) == OTHER_CODE
    both = combine_code_and_tests(OTHER_CODE, OTHER_TESTS)
    assert keeps_tests(OTHER_TESTS, both)
    assert keeps_tests(TEXT, combine_code_and_tests(both, TEXT))
    assert "math.floor" in both
    assert "== 2" in both


def test_lines_of_tests_are_no_place_for_the_fault() -> None:
    lines = TEXT.split("\n")
    closed = {lines[number - 1] for number in find_test_lines("test_rate.py", TEXT)}
    assert {"@pytest.fixture", 'WANTED = {"a": 1}', "    assert value"} <= closed
    assert not {"    return a + RATE", "RATE = 2", "        return 1"} & closed
    assert not find_test_lines("rate.py", TEXT)
