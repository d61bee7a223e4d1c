"""Red linters and type checkers are healed: by their own fixes first, then by a model, and never by silencing them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from project_files import write_files
from requirements import Require
from suture.api import HealOptions, heal
from suture.core.ledger import read_ledger, select_events
from suture.core.ledger.kinds import CertificateWritten
from suture.core.records import Result
from suture.core.settings import BudgetSettings, ModelSettings, PathSettings, SandboxSettings, Settings
from suture.core.settings.schema import ProfileSettings
from suture.judge.runners.diagnostics.lent_programs import find_ruff
from suture.testing import ScriptedModel

pytestmark = pytest.mark.timeout(300)

STORE = """class Store:
    def __init__(self) -> None:
        self._items: dict[str, int] = {}

    def find(self, name: str) -> int | None:
        return self._items.get(name)

    def double(self, name: str) -> int:
        return self.find(name) * 2
"""
TYPED = {
    "store.py": STORE,
    "mypy.ini": "[mypy]\nstrict = True\n",
    "tests/test_store.py": (
        "from store import Store\n\n\ndef test_find() -> None:\n    assert Store().find('a') is None\n"
    ),
}
CART = """import json
import os


def total(prices, limit):
    result = 0
    for price in prices:
        if price > limit:
            result += price
    return result
"""
LINTED = {
    "cart.py": CART,
    "pyproject.toml": "[tool.ruff.lint]\nselect = ['E', 'F']\n",
    "tests/test_cart.py": (
        "import json\n\nfrom cart import total\n\n\ndef test_total():\n    assert total([1, 2, 3], 2) == 3\n\n\n"
        "def test_none():\n    assert total([1], 2) == 0\n"
    ),
}


@pytest.fixture
def run_settings(tmp_path: Path) -> Settings:
    """Settings of runs that search, and that have no model unless a test gives one."""
    return Settings(
        paths=PathSettings(home=tmp_path / "home"),
        budget=BudgetSettings(attempts=1, seconds=200),
        model=ModelSettings(name="none"),
        sandbox=SandboxSettings(python=Path(sys.prefix)),  # the environment of these tests has mypy
    )


async def heal_files(
    folder: Path, files: Mapping[str, str], command: str, settings: Settings, reply: str = ""
) -> Result:
    """Heal a project; the model answers with one file."""
    project = write_files(folder / "project", files)
    model = ScriptedModel([f"```python\n{reply}```"], repeat_last=True) if reply else None
    return await heal(project, HealOptions(test=command, settings=settings, model=model))


@pytest.mark.heavy
async def test_a_linter_is_healed_by_its_own_fix_although_it_reports_a_test_too(
    tmp_path: Path, run_settings: Settings, require: Require
) -> None:
    require("ruff", find_ruff(None) is not None, "ruff is not installed")
    result = await heal_files(tmp_path, LINTED, "ruff check .", run_settings)
    assert (result.outcome, result.evidence) == ("healed", "report"), result.reason
    assert result.candidate is not None
    assert (result.candidate.origin, sorted(result.candidate.files)) == (
        "fix",
        ["cart.py", "tests/test_cart.py"],
    )
    assert not result.warnings


@pytest.mark.heavy
async def test_without_tests_a_certificate_says_so_and_nothing_of_other_checks(
    tmp_path: Path, run_settings: Settings, require: Require
) -> None:
    require("ruff", find_ruff(None) is not None, "ruff is not installed")
    files = {"cart.py": "def name():\n    return f'cart'\n"}
    result = await heal_files(tmp_path, files, "ruff check .", run_settings)
    assert result.outcome == "healed", result.reason
    (ledger,) = (tmp_path / "home" / "runs").glob("*/ledger.jsonl")
    ((_, written),) = select_events(read_ledger(ledger).events, CertificateWritten)
    assert written.coverage_unmeasured == "no_tests"


@pytest.mark.heavy
async def test_a_failing_test_and_a_red_linter_are_healed_together(
    tmp_path: Path, run_settings: Settings, require: Require
) -> None:
    require("ruff", find_ruff(None) is not None, "ruff is not installed")
    tests = LINTED["tests/test_cart.py"].replace("== 3", "== 5")
    files = {**LINTED, "tests/test_cart.py": tests}
    command = f"ruff check . && {BARE_PYTEST}"
    result = await heal_files(tmp_path, files, command, run_settings)
    assert result.outcome == "healed", result.reason
    assert "+        if price >= limit:" in result.diff
    assert "-import json" in result.diff


@pytest.mark.heavy
async def test_a_repair_of_a_test_is_combined_with_unsafe_fixes_which_the_result_names(
    tmp_path: Path, run_settings: Settings, require: Require
) -> None:
    require("ruff", find_ruff(None) is not None, "ruff is not installed")
    tests = LINTED["tests/test_cart.py"].replace("== 3", "== 5")
    configuration = "[tool.ruff.lint]\nselect = ['E', 'F', 'B']\n"
    cart = f"{CART}\n\ndef add(price, log=[]):\n    log.append(price)\n    return log\n"
    files = {"cart.py": cart, "pyproject.toml": configuration, "tests/test_cart.py": tests}
    result = await heal_files(tmp_path, files, f"ruff check . && {BARE_PYTEST}", run_settings)
    assert result.outcome == "healed", result.reason
    assert "+        if price >= limit:" in result.diff
    assert "+def add(price, log=None):" in result.diff
    assert [warning for warning in result.warnings if "'ruff check --fix --unsafe-fixes .'" in warning]


@pytest.mark.heavy
async def test_a_conversation_leaves_a_silenced_linter_behind_and_tidies_the_test_that_it_reports(
    tmp_path: Path, run_settings: Settings, require: Require
) -> None:
    require("ruff", find_ruff(None) is not None, "ruff is not installed")
    line = "    assert total([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20], 19) == 20\n"
    files = {
        "cart.py": CART.replace("total(prices, limit)", "total(prices, limit, log=[])").replace(
            "import json\nimport os\n", ""
        ),
        "ruff.toml": "line-length = 90\nlint.select = ['E501', 'B006', 'E741']\n",
        "test_cart.py": f"from cart import total\n\n\ndef test_total():\n{line}",
    }
    files["cart.py"] += "\n\ndef is_dear(price):\n    l = price > 100\n    return l\n"
    bad = "    l = price > 100"
    silenced = f"cart.py\n<<<<<<< SEARCH\n{bad}\n=======\n{bad}  # noqa\n>>>>>>> REPLACE\n"
    right = (
        f"cart.py\n<<<<<<< SEARCH\n{bad}\n    return l\n=======\n    return price > 100\n>>>>>>> REPLACE\n"
        f"test_cart.py\n<<<<<<< SEARCH\n{line}=======\n    prices = list(range(21))\n"
        "    assert total(prices, 19) == 20\n>>>>>>> REPLACE\n"
    )
    tidied = line.replace("total([", "total(\n        [").replace("], 19)", "],\n        19,\n    )")
    layout = f"test_cart.py\n<<<<<<< SEARCH\n{line}=======\n{tidied}>>>>>>> REPLACE\n"
    model = ScriptedModel([silenced, right, layout])
    settings = run_settings.model_copy(
        update={
            "budget": BudgetSettings(attempts=12, seconds=200),
            "model": ModelSettings(name="none", profile=ProfileSettings(capable=True)),
        }
    )
    project, command = write_files(tmp_path / "project", files), f"ruff check . && {BARE_PYTEST}"

    result = await heal(project, HealOptions(test=command, settings=settings, model=model))

    assert f"This command must pass:\n\n    {command}" in model.calls[0].messages[1].content
    assert "test_cart.py may not be changed, except for its layout" in model.calls[2].messages[-1].content
    assert result.outcome == "healed", result.reason
    assert "noqa" not in result.diff
    assert "+    return price > 100" in result.diff
    assert [warning for warning in result.warnings if "--unsafe-fixes" in warning]


@pytest.mark.heavy
async def test_a_type_error_is_healed_by_a_model(tmp_path: Path, run_settings: Settings) -> None:
    right = STORE.replace(
        "        return self.find(name) * 2\n", "        return (self.find(name) or 0) * 2\n"
    )
    result = await heal_files(tmp_path, TYPED, "python -m mypy store.py", run_settings, right)
    assert (result.outcome, result.evidence) == ("healed", "report"), result.reason
    assert not result.warnings


@pytest.mark.heavy
@pytest.mark.parametrize(
    "line",
    [
        "        return self.find(name) * 2  # type: ignore[operator]\n",
        "        return self.find(name) * 2  # type:ignore\n",
        "        return 'two'\n",
    ],
)
async def test_a_silenced_or_another_type_error_is_not_healed(
    line: str, tmp_path: Path, run_settings: Settings
) -> None:
    reply = STORE.replace("        return self.find(name) * 2\n", line)
    result = await heal_files(tmp_path, TYPED, "python -m mypy store.py", run_settings, reply)
    assert result.outcome != "healed"


@pytest.mark.heavy
async def test_wider_types_are_never_accepted_plainly(tmp_path: Path, run_settings: Settings) -> None:
    reply = "from typing import Any\n\n\n" + STORE.replace("int | None", "Any").replace("-> int:", "-> Any:")
    result = await heal_files(tmp_path, TYPED, "python -m mypy store.py", run_settings, reply)
    assert result.outcome == "healed"
    assert any("widens or asserts types (Any)" in warning for warning in result.warnings)
    assert result.confidence < Settings().ci.confidence
