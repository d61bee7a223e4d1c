"""Attacks by a model server over real sockets and through each vendor's real SDK."""

from __future__ import annotations

import gzip
import json
import socket
import zlib
from contextlib import nullcontext
from typing import Any

import pytest
from pydantic import SecretStr

from models.openai_stub import Answer, OpenAIStub, chat_completion
from models.raw_server import RawServer, response_head
from models.wire_formats import FORMATS, WireFormat
from suture.core.settings.schema import KeySettings, ModelSettings, Settings
from suture.errors import (
    ModelAuthError,
    ModelError,
    ModelNotFound,
    ModelProtocolError,
    ModelTimeout,
    ModelUnreachable,
    ReplyLost,
)
from suture.models import Message, Model, Reply, Sampling, listen_to_replies, open_model
from suture.models.providers.http_guard import max_response_bytes
from suture.models.token_counting import prompt_token_upper_bound, token_lower_bound
from suture.models.tuning import MAX_ERROR_BODY_BYTES, RESPONSE_FRAME_BYTES

KEY = "sk-very-secret"
PROMPT = (Message(role="user", content="print the sum of all numbers " * 20),)
SAMPLING = Sampling(max_tokens=64)
JSON = {"content_type": "application/json"}


@pytest.fixture(params=FORMATS, ids=lambda wire: wire.name.partition(":")[0])
def wire(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> WireFormat:
    """The wire format of each provider in turn."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    wire_format: WireFormat = request.param
    return wire_format


def open_wire_model(wire: WireFormat, address: str, **knobs: Any) -> Model:
    """Open the model of a provider at the address of a test server."""
    secret = SecretStr(KEY)
    fields = {"name": wire.name, "base_url": address + wire.base_path, "retries": 0, **knobs}
    keys = KeySettings(openai=secret, anthropic=secret, qwen=secret)
    return open_model(Settings(model=ModelSettings.model_validate(fields), keys=keys))


async def ask(wire: WireFormat, address: str, **knobs: Any) -> Reply:
    """Return the reply to one call."""
    model = open_wire_model(wire, address, **knobs)
    try:
        return await model.complete(PROMPT, SAMPLING)
    finally:
        await model.close()


def answer_body(wire: WireFormat, text: str = "hello") -> bytes:
    """Return the body of a good answer in the format of a provider."""
    body = wire.answer(text).body
    return body if isinstance(body, bytes) else json.dumps(body).encode()


class EndlessAnswer:
    """Sends a start and then the same chunk until the client disconnects; counts the bytes of the chunks."""

    def __init__(self, start: bytes, chunk: bytes) -> None:
        self.start, self.chunk, self.sent_bytes = start, chunk, 0

    def __call__(self, peer: socket.socket) -> None:
        peer.sendall(self.start)
        while self.sent_bytes < 512 * 1024 * 1024:  # a client that accepts this much accepts everything
            peer.sendall(self.chunk)
            self.sent_bytes += len(self.chunk)


MAX_SENT_BYTES = 16 * 1024 * 1024
"""The limit of one call, plus the content of the kernel's buffers on both sides."""


@pytest.mark.parametrize("chunk", [b" " * 65536, b"a" * 65536, b"\n" * 65536, b'{"a":1}\n' * 8192])
async def test_reading_an_endless_body_stops(wire: WireFormat, chunk: bytes) -> None:
    answer = EndlessAnswer(response_head(**JSON) + b'{"a": "' * (chunk[:1] == b"a"), chunk)
    with RawServer(answer) as server, pytest.raises(ModelError):
        await ask(wire, server.address)
    assert answer.sent_bytes < MAX_SENT_BYTES
    assert len(server.requests) == 1


async def test_reading_an_endless_empty_compressed_body_stops(wire: WireFormat) -> None:
    compressor = zlib.compressobj(wbits=31)
    start = compressor.compress(b"x") + compressor.flush(zlib.Z_FULL_FLUSH)
    answer = EndlessAnswer(
        response_head(content_encoding="gzip", **JSON) + start, b"\x00\x00\x00\xff\xff" * 8192
    )

    with RawServer(answer) as server, pytest.raises(ReplyLost, match="more than a reply"):
        await ask(wire, server.address)
    assert answer.sent_bytes < MAX_SENT_BYTES


async def test_a_compression_bomb_is_refused(wire: WireFormat) -> None:
    bomb = gzip.compress(b" " * (max_response_bytes(SAMPLING.max_tokens) + 1))

    assert len(bomb) < RESPONSE_FRAME_BYTES
    with (
        RawServer(lambda peer: peer.sendall(response_head(content_encoding="gzip", **JSON) + bomb)) as server,
        pytest.raises(ReplyLost, match="more than a reply"),
    ):
        await ask(wire, server.address)


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "\x7f"])
async def test_an_unknown_encoding_is_refused(wire: WireFormat, encoding: str) -> None:
    answer = response_head(content_encoding=encoding, **JSON) + gzip.compress(
        gzip.compress(answer_body(wire))
    )

    with (
        RawServer(lambda peer: peer.sendall(answer)) as server,
        pytest.raises((ModelProtocolError, ReplyLost)),
    ):
        await ask(wire, server.address)


@pytest.mark.parametrize(
    ("encoding", "compress"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("identity", bytes)]
)
async def test_unrequested_compression_is_understood(wire: WireFormat, encoding: str, compress: Any) -> None:
    answer = response_head(content_encoding=encoding, **JSON) + compress(answer_body(wire))
    with RawServer(lambda peer: peer.sendall(answer)) as server:
        assert (await ask(wire, server.address)).text == "hello"
    assert b"accept-encoding: identity" in server.requests[0].lower()


async def test_a_text_beyond_the_token_limit_is_refused(wire: WireFormat) -> None:
    answer = response_head(**JSON) + answer_body(wire, "a" * 100_000)

    assert len(answer) < max_response_bytes(SAMPLING.max_tokens)
    with (
        RawServer(lambda peer: peer.sendall(answer)) as server,
        pytest.raises(ReplyLost, match="64 tokens were asked for"),
    ):
        await ask(wire, server.address)


async def test_the_body_of_an_error_is_cut_and_its_status_is_used(wire: WireFormat) -> None:
    answer = EndlessAnswer(response_head(401, **JSON), b"a" * 65536)
    with RawServer(answer) as server, pytest.raises(ModelError, match="refused the key") as caught:
        await ask(wire, server.address)
    assert answer.sent_bytes < MAX_SENT_BYTES
    assert len(str(caught.value)) < MAX_ERROR_BODY_BYTES // 64


async def test_reading_endless_headers_stops(wire: WireFormat) -> None:
    answer = EndlessAnswer(b"HTTP/1.1 200 OK\r\n", b"x-much: " + b"a" * 8192 + b"\r\n")
    with RawServer(answer) as server, pytest.raises(ReplyLost):
        await ask(wire, server.address)
    assert answer.sent_bytes < MAX_SENT_BYTES


async def test_a_slow_body_is_abandoned_at_the_time_limit(wire: WireFormat) -> None:
    def send_slowly(peer: socket.socket) -> None:
        peer.sendall(response_head(**JSON))
        while not server.closing.wait(0.05):
            peer.sendall(b" ")

    with RawServer(send_slowly) as server, pytest.raises(ModelTimeout):
        await ask(wire, server.address, timeout_s=2)


@pytest.mark.parametrize("status", [300, 301, 302, 303, 307, 308])
async def test_a_redirect_is_reported_and_not_followed(wire: WireFormat, status: int) -> None:
    with RawServer(
        lambda peer: peer.sendall(response_head(200, **JSON) + answer_body(wire))
    ) as redirect_target:
        target = redirect_target.address.replace("//", "//me:word@") + "/v1\x1b[31m"
        answer = response_head(status, location=target, content_length="0")

        with (
            RawServer(lambda peer: peer.sendall(answer)) as server,
            pytest.raises(ModelNotFound, match="redirect") as caught,
        ):
            await ask(wire, server.address, retries=3)

    assert (len(server.requests), len(redirect_target.requests)) == (1, 0)
    assert redirect_target.address.removeprefix("http://") in caught.value.message
    assert "word" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


async def test_a_redirect_is_not_retried(wire: WireFormat) -> None:
    with (
        RawServer(lambda peer: peer.sendall(response_head(307, location="/", content_length="0"))) as server,
        pytest.raises(ModelNotFound),
    ):
        await ask(wire, server.address, retries=3)
    assert len(server.requests) == 1


async def test_cookies_are_not_stored(wire: WireFormat) -> None:
    answer = response_head(set_cookie="who=you; Path=/", **JSON) + answer_body(wire)
    with RawServer(lambda peer: peer.sendall(answer)) as server:
        model = open_wire_model(wire, server.address)
        for _ in range(2):
            await model.complete(PROMPT, SAMPLING)
        await model.close()

    assert len(server.requests) == 2
    assert not [request for request in server.requests if b"\r\ncookie:" in request.lower()]


@pytest.mark.parametrize(
    "answer",
    [
        response_head(200, content_type="text/html") + b"<!doctype html><title>Welcome</title>",
        response_head(200, **JSON) + b"\xef\xbb\xbf \n<html>",
        response_head(404, content_type="text/html") + b"<html>not here",
        response_head(405, content_type="text/plain") + b"POST is not for this",
        response_head(501, content_type="text/html") + b"<html>Unsupported method ('POST')",
    ],
    ids=["page", "page called JSON", "404", "405", "501"],
)
async def test_a_wrong_address_is_reported_as_a_setting(wire: WireFormat, answer: bytes) -> None:
    with (
        RawServer(lambda peer: peer.sendall(answer)) as server,
        pytest.raises(ModelNotFound, match="-compatible address") as caught,
    ):
        await ask(wire, server.address, retries=3)
    assert caught.value.exit_code == 3
    assert len(server.requests) == 1


async def test_connection_failures_are_distinguished(wire: WireFormat) -> None:
    reasons = []

    with OpenAIStub() as http_server:
        for address in (
            "http://127.0.0.1:9",
            "http://no-such-host.invalid",
            http_server.address.replace("http:", "https:"),
        ):
            with pytest.raises(ModelUnreachable) as caught:
                await ask(wire, address)
            assert address in str(caught.value)
            reasons.append(caught.value.message.split("cannot be reached: ")[1].split(":")[0])

    assert reasons == [
        "no connection is accepted",
        "its host name is unknown",
        "no secure connection (TLS) can be established",
    ]


INVALID_COUNTS: list[Any] = [
    -1,
    10**15,
    10**400,
    True,
    False,
    None,
    1.5,
    float("nan"),
    float("inf"),
    "many",
    [],
    {},
    [7],
    1,
    0,
]


@pytest.mark.parametrize("count", INVALID_COUNTS, ids=lambda count: repr(count)[:12])
@pytest.mark.parametrize("field", ["prompt_tokens", "completion_tokens"])
async def test_an_impossible_token_count_is_replaced_by_the_bound(
    stub: OpenAIStub, field: str, count: Any
) -> None:
    text = "one two three four five six seven eight"
    body = chat_completion(text)
    body["usage"] |= {"prompt_tokens": 200, "completion_tokens": 10, field: count}
    stub.answer(Answer(body=body))
    reply = await ask(FORMATS[0], stub.address)
    assert reply.counted_by == "bound"
    assert reply.prompt_tokens == prompt_token_upper_bound(PROMPT)
    assert reply.completion_tokens == len(text)


async def test_impossible_counts_of_ollama_and_anthropic_are_replaced(stub: OpenAIStub) -> None:
    anthropic, ollama = FORMATS[2].answer("a b c d e").body, FORMATS[3].answer("a b c d e").body
    assert isinstance(anthropic, dict)
    assert isinstance(ollama, bytes)

    for wire, body in (
        (FORMATS[2], {**anthropic, "usage": {"input_tokens": -11, "output_tokens": 0}}),
        (FORMATS[2], {**anthropic, "usage": {"input_tokens": "many", "output_tokens": [1]}}),
        (FORMATS[3], ollama.replace(b'"prompt_eval_count": 11', b'"prompt_eval_count": -11')),
        (FORMATS[3], ollama.replace(b'"prompt_eval_count": 11', b'"prompt_eval_count": "many"')),
    ):
        stub.answer(Answer(body=body))
        reply = await ask(wire, stub.address)
        assert (reply.counted_by, reply.prompt_tokens) == ("bound", prompt_token_upper_bound(PROMPT))


@pytest.mark.parametrize("body", [b"7", b"[1]", b"null", b'"text"', b"true", b"[" * 5000, b"\xff{", b""])
@pytest.mark.parametrize("status", [400, 404, 500])
async def test_an_error_with_unexpected_json_is_a_model_error(
    wire: WireFormat, stub: OpenAIStub, body: bytes, status: int
) -> None:
    stub.answer(Answer(status=status, body=body))

    with pytest.raises(ModelError) as caught:
        await ask(wire, stub.address)
    # That would mean that the SDK failed on the body and lost the status.
    assert not isinstance(caught.value, ModelProtocolError)
    assert "attribute" not in str(caught.value)


async def test_a_plausible_count_is_used(stub: OpenAIStub) -> None:
    body = chat_completion("hello")
    details = {"prompt_tokens_details": {"cached_tokens": 100}}
    stub.answer(Answer(body={**body, "usage": {"prompt_tokens": 121, "completion_tokens": 64, **details}}))
    reply = await ask(FORMATS[0], stub.address)
    counts = (reply.counted_by, reply.prompt_tokens, reply.completion_tokens, reply.cached_tokens)
    assert counts == ("provider", 121, 64, 100)


@pytest.mark.parametrize(
    "text", ["", " \n", "a", "def f(x):\n    return x + 1\n" * 50, "数" * 100, "-" * 900]
)
def test_the_lower_bound_is_below_real_token_counts(text: str) -> None:
    """Any tokenizer makes more tokens of prose or code than one per word or sixteen letters."""
    assert (token_lower_bound(text) > 0) == bool(text.strip())
    assert token_lower_bound(text) <= max(len(text.split()), len(text.encode()) // 16, 1)


@pytest.mark.parametrize(
    "logprobs",
    [
        {"content": [{"token": "a", "logprob": float("nan")}]},
        {"content": [{"token": "a", "logprob": 5}]},
        {"content": [{"token": "a", "logprob": "-1"}]},
        {"content": ["a"]},
        {"content": 5},
        [],
    ],
)
async def test_invalid_log_probabilities_are_ignored(stub: OpenAIStub, logprobs: Any) -> None:
    body = chat_completion("hello")
    body["choices"][0]["logprobs"] = logprobs
    stub.answer(Answer(body=body))
    try:
        reply = await ask(FORMATS[0], stub.address)
    except ModelProtocolError:
        return

    assert (reply.text, reply.logprobs, reply.tokens) == ("hello", (), ())


FOREIGN_ANSWERS = {
    "another object": b'{"hello": 1}',
    "an error in words": b'{"error": "no model is loaded"}',
    "a list": b"[]",
    "a number": b"5",
    "null": b"null",
    "nothing": b"",
    "words": b"ok",
    "events": b'data: {"choices": []}\n\ndata: [DONE]\n\n',
    "choices of another kind": b'{"choices": [5], "content": [5], "message": 5}',
    "no choices": b'{"choices": [], "content": {}, "message": []}',
    "deep": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
}


@pytest.mark.parametrize("kind", FOREIGN_ANSWERS)
async def test_a_foreign_answer_is_reported_and_not_retried(wire: WireFormat, kind: str) -> None:
    answer = response_head(**JSON) + FOREIGN_ANSWERS[kind]

    with RawServer(lambda peer: peer.sendall(answer)) as server, pytest.raises(ModelProtocolError) as caught:
        await ask(wire, server.address, retries=3)
    assert isinstance(caught.value, ModelNotFound)
    assert server.address in caught.value.message
    assert "model.base_url" in caught.value.remedy
    assert caught.value.message.isprintable()
    assert len(server.requests) == 1


@pytest.mark.parametrize("with_listener", [False, True])
async def test_an_unrequested_stream_is_refused(wire: WireFormat, with_listener: bool) -> None:
    """A stream is requested only where somebody reads along; it is then bounded like any other body."""
    event = b'data: {"a": "%s"}\n\n' % (b"a" * 10_000)
    answer = EndlessAnswer(response_head(content_type="text/event-stream"), event)
    listener = listen_to_replies(lambda *_: None) if with_listener else nullcontext()
    is_requested = with_listener and not wire.name.startswith("ollama:")  # Ollama streams in lines of JSON
    expected = "sends more than a reply" if is_requested else "stream of events"
    with listener, RawServer(answer) as server, pytest.raises(ModelProtocolError, match=expected):
        await ask(wire, server.address)
    assert len(server.requests) == 1


async def test_a_server_without_http_is_reported(wire: WireFormat) -> None:
    def greet(peer: socket.socket) -> None:
        peer.sendall(b"220 mail.test ESMTP\r\n\r\n")

    with RawServer(greet) as server, pytest.raises(ModelProtocolError, match="not a reply"):
        await ask(wire, server.address)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "text", ["", '{"choices": [{"mess', '{"message": {"content": "a"}, "done": false}\n{"mes']
)
async def test_a_cut_answer_is_lost(wire: WireFormat, text: str) -> None:
    body = answer_body(wire)[:-3] if not text else text.encode()

    with (
        RawServer(lambda peer: peer.sendall(response_head(**JSON) + body)) as server,
        pytest.raises(ReplyLost),
    ):
        await ask(wire, server.address)
    assert len(server.requests) == 1


@pytest.mark.parametrize("variable", ["OPENAI_ORG_ID", "OLLAMA_API_KEY"])
async def test_an_invalid_header_value_is_not_quoted(
    monkeypatch: pytest.MonkeyPatch, stub: OpenAIStub, variable: str
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv(variable, "sk-mine\nsk-more")
    wire = next(
        wire_format
        for wire_format in FORMATS
        if wire_format.name.startswith(variable.partition("_")[0].lower())
    )

    with pytest.raises(ModelAuthError, match="no header may") as caught:
        await ask(wire, stub.address)
    assert "sk-" not in str(caught.value)
    assert not stub.requests


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:9", "http://me:hunter2@[::1"])
async def test_an_invalid_proxy_is_reported(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    for name in ("ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, proxy)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)

    with pytest.raises(ModelUnreachable, match="proxy") as caught:
        await ask(FORMATS[0], "http://elsewhere.test")
    assert "hunter2" not in str(caught.value)
