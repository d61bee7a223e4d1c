"""A `Model` over a LangChain chat model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from suture.models.faults import as_model_error
from suture.models.seam import Finish, Message, Reply, Sampling
from suture.models.tokens import count_upper_bound, text_upper_bound

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage

__all__ = ["Connection", "LangChainModel", "connect_openai"]

RETRIES = 2
"""Retries of a broken connection, a 429 or a 5xx, by the vendor's client, which honours Retry-After."""

FINISHES: Mapping[str, Finish] = {
    "stop": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "max_tokens": "length",
}
"""How providers call the end of a reply."""


async def _nothing() -> None:
    return None


@dataclass(frozen=True, kw_only=True)
class Connection:
    """A chat model that one event loop may use, and how to let go of it."""

    chat: BaseChatModel
    close: Callable[[], Awaitable[None]] = _nothing


class LangChainModel:
    """Any LangChain chat model behind our seam.

    Args:
        name: `provider:model`.
        connect: Makes the connection. It is called once per event loop: an async HTTP client belongs to the
            loop that first used it, and fails in the next one.
        seed: Reply `index` is drawn with `seed + index`, where the provider takes a seed.
        timeout_s: The most seconds of one call, retries included.
        secret: The key, so that no message shows it.
    """

    def __init__(
        self,
        name: str,
        connect: Callable[[], Connection],
        *,
        seed: int = 0,
        timeout_s: float = 600,
        secret: str = "",
    ) -> None:
        self.name = name
        self._connect = connect
        self._seed = seed
        self._timeout_s = timeout_s
        self._secret = secret
        self._connections: WeakKeyDictionary[asyncio.AbstractEventLoop, Connection] = WeakKeyDictionary()

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        """Ask for one reply; see `Model.complete`."""
        chat = with_sampling(self._connection().chat, sampling, seed=self._seed + sampling.index)
        turns = [{"role": m.role, "content": _encodable(m.content)} for m in messages]
        start = time.perf_counter()
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await chat.ainvoke(turns)
            return _as_reply(answer, messages, sampling, self.name, time.perf_counter() - start)
        except Exception as fault:
            # The seam to SDKs that share no base class: whatever they raise becomes ours here.
            raise as_model_error(fault, self.name, secret=self._secret) from fault

    async def close(self) -> None:
        """Close this loop's connection; safe to call twice."""
        connection = self._connections.pop(asyncio.get_running_loop(), None)
        if connection is not None:
            await connection.close()

    def _connection(self) -> Connection:
        loop = asyncio.get_running_loop()
        connection = self._connections.get(loop)
        if connection is None:
            connection = self._connections[loop] = self._connect()
        return connection


def connect_openai(
    model: str, *, key: str, base_url: str | None, timeout_s: float, loopback: bool = False
) -> Connection:
    """Connect to OpenAI, or to any server that speaks its protocol.

    Args:
        model: The model's name at the server.
        key: The API key.
        base_url: The server's address up to `/v1`; `None` is OpenAI itself.
        timeout_s: The most seconds without a byte.
        loopback: The server is on this machine, so a proxy that the environment names is not for it.
    """
    from langchain_openai import ChatOpenAI
    from openai import DefaultAsyncHttpxClient
    from pydantic import SecretStr

    client = DefaultAsyncHttpxClient(timeout=timeout_s, trust_env=not loopback)
    chat = ChatOpenAI(
        model=model,
        api_key=SecretStr(key),
        base_url=base_url,
        timeout=timeout_s,
        max_retries=RETRIES,
        http_async_client=client,
        # A marker for `with_sampling`: servers other than OpenAI's may know only `max_tokens`.
        extra_body={} if base_url else None,
    )
    return Connection(chat=chat, close=client.aclose)


def with_sampling(chat: BaseChatModel, sampling: Sampling, *, seed: int) -> BaseChatModel:
    """A copy of `chat` that draws as asked, as far as it has such knobs.

    The fields of LangChain's models are set rather than passed with the call: each provider takes different
    call arguments, but nearly all have these fields.
    """
    fields = type(chat).model_fields
    update: dict[str, Any] = {"temperature": sampling.temperature, "seed": seed}
    extra_body = getattr(chat, "extra_body", None)
    if extra_body is not None:
        update["extra_body"] = {**extra_body, "max_tokens": sampling.max_tokens}
    else:
        update |= {"max_tokens": sampling.max_tokens, "num_predict": sampling.max_tokens}
    return chat.model_copy(update={field: value for field, value in update.items() if field in fields})


def _encodable(text: str) -> str:
    # JSON over HTTP is UTF-8, which has no lone surrogates; program output and model text may hold some.
    return text.encode("utf-8", "replace").decode("utf-8")


def _as_reply(
    answer: BaseMessage, messages: Sequence[Message], sampling: Sampling, name: str, seconds: float
) -> Reply:
    text = str(answer.text)
    metadata = answer.response_metadata
    ended = (
        metadata.get("finish_reason") or metadata.get("stop_reason") or metadata.get("done_reason") or "stop"
    )
    usage: Mapping[str, Any] = getattr(answer, "usage_metadata", None) or {
        # The provider did not count; an upper bound keeps the budget's promise.
        "input_tokens": count_upper_bound(messages),
        "output_tokens": min(text_upper_bound(text), sampling.max_tokens),
    }
    return Reply(
        text=text,
        finish=FINISHES.get(str(ended).lower(), "other"),
        prompt_tokens=int(usage["input_tokens"]),
        completion_tokens=int(usage["output_tokens"]),
        seconds=seconds,
        model=name,
    )
