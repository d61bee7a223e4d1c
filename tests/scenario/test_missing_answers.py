"""A model that refuses, or only thinks, ends a run at once: asking it again would only cost tokens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from suture.api import WriteOptions, replay, solve
from suture.core.ledger import RunFolder
from suture.core.settings import Settings
from suture.core.settings.schema import RoleSettings
from suture.interfaces.narrative.run_progress_text import render_short_result
from suture.models import Reply
from suture.testing import ScriptedModel

TASK = "Write a function add(a, b) that adds two numbers.\n\n>>> add(1, 2)\n3\n"
REFUSAL = Reply(text="I cannot help.", finish="refusal", prompt_tokens=9, completion_tokens=4)
THOUGHT = Reply(text="", finish="thinking", prompt_tokens=9, completion_tokens=1_000)


@pytest.mark.parametrize(
    ("reply", "calls", "why"),
    [(REFUSAL, 1, "refused to answer"), (THOUGHT, 2, "on thinking")],
    ids=["refusal", "thinking"],
)
async def test_a_run_without_an_answer_ends_with_its_reason_and_remedy(
    settings: Settings, reply: Reply, calls: int, why: str
) -> None:
    model = ScriptedModel([reply], repeat_last=True, name="openai:scripted")

    result = await solve(TASK, WriteOptions(settings=settings, model=model))

    assert (result.outcome, result.reason.code, len(model.calls)) == ("stuck", "no_answer", calls)
    assert why in result.reason.detail
    told = "\n".join(render_short_result(result, RunFolder(settings.paths.home / "runs" / result.run_id)))
    assert "larger model" not in told
    again = (await replay(result.run_id, settings=settings)).result
    assert (again.outcome, again.reason) == (result.outcome, result.reason)


async def test_a_stronger_model_takes_over_from_one_that_refuses(settings: Settings, tmp_path: Path) -> None:
    script = tmp_path / "strong.json"
    script.write_text(json.dumps(["```python\ndef add(a, b):\n    return a + b\n```"]), "utf-8")
    settings = settings.model_copy(update={"models": RoleSettings(escalate=f"scripted:{script}")})
    weak = ScriptedModel([REFUSAL], repeat_last=True, name="scripted:weak")

    result = await solve(TASK, WriteOptions(settings=settings, model=weak))

    assert (result.outcome, len(weak.calls)) == ("healed", 1)
