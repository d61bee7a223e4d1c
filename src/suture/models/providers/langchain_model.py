"""A `Model` on top of any LangChain chat model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from suture.errors import ModelRateLimited, ModelUnreachable, ReplyLost
from suture.models.chat_model import Message, Reply, Sampling
from suture.models.providers.connections import Connection
from suture.models.providers.endpoints import Endpoint, EndpointLimits, call_with_retries
from suture.models.providers.error_mapping import ModelTarget, classify_provider_error, map_provider_error
from suture.models.providers.error_table import ERROR_TABLE
from suture.models.providers.http_guard import limit_response_bytes, max_response_bytes
from suture.models.providers.reply_conversion import convert_answers, provider_finish_reason
from suture.models.providers.request_conversion import constrain_to_schema, convert_messages, declare_tools
from suture.models.reply_streaming import ReplyListener, current_listener, report_reply

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel, LanguageModelInput
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.runnables import Runnable


MAX_QUOTED_CHARS = 200
"""Length of a library's message that is shown. Chosen by judgement; not measured."""


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
    ) -> None:
        self.name = target.name
        self._connect = connect
        self._seed = seed
        self._timeout_s = timeout_s
        self._retries = retries
        self._target = target
        # Without an endpoint, this is the embedded server. It has a queue of its own, so this number only
        # bounds the open connections.
        self._endpoint = endpoint or Endpoint(target.name, EndpointLimits(concurrency=64))
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
        connection, sampling = self._connection(), samplings[0]
        model = apply_sampling(connection.chat, sampling, seed=self._seed + sampling.index)
        # A last message of the assistant is a prefill: the beginning of the reply, which the model continues.
        if messages[-1].role == "assistant" and connection.prefill_body:
            extra_body = getattr(model, "extra_body", None) or {}
            model = model.model_copy(update={"extra_body": {**extra_body, **connection.prefill_body}})
        if len(samplings) > 1:
            # The usage does not tell how many tokens each reply has, but the log probabilities do.
            model = model.model_copy(update={"n": len(samplings), "logprobs": True, "top_logprobs": 1})
        chat = (
            model.bind_tools(declare_tools(sampling.tools))
            if sampling.tools
            else constrain_to_schema(model, sampling.schema)
        )
        tries = 0
        async with self._endpoint.slot():
            start_s = time.perf_counter()

            async def call() -> tuple[Reply, ...]:
                nonlocal tries
                tries += 1
                return await self._send(connection, chat, messages, samplings, start_s + self._timeout_s)

            replies = await call_with_retries(call, retries=self._retries, timeout_s=self._timeout_s)
            seconds = time.perf_counter() - start_s
            return tuple(replace(reply, retries=tries - 1, seconds=seconds) for reply in replies)

    async def _send(
        self,
        connection: Connection,
        chat: Runnable[LanguageModelInput, AIMessage],
        messages: Sequence[Message],
        samplings: Sequence[Sampling],
        deadline_s: float,
    ) -> tuple[Reply, ...]:
        """Send one request; a failure is raised as the error table classifies it."""
        turns = convert_messages(messages)
        await self._wait_for_turn(deadline_s)
        try:
            max_tokens = max(sampling.max_tokens for sampling in samplings)
            listener = current_listener() if connection.streams and _can_stream(samplings) else None
            with limit_response_bytes(
                max_response_bytes(max_tokens, len(samplings)), expects_events=listener is not None
            ):
                async with asyncio.timeout(deadline_s - time.perf_counter()):
                    stop = list(samplings[0].stop) or None
                    if listener is not None:
                        answers = [await _stream_answer(chat, turns, stop, listener)]
                    else:
                        answers = await _invoke(chat, turns, len(samplings), stop)
            if connection.reports_finish_reason and not all(map(provider_finish_reason, answers)):
                raise ReplyLost(f"{self.name!r} broke off in the middle of its reply")
            replies = convert_answers(answers, messages, samplings[0], self.name)
        except Exception as fault:
            # Vendor SDKs share no base class for errors: every exception is mapped here.
            error = map_provider_error(fault, self._target)
            counts = isinstance(fault, ReplyLost) or ERROR_TABLE[classify_provider_error(fault)].counts
            self._endpoint.record_failure(error, counts=counts)
            raise error from fault
        self._endpoint.record_success()
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


def apply_sampling(chat: BaseChatModel, sampling: Sampling, *, seed: int) -> BaseChatModel:
    """Return a copy of `chat` with these sampling parameters, as far as it has them.

    The fields of LangChain's models are set instead of passing call arguments: each provider takes different
    arguments, but nearly all have these fields.
    """
    fields = type(chat).model_fields
    update: dict[str, Any] = {"temperature": sampling.temperature, "seed": seed}
    if (getattr(chat, "profile", None) or {}).get("temperature") is False:
        del update["temperature"]  # reasoning models refuse a temperature
    extra_body = getattr(chat, "extra_body", None)
    if extra_body is not None:  # a server other than OpenAI's (see `connect_openai`)
        update["extra_body"] = {**extra_body, "max_tokens": sampling.max_tokens}
    else:
        update |= {"max_tokens": sampling.max_tokens, "num_predict": sampling.max_tokens}
    if sampling.logprobs:
        update["logprobs"] = True
    return chat.model_copy(update={field: value for field, value in update.items() if field in fields})


def _can_stream(samplings: Sequence[Sampling]) -> bool:
    """Return whether one plain text is requested, so that it may be streamed."""
    sampling = samplings[0]
    return len(samplings) == 1 and sampling.schema is None and not sampling.tools and not sampling.logprobs


async def _stream_answer(
    chat: Runnable[LanguageModelInput, AIMessage],
    turns: list[BaseMessage],
    stop: list[str] | None,
    listener: ReplyListener,
) -> AIMessage:
    """Return the answer, and report it to the listener while it is generated."""
    answer: Any = None
    text = ""
    with report_reply(listener) as report:
        async for chunk in chat.astream(turns, stop=stop) if stop else chat.astream(turns):
            answer = chunk if answer is None else answer + chunk
            text += str(chunk.text)
            report(text)
    if answer is None:
        raise ReplyLost("nothing came")
    return cast("AIMessage", answer)


async def _invoke(
    chat: Runnable[LanguageModelInput, AIMessage],
    turns: list[BaseMessage],
    count: int,
    stop: list[str] | None,
) -> list[AIMessage]:
    if count == 1:
        return [await (chat.ainvoke(turns, stop=stop) if stop else chat.ainvoke(turns))]
    result = await cast("Any", chat).agenerate([turns], stop=stop)
    answers = [generation.message for generation in result.generations[0]]
    if len(answers) != count:
        raise ReplyLost(f"{len(answers)} replies came, but {count} were requested")
    return answers
