"""Right programs of unusual style pass, and wrong ones fail, whatever the test looks like."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Judge = Callable[..., Any]
HERE = Path(__file__).parent
STYLES = tomllib.loads((HERE / "honest_styles.toml").read_text("utf-8"))["style"]
AWAY = tomllib.loads((HERE / "looking_away.toml").read_text("utf-8"))["row"]


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style["name"])
async def test_right_passes_and_wrong_fails(judge: Judge, style: dict[str, Any]) -> None:
    evidence = "nonce" if style.get("nonce") else "split"
    right, wrong = await judge(style["right"], style["test"]), await judge(style["wrong"], style["test"])
    assert right.all_passed, right.counterexamples
    assert right.evidence == evidence
    assert not wrong.passed


@pytest.mark.parametrize("row", AWAY, ids=lambda row: row["name"])
async def test_no_test_with_hidden_failures_passes(judge: Judge, row: dict[str, str]) -> None:
    verdict = await judge(row["code"], row["test"])
    assert not verdict.passed
    assert verdict.evidence == "split"


@pytest.mark.parametrize(
    "test",
    ["def test_box():\n    assert Box().get() == 1", "def check(box):\n    assert Box().get() == 1\nx = 1"],
)
async def test_a_program_that_only_defines_its_tests_is_no_pass(judge: Judge, test: str) -> None:
    verdict = await judge("class Box:\n    def get(self): return 1", test)
    assert not verdict.passed


def test_the_documented_table_size_is_right() -> None:
    listed = (HERE.parents[2] / "SECURITY.md").read_text("utf-8")
    assert f"{len(AWAY)} tests that look away" in listed
