"""Replies to a prefilled prompt: empty replies, and replies that an unindented line ends too early."""

from __future__ import annotations

import pytest

from suture.api import WriteOptions, replay, solve
from suture.core.settings import LoopSettings, Settings
from suture.models import Reply
from suture.models.scripted_model import ScriptedCall
from suture.testing import ScriptedModel

STUB = '''def add(a: int, b: int) -> int:
    """Add two numbers.

    >>> add(1, 2)
    3
    """
'''


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Settings for one greedy reply that contains only the body of the function."""
    return settings.model_copy(update={"loop": LoopSettings(recipe="lean_best_of_k", samples=1)})


def make_model(*texts: str) -> ScriptedModel:
    replies = [Reply(text=text, prompt_tokens=50, completion_tokens=len(text)) for text in texts]
    return ScriptedModel(replies, name="local:scripted")


def get_prefill(call: ScriptedCall) -> str:
    assert call.messages[-1].role == "assistant"
    return call.messages[-1].content


async def test_an_empty_reply_is_retried_with_an_opened_comment(settings: Settings) -> None:
    model = make_model("\n", " the sum\n    return a + b")

    result = await solve(STUB, WriteOptions(settings=settings, model=model))

    assert result.outcome == "healed"
    assert (result.spend.attempts, result.spend.model_calls) == (1, 2)
    first, second = map(get_prefill, model.calls)
    assert second == f"{first} #"
    assert result.candidate is not None
    assert "# the sum\n    return a + b" in result.candidate.files["solution.py"]


async def test_a_second_empty_reply_spends_the_attempt(settings: Settings) -> None:
    model = make_model("", "", " return a + b")
    result = await solve(STUB, WriteOptions(settings=settings, model=model))
    assert result.outcome == "healed"
    assert (result.spend.attempts, result.spend.model_calls) == (2, 3)


async def test_an_unindented_line_in_a_string_does_not_end_the_reply(settings: Settings) -> None:
    model = make_model(' note = """', '\nsum\n"""\n    return a + b')

    result = await solve(STUB, WriteOptions(settings=settings, model=model))

    assert result.outcome == "healed"
    assert result.spend.attempts == 1
    first, second = model.calls
    assert get_prefill(second) == get_prefill(first) + ' note = """'
    assert second.sampling.stop == ("\n```",)


async def test_a_replay_repeats_the_retry_without_the_model(settings: Settings) -> None:
    model = make_model("", " the sum\n    return a + b")
    result = await solve(STUB, WriteOptions(settings=settings, model=model))
    replayed = await replay(result.run_id, settings=settings)
    assert replayed.same, replayed.difference
    assert replayed.result.candidate == result.candidate
    assert len(model.calls) == 2
