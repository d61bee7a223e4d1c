"""Connections to the vendors' LangChain models, each with an HTTP client of its own and without own retries.

The vendors' SDKs are imported when a connection is made. Their retries are off: ours would multiply them.
Only their async sides are used, and each of these has the guard of `guarded_http` below it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from suture.models.providers.http_guard import guard

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


async def _nothing() -> None:
    return None


@dataclass(frozen=True, kw_only=True)
class Connection:
    """A chat model that one event loop may use, and how to let go of it.

    Attributes:
        chat: The LangChain model.
        close: Closes its HTTP client.
        always_says_how_it_ended: A reply without a reason for its end was cut.
        goes_on_by: What the body of a request says where a reply is to go on from its beginning; empty for
            servers that do so unasked.
        streams: Whether a reply may be asked for word by word: with its usage, and ended as it would be.
    """

    chat: BaseChatModel
    close: Callable[[], Awaitable[None]] = _nothing
    always_says_how_it_ended: bool = False
    goes_on_by: Mapping[str, Any] = field(default_factory=dict)
    streams: bool = False


GOES_ON = {"continue_final_message": True, "add_generation_prompt": False}
"""How vLLM and SGLang are told that the last turn is the reply's own beginning."""


def connect_openai(
    model: str,
    *,
    key: str,
    base_url: str | None,
    timeout_s: float,
    goes_on_by: Mapping[str, Any] = GOES_ON,
    streams: bool = False,
) -> Connection:
    """Connect to OpenAI, or to any server that speaks its protocol.

    Args:
        model: The model's name at the server.
        key: The API key.
        base_url: The server's address up to `/v1`; `None` is OpenAI itself.
        timeout_s: The most seconds without a byte.
        goes_on_by: As in `Connection`.
        streams: As there; a server may not know the option that brings the usage along.
    """
    from langchain_openai import ChatOpenAI
    from openai import DefaultAsyncHttpxClient
    from pydantic import SecretStr

    client = DefaultAsyncHttpxClient(
        timeout=timeout_s, trust_env=not is_loopback(base_url), **guard("OpenAI")
    )
    chat = ChatOpenAI(
        model=model,
        api_key=SecretStr(key),
        base_url=base_url,
        timeout=timeout_s,
        max_retries=0,
        http_async_client=client,
        # A marker for `with_sampling`: servers other than OpenAI's may know only `max_tokens`.
        extra_body={} if base_url else None,
        stream_usage=streams,
    )
    return Connection(chat=chat, close=client.aclose, goes_on_by=goes_on_by, streams=streams)


def connect_anthropic(model: str, *, key: str, base_url: str | None, timeout_s: float) -> Connection:
    """Connect to Anthropic, or to a server at `base_url` that speaks its protocol."""
    from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient
    from langchain_anthropic import ChatAnthropic
    from pydantic import SecretStr

    address: dict[str, Any] = {} if base_url is None else {"base_url": base_url}
    chat = ChatAnthropic(
        model_name=model, api_key=SecretStr(key), timeout=timeout_s, max_retries=0, stop=None, **address
    )
    client = DefaultAsyncHttpxClient(
        timeout=timeout_s, trust_env=not is_loopback(base_url), **guard("Anthropic")
    )
    # LangChain's own client is shared by the whole process, and fails in the second event loop. This is the
    # place where its cached property keeps it, and there is no argument for it.
    chat.__dict__["_async_client"] = AsyncAnthropic(
        api_key=key, base_url=chat.anthropic_api_url, timeout=timeout_s, max_retries=0, http_client=client
    )
    return Connection(chat=chat, close=client.aclose)


def connect_ollama(model: str, *, base_url: str, timeout_s: float, context_tokens: int) -> Connection:
    """Connect to Ollama.

    Args:
        model: The model's name there.
        base_url: The server's address.
        timeout_s: The most seconds without a byte.
        context_tokens: The context to load the model with; Ollama's own default cuts longer prompts silently.
    """
    from langchain_ollama import ChatOllama

    chat = ChatOllama(
        model=model,
        base_url=base_url,
        num_ctx=context_tokens,
        client_kwargs={"timeout": timeout_s, "trust_env": not is_loopback(base_url)},
        async_client_kwargs=guard("Ollama"),
    )

    async def close() -> None:
        await chat._async_client._client.aclose()

    return Connection(chat=chat, close=close, always_says_how_it_ended=True, streams=True)


def is_loopback(url: str | None) -> bool:
    """Whether an address is on this machine, so that a proxy which the environment names is not for it."""
    host = urlsplit(url or "").hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
