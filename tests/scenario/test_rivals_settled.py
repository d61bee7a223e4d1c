"""Several repairs of the search pass and behave differently: a capable model decides, or the result says so."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bare_pytest import BARE_PYTEST
from run_events import read_event_data
from suture.api import HealOptions, heal
from suture.core.ledger import find_run
from suture.core.records import Result
from suture.core.settings import RepairSettings, Settings
from suture.interfaces.narrative.exit_codes import EXIT_CODES
from suture.interfaces.narrative.result_text import result_as_json
from suture.interfaces.narrative.run_progress_text import render_short_result
from suture.testing import ScriptedModel

pytestmark = [pytest.mark.timeout(300), pytest.mark.heavy]  # each test is a whole run with a search

SHOP = '''\
"""Prices of a small shop, in whole cents."""


def member_price(total):
    """What a member pays: a tenth less. Half a cent is rounded up."""
    total = total * 9 // 10
    return total
'''
SHOP_TESTS = """\
from shop import member_price


def test_nothing_costs_nothing():
    assert member_price(0) == 0


def test_half_a_cent_is_rounded_up():
    assert member_price(5) == 5
"""
RIGHT_CODE = """\
CHOICE: NONE
Each version loses the discount or adds a cent too much.
```python
def member_price(total):
    \"\"\"What a member pays: a tenth less. Half a cent is rounded up.\"\"\"
    total = (total * 9 + 5) // 10
    return total
```
"""
WRONG_CODE = RIGHT_CODE.replace("+ 5) // 10", "- 50) // 10")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A project whose only telling test is one in which half a cent is rounded up."""
    root = tmp_path / "shop"
    root.mkdir()
    (root / "shop.py").write_text(SHOP)
    (root / "test_shop.py").write_text(SHOP_TESTS)
    return root


@pytest.fixture
def capable(settings: Settings) -> Settings:
    """Settings with a search, and a scripted model that counts as capable."""
    profile = settings.model.profile.model_copy(update={"capable": True})
    return settings.model_copy(
        update={
            "repair": RepairSettings(candidates=200),
            "model": settings.model.model_copy(update={"profile": profile}),
        }
    )


def use_no_model(settings: Settings) -> Settings:
    return settings.model_copy(update={"model": settings.model.model_copy(update={"name": "none"})})


def be_strict(settings: Settings) -> Settings:
    return settings.model_copy(update={"loop": settings.loop.model_copy(update={"strict": True})})


def read_choices(settings: Settings, result: Result) -> list[Mapping[str, Any]]:
    return read_event_data(settings.paths.home, "repair.chosen", result.run_id)


def price_of(result: Result, total: int) -> int:
    """Return the price that the repaired code computes."""
    assert result.candidate is not None
    namespace: dict[str, Any] = {}
    exec(
        result.candidate.files["shop.py"], namespace
    )  # this file's fixture, changed by Suture or by a script
    return int(namespace["member_price"](total))


async def test_a_better_repair_by_the_model_replaces_a_guess_of_the_search(
    shop: Path, capable: Settings
) -> None:
    model = ScriptedModel([RIGHT_CODE])
    result = await heal(shop, HealOptions(test=BARE_PYTEST, settings=be_strict(capable), model=model))

    assert result.outcome == "healed", result.reason
    assert [price_of(result, total) for total in (0, 5, 1000, 1005)] == [0, 5, 900, 905]
    assert not result.is_undetermined
    assert "model_chose" in result.reason.notes
    (prompt,) = [call.messages[-1].content for call in model.calls]
    assert "a tenth less" in prompt
    assert "assert member_price(5) == 5" in prompt
    assert "Version 2:" in prompt
    assert "version 1 11" in prompt


async def test_the_repair_that_the_model_chooses_wins(shop: Path, capable: Settings) -> None:
    model = ScriptedModel(["CHOICE: 2\nIt keeps the discount."])
    result = await heal(shop, HealOptions(test=BARE_PYTEST, settings=capable, model=model))

    (choice,) = read_choices(capable, result)
    assert (choice["choice"], choice["passed"], choice["explanation"]) == (2, True, "It keeps the discount.")
    assert result.outcome == "healed", result.reason
    assert result.candidate is not None
    assert choice["labels"][1] in result.candidate.label
    lines = list(render_short_result(result, find_run(capable.paths.home, result.run_id)))
    assert any("the model chose this one: It keeps the discount." in line for line in lines)


async def test_a_choice_that_fails_a_test_loses(shop: Path, capable: Settings) -> None:
    model = ScriptedModel([WRONG_CODE])
    result = await heal(shop, HealOptions(test=BARE_PYTEST, settings=capable, model=model))

    (choice,) = read_choices(capable, result)
    assert (choice["choice"], choice["passed"]) == (0, False)
    assert result.outcome == "healed", result.reason
    assert price_of(result, 5) == 5
    assert result.is_undetermined


async def test_a_small_model_is_not_asked(shop: Path, capable: Settings) -> None:
    profile = capable.model.profile.model_copy(update={"capable": False})
    small = capable.model_copy(update={"model": capable.model.model_copy(update={"profile": profile})})
    model = ScriptedModel([RIGHT_CODE])
    result = await heal(shop, HealOptions(test=BARE_PYTEST, settings=small, model=model))

    assert model.calls == []
    assert result.is_undetermined


async def test_without_a_model_the_first_sentence_says_that_the_tests_do_not_decide(
    shop: Path, capable: Settings
) -> None:
    settings = use_no_model(capable)
    result = await heal(shop, HealOptions(test=BARE_PYTEST, settings=settings))

    folder = find_run(settings.paths.home, result.run_id)
    lines = list(render_short_result(result, folder))
    assert result.outcome == "healed", result.reason
    assert lines[0].startswith("Healed, but your tests do not decide:")
    second = lines.index("  2. shop.py, line 6")
    assert lines[second + 1].startswith("       total = ")
    assert re.fullmatch(r"       member_price\(.*\) -> .* \((as now|now .*)\)", lines[second + 2])
    assert any(line.endswith(f"suture apply {folder.id} --rival 2") for line in lines[second:])
    shown = result_as_json(result, folder, ())["undetermined"]
    assert len(shown["changes"]) >= 2
    assert all(len(call["answers"]) == len(shown["changes"]) for call in shown["calls"])


async def test_a_strict_run_does_not_heal_by_a_guess(shop: Path, capable: Settings) -> None:
    settings = be_strict(use_no_model(capable))
    result = await heal(shop, HealOptions(test=BARE_PYTEST, settings=settings))

    assert (result.outcome, result.reason.code) == ("not_healed", "undetermined")
    assert EXIT_CODES[result.outcome] == 1
    assert "+    total = " in result.diff
    folder = find_run(settings.paths.home, result.run_id)
    assert not (folder.path / "certificate.json").exists()
    assert "  2. shop.py, line 6" in list(render_short_result(result, folder))


async def test_a_determined_repair_is_not_asked_about(tmp_path: Path, capable: Settings) -> None:
    root = tmp_path / "clamp"
    root.mkdir()
    (root / "clamp.py").write_text("def largest(a, b):\n    return a if a < b else b\n")
    checks = [
        f"    assert largest({a}, {b}) == {max(a, b)}\n"
        for a, b in ((1, 2), (7, 3), (-5, -9), (4, 4), (0, 1))
    ]
    (root / "test_clamp.py").write_text(
        f"from clamp import largest\n\n\ndef test_largest():\n{''.join(checks)}"
    )
    model = ScriptedModel([])
    result = await heal(root, HealOptions(test=BARE_PYTEST, settings=be_strict(capable), model=model))

    assert result.outcome == "healed", result.reason
    assert model.calls == []
    assert not result.is_undetermined


UNGUARDED = """\
def normalise(items, low, high, step, reverse):
    return list(items)


def ordered(items):
    return normalise(itms, 3, 7, 11, True)
"""


@pytest.fixture
def unguarded(tmp_path: Path) -> Path:
    """A project with one possible repair, of whose line the tests notice few mistakes."""
    root = tmp_path / "unguarded"
    root.mkdir()
    (root / "sorting.py").write_text(UNGUARDED)
    (root / "test_sorting.py").write_text(
        "from sorting import ordered\n\n\ndef test_ordered():\n    assert ordered([2, 1]) == [2, 1]\n"
    )
    return root


@pytest.mark.parametrize("has_model", [False, True])
async def test_a_repair_whose_lines_no_test_guards_is_undetermined(
    unguarded: Path, capable: Settings, has_model: bool
) -> None:
    settings = capable if has_model else use_no_model(capable)
    model = ScriptedModel(["CHOICE: 1. The name was misspelt."]) if has_model else None
    result = await heal(unguarded, HealOptions(test=BARE_PYTEST, settings=settings, model=model))

    assert result.outcome == "healed", result.reason
    assert result.rivals == ()
    assert result.is_undetermined is not has_model
    if has_model:
        (choice,) = read_choices(settings, result)
        assert (choice["choice"], choice["explanation"]) == (1, "The name was misspelt.")
    else:
        lines = list(render_short_result(result, find_run(settings.paths.home, result.run_id)))
        assert "they notice only" in lines[0]


def test_the_flag_strict_ends_with_exit_code_1(shop: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "suture.interfaces.cli", "heal", str(shop), "--no-model", "--strict"]
    run = subprocess.run(
        [*command, "--test", BARE_PYTEST, "--set", "repair.candidates=200"],
        env={**os.environ, "SUTURE_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1, run.stderr
    assert "Not healed: your tests do not decide:" in run.stderr
    assert "+    total = " in run.stdout
