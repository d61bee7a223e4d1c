"""Runs whose failing tests are flaky: a named cause, a quarantine that is only offered, and repairs that must hold."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from project_files import read_tree, write_files
from run_events import read_event_data
from suture.api import HealOptions, heal, verify
from suture.core.ledger import find_run
from suture.core.settings import (
    BudgetSettings,
    CertificationSettings,
    ModelSettings,
    RepairSettings,
    Settings,
)
from suture.interfaces.narrative.run_progress_text import render_short_result
from suture.models import NO_MODEL
from suture.testing import ScriptedModel

pytestmark = pytest.mark.timeout(900)
WORDS = ["ash", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine"]
SHARED_STATE = {
    "config.py": "SETTINGS = {'currency': 'EUR'}\n",
    "test_config.py": "import config\n\n\ndef test_other():\n    config.SETTINGS['currency'] = 'CHF'\n\n\n"
    "def test_default():\n    assert config.SETTINGS['currency'] == 'EUR'\n",
}
BY_LUCK = """\
CALLS = []


def unique(words):
    CALLS.append(words)
    return list(dict.fromkeys(words)) if len(CALLS) == 1 else list(set(words))
"""
FAULT = "\n\ndef is_long(word):\n    return len(word) > 5\n"
FAULT_TEST = "\n\ndef test_length():\n    assert is_long('maple')\n    assert not is_long('pine')\n"
RIGHT = "def unique(words):\n    return list(dict.fromkeys(words))\n"


def order_as_a_set() -> list[str]:
    """Return the words in the order in which a set of this Python has them if its hash seed is 1."""
    code = f"print(*set({WORDS!r}))"
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return run.stdout.split()


def make_set_project(folder: Path) -> Path:
    """Write a project whose test passes only if a set has one order: red, and green with the hash seed 1."""
    words = order_as_a_set()
    sizes = "".join(
        f"\n\ndef test_size_{n}():\n    assert len(unique(WORDS[:{n}])) == {n}\n" for n in range(6)
    )
    test = f"from words import unique\n\nWORDS = {words!r}\n\n\ndef test_order():\n    assert unique(WORDS) == WORDS\n"
    code = "def unique(words):\n    return list(set(words))\n"
    return write_files(folder / "project", {"words.py": code, "test_words.py": test + sizes})


def without_model(settings: Settings) -> Settings:
    changes = {
        "budget": BudgetSettings(seconds=800),
        "model": ModelSettings(name=NO_MODEL),
        "repair": RepairSettings(),
    }
    return settings.model_copy(update={**changes, "certification": CertificationSettings(seconds=0)})


async def test_a_flaky_test_ends_with_a_named_cause_and_an_offer(tmp_path: Path, settings: Settings) -> None:
    project = write_files(tmp_path / "project", SHARED_STATE)
    before = read_tree(project)

    result = await heal(project, HealOptions(test=BARE_PYTEST, settings=without_model(settings)))

    assert (result.outcome, result.cause) == ("not_a_code_fault", "order_dependent")
    (investigated,) = read_event_data(settings.paths.home, "flaky.tests_investigated")
    (diagnosis,) = investigated["diagnoses"]
    assert (diagnosis["cause"], diagnosis["other_tests"]) == ("shared_state", ["test_config.py::test_other"])
    folder = find_run(settings.paths.home, result.run_id)
    patch = folder.path / "suture-quarantine.patch"
    assert f"git apply {patch}" in "\n".join(render_short_result(result, folder))
    assert read_tree(project) == before  # offered, and not applied
    subprocess.run(["git", "apply", str(patch)], cwd=project, check=True)
    assert "@pytest.mark.xfail(strict=False" in (project / "test_config.py").read_text()


async def test_a_test_that_depends_on_the_order_of_a_set_is_flaky(tmp_path: Path, settings: Settings) -> None:
    project = make_set_project(tmp_path)
    result = await heal(project, HealOptions(test=BARE_PYTEST, settings=without_model(settings)))
    assert (result.outcome, result.cause) == ("not_a_code_fault", "flaky")
    assert not result.diff
    (investigated,) = read_event_data(settings.paths.home, "flaky.tests_investigated")
    assert [diagnosis["cause"] for diagnosis in investigated["diagnoses"]] == ["hash_seed"]


async def test_a_repair_that_passes_by_luck_is_refused_and_one_that_holds_heals(
    tmp_path: Path, settings: Settings
) -> None:
    project = make_set_project(tmp_path)
    model = ScriptedModel([f"```python\n{BY_LUCK}```", f"```python\n{RIGHT}```"], repeat_last=True)
    changes = {
        "budget": BudgetSettings(attempts=8, seconds=800),
        "certification": CertificationSettings(seconds=0),
    }
    short = settings.model_copy(update=changes)

    result = await heal(project, HealOptions(test=BARE_PYTEST, settings=short, model=model))

    assert result.outcome == "healed", result.reason
    assert result.candidate is not None
    assert result.candidate.files["words.py"] == RIGHT
    first, last = read_event_data(settings.paths.home, "flaky.repair_tried")
    assert (first["condition"], first["tests"]) == ("random_order", ["test_words.py::test_order"])
    assert first["clean"] < first["runs"]
    assert (last["clean"], last["condition"]) == (last["runs"], None)
    prompt = model.calls[0].messages[-1].content
    assert "test_words.py::test_order is flaky: the order of a set decides" in prompt


@pytest.mark.parametrize("cause", ["flaky", "order_dependent"])
async def test_a_flaky_test_beside_a_fault_is_not_part_of_what_is_decided(
    cause: str, tmp_path: Path, settings: Settings
) -> None:
    if cause == "flaky":
        project, flaky = make_set_project(tmp_path), "test_words.py::test_order"
    else:
        project, flaky = write_files(tmp_path / "project", SHARED_STATE), "test_config.py::test_default"
    (tests,) = project.glob("test_*.py")
    code = project / tests.name.removeprefix("test_")
    code.write_text(code.read_text() + FAULT)
    tests.write_text(f"from {code.stem} import is_long\n{tests.read_text()}{FAULT_TEST}")
    searching = without_model(settings)

    result = await heal(project, HealOptions(test=BARE_PYTEST, settings=searching))

    assert result.outcome == "healed", result.reason
    assert "+    return len(word) >= 5" in result.diff
    assert result.warnings == (f"not part of what was decided, because flaky: {flaky}",)
    (triage,) = read_event_data(settings.paths.home, "triage.finished")
    assert [failure["cause"] for failure in triage["non_code_failures"]] == [cause]
    claims = [claim async for claim in verify(result.run_id, settings=searching)]
    assert all(claim.ok for claim in claims), claims
    assert f"flaky, and not certified: {flaky}" in "".join(claim.detail for claim in claims)


async def test_a_repair_that_breaks_a_flaky_test_for_good_is_refused(
    tmp_path: Path, settings: Settings
) -> None:
    project = make_set_project(tmp_path)
    code, tests = project / "words.py", project / "test_words.py"
    code.write_text(code.read_text() + FAULT)
    tests.write_text(f"from words import is_long\n{tests.read_text()}{FAULT_TEST}")
    right = code.read_text().replace("> 5", ">= 5")
    breaking = right.replace("list(set(words))", "sorted(set(words), reverse=True)")
    model = ScriptedModel([f"```python\n{breaking}```", f"```python\n{right}```"], repeat_last=True)
    short = settings.model_copy(update={"budget": BudgetSettings(attempts=8, seconds=800)})

    result = await heal(project, HealOptions(test=BARE_PYTEST, settings=short, model=model))

    assert result.outcome == "healed", result.reason
    assert result.candidate is not None
    assert result.candidate.files["words.py"] == right
