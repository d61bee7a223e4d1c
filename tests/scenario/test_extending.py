"""Advisers, fixers, check sources, providers, recipes and datasets of other packages in whole runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from run_events import read_events
from scenario.scripted_roles import to_json
from scenario.test_recipes import RIGHT, TASK, wrong_reply
from suture.api import WriteOptions, replay, solve
from suture.bench import load_problems
from suture.core.ledger import find_run
from suture.core.settings import CertificationSettings, LoopSettings, Settings
from suture.errors import PrerequisiteError, UsageError
from suture.loop import list_installed_recipes, load_recipe
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

ChooseHelpers = Callable[[str], Settings]


@pytest.fixture
def choose_helpers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings) -> ChooseHelpers:
    """Install a package with plugins, and return a function that makes settings which use them."""
    (tmp_path / "test_plugin.py").write_text(PLUGIN)
    about = tmp_path / "test_plugin-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: test-plugin\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[suture.advisers]\nrules = test_plugin:adviser\nlost = test_plugin:gone\n"
        "broken_rules = test_plugin:breaking_adviser\n"
        "[suture.fixers]\nsign = test_plugin:fixer\nbroken_sign = test_plugin:breaking_fixer\n"
        "[suture.check_sources]\nzero = test_plugin:check_source\n"
        "broken_zero = test_plugin:breaking_source\n"
        "[suture.providers]\nparrot = test_plugin:Parrot\nchat = test_plugin:chat_model\n"
        "[suture.recipes]\nthree = test_plugin:RECIPE\n"
        "[suture.datasets]\nmine = test_plugin:problems\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    def choose(helpers: str) -> Settings:
        (tmp_path / "own.toml").write_text(
            f"repair_opening = true\nrepair_width = 1\n\n[helpers]\n{helpers}\n"
        )
        loop = LoopSettings(recipe=str(tmp_path / "own.toml"))
        return settings.model_copy(update={"loop": loop, "certification": CertificationSettings(seconds=0)})

    return choose


async def test_the_coder_reads_the_advice_of_a_plugin_adviser(choose_helpers: ChooseHelpers) -> None:
    model = ScriptedModel([wrong_reply(1), "Add.", RIGHT])
    result = await solve(TASK, WriteOptions(settings=choose_helpers('advisers = ["rules"]'), model=model))
    assert (result.outcome, result.spend.attempts, result.spend.model_calls) == ("healed", 2, 3)
    assert "House rule: Add." in model.calls[-1].messages[-1].content


async def test_candidates_of_a_plugin_fixer_are_judged(choose_helpers: ChooseHelpers) -> None:
    result = await solve(
        TASK,
        WriteOptions(settings=choose_helpers('fixers = ["sign"]'), model=ScriptedModel([wrong_reply(1)])),
    )
    assert (result.outcome, result.spend.attempts) == ("healed", 1)
    assert result.candidate is not None
    assert (result.candidate.origin, result.candidate.label) == ("mutation", "by sign")


async def test_checks_of_a_plugin_start_untrusted(choose_helpers: ChooseHelpers) -> None:
    plugin_settings = choose_helpers('check_sources = ["zero"]')
    result = await solve(TASK, WriteOptions(settings=plugin_settings, model=ScriptedModel([RIGHT])))
    assert result.outcome == "healed"
    events = read_events(plugin_settings.paths.home, result.run_id)
    (tests,) = [event.data["tests"] for event in events if event.kind == "tests.assessed"]
    assert [test["trust"] < 0.5 for test in tests] == [True]


async def test_a_run_continues_and_names_the_plugins_that_raised(choose_helpers: ChooseHelpers) -> None:
    helpers = 'advisers = ["broken_rules"]\nfixers = ["broken_sign", "sign"]\ncheck_sources = ["broken_zero"]'
    plugin_settings = choose_helpers(helpers)
    # `sign` cannot repair the first reply.
    model = ScriptedModel([wrong_reply(2), "Yes.", RIGHT], repeat_last=True)

    result = await solve(TASK, WriteOptions(settings=plugin_settings, model=model))

    assert result.outcome == "healed", result.reason
    assert set(result.failed_roles) == {"broken_rules", "broken_sign", "broken_zero"}
    events = read_events(plugin_settings.paths.home, result.run_id)
    degraded = [
        (event.data["role"], event.data["error_type"]) for event in events if event.kind == "role.degraded"
    ]
    assert {("broken_rules", "RuntimeError"), ("broken_sign", "TypeError")} < set(degraded)


async def test_a_missing_or_broken_plugin_is_refused_before_any_model_call(
    choose_helpers: ChooseHelpers,
) -> None:
    model = ScriptedModel([to_json()])
    with pytest.raises(UsageError, match="there is no adviser 'nobody'"):
        await solve(TASK, WriteOptions(settings=choose_helpers('advisers = ["nobody"]'), model=model))
    with pytest.raises(PrerequisiteError, match="does not load"):
        await solve(TASK, WriteOptions(settings=choose_helpers('advisers = ["lost"]'), model=model))
    assert not model.calls


@pytest.mark.parametrize("name", ["parrot:grey", "chat:any"])
async def test_a_plugin_provider_writes_the_code(choose_helpers: ChooseHelpers, name: str) -> None:
    settings = choose_helpers("")
    model = settings.model.model_copy(update={"name": name})
    result = await solve(TASK, WriteOptions(settings=settings.model_copy(update={"model": model})))
    assert result.outcome == "healed", result.reason
    replies = find_run(settings.paths.home, result.run_id).replies_path.rglob("*.json")
    assert ["return a + b" in path.read_text("utf-8") for path in replies] == [True]


async def test_a_plugin_recipe_is_stored_with_the_run(choose_helpers: ChooseHelpers, tmp_path: Path) -> None:
    recipe_settings = choose_helpers("").model_copy(update={"loop": LoopSettings(recipe="three")})
    assert load_recipe(recipe_settings.loop, 0.0).samples == 3
    result = await solve(TASK, WriteOptions(settings=recipe_settings, model=ScriptedModel([RIGHT])))
    (tmp_path / "test_plugin-1.0.dist-info" / "entry_points.txt").write_text("")
    replayed = await replay(result.run_id, settings=recipe_settings)
    assert replayed.same, replayed


def test_a_plugin_recipe_is_listed(choose_helpers: ChooseHelpers) -> None:
    choose_helpers("")
    assert list_installed_recipes() == ("three",)


def test_a_plugin_dataset_provides_problems(choose_helpers: ChooseHelpers) -> None:
    choose_helpers("")
    (problem,) = load_problems("mine")
    assert (problem.dataset, problem.id) == ("mine", "mine/1")
    with pytest.raises(UsageError, match="there is no set 'yours'") as caught:
        load_problems("yours")
    assert "mine" in caught.value.remedy
