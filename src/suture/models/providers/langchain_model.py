"""A `Model` on top of any LangChain chat model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from suture.errors import (
    ModelError,
    ModelNotFound,
    ModelRateLimited,
    ModelRequestRejected,
    ModelUnreachable,
    ReplyLost,
)
from suture.models.chat_model import (
    Message,
    Reply,
    ReplyListener,
    RequestParameter,
    Sampling,
    current_listener,
    report_reply,
)
from suture.models.profiles import ModelProfile
from suture.models.providers.connections import Connection
from suture.models.providers.endpoints import Endpoint, EndpointLimits, call_with_retries
from suture.models.providers.error_classification import classify_provider_error, find_status
from suture.models.providers.error_mapping import ModelTarget, map_provider_error
from suture.models.providers.error_table import (
    describe_error,
    find_refused_parameter,
    find_reply_limit,
    learned_refusals,
)
from suture.models.providers.http_guard import limit_response_bytes, max_response_bytes
from suture.models.providers.model_request import ModelRequest, RequestContext, build_request
from suture.models.providers.reply_conversion import convert_answers, provider_finish_reason
from suture.models.thinking import split_thinking
from suture.models.tuning import MAX_KEPT_ANSWERS

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, AIMessageChunk


MAX_QUOTED_CHARS = 200
"""Characters of a library's message that are shown. Chosen by judgement; not measured."""


GENERAL_ERRORS = (ModelRequestRejected, ModelNotFound, ModelError)
"""Our errors for a request that a server refuses; their subclasses have a known cause of another kind."""


class LangChainModel:
    """A LangChain chat model as a `Model`.

    Args:
        target: The model's name, and what messages about a fault say of it.
        connect: Makes the connection. It is called once per event loop, because an async HTTP client belongs
            to the loop that first used it and fails in the next one.
        seed: Reply `index` is generated with `seed + index`, if the provider takes a seed.
        timeout_s: Limit of one call in seconds, including retries and the wait for its turn.
        retries: Maximum number of retries, where the error table allows them.
        endpoint: The rate limits that all models at one address share; by default this model has its own.
        profile: What the model can do; by default, nothing is known about it.

    Attributes:
        name: The model's name, as `provider:model`.
        profile: What the model can do.
    """

    def __init__(
        self,
        target: ModelTarget,
        connect: Callable[[], Connection],
        *,
        seed: int,
        timeout_s: float,
        retries: int,
        endpoint: Endpoint | None = None,
        profile: ModelProfile | None = None,
    ) -> None:
        self.name = target.name
        self._connect = connect
        self._seed = seed
        self._timeout_s = timeout_s
        self._retries = retries
        self._target = target
        # Without an endpoint, this is the embedded server. It has its own queue, so this number only
        # bounds the open connections.
        self._endpoint = endpoint or Endpoint(EndpointLimits(concurrency=64))
        self.profile = profile or ModelProfile()
        self._refusals = learned_refusals(target.address, target.name)
        self._answers: dict[str, tuple[Reply, AIMessage]] = {}
        self._connections: WeakKeyDictionary[asyncio.AbstractEventLoop, Connection] = WeakKeyDictionary()

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        """Generate one reply; see `Model.complete`."""
        return (await self.complete_batch(messages, [sampling]))[0]

    async def complete_batch(
        self, messages: Sequence[Message], samplings: Sequence[Sampling]
    ) -> tuple[Reply, ...]:
        """Generate several replies to one prompt in one request; raises as `complete` does.

        Args:
            messages: The prompt, oldest message first.
            samplings: How each reply is generated. More than one only for a server that generates reply `n`
                of a request with its seed plus `n`, as llama.cpp does; they may differ only in consecutive
                indices.
        """
        connection = self._connection()
        tries = 0
        refused: list[RequestParameter] = []
        async with self._endpoint.slot():
            start_s = time.perf_counter()

            async def call() -> tuple[Reply, ...]:
                nonlocal tries
                tries += 1
                return await self._send_without_refused_parts(
                    connection, messages, samplings, start_s + self._timeout_s, refused
                )

            replies = await call_with_retries(call, retries=self._retries, timeout_s=self._timeout_s)
            seconds = time.perf_counter() - start_s
            return tuple(
                replace(reply, retries=tries - 1, seconds=seconds, refused=(*refused, *reply.refused))
                for reply in replies
            )

    async def _send_without_refused_parts(
        self,
        connection: Connection,
        messages: Sequence[Message],
        samplings: Sequence[Sampling],
        deadline_s: float,
        refused: list[RequestParameter],
    ) -> tuple[Reply, ...]:
        """Send a request, and again without each part that the server refuses; these are added to `refused`."""
        sampling = samplings[0]
        while True:
            context = RequestContext(
                profile=self.profile,
                refusals=self._refusals,
                originals=self._originals_in(messages),
                seed=self._seed + sampling.index,
                listens=current_listener() is not None,
            )
            request = build_request(connection, messages, samplings, context)
            try:
                return await self._send(connection, request, messages, samplings, deadline_s)
            except ModelError as fault:
                part = self._learn_refusal(fault, request, messages)
                if part is None:
                    raise
                refused.append(part)

    def _learn_refusal(
        self, error: ModelError, request: ModelRequest, messages: Sequence[Message]
    ) -> RequestParameter | None:
        """Remember which part of a request an error refuses, and return it; `None` if it is about something else."""
        fault = error.__cause__
        if type(error) not in GENERAL_ERRORS or fault is None:
            return None
        status = find_status(fault)
        text, named = describe_error(fault)
        limit_tokens = find_reply_limit(status, text, request.max_tokens)
        if limit_tokens is not None:
            self._refusals.max_reply_tokens = limit_tokens
            return "max_tokens"
        part = find_refused_parameter(status, text, named, request.parts)
        # A conversation with results of tools cannot continue without the tools.
        if part is None or (part == "tools" and any(message.role == "tool" for message in messages)):
            return None
        self._refusals.parameters.add(part)
        return part

    def _originals_in(self, messages: Sequence[Message]) -> dict[str, AIMessage]:
        """Return the provider's own answers for the turns that are still as the model wrote them."""
        originals: dict[str, AIMessage] = {}
        for message in messages:
            kept = self._answers.get(message.tool_calls[0].id) if message.tool_calls else None
            if kept is not None and (kept[0].text, kept[0].tool_calls) == (
                message.content,
                message.tool_calls,
            ):
                originals[message.tool_calls[0].id] = kept[1]
        return originals

    def _keep_original(self, reply: Reply, answer: AIMessage) -> None:
        """Keep the provider's answer for the next request of the conversation, if it calls tools."""
        if not reply.tool_calls or any(call.undecoded for call in reply.tool_calls):
            return
        self._answers[reply.tool_calls[0].id] = (reply, answer)
        if len(self._answers) > MAX_KEPT_ANSWERS:
            del self._answers[next(iter(self._answers))]

    async def _send(
        self,
        connection: Connection,
        request: ModelRequest,
        messages: Sequence[Message],
        samplings: Sequence[Sampling],
        deadline_s: float,
    ) -> tuple[Reply, ...]:
        """Send one request; a failure is raised as the error table classifies it."""
        await self._wait_for_turn(deadline_s)
        listener = current_listener() if request.streams else None
        max_bytes = max_response_bytes(request.max_tokens, len(samplings))
        with limit_response_bytes(max_bytes, expects_events=listener is not None) as response:
            try:
                async with asyncio.timeout(deadline_s - time.perf_counter()):
                    if listener is not None:
                        answers = [await _stream_answer(request, listener)]
                    else:
                        answers = await _invoke(request, len(samplings))
                if connection.reports_finish_reason and not all(map(provider_finish_reason, answers)):
                    raise ReplyLost(f"{self.name!r} broke off in the middle of its reply")
                replies = convert_answers(answers, messages, samplings[0], self.name)
            except Exception as fault:
                # Vendor SDKs share no base class for errors: every exception is mapped here.
                kind = classify_provider_error(fault, was_answered=response.was_received)
                error = map_provider_error(fault, self._target, kind)
                if kind == "content_filter":
                    return tuple(Reply(text="", finish="content_filter", model=self.name) for _ in samplings)
                raise error from fault
        if request.streams and replies[0].counted_by == "bound":
            self._refusals.parameters.add("stream_options")  # the stream had no usage
            replies = [replace(reply, refused=("stream_options",)) for reply in replies]
        for reply, answer in zip(replies, answers, strict=True):
            self._keep_original(reply, answer)
        return tuple(replies)

    async def _wait_for_turn(self, deadline_s: float) -> None:
        try:
            async with asyncio.timeout(deadline_s - time.perf_counter()):
                await self._endpoint.admit()
        except TimeoutError as fault:  # no request was sent, so this is not a `ModelTimeout`
            raise ModelRateLimited(
                f"{self.name!r} was not asked: its turn did not come in {self._timeout_s:g} s",
                remedy="raise model.requests_per_minute or model.timeout_s",
            ) from fault

    async def close(self) -> None:
        """Close this event loop's connection; safe to call twice."""
        connection = self._connections.pop(asyncio.get_running_loop(), None)
        if connection is not None:
            await connection.close()

    def _connection(self) -> Connection:
        """Return this event loop's connection, which is made at the first call."""
        loop = asyncio.get_running_loop()
        connection = self._connections.get(loop)
        if connection is None:
            try:
                connection = self._connections[loop] = self._connect()
            except Exception as fault:  # any library below may reject the address or a proxy
                message = self._target.masked(ascii(str(fault)))[:MAX_QUOTED_CHARS]
                raise ModelUnreachable(
                    f"{self.name!r} cannot be connected to at {self._target.address}: {message}",
                    remedy="check model.base_url, and the proxy that your environment names",
                ) from fault
        return connection


async def _stream_answer(request: ModelRequest, listener: ReplyListener) -> AIMessage:
    """Return the answer, and report its text without thinking to the listener while it is generated."""
    chunks: list[AIMessageChunk] = []
    finish_reason, text = "", ""
    with report_reply(listener) as report:
        async for chunk in request.chat.astream(request.turns, **_stop_argument(request)):
            chunks.append(cast("AIMessageChunk", chunk))
            finish_reason = provider_finish_reason(chunk) or finish_reason
            if chunk.text:
                text += str(chunk.text)
                report(split_thinking(text)[1])
    if not chunks:
        raise ReplyLost("nothing came")
    answer = chunks[0] if len(chunks) == 1 else chunks[0] + chunks[1:]
    if finish_reason:  # LangChain joins the reasons of several chunks: `stopstop`
        answer.response_metadata["finish_reason"] = finish_reason
    return cast("AIMessage", answer)


def _stop_argument(request: ModelRequest) -> dict[str, Any]:
    return {"stop": request.stop} if request.stop else {}


async def _invoke(request: ModelRequest, count: int) -> list[AIMessage]:
    if count == 1:
        return [await request.chat.ainvoke(request.turns, **_stop_argument(request))]
    result = await cast("Any", request.chat).agenerate([request.turns], stop=request.stop)
    answers = [generation.message for generation in result.generations[0]]
    if len(answers) != count:
        raise ReplyLost(f"{len(answers)} replies came, but {count} were requested")
    return answers
