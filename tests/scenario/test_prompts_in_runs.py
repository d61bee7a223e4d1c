"""Prompts in real runs: a project's own prompts, and prompts shortened to fit the context."""

from __future__ import annotations

from pathlib import Path

import pytest

from run_events import read_event_data
from suture.agents import packaged_prompt
from suture.api import WriteOptions, solve
from suture.core.settings import (
    ModelSettings,
    ProfileSettings,
    Settings,
    compute_project_digest,
    trust_project,
)
from suture.errors import ContextTooLong, UsageError
from suture.models import prompt_token_upper_bound
from suture.testing import ScriptedModel

TASK = "Write a function add(a, b).\n\n>>> add(1, 2)\n3\n"
RIGHT = "```python\ndef add(a, b):\n    return a + b\n```"
PROJECT_PROMPT = """
name: coder
version: 3
templates:
  system:
    variables: []
    text: You are terse.
"""
MANY_TESTS = "\n".join(f"assert add({n}, 1) == {n + 1}" for n in range(100))


@pytest.mark.heavy
async def test_a_trusted_projects_prompt_is_used_and_recorded(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    await solve(TASK, WriteOptions(settings=settings, model=ScriptedModel([RIGHT])))

    packaged_hashes = {call["prompt"] for call in read_event_data(settings.paths.home, "model.called")}
    assert packaged_hashes == {packaged_prompt("coder").hash}
    folder = tmp_path / ".suture" / "prompts"
    folder.mkdir(parents=True)
    (folder / "coder.yaml").write_text(PROJECT_PROMPT)
    model = ScriptedModel([RIGHT])
    await solve(TASK, WriteOptions(settings=settings, model=model))
    assert model.calls[0].messages[0].content != "You are terse."  # the project is not trusted yet
    trust_project(settings.paths.home, tmp_path, compute_project_digest(tmp_path))
    model = ScriptedModel([RIGHT])
    await solve(TASK, WriteOptions(settings=settings, model=model))
    assert model.calls[0].messages[0].content == "You are terse."
    project_hashes = {call["prompt"] for call in read_event_data(settings.paths.home, "model.called")}
    assert len(project_hashes | packaged_hashes) == 2


async def test_an_invalid_project_prompt_ends_the_run_before_any_model_call(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / ".suture" / "prompts"
    folder.mkdir(parents=True)
    (folder / "coder.yaml").write_text(PROJECT_PROMPT.replace("terse", "terse about $task"))
    trust_project(settings.paths.home, tmp_path, compute_project_digest(tmp_path))
    model = ScriptedModel([RIGHT])

    with pytest.raises(UsageError, match=r"coder\.yaml: template 'system'"):
        await solve(TASK, WriteOptions(settings=settings, model=model))
    assert model.calls == []


async def test_a_prompt_is_shortened_to_an_embedded_models_context(settings: Settings) -> None:
    small = settings.model_copy(
        update={
            "model": ModelSettings(
                context_tokens=1024, max_tokens=256, profile=ProfileSettings(prefill=False)
            )
        }
    )
    model = ScriptedModel([RIGHT], name="local:tiny")

    result = await solve(TASK, WriteOptions(asserts=MANY_TESTS, settings=small, model=model))

    assert result.outcome == "healed"
    prompt = model.calls[0].messages[-1].content
    (omitted,) = [
        event["omitted"]["tests"] for event in read_event_data(settings.paths.home, "prompt.shrunk")
    ]
    assert f"# ... {omitted} more lines are not shown" in prompt
    assert prompt.count("assert add") == 100 - omitted
    assert TASK.strip() in prompt


@pytest.mark.heavy
async def test_a_prompt_that_a_provider_refuses_as_too_long_is_shortened(settings: Settings) -> None:
    model = ScriptedModel([ContextTooLong("too long"), ContextTooLong("too long"), RIGHT])

    result = await solve(TASK, WriteOptions(asserts=MANY_TESTS, settings=settings, model=model))

    assert result.outcome == "healed"
    lengths = [prompt_token_upper_bound(call.messages) for call in model.calls]
    assert lengths == sorted(lengths, reverse=True)
    assert len(set(lengths)) == 3
    assert result.spend.attempts == 1


async def test_a_prompt_that_cannot_be_shortened_ends_the_run(
    settings: Settings,
) -> None:
    model = ScriptedModel([ContextTooLong("too long")], repeat_last=True)
    result = await solve(TASK, WriteOptions(settings=settings, model=model))
    assert result.outcome == "infra_error"
    assert "model.context_tokens" in read_event_data(settings.paths.home, "move.failed")[0]["message"]
