"""Tests that a change moves to another file are not removed ones."""

from __future__ import annotations

import pytest

from suture.judge.test_changes import compare_tests

TOTAL = "def test_total():\n    assert total([1, 2]) == 3\n    assert total([]) == 0\n"
OTHER = "def test_label():\n    assert label('a') == 'A'\n"
METHOD = (
    "class TotalTest(TestCase):\n    def test_total(self):\n        value = total([1, 2])\n"
    "        self.assertEqual(total([1, 2]), 3)\n        self.assertEqual(total([]), 0)\n"
)


@pytest.mark.parametrize(
    "moved", [TOTAL, TOTAL.replace("test_total", "test_sum"), TOTAL + "    assert total([5])\n", METHOD]
)
def test_a_test_that_another_file_has_now_is_not_new(moved: str) -> None:
    files = compare_tests({"test_a.py": TOTAL + "\n\n" + OTHER}, {"test_a.py": OTHER, "test_b.py": moved})
    assert [*files["test_a.py"].moved_tests] == ["test_total"]
    assert files["test_a.py"].moved_tests["test_total"][0] == "test_b.py"
    assert files["test_b.py"].new_tests == ()


@pytest.mark.parametrize(
    "weaker",
    [
        TOTAL.replace("    assert total([]) == 0\n", ""),
        TOTAL.replace("== 3", "> 0"),
        "@pytest.mark.skip\n" + TOTAL,
        OTHER.replace("test_label", "test_total"),
    ],
)
def test_a_weaker_test_elsewhere_does_not_replace_it(weaker: str) -> None:
    files = compare_tests({"test_a.py": TOTAL}, {"test_b.py": weaker})
    assert files["test_a.py"].moved_tests == {}
    assert files["test_b.py"].new_tests == ("test_total",)
