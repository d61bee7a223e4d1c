"""Replies with a prefill: one without text, and one that a line at the margin ends early."""

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
    """One greedy reply, of which only the body is asked for."""
    return settings.model_copy(update={"loop": LoopSettings(recipe="lean_best_of_k", samples=1)})


def goes_on(*texts: str) -> ScriptedModel:
    replies = [Reply(text=text, prompt_tokens=50, completion_tokens=len(text)) for text in texts]
    return ScriptedModel(replies, name="local:scripted")


def beginning(call: ScriptedCall) -> str:
    assert call.messages[-1].role == "assistant"
    return call.messages[-1].content


async def test_a_reply_that_says_nothing_is_drawn_again_with_a_comment_opened(settings: Settings) -> None:
    model = goes_on("\n", " the sum\n    return a + b")
    result = await solve(STUB, WriteOptions(settings=settings, model=model))
    assert result.outcome == "healed"
    assert (result.spend.attempts, result.spend.model_calls) == (1, 2)
    first, second = map(beginning, model.calls)
    assert second == f"{first} #"
    assert result.candidate is not None
    assert "# the sum\n    return a + b" in result.candidate.files["solution.py"]


async def test_a_second_one_that_says_nothing_is_left_and_the_attempt_spent(settings: Settings) -> None:
    model = goes_on("", "", " return a + b")
    result = await solve(STUB, WriteOptions(settings=settings, model=model))
    assert result.outcome == "healed"
    assert (result.spend.attempts, result.spend.model_calls) == (2, 3)


async def test_a_text_whose_lines_stand_at_the_margin_does_not_end_the_reply(settings: Settings) -> None:
    model = goes_on(' note = """', '\nsum\n"""\n    return a + b')
    result = await solve(STUB, WriteOptions(settings=settings, model=model))
    assert result.outcome == "healed"
    assert result.spend.attempts == 1
    first, second = model.calls
    assert beginning(second) == beginning(first) + ' note = """'
    assert second.sampling.stop == ("\n```",)


async def test_a_replay_draws_the_same_replies_without_the_model(settings: Settings) -> None:
    model = goes_on("", " the sum\n    return a + b")
    result = await solve(STUB, WriteOptions(settings=settings, model=model))
    again = await replay(result.run_id, settings=settings)
    assert again.same, again.difference
    assert again.result.candidate == result.candidate
    assert len(model.calls) == 2
