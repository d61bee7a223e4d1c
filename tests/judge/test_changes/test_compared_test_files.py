"""What a change does to the tests of a Python file, read from its two versions."""

from __future__ import annotations

import textwrap

import pytest

from suture.judge.test_changes import TestFileChanges, compare_tests

PRICES = """
import pytest
from shop import parse, total


@pytest.mark.parametrize("given, wanted", [(1, 2), (2, 4), (3, 6)])
def test_double(given, wanted):
    assert total(given) == wanted


def test_total():
    result = total([1, 2])
    assert result == 3
    assert result > 0


def test_share():
    assert total([0.1, 0.2]) == pytest.approx(0.3, abs=1e-6)


def test_refused():
    with pytest.raises(ValueError, match="negative"):
        total([-1])
"""


def compare_file(path: str, before: str, after: str) -> TestFileChanges:
    return compare_tests({path: before}, {path: after})[path]


def find_codes(before: str, after: str) -> list[tuple[str, str]]:
    changes = compare_file("test_shop.py", textwrap.dedent(before), textwrap.dedent(after)).changes
    return [(change.code, change.test) for change in changes]


@pytest.mark.parametrize(
    ("old", "new", "code", "test"),
    [
        ("    assert result == 3\n", "", "assertion_removed", "test_total"),
        ("assert result == 3", "assert result", "assertion_loosened", "test_total"),
        ("assert result == 3", "assert result >= 3", "assertion_loosened", "test_total"),
        ("assert result == 3", "assert isinstance(result, int)", "assertion_loosened", "test_total"),
        ("assert result == 3", "assert result == 3 or True", "assertion_loosened", "test_total"),
        ("assert result == 3", "assert result == result", "assertion_loosened", "test_total"),
        ("assert result == 3", "assert result == pytest.approx(3)", "assertion_loosened", "test_total"),
        ("assert result == 3", "assert result == 4", "expectation_changed", "test_total"),
        ("assert result == 3", "if result:\n        assert result == 3", "assertion_guarded", "test_total"),
        (
            "assert result == 3",
            "try:\n        assert result == 3\n    except AssertionError:\n        pass",
            "assertion_guarded",
            "test_total",
        ),
        (
            "    assert result == 3\n",
            "    with contextlib.suppress(Exception):\n        assert result == 3\n",
            "assertion_guarded",
            "test_total",
        ),
        *(
            (
                "    assert result == 3\n",
                f"{head}        assert result == 3\n{tail}",
                "assertion_guarded",
                "test_total",
            )
            for head, tail in (
                ("    for _ in ():\n", ""),
                ("    while False:\n", ""),
                ("    def check():\n", ""),
                ("    try:\n", "    finally:\n        return\n"),
                ("    with pytest.raises(AssertionError):\n", ""),
                ("    with pytest.raises((ValueError, Exception)):\n", ""),
            )
        ),
        ("abs=1e-6", "abs=0.5", "tolerance_widened", "test_share"),
        (
            "pytest.approx(0.3, abs=1e-6)",
            "pytest.approx(0.31, abs=1e-6)",
            "expectation_changed",
            "test_share",
        ),
        ("raises(ValueError, match", "raises(Exception, match", "exception_broadened", "test_refused"),
        (', match="negative"', "", "exception_broadened", "test_refused"),
        ("raises(ValueError", "raises((ValueError, TypeError)", "exception_broadened", "test_refused"),
        (", (3, 6)]", "]", "cases_removed", "test_double"),
        ("(3, 6)]", "(3, 7)]", "expectation_changed", "test_double"),
        ("(3, 6)]", "pytest.param(3, 6, marks=pytest.mark.xfail)]", "test_skipped", "test_double"),
        ("def test_total():", "@pytest.mark.skip\ndef test_total():", "test_skipped", "test_total"),
        ("def test_total():", "@pytest.mark.xfail\ndef test_total():", "test_skipped", "test_total"),
        ("    result = total([1, 2])", "    pytest.skip('later')", "test_skipped", "test_total"),
        ("    result = total([1, 2])", "    return", "test_skipped", "test_total"),
        (
            "    result = total([1, 2])",
            "    if 'DATABASE' not in os.environ:\n        return\n    result = total([1, 2])",
            "test_skipped",
            "test_total",
        ),
        ("def test_total():", "def check_the_total():", "test_removed", "test_total"),
        ("from shop", "pytestmark = pytest.mark.skip\nfrom shop", "test_skipped", ""),
        ("from shop", "def pytest_runtest_makereport(item): ...\nfrom shop", "test_hook_added", ""),
        (
            "from shop",
            '@pytest.hookimpl(specname="pytest_ignore_collect")\ndef pytest_any(): ...\nfrom shop',
            "test_hook_added",
            "",
        ),
        ("from shop", "def pytest_unconfigure(): os._exit(0)\nfrom shop", "test_hook_added", ""),
        ("from shop", "def pytest_unconfigure(): close()\nfrom shop", "test_hook_changed", ""),
        ("from shop", "def pytest_configure(): patch()\nfrom shop", "test_hook_changed", ""),
        ("from shop", "pytest_plugins = ['quiet']\nfrom shop", "test_hook_changed", ""),
    ],
)
def test_a_weakened_test_is_named(old: str, new: str, code: str, test: str) -> None:
    assert PRICES.count(old) == 1
    assert (code, test) in find_codes(PRICES, PRICES.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("test_total", "test_the_sum"),
        ("    result = total([1, 2])", "    # The sum.\n    result = total([1, 2])"),
        ("    assert result == 3\n", "    assert result == 3\n    assert result != 4\n"),
        (", (3, 6)]", ", (3, 6), (4, 8)]"),
        (", (3, 6)]", ", pytest.param(3, 6, id='three')]"),
        ("    assert result > 0\n", "    assert 0 < result\n    assert result > 0\n"),
        ("from shop", "from shop.prices"),
        (
            "from shop",
            "def pytest_configure(config):\n    config.addinivalue_line('markers', 'slow: x')\nfrom shop",
        ),
        ("from shop", "def pytest_addoption(parser): ...\nfrom shop"),
    ],
)
def test_a_test_that_asks_for_as_much_as_before_is_not_named(old: str, new: str) -> None:
    assert find_codes(PRICES, PRICES.replace(old, new)) == []


def test_methods_of_unittest_are_compared_too() -> None:
    before = """
    class TotalTest(unittest.TestCase):
        def test_total(self):
            self.assertEqual(total([1, 2]), 3)
            self.assertAlmostEqual(total([0.5]), 0.5, places=7)
    """
    after = before.replace("assertEqual(total([1, 2]), 3)", "assertTrue(total([1, 2]))")
    assert find_codes(before, after.replace("places=7", "places=0")) == [
        ("assertion_loosened", "TotalTest::test_total"),
        ("tolerance_widened", "TotalTest::test_total"),
    ]


def test_new_changed_and_removed_tests_are_listed() -> None:
    after = (
        PRICES.replace("test_refused", "test_new").replace("negative", "below zero").replace("== 3", "== 4")
    )
    changes = compare_file("test_shop.py", PRICES, after)
    assert (changes.new_tests, changes.changed_tests, changes.removed_tests) == (
        ("test_new",),
        ("test_total",),
        ("test_refused",),
    )


def test_a_new_test_that_asserts_nothing_is_named() -> None:
    assert find_codes("", "def test_it():\n    x = 1\n") == [("asserts_nothing", "test_it")]
    assert find_codes("", "def test_it():\n    start()\n") == []


@pytest.mark.parametrize(
    ("old", "new", "codes"),
    [
        ("assert actual == expected", "assert actual is not None", ["assertion_loosened"]),
        ("assert actual == expected", "print(actual)", ["assertion_removed"]),
        ("assert actual == expected", "assert expected == actual, 'differs'", ["test_support_changed"]),
        (
            "assert actual == expected",
            "assert actual == expected\n    print(actual)",
            ["test_support_changed"],
        ),
    ],
)
def test_a_helper_that_asks_for_less_is_named(old: str, new: str, codes: list[str]) -> None:
    helper = "def check_equal(actual, expected):\n    assert actual == expected\n"
    changes = compare_file("tests/checks.py", helper, helper.replace(old, new)).changes
    assert [(change.code, change.test) for change in changes] == [(code, "") for code in codes]
