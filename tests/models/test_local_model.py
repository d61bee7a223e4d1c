"""The real llama.cpp server in its child process."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from suture.core.settings.schema import Settings
from suture.errors import ContextTooLong, ModelError, PrerequisiteError
from suture.models import Message, Sampling, listen_to_replies, open_model
from suture.models.llama_server.server_process import LlamaServer, LlamaServerOptions, start_llama_server
from suture.models.llama_server.shared_servers import (
    affordable_slots,
    list_shared_servers,
    required_memory_bytes,
    size_server,
    stop_shared_servers,
    useful_slots,
)
from suture.models.weights.weights_cache import find_catalogue_entry

pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
live = pytest.mark.live
# A busy machine may need a minute for one reply.
pytestmark = [pytest.mark.heavy, pytest.mark.timeout(600)]
PROMPT = (Message(role="user", content="Write a Python function that adds two numbers."),)

PARENT_PROGRAM = """
import asyncio, sys, time
from suture.models import Message, Sampling, open_model
from suture.models.llama_server.shared_servers import list_shared_servers
from suture.core.settings.schema import Settings

settings = Settings.model_validate_json(sys.argv[1])
asyncio.run(open_model(settings).complete([Message(role="user", content="hi")], Sampling(max_tokens=1)))
print(list_shared_servers()[0].pid, flush=True)
time.sleep(60)
"""

FORK_AND_SLEEP = """
import os
pid = os.fork()
if pid:
    print(pid, flush=True)
time.sleep(100)
"""


def has_ended(pid: int) -> bool:
    """Return whether a process has ended, even if nothing has reaped it."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"  # in a container without an init, nothing reaps orphans


@live
async def test_greedy_replies_are_code_and_the_server_is_shared(local_settings: Settings) -> None:
    first, second = open_model(local_settings), open_model(local_settings)
    first_reply = await first.complete(PROMPT, Sampling(max_tokens=24))
    second_reply = await second.complete(PROMPT, Sampling(max_tokens=24))

    assert "def " in first_reply.text
    assert "def " in second_reply.text
    assert len({server.url for server in list_shared_servers()}) == len(list_shared_servers()) == 1

    await first.close()
    await second.close()


@live
async def test_a_prefilled_reply_stops_at_the_next_definition(
    local_settings: Settings,
) -> None:
    model = open_model(local_settings)
    prefill = '```python\ndef double(x):\n    """Twice x."""'
    messages = (Message(role="user", content="Write double(x)."), Message(role="assistant", content=prefill))
    reply = await model.complete(messages, Sampling(max_tokens=80, stop=("\n```", "\nd", "\np")))
    await model.close()

    assert reply.finish == "stop"
    assert reply.completion_tokens < 40

    names: dict[str, Any] = {}
    exec((prefill + reply.text).removeprefix("```python\n"), names)
    assert names["double"](4) == 8


@live
async def test_concurrent_replies_are_streamed_separately(
    local_settings: Settings,
) -> None:
    model = open_model(local_settings)
    streamed: dict[int, list[str | None]] = {}
    with listen_to_replies(lambda number, texts: streamed.setdefault(number, []).append(texts)):
        replies = await asyncio.gather(
            *(model.complete(PROMPT, Sampling(temperature=0.8, max_tokens=12, index=n)) for n in (1, 2))
        )

    await model.close()

    assert len(streamed) == 2
    for chunks in streamed.values():
        *texts, end = chunks
        assert end is None
        assert len(texts) > 3

    assert {texts[-2] for texts in streamed.values()} == {reply.text for reply in replies}


@live
async def test_the_token_limit_is_sent(local_settings: Settings) -> None:
    model = open_model(local_settings)
    reply = await model.complete(PROMPT, Sampling(max_tokens=3))
    assert (reply.finish, reply.completion_tokens) == ("length", 3)
    await model.close()


@live
async def test_the_same_index_draws_the_same_reply(local_settings: Settings) -> None:
    model = open_model(local_settings)
    texts = [
        (await model.complete(PROMPT, Sampling(temperature=1.5, max_tokens=12, index=index))).text
        for index in (1, 1, 2)
    ]

    assert texts[0] == texts[1] != texts[2]

    await model.close()


@live
async def test_a_prompt_longer_than_the_context_is_an_error(local_settings: Settings) -> None:
    model = open_model(local_settings)
    with pytest.raises(ContextTooLong, match="context_tokens"):
        await model.complete([Message(role="user", content="word " * 3000)], Sampling())
    await model.close()


@live
async def test_a_stopped_server_is_started_again(local_settings: Settings) -> None:
    model = open_model(local_settings)
    await model.complete(PROMPT, Sampling(max_tokens=1))
    for server in list_shared_servers():
        server.stop()
    assert (await model.complete(PROMPT, Sampling(max_tokens=1))).completion_tokens == 1
    await model.close()


@live
async def test_a_server_that_dies_during_a_reply_is_started_again(local_settings: Settings) -> None:
    model = open_model(local_settings)
    await model.complete(PROMPT, Sampling(max_tokens=1))
    before = list_shared_servers()
    call = asyncio.create_task(model.complete(PROMPT, Sampling(temperature=1, max_tokens=30, index=1)))
    await asyncio.sleep(0.2)
    for server in before:
        os.kill(server.pid, signal.SIGKILL)
    reply = await call

    assert reply.text
    assert {server.pid for server in list_shared_servers()}.isdisjoint(server.pid for server in before)

    await model.close()


@live
async def test_a_server_that_dies_twice_is_an_error(local_settings: Settings) -> None:
    model = open_model(local_settings)
    await model.complete(PROMPT, Sampling(max_tokens=1))
    call = asyncio.create_task(model.complete(PROMPT, Sampling(temperature=1, max_tokens=900, index=1)))
    killed_pids: set[int] = set()
    while not call.done():
        await asyncio.sleep(0.1)
        for server in list_shared_servers():
            if server.pid not in killed_pids and server.alive:
                killed_pids.add(server.pid)
                os.kill(server.pid, signal.SIGKILL)

    with pytest.raises(ModelError, match="died during a reply, and again"):
        await call
    assert len(killed_pids) >= 2  # killing a server before it receives the request loses no reply

    await model.close()


@live
async def test_a_shared_prompt_is_evaluated_once_in_one_slot(local_settings: Settings) -> None:
    one_slot = local_settings.model_copy(
        update={"model": local_settings.model.model_copy(update={"slots": 1, "context_tokens": 1040})}
    )
    model = open_model(one_slot)
    samplings = [Sampling(temperature=0.8, max_tokens=4, index=index) for index in range(4)]
    replies = await asyncio.gather(*(model.complete(PROMPT, sampling) for sampling in samplings))
    evaluated = [reply.prompt_tokens - reply.cached_tokens for reply in replies]

    # One call evaluates the prompt; the others evaluate only its last token again to continue from it.
    assert sorted(evaluated) == [1, 1, 1, replies[0].prompt_tokens]

    await model.close()


@live
async def test_log_probabilities_are_returned_on_request(local_settings: Settings) -> None:
    model = open_model(local_settings)
    without_logprobs = await model.complete(PROMPT, Sampling(max_tokens=3))
    with_logprobs = await model.complete(PROMPT, Sampling(max_tokens=3, logprobs=True))

    assert without_logprobs.logprobs == ()
    assert len(with_logprobs.logprobs) == with_logprobs.completion_tokens == 3
    assert all(logprob <= 0 for logprob in with_logprobs.logprobs)

    await model.close()


@live
async def test_only_callers_with_the_key_are_answered(local_settings: Settings) -> None:
    stop_shared_servers()  # the servers of tests with other settings
    model = open_model(local_settings)
    await model.complete(PROMPT, Sampling(max_tokens=1))
    (server,) = list_shared_servers()

    assert await asyncio.to_thread(status_without_key, server) == 401
    assert server.key.encode() not in await asyncio.to_thread(read_public_process_data, server)

    await model.close()


def status_without_key(server: LlamaServer) -> int:
    """Return the HTTP status of a call without the key."""
    url = f"{server.url}/v1/chat/completions"
    return httpx.post(url, json={"messages": []}, trust_env=False, timeout=60).status_code


def read_public_process_data(server: LlamaServer) -> bytes:
    """Return the command line and the environment of the server's process."""
    process = Path(f"/proc/{server.pid}")
    return (process / "cmdline").read_bytes() + (process / "environ").read_bytes()


@live
def test_the_server_dies_with_its_parent(local_settings: Settings) -> None:
    settings = local_settings.model_copy(
        update={"model": local_settings.model.model_copy(update={"threads": 1})}
    )

    with subprocess.Popen(
        [sys.executable, "-c", PARENT_PROGRAM, settings.model_dump_json()], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        server_pid = int(parent.stdout.readline())
        assert not has_ended(server_pid)
        parent.kill()

    while not has_ended(server_pid):  # limited by the time limit of the test
        time.sleep(0.05)


@live
def test_a_forked_child_of_the_parent_does_not_keep_the_server_alive(local_settings: Settings) -> None:
    settings = local_settings.model_copy(
        update={"model": local_settings.model.model_copy(update={"threads": 1})}
    )
    program = PARENT_PROGRAM.replace("time.sleep(60)", FORK_AND_SLEEP)

    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", program, settings.model_dump_json()],
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None

        server_pid, forked_pid = int(parent.stdout.readline()), int(parent.stdout.readline())
        parent.kill()

        try:
            while not has_ended(server_pid):
                time.sleep(0.05)
            assert not has_ended(forked_pid)  # it kept the pipe open all the time
        finally:
            os.kill(forked_pid, signal.SIGKILL)


def test_a_server_that_is_killed_while_it_loads_is_started_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\necho started >>{tmp_path / 'starts'}\nkill -9 $$\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    options = LlamaServerOptions(
        model_path=tmp_path / "m.gguf", context_tokens=512, slots=1, threads=1, batch_threads=1
    )
    with pytest.raises(ModelError) as caught:
        start_llama_server(options)
    assert type(caught.value) is ModelError
    assert "memory ran out" in caught.value.remedy
    assert (tmp_path / "starts").read_text().split() == ["started", "started"]


def test_a_file_that_is_no_model_is_an_error(tmp_path: Path) -> None:
    junk = tmp_path / "junk.gguf"
    junk.write_bytes(b"GGUF" + os.urandom(1000))
    options = LlamaServerOptions(model_path=junk, context_tokens=512, slots=1, threads=1, batch_threads=1)

    with pytest.raises(ModelError, match=r"junk\.gguf") as caught:
        start_llama_server(options)
    assert "it printed nothing" not in str(caught.value)
    assert caught.value.remedy


def test_the_number_of_slots_follows_the_threads() -> None:
    assert [useful_slots(threads) for threads in (1, 2, 4, 8, 64)] == [1, 1, 2, 4, 4]


def test_memory_is_checked_before_loading() -> None:
    entry = find_catalogue_entry("qwen2.5-coder-1.5b")
    plenty = required_memory_bytes(entry, 8192, 4)

    assert affordable_slots(entry, 8192, plenty, max_slots=4) == 4
    assert affordable_slots(entry, 8192, plenty - 1, max_slots=4) == 3
    assert affordable_slots(entry, 8192, plenty, max_slots=1) == 1
    with pytest.raises(PrerequisiteError, match=r"context_tokens"):
        affordable_slots(entry, 8192, 1 << 30, max_slots=4)


def test_a_server_that_does_not_fit_is_not_started() -> None:
    entry = find_catalogue_entry("qwen2.5-coder-1.5b")
    model_settings = Settings().model.model_copy(update={"threads": 2, "context_tokens": 8192})
    free = required_memory_bytes(entry, 8192, 2)

    def options(slots: int | None, free_bytes: int) -> LlamaServerOptions:
        settings = Settings(model=model_settings.model_copy(update={"slots": slots}))
        return size_server(entry, Path("unread.gguf"), settings, free_bytes=free_bytes)

    assert options(2, free).slots == 2
    assert (options(None, free).slots, options(None, free).cache_mb) == (
        1,
        (free - required_memory_bytes(entry, 8192, 1)) // 4 >> 20,
    )
    with pytest.raises(PrerequisiteError, match=r"2 replies at once.*lower model\.slots"):
        options(2, free - 1)
    with pytest.raises(PrerequisiteError, match="smaller model"):
        options(None, 1 << 20)


async def count_evaluated_tokens(server: LlamaServer) -> int:
    """Return how many prompt tokens the server has evaluated since its start, according to its metrics."""
    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
        response = await client.get(
            f"{server.url}/metrics", headers={"Authorization": f"Bearer {server.key}"}
        )
    lines = dict(line.rsplit(" ", 1) for line in response.text.splitlines() if not line.startswith("#"))
    return int(lines["llamacpp:prompt_tokens_total"])


@live
@pytest.mark.parametrize("slots", [1, 2])
async def test_the_prompt_of_a_round_is_evaluated_once(local_settings: Settings, slots: int) -> None:
    model_settings = local_settings.model.model_copy(update={"slots": slots, "context_tokens": 1024 + slots})
    model = open_model(local_settings.model_copy(update={"model": model_settings}))

    try:
        samplings = [Sampling(temperature=0.8, max_tokens=4, index=index) for index in range(3)]
        replies = await asyncio.gather(*(model.complete(PROMPT, sampling) for sampling in samplings))
        prompt_tokens = replies[0].prompt_tokens
        evaluated = await count_evaluated_tokens(list_shared_servers()[-1])

        # Each slot evaluates the last token again.
        assert prompt_tokens <= evaluated < prompt_tokens + len(samplings)
        assert sum(reply.prompt_tokens - reply.cached_tokens for reply in replies) == evaluated
        assert [reply.completion_tokens for reply in replies] == [4, 4, 4]
        assert {(reply.logprobs, reply.tokens) for reply in replies} == {((), ())}

        repeated = [await model.complete(PROMPT, sampling) for sampling in samplings]
        assert {reply.text for reply in repeated} & {reply.text for reply in replies}
    finally:
        await model.close()
        stop_shared_servers()
