"""The real 0.5B model, graph and sandbox; nothing is scripted."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from requirements import Require
from scenario.projects import EXAMPLES
from suture.agents import fit_prompt, packaged_prompt
from suture.agents.replies.generated_checks import checks_from_reply, mean_logprob
from suture.agents.roles.testers import SpecTestBrief, draft_spec_test_prompt
from suture.api import HealOptions, WriteOptions, heal, solve
from suture.core.settings import BudgetSettings, ModelSettings, PathSettings, RepairSettings, Settings
from suture.errors import PrerequisiteError, SutureError
from suture.models import Sampling, count_tokens, open_model, pull_model

SMALL = "local:qwen2.5-coder-0.5b"
pytestmark = [pytest.mark.heavy, pytest.mark.live, pytest.mark.timeout(600)]


@pytest.fixture
def live_settings(tmp_path: Path, require: Require) -> Settings:
    """Settings with the smallest embedded model; its weights stay in the ordinary cache."""
    cache = PathSettings().cache
    try:
        pull_model("qwen2.5-coder-0.5b", cache)
    except (PrerequisiteError, SutureError) as fault:
        require("local-model", False, str(fault))
    return Settings(
        model=ModelSettings(name=SMALL, max_tokens=512, threads=1),
        paths=PathSettings(home=tmp_path / "home", cache=cache),
        repair=RepairSettings(enabled=False),  # these tests are about the models
        budget=BudgetSettings(attempts=12, seconds=400),
    )


async def test_the_embedded_model_writes_a_function(live_settings: Settings) -> None:
    task = (
        "Write a function double(numbers) that doubles each number of a list.\n\n>>> double([1, 2])\n[2, 4]\n"
    )
    result = await solve(task, WriteOptions(settings=live_settings))
    assert (result.outcome, result.evidence) == ("healed", "split"), result.reason
    assert result.spend.completion_tokens > 0


async def test_the_embedded_model_heals_a_broken_project(live_settings: Settings, tmp_path: Path) -> None:
    project = shutil.copytree(EXAMPLES / "syntax_error", tmp_path / "project")
    result = await heal(project, HealOptions(test=BARE_PYTEST, settings=live_settings))
    assert (result.outcome, result.evidence) == ("healed", "nonce"), result.reason
    assert result.diff


async def test_the_embedded_model_reports_a_logprob_for_each_test(live_settings: Settings) -> None:
    brief = SpecTestBrief(
        statement="Write a function double(n) that gives twice n.", entry_point="double", examples=""
    )
    draft = draft_spec_test_prompt(brief, packaged_prompt("spec_tester"))
    model = open_model(live_settings)
    sampling = Sampling(max_tokens=48, logprobs=True)
    reply = await model.complete(
        (await fit_prompt(draft, None, partial(count_tokens, model))).messages, sampling
    )

    await model.close()

    checks = checks_from_reply(reply, "spec", "double").checks
    logprobs = [mean_logprob(check.source, reply) for check in checks]
    assert logprobs
    assert all(value is not None and value <= 0 for value in logprobs)
