"""Counting, estimating and bounding the tokens of a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest

from suture.core.settings.schema import Settings
from suture.models import (
    Message,
    RecordedModel,
    Sampling,
    count_tokens,
    load_recording,
    open_model,
    prompt_token_upper_bound,
    replay_only_model,
)
from suture.models.llama_server.server_process import LlamaServer
from suture.models.llama_server.shared_servers import list_shared_servers
from suture.models.token_counting import estimate_tokens
from suture.testing import ScriptedModel

HARD_TEXTS = [
    "",
    "x",
    "\n\n\t  \t",
    "é" * 30,
    "日本語テキスト" * 5,
    "\U0001f600" * 9,
    "a̐éö̲" * 9,
    "\x00\x01\x7f" * 9,
]


def test_the_bound_counts_bytes_and_the_template() -> None:
    assert prompt_token_upper_bound([]) > 0
    with_text = prompt_token_upper_bound([Message(role="user", content="é\udcff")])
    assert with_text - prompt_token_upper_bound([Message(role="user", content="")]) == 5


def test_an_estimate_is_below_the_bound() -> None:
    messages = [Message(role="user", content="def f(x):\n    return x * 31\n" * 20)]
    assert 0 < estimate_tokens(messages) < prompt_token_upper_bound(messages)


async def test_a_model_that_cannot_count_is_estimated() -> None:
    messages = [Message(role="user", content="hello")]
    assert await count_tokens(ScriptedModel([]), messages) == estimate_tokens(messages)


async def test_a_token_count_is_recorded_and_reused(tmp_path: Path) -> None:
    class CountingModel(ScriptedModel):
        count_calls = 0

        async def count_tokens(self, messages: Sequence[Message]) -> int:
            self.count_calls += 1
            return 4711

    messages = [Message(role="user", content="hello")]
    counting_model = CountingModel(["hi"])
    recorded = RecordedModel(counting_model, tmp_path / "replies")

    assert [await recorded.count_tokens(messages) for _ in range(2)] == [4711, 4711]
    assert counting_model.count_calls == 1

    source = load_recording(tmp_path / "replies")
    replayed = RecordedModel(replay_only_model(counting_model.name), tmp_path / "again", source=source)
    assert await replayed.count_tokens(messages) == 4711
    assert (await recorded.complete(messages, Sampling())).text == "hi"  # a count is not taken for a reply


@pytest.mark.heavy
@pytest.mark.live
@pytest.mark.timeout(600)
async def test_the_embedded_model_counts_exactly(local_settings: Settings) -> None:
    model = open_model(local_settings)
    for text in [*HARD_TEXTS, "a <|im_end|> b", "\udcff"]:
        messages = [Message(role="system", content="Be brief."), Message(role="user", content=text)]
        reply = await model.complete(messages, Sampling(max_tokens=1))
        assert await count_tokens(model, messages) == reply.prompt_tokens
    await model.close()


@pytest.mark.heavy
@pytest.mark.live
@pytest.mark.timeout(600)
async def test_no_prompt_is_longer_than_its_bound(local_settings: Settings) -> None:
    model = open_model(local_settings)
    for text in HARD_TEXTS:
        messages = [Message(role="user", content=text)]
        reply = await model.complete(messages, Sampling(max_tokens=1))
        assert reply.prompt_tokens <= prompt_token_upper_bound(messages)

    await model.close()
    (server,) = list_shared_servers()
    assert all(count_server_tokens(server, text) <= len(text.encode()) for text in HARD_TEXTS)


def count_server_tokens(server: LlamaServer, text: str) -> int:
    """Return how many tokens the server makes of a text."""
    answer = httpx.post(
        f"{server.url}/tokenize",
        headers={"Authorization": f"Bearer {server.key}"},
        json={"content": text},
        trust_env=False,
        timeout=60,
    )
    return len(answer.raise_for_status().json()["tokens"])
