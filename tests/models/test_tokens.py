from __future__ import annotations

import httpx
import pytest

from suture.models import Message, Sampling, count_upper_bound, open_model
from suture.models.embedded import LlamaServer
from suture.models.local import shared_servers
from suture.settings.schema import Settings

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
    assert count_upper_bound([]) > 0
    one = count_upper_bound([Message(role="user", content="é\udcff")])
    assert one - count_upper_bound([Message(role="user", content="")]) == 5


@pytest.mark.live
async def test_no_prompt_is_longer_than_its_bound(local_settings: Settings) -> None:
    model = open_model(local_settings)
    for text in HARD_TEXTS:
        messages = [Message(role="user", content=text)]
        reply = await model.complete(messages, Sampling(max_tokens=1))
        assert reply.prompt_tokens <= count_upper_bound(messages)
    await model.close()
    (server,) = shared_servers()
    assert all(token_count(server, text) <= len(text.encode()) for text in HARD_TEXTS)


def token_count(server: LlamaServer, text: str) -> int:
    answer = httpx.post(
        f"{server.url}/tokenize",
        headers={"Authorization": f"Bearer {server.key}"},
        json={"content": text},
        trust_env=False,
    )
    return len(answer.raise_for_status().json()["tokens"])
