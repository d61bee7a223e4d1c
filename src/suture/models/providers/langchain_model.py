"""A `Model` over a LangChain chat model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from suture.errors import ModelRateLimited, ModelUnreachable, ReplyLost
from suture.models.chat_model import Message, Reply, Sampling
from suture.models.providers.connections import Connection
from suture.models.providers.endpoints import Endpoint, EndpointLimits, retried
from suture.models.providers.error_mapping import AskedModel, as_model_error, classify
from suture.models.providers.error_table import FAULTS
from suture.models.providers.http_guard import reply_bytes, room_for
from suture.models.providers.reply_conversion import as_reply, counted_apart, said_ending
from suture.models.reply_streaming import Hearer, current_hearer, one_reply
from suture.models.structured_output.reply_schemas import constrained, text_of, with_tools

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel, LanguageModelInput
    from langchain_core.messages import AIMessage
    from langchain_core.runnables import Runnable


MOST_QUOTED_CHARS = 200


class LangChainModel:
    """Any LangChain chat model behind our seam.

    Args:
        name: `provider:model`.
        connect: Makes the connection. It is called once per event loop: an async HTTP client belongs to the
            loop that first used it, and fails in the next one.
        seed: Reply `index` is drawn with `seed + index`, where the provider takes a seed.
        timeout_s: The most seconds of one call, retries and the wait for its turn included.
        retries: The most tries after the first, where the table of faults allows them.
        secret: The key, so that no message shows it.
        address: Where the model is, for messages.
        key_variable: Where its users set the key, for messages.
        endpoint: The gate that models at the same address share; one of its own where not given.
    """

    def __init__(
        self,
        name: str,
        connect: Callable[[], Connection],
        *,
        seed: int = 0,
        timeout_s: float = 600,
        retries: int = 2,
        secret: str = "",
        address: str = "",
        key_variable: str = "",
        endpoint: Endpoint | None = None,
    ) -> None:
        self.name = name
        self._connect = connect
        self._seed = seed
        self._timeout_s = timeout_s
        self._retries = retries
        self._asked = AskedModel(name=name, address=address, secret=secret, key_variable=key_variable)
        self._endpoint = endpoint or Endpoint(name, EndpointLimits(concurrency=64))
        self._connections: WeakKeyDictionary[asyncio.AbstractEventLoop, Connection] = WeakKeyDictionary()

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        """Ask for one reply; see `Model.complete`."""
        return (await self.complete_together(messages, [sampling]))[0]

    async def complete_together(
        self, messages: Sequence[Message], samplings: Sequence[Sampling]
    ) -> tuple[Reply, ...]:
        """Ask for replies to one prompt in one request; raises as `complete` does.

        Args:
            messages: The prompt, oldest message first.
            samplings: How to draw each. More than one only for a server that draws reply `n` of a request
                with its seed and `n`, as llama.cpp's does; they are alike but for consecutive indices.
        """
        connection, sampling = self._connection(), samplings[0]
        drawn = with_sampling(connection.chat, sampling, seed=self._seed + sampling.index)
        if messages[-1].role == "assistant" and connection.goes_on_by:
            drawn = drawn.model_copy(
                update={"extra_body": {**(getattr(drawn, "extra_body", None) or {}), **connection.goes_on_by}}
            )
        if len(samplings) > 1:  # the usage counts the first reply alone, so tokens come one by one
            drawn = drawn.model_copy(update={"n": len(samplings), "logprobs": True, "top_logprobs": 1})
        tools = sampling.tools
        chat = with_tools(drawn, tools) if tools else constrained(drawn, sampling.schema)
        tries = 0
        async with self._endpoint.slot():
            start_s = time.perf_counter()

            async def ask() -> tuple[Reply, ...]:
                nonlocal tries
                tries += 1
                return await self._try(connection, chat, messages, samplings, start_s + self._timeout_s)

            replies = await retried(ask, retries=self._retries, patience_s=self._timeout_s)
            took_s = time.perf_counter() - start_s
            return tuple(replace(reply, retries=tries - 1, seconds=took_s) for reply in replies)

    async def _try(
        self,
        connection: Connection,
        chat: Runnable[LanguageModelInput, AIMessage],
        messages: Sequence[Message],
        samplings: Sequence[Sampling],
        until_s: float,
    ) -> tuple[Reply, ...]:
        """One request.

        Raises:
            ModelError: Whatever went wrong, by the table of faults.
        """
        turns = [{"role": m.role, "content": _encodable(m.content)} for m in messages]
        await self._wait_for_turn(until_s)
        try:
            room = reply_bytes(max(one.max_tokens for one in samplings), len(samplings))
            hearer = current_hearer() if connection.streams and _is_plain(samplings) else None
            with room_for(room, by_events=hearer is not None):
                async with asyncio.timeout(until_s - time.perf_counter()):
                    stop = list(samplings[0].stop) or None
                    if hearer is not None:
                        answers = [await _heard(chat, turns, stop, hearer)]
                    else:
                        answers = await _answers(chat, turns, len(samplings), stop)
            if connection.always_says_how_it_ended and not all(map(said_ending, answers)):
                raise ReplyLost(f"{self.name!r} broke off in the middle of its reply")
            replies = [as_reply(a, messages, samplings[0], self.name, len(answers)) for a in answers]
            replies = replies if len(replies) == 1 else counted_apart(replies)
        except Exception as fault:
            # The seam to SDKs that share no base class: whatever they raise becomes ours here.
            error = as_model_error(fault, self._asked)
            counts = isinstance(fault, ReplyLost) or FAULTS[classify(fault)].counts
            self._endpoint.failed(error, counts=counts)
            raise error from fault
        self._endpoint.answered()
        return tuple(replies)

    async def _wait_for_turn(self, until_s: float) -> None:
        try:
            async with asyncio.timeout(until_s - time.perf_counter()):
                await self._endpoint.admit()
        except TimeoutError as fault:  # nothing was asked, so this is no `ModelTimeout`
            raise ModelRateLimited(
                f"{self.name!r} was not asked: its turn did not come in {self._timeout_s:g} s",
                remedy="raise model.requests_per_minute or model.timeout_s",
            ) from fault

    async def close(self) -> None:
        """Close this loop's connection; safe to call twice."""
        connection = self._connections.pop(asyncio.get_running_loop(), None)
        if connection is not None:
            await connection.close()

    def _connection(self) -> Connection:
        loop = asyncio.get_running_loop()
        connection = self._connections.get(loop)
        if connection is None:
            try:
                connection = self._connections[loop] = self._connect()
            except Exception as fault:  # as above: of whichever library finds the address or a proxy odd
                said = self._asked.masked(ascii(str(fault)))[:MOST_QUOTED_CHARS]
                raise ModelUnreachable(
                    f"{self.name!r} cannot be connected to at {self._asked.address}: {said}",
                    remedy="check model.base_url, and the proxy that your environment names",
                ) from fault
        return connection


def with_sampling(chat: BaseChatModel, sampling: Sampling, *, seed: int) -> BaseChatModel:
    """A copy of `chat` that draws as asked, as far as it has such knobs.

    The fields of LangChain's models are set rather than passed with the call: each provider takes different
    call arguments, but nearly all have these fields.
    """
    fields = type(chat).model_fields
    update: dict[str, Any] = {"temperature": sampling.temperature, "seed": seed}
    if (getattr(chat, "profile", None) or {}).get("temperature") is False:
        del update["temperature"]  # models that reason refuse one
    extra_body = getattr(chat, "extra_body", None)
    if extra_body is not None:
        update["extra_body"] = {**extra_body, "max_tokens": sampling.max_tokens}
    else:
        update |= {"max_tokens": sampling.max_tokens, "num_predict": sampling.max_tokens}
    if sampling.logprobs:
        update["logprobs"] = True
    return chat.model_copy(update={field: value for field, value in update.items() if field in fields})


def _is_plain(samplings: Sequence[Sampling]) -> bool:
    """Whether one text is asked for and nothing else, so that it may come word by word."""
    one = samplings[0]
    return len(samplings) == 1 and one.schema is None and not one.tools and not one.logprobs


async def _heard(
    chat: Runnable[LanguageModelInput, AIMessage],
    turns: list[dict[str, str]],
    stop: list[str] | None,
    hearer: Hearer,
) -> AIMessage:
    """The answer, with somebody told of it while it comes."""
    whole: Any = None
    text = ""
    with one_reply(hearer) as tell:
        async for part in chat.astream(turns, stop=stop) if stop else chat.astream(turns):
            whole = part if whole is None else whole + part
            text += text_of(part)
            tell(text)
    if whole is None:
        raise ReplyLost("nothing came")
    answer: AIMessage = whole
    return answer


async def _answers(
    chat: Runnable[LanguageModelInput, AIMessage],
    turns: list[dict[str, str]],
    count: int,
    stop: list[str] | None,
) -> list[AIMessage]:
    if count == 1:
        return [await (chat.ainvoke(turns, stop=stop) if stop else chat.ainvoke(turns))]
    from langchain_core.messages import convert_to_messages

    drawn: Any = chat
    generated = await drawn.agenerate([convert_to_messages(turns)], stop=stop)
    answers = [one.message for one in generated.generations[0]]
    if len(answers) != count:
        raise ReplyLost(f"{len(answers)} replies came where {count} were asked for")
    return answers


def _encodable(text: str) -> str:
    # JSON over HTTP is UTF-8, which has no lone surrogates; program output and model text may hold some.
    return text.encode("utf-8", "replace").decode("utf-8")
