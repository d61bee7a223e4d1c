"""Behaviour of the Python API that callers rely on."""

from __future__ import annotations

from pathlib import Path

import pytest

import suture
from suture.api import SelfHealingAgent, WriteOptions
from suture.core.ledger import find_run
from suture.errors import PrerequisiteError, UsageError

SPECIFICATION = (
    "def merge_intervals(intervals):\n"
    '    """Merge intervals that overlap or touch.\n\n'
    "    >>> merge_intervals([[1, 2], [2, 3]])\n"
    "    [[1, 3]]\n"
    '    """\n'
)
PROMISED_KEYS = {
    "code",
    "is_complete",
    "iteration",
    "specification",
    "max_iterations",
    "execution_output",
    "execution_error",
    "critic_feedback",
}


@pytest.fixture(autouse=True)
def isolate_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "LLM_PROVIDER", "LLM_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SUTURE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def test_an_ancestors_agent_returns_the_promised_keys() -> None:
    agent = SelfHealingAgent(model_provider="scripted", model_name="example", max_iterations=5)
    result = agent.run(SPECIFICATION)

    assert result.keys() >= PROMISED_KEYS
    assert result["is_complete"] is True
    assert "def merge_intervals" in result["code"]
    assert (result["specification"], result["max_iterations"]) == (SPECIFICATION, 5)
    assert 1 < result["iteration"] <= 5
    assert result["execution_error"] == ""


def test_max_iterations_is_a_limit_and_the_failure_is_reported(tmp_path: Path) -> None:
    result = SelfHealingAgent(model_provider="mock", max_iterations=1).run(SPECIFICATION)
    assert result["is_complete"] is False
    assert result["iteration"] == 1
    assert result["execution_error"] == "[[1, 2], [2, 3]]"
    assert result["critic_feedback"]
    assert find_run(tmp_path / "home", result["run_id"]).ledger_path.is_file()


def test_a_missing_key_is_an_error() -> None:
    with pytest.raises(PrerequisiteError, match="OPENAI_API_KEY"):
        SelfHealingAgent(model_provider="openai", model_name="gpt-4", max_iterations=5).run(SPECIFICATION)


def test_an_unsupported_argument_is_refused_with_a_reason() -> None:
    with pytest.raises(UsageError, match="trusted checks decide"):
        SelfHealingAgent(model_provider="mock", enable_critic=True)
    with pytest.raises(UsageError, match="at least 1"):
        SelfHealingAgent(model_provider="mock", max_iterations=0)


def test_the_api_is_available_from_the_package() -> None:
    task = suture.Task(
        statement=SPECIFICATION,
        entry_point="merge_intervals",
        checks=(suture.Check(id="a", provenance="user", source="assert merge_intervals([]) == []"),),
    )
    result = suture.run_sync(suture.solve(task, WriteOptions(model="scripted:example")))

    assert isinstance(result, suture.Result)
    assert result.ok

    with pytest.raises(AttributeError):
        _ = suture.nothing_of_this_name


def test_a_langchain_chat_model_is_accepted() -> None:
    from langchain_core.language_models.fake_chat_models import FakeListChatModel

    reply = "```python\ndef merge_intervals(intervals):\n    return [[1, 3]]\n```"
    model = FakeListChatModel(responses=[reply])
    result = suture.run_sync(suture.solve(SPECIFICATION, WriteOptions(model=model)))
    assert result.outcome == "healed"


def test_nothing_is_written_into_the_current_folder(tmp_path: Path) -> None:
    suture.run_sync(suture.solve(SPECIFICATION, WriteOptions(model="scripted:example")))
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


async def test_run_sync_works_inside_a_running_event_loop() -> None:
    result = suture.run_sync(suture.solve(SPECIFICATION, WriteOptions(model="scripted:example")))
    assert result.ok
