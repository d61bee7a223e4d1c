"""Roles, moves and check sources of other packages in whole runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from scenario.scripted_roles import as_json
from scenario.test_recipes import RIGHT, TASK, wrong
from suture.api import WriteOptions, replay, solve
from suture.bench import load_problems
from suture.core.ledger import find_run, read_ledger
from suture.core.settings import CertificationSettings, LoopSettings, Settings
from suture.errors import PrerequisiteError, UsageError
from suture.loop import load_recipe
from suture.testing import ScriptedModel

PLUGIN = """
from suture.core.records import Check


async def adviser(brief, ask):
    return [f"House rule: {(await ask('What is the rule?')).strip()}"]


def fixer(brief):
    return {path: text.replace("a - b - 1", "a + b") for path, text in brief.files.items()}


def check_source(task):
    return [Check(id="zero", provenance="user", source=f"assert {task.entry_point}(0, 0) == 7", trust=1.0)]


async def breaking_adviser(brief, ask):
    await ask("Is anybody there?")
    raise RuntimeError("the rule book is gone")


def breaking_fixer(brief):
    return {"solution.py": None}


def breaking_source(task):
    yield "assert True"


class Parrot:
    def __init__(self, model, settings):
        self.name = f"parrot:{model}"
        self.max_tokens = settings.model.max_tokens

    async def complete(self, messages, sampling):
        from suture.models import Reply

        text = "```python\\ndef add(a, b):\\n    return a + b\\n```"
        return Reply(text=text, finish="stop", prompt_tokens=1, completion_tokens=1, model=self.name)

    async def close(self):
        pass


def chat_model(model, settings):
    from langchain_core.language_models.fake_chat_models import FakeListChatModel

    return FakeListChatModel(responses=["```python\\ndef add(a, b):\\n    return a + b\\n```"])


RECIPE = "samples = 3\\n"


def problems():
    from suture.bench import Problem

    yield Problem(
        id="mine/1", dataset="", kind="write", statement="Add.", entry_point="add",
        visible="assert add(1, 2) == 3", hidden="assert add(2, 2) == 4",
        reference="def add(a, b):\\n    return a + b\\n", licence="MIT", source="me",
    )
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
        "[suture.fixers]\nsign = plugin_of_a_test:fixer\nbroken_sign = plugin_of_a_test:breaking_fixer\n"
        "[suture.check_sources]\nzero = plugin_of_a_test:check_source\n"
        "broken_zero = plugin_of_a_test:breaking_source\n"
        "[suture.providers]\nparrot = plugin_of_a_test:Parrot\nchat = plugin_of_a_test:chat_model\n"
        "[suture.recipes]\nthree = plugin_of_a_test:RECIPE\n"
        "[suture.datasets]\nmine = plugin_of_a_test:problems\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    def choose(helpers: str) -> Settings:
        (tmp_path / "own.toml").write_text(
            f"repair_opening = true\nrepair_width = 1\n\n[helpers]\n{helpers}\n"
        )
        loop = LoopSettings(recipe=str(tmp_path / "own.toml"))
        return settings.model_copy(update={"loop": loop, "certification": CertificationSettings(seconds=0)})

    return choose


async def test_a_role_of_a_package_is_asked_and_the_coder_reads_what_it_says(chosen: Chosen) -> None:
    model = ScriptedModel([wrong(1), "Add.", RIGHT])
    result = await solve(TASK, WriteOptions(settings=chosen('advisers = ["rules"]'), model=model))
    assert (result.outcome, result.spend.attempts, result.spend.model_calls) == ("healed", 2, 3)
    assert "House rule: Add." in model.calls[-1].messages[-1].content


async def test_a_move_of_a_package_makes_candidates_that_are_judged(chosen: Chosen) -> None:
    result = await solve(
        TASK, WriteOptions(settings=chosen('fixers = ["sign"]'), model=ScriptedModel([wrong(1)]))
    )
    assert (result.outcome, result.spend.attempts) == ("healed", 1)
    assert result.candidate is not None
    assert (result.candidate.origin, result.candidate.label) == ("mutation", "by sign")


async def test_checks_of_a_package_are_trusted_no_more_than_they_earn(chosen: Chosen) -> None:
    chosen_settings = chosen('check_sources = ["zero"]')
    result = await solve(TASK, WriteOptions(settings=chosen_settings, model=ScriptedModel([RIGHT])))
    assert result.outcome == "healed"
    events = read_ledger(find_run(chosen_settings.paths.home, result.run_id).ledger_path).events
    (weighed,) = [e.data["tests"] for e in events if e.kind == "tests.assessed"]
    assert [test["trust"] < 0.5 for test in weighed] == [True]


async def test_a_package_that_raises_is_named_in_the_result_and_the_run_continues(chosen: Chosen) -> None:
    helpers = 'advisers = ["broken_rules"]\nfixers = ["broken_sign", "sign"]\ncheck_sources = ["broken_zero"]'
    chosen_settings = chosen(helpers)
    model = ScriptedModel([wrong(2), "Yes.", RIGHT], repeat_last=True)  # `sign` cannot repair the first
    result = await solve(TASK, WriteOptions(settings=chosen_settings, model=model))
    assert result.outcome == "healed", result.reason
    assert set(result.failed_roles) == {"broken_rules", "broken_sign", "broken_zero"}
    events = read_ledger(find_run(chosen_settings.paths.home, result.run_id).ledger_path).events
    degraded = [(e.data["role"], e.data["error_type"]) for e in events if e.kind == "role.degraded"]
    assert {("broken_rules", "RuntimeError"), ("broken_sign", "TypeError")} < set(degraded)


async def test_a_package_that_is_not_there_or_broken_is_an_error_at_once(chosen: Chosen) -> None:
    model = ScriptedModel([as_json()])
    with pytest.raises(UsageError, match="there is no adviser 'nobody'"):
        await solve(TASK, WriteOptions(settings=chosen('advisers = ["nobody"]'), model=model))
    with pytest.raises(PrerequisiteError, match="does not load"):
        await solve(TASK, WriteOptions(settings=chosen('advisers = ["lost"]'), model=model))
    assert not model.calls


@pytest.mark.parametrize("name", ["parrot:grey", "chat:any"])
async def test_a_provider_of_a_package_writes_the_code(chosen: Chosen, name: str) -> None:
    plain = chosen("")
    model = plain.model.model_copy(update={"name": name})
    result = await solve(TASK, WriteOptions(settings=plain.model_copy(update={"model": model})))
    assert result.outcome == "healed", result.reason
    kept = find_run(plain.paths.home, result.run_id).replies_path.rglob("*.json")
    assert ["return a + b" in path.read_text("utf-8") for path in kept] == [True]


async def test_a_recipe_of_a_package_is_kept_with_the_run(chosen: Chosen, tmp_path: Path) -> None:
    named = chosen("").model_copy(update={"loop": LoopSettings(recipe="three")})
    assert load_recipe(named.loop, 0.0).samples == 3
    result = await solve(TASK, WriteOptions(settings=named, model=ScriptedModel([RIGHT])))
    (tmp_path / "plugin_of_a_test-1.0.dist-info" / "entry_points.txt").write_text("")
    again = await replay(result.run_id, settings=named)
    assert again.same, again


def test_a_set_of_a_package_holds_problems(chosen: Chosen) -> None:
    chosen("")
    (problem,) = load_problems("mine")
    assert (problem.dataset, problem.id) == ("mine", "mine/1")
    with pytest.raises(UsageError, match="there is no set 'yours'") as caught:
        load_problems("yours")
    assert "mine" in caught.value.remedy
