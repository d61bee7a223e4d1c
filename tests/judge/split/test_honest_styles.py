"""Right programs and tests of unusual style pass, and wrong programs fail."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from judge.conftest import Judge

FOLDER = Path(__file__).parent
STYLES = tomllib.loads((FOLDER / "honest_styles.toml").read_text("utf-8"))["style"]
LOOKING_AWAY = tomllib.loads((FOLDER / "looking_away.toml").read_text("utf-8"))["row"]


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style["name"])
async def test_a_right_program_passes_and_a_wrong_one_fails(judge: Judge, style: dict[str, Any]) -> None:
    evidence = "nonce" if style.get("nonce") else "split"
    right, wrong = await judge(style["right"], style["test"]), await judge(style["wrong"], style["test"])
    assert right.all_passed, right.counterexamples
    assert right.evidence == evidence
    assert not wrong.passed


@pytest.mark.parametrize("row", LOOKING_AWAY, ids=lambda row: row["name"])
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


def test_the_documented_number_of_tests_is_right() -> None:
    security_text = (FOLDER.parents[2] / "SECURITY.md").read_text("utf-8")
    assert f"{len(LOOKING_AWAY)} tests that look away" in security_text
