"""Connections to the vendors' LangChain models, with guarded HTTP clients and without SDK retries.

SDK retries are off because they would multiply ours. Only the async clients are used; `http_guard` checks
every response below the SDK.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from suture.models.providers.http_guard import guarded_client_options

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


CREDENTIALS = re.compile(r"(?<=://)[^/\s]*@")
"""Matches user and password in a URL."""


async def _close_nothing() -> None:
    return None


@dataclass(frozen=True, kw_only=True)
class Connection:
    """A chat model for one event loop.

    Attributes:
        close: Closes its HTTP client.
        reports_finish_reason: Whether a reply without a finish reason was cut off.
        prefill_body: Extra request fields that make the server continue the last assistant message; empty for
            servers that do so by themselves.
        streams: Whether a streamed reply ends and reports usage like a complete one.
    """

    chat: BaseChatModel
    close: Callable[[], Awaitable[None]] = _close_nothing
    reports_finish_reason: bool = False
    prefill_body: Mapping[str, Any] = field(default_factory=dict)
    streams: bool = False


VLLM_PREFILL_BODY = {"continue_final_message": True, "add_generation_prompt": False}
"""Tells vLLM and SGLang to continue the last assistant message."""


def connect_openai(
    model: str,
    *,
    key: str,
    base_url: str | None,
    timeout_s: float,
    prefill_body: Mapping[str, Any] = VLLM_PREFILL_BODY,
    streams: bool = False,
) -> Connection:
    """Connect to OpenAI, or to any server that speaks its protocol.

    Args:
        model: The model's name at the server.
        base_url: The server's address up to `/v1`; `None` means OpenAI itself.
        timeout_s: Maximum seconds without a byte.
        prefill_body: See `Connection`.
        streams: See `Connection`; some servers do not know the option that adds the usage to a stream.
    """
    from langchain_openai import ChatOpenAI
    from openai import DefaultAsyncHttpxClient
    from pydantic import SecretStr

    client = DefaultAsyncHttpxClient(
        timeout=timeout_s, trust_env=not is_loopback(base_url), **guarded_client_options("OpenAI")
    )
    chat = ChatOpenAI(
        model=model,
        api_key=SecretStr(key),
        base_url=base_url,
        timeout=timeout_s,
        max_retries=0,
        http_async_client=client,
        # A marker for `apply_sampling`: servers other than OpenAI's may support only `max_tokens`.
        extra_body={} if base_url else None,
        stream_usage=streams,
    )
    return Connection(chat=chat, close=client.aclose, prefill_body=prefill_body, streams=streams)


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
        timeout=timeout_s, trust_env=not is_loopback(base_url), **guarded_client_options("Anthropic")
    )
    # LangChain shares one client in the whole process, which fails in the second event loop. There is no
    # argument for another client, so it is put where the cached property keeps it.
    chat.__dict__["_async_client"] = AsyncAnthropic(
        api_key=key, base_url=chat.anthropic_api_url, timeout=timeout_s, max_retries=0, http_client=client
    )
    return Connection(chat=chat, close=client.aclose)


def connect_ollama(model: str, *, base_url: str, timeout_s: float, context_tokens: int) -> Connection:
    """Connect to Ollama; it loads the model with this context size, because its default cuts longer prompts."""
    from langchain_ollama import ChatOllama

    chat = ChatOllama(
        model=model,
        base_url=base_url,
        num_ctx=context_tokens,
        client_kwargs={"timeout": timeout_s, "trust_env": not is_loopback(base_url)},
        async_client_kwargs=guarded_client_options("Ollama"),
    )

    async def close() -> None:
        await chat._async_client._client.aclose()

    return Connection(chat=chat, close=close, reports_finish_reason=True, streams=True)


def is_loopback(url: str | None) -> bool:
    """Return whether a URL points to this machine, so that the environment's proxy does not apply."""
    host = urlsplit(url or "").hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def mask_credentials(text: str) -> str:
    """Return a text with `***` in place of the user and password of each URL in it."""
    return CREDENTIALS.sub("***@", text)
