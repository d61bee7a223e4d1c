"""A role, a move and a source of checks from outside the package, in whole runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from scenario.cast import as_json
from scenario.test_recipes import RIGHT, TASK, wrong
from suture.api import solve
from suture.errors import PrerequisiteError, UsageError
from suture.ledger import find_run, read_ledger
from suture.settings import LoopSettings, ProofSettings, Settings
from suture.testing import ScriptedModel

PLUGIN = """
from suture.records import Check


async def adviser(brief, ask):
    return [f"House rule: {(await ask('What is the rule?')).strip()}"]


def mender(brief):
    return {path: text.replace("a - b - 1", "a + b") for path, text in brief.files.items()}


def check_source(task):
    return [Check(id="zero", provenance="user", source=f"assert {task.entry_point}(0, 0) == 7", trust=1.0)]


async def breaking_adviser(brief, ask):
    await ask("Is anybody there?")
    raise RuntimeError("the rule book is gone")


def breaking_mender(brief):
    return {"solution.py": None}


def breaking_source(task):
    yield "assert True"
"""

Chosen = Callable[[str], Settings]


@pytest.fixture
def chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Chosen:
    """Settings with a recipe of these helpers, and a package installed that brings some."""
    (tmp_path / "plugin_of_a_test.py").write_text(PLUGIN)
    about = tmp_path / "plugin_of_a_test-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin-of-a-test\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[suture.advisers]\nrules = plugin_of_a_test:adviser\nlost = plugin_of_a_test:gone\n"
        "broken_rules = plugin_of_a_test:breaking_adviser\n"
        "[suture.menders]\nsign = plugin_of_a_test:mender\nbroken_sign = plugin_of_a_test:breaking_mender\n"
        "[suture.check_sources]\nzero = plugin_of_a_test:check_source\n"
        "broken_zero = plugin_of_a_test:breaking_source\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    def choose(helpers: str) -> Settings:
        (tmp_path / "own.toml").write_text(
            f"repair_opening = true\nrepair_width = 1\n\n[helpers]\n{helpers}\n"
        )
        loop = LoopSettings(recipe=str(tmp_path / "own.toml"))
        return settings.model_copy(update={"loop": loop, "proof": ProofSettings(seconds=0)})

    return choose


async def test_a_role_of_a_package_is_asked_and_the_coder_reads_what_it_says(chosen: Chosen) -> None:
    model = ScriptedModel([wrong(1), "Add.", RIGHT])
    result = await solve(TASK, settings=chosen('advisers = ["rules"]'), model=model)
    assert (result.outcome, result.spend.attempts, result.spend.model_calls) == ("healed", 2, 3)
    assert "House rule: Add." in model.calls[-1].messages[-1].content


async def test_a_move_of_a_package_makes_candidates_that_are_judged(chosen: Chosen) -> None:
    result = await solve(TASK, settings=chosen('menders = ["sign"]'), model=ScriptedModel([wrong(1)]))
    assert (result.outcome, result.spend.attempts) == ("healed", 1)
    assert result.candidate is not None
    assert (result.candidate.origin, result.candidate.label) == ("mutation", "by sign")


async def test_checks_of_a_package_are_trusted_no_more_than_they_earn(chosen: Chosen) -> None:
    chosen_settings = chosen('check_sources = ["zero"]')
    result = await solve(TASK, settings=chosen_settings, model=ScriptedModel([RIGHT]))
    assert result.outcome == "healed"
    events = read_ledger(find_run(chosen_settings.paths.home, result.run_id).ledger_path).events
    (weighed,) = [e.data["tests"] for e in events if e.kind == "tests.assessed"]
    assert [test["trust"] < 0.5 for test in weighed] == [True]


async def test_a_package_that_raises_is_named_in_the_result_and_the_run_goes_on(chosen: Chosen) -> None:
    helpers = (
        'advisers = ["broken_rules"]\nmenders = ["broken_sign", "sign"]\ncheck_sources = ["broken_zero"]'
    )
    chosen_settings = chosen(helpers)
    model = ScriptedModel([wrong(2), "Yes.", RIGHT], repeat_last=True)  # `sign` cannot mend the first
    result = await solve(TASK, settings=chosen_settings, model=model)
    assert result.outcome == "healed", result.reason
    assert set(result.degraded) == {"broken_rules", "broken_sign", "broken_zero"}
    events = read_ledger(find_run(chosen_settings.paths.home, result.run_id).ledger_path).events
    told = [(e.data["role"], e.data["kind"]) for e in events if e.kind == "role.degraded"]
    assert {("broken_rules", "RuntimeError"), ("broken_sign", "TypeError")} < set(told)


async def test_a_package_that_is_not_there_or_broken_is_an_error_at_once(chosen: Chosen) -> None:
    model = ScriptedModel([as_json()])
    with pytest.raises(UsageError, match="no package brings 'nobody'"):
        await solve(TASK, settings=chosen('advisers = ["nobody"]'), model=model)
    with pytest.raises(PrerequisiteError, match="does not load"):
        await solve(TASK, settings=chosen('advisers = ["lost"]'), model=model)
    assert not model.calls
