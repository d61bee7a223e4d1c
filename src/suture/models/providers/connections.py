"""Connections to the vendors' LangChain models, with guarded HTTP clients and without SDK retries.

SDK retries are off because they would multiply ours. Only the async clients are used; `http_guard` checks
every response below the SDK.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast
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
        prefill_body: Extra request fields that make the server continue the last assistant message; empty for servers
            that do so without being asked.
        streams: Whether the protocol streams replies, with their usage at the end.
        is_openai_protocol: Whether it is one of OpenAI's, which servers of many vendors speak.
        cache_marks: How a request marks what the provider caches: as `anthropic` does in messages and tools, in
            its `messages` alone, by an `argument` of LangChain's package, or not at all.
    """

    chat: BaseChatModel
    close: Callable[[], Awaitable[None]] = _close_nothing
    reports_finish_reason: bool = False
    prefill_body: Mapping[str, Any] = field(default_factory=dict)
    streams: bool = False
    is_openai_protocol: bool = False
    cache_marks: Literal["", "anthropic", "messages", "argument"] = ""


VLLM_PREFILL_BODY = {"continue_final_message": True, "add_generation_prompt": False}
"""Tells vLLM and SGLang to continue the last assistant message."""


OPENAI_HOST = "api.openai.com"
COMPLETION_LIMIT_MODELS = re.compile(r"(?:.*/)?(?:gpt-[5-9]|o\d\b)")
"""OpenAI's models that refuse `max_tokens`, wherever they are served."""


def connect_openai(
    model: str,
    *,
    key: str,
    base_url: str | None,
    timeout_s: float,
    prefill_body: Mapping[str, Any] = VLLM_PREFILL_BODY,
    thinks: bool = False,
) -> Connection:
    """Connect to OpenAI, or to any server that speaks its protocol.

    Args:
        model: The model's name at the server.
        key: The key, sent as a bearer token.
        base_url: The server's address up to `/v1`; `None` means OpenAI itself.
        timeout_s: Maximum seconds without a byte.
        prefill_body: See `Connection`.
        thinks: Whether the model thinks before it answers.
    """
    from openai import DefaultAsyncHttpxClient
    from pydantic import SecretStr

    from suture.models.providers.openai_chat import OpenAIProtocolChat

    client = DefaultAsyncHttpxClient(
        timeout=timeout_s, trust_env=not is_loopback(base_url), **guarded_client_options("OpenAI")
    )
    is_openai = base_url is None or urlsplit(base_url).hostname == OPENAI_HOST
    knows_new_limit = is_openai or COMPLETION_LIMIT_MODELS.match(model) is not None
    chat = OpenAIProtocolChat(
        model=model,
        api_key=SecretStr(key),
        base_url=base_url,
        timeout=timeout_s,
        max_retries=0,
        http_async_client=client,
        stream_usage=True,
        # LangChain's own limit of 120 s between two chunks would end a slow server before `timeout_s`.
        stream_chunk_timeout=None,
        # At OpenAI, LangChain knows which models only the Responses API serves.
        use_responses_api=None if is_openai else False,
        token_limit_name="max_completion_tokens" if knows_new_limit else "max_tokens",
        thinks=thinks,
    )
    return Connection(
        chat=chat,
        close=client.aclose,
        prefill_body=prefill_body,
        streams=True,
        is_openai_protocol=True,
        cache_marks="messages",  # OpenRouter takes Anthropic's marks
    )


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
    return Connection(chat=chat, close=client.aclose, streams=True, cache_marks="anthropic")


def connect_google(model: str, *, key: str, base_url: str | None, timeout_s: float) -> Connection:
    """Connect to Google's Gemini API, or to a server at `base_url` that speaks its protocol."""
    from google.genai import Client
    from google.genai.types import HttpOptions
    from httpx import AsyncClient
    from langchain_google_genai import ChatGoogleGenerativeAI
    from pydantic import SecretStr

    chat = ChatGoogleGenerativeAI(
        model=model,
        google_api_key=SecretStr(key),
        base_url=base_url,
        vertexai=False,
        max_retries=1,  # the first try counts; 0 would mean the SDK's default of five
        timeout=timeout_s,
    )
    http_client = AsyncClient(
        timeout=timeout_s, trust_env=not is_loopback(base_url), **guarded_client_options("Gemini")
    )
    # Where aiohttp is installed, Google's SDK uses it, which has no hooks for the guard, unless it gets a client.
    options = HttpOptions(base_url=base_url, httpx_async_client=http_client)
    chat.client = Client(api_key=key, vertexai=False, http_options=options)
    return Connection(chat=chat, close=http_client.aclose, streams=True)


def connect_bedrock(model: str, *, key: str, base_url: str | None, timeout_s: float) -> Connection:
    """Connect to Amazon Bedrock.

    Args:
        model: A model's id, or an inference profile's id or ARN.
        key: A Bedrock API key; empty for AWS's usual credentials. The region comes from AWS's variables.
        base_url: Another endpoint, such as one inside of a private network.
        timeout_s: Maximum seconds without a byte.
    """
    from botocore.config import Config
    from langchain_aws import ChatBedrockConverse
    from pydantic import SecretStr

    # botocore's own limit of 60 s would end a slow reply, and its retries would multiply ours.
    config: Any = cast("Any", Config)(read_timeout=timeout_s, retries={"total_max_attempts": 1})
    options: dict[str, Any] = {"bedrock_api_key": SecretStr(key)} if key else {}
    if base_url is not None:
        options["endpoint_url"] = base_url
    chat = ChatBedrockConverse(model=model, config=config, **options)
    return Connection(chat=chat, streams=True, cache_marks="argument")


def connect_ollama(
    model: str, *, base_url: str, timeout_s: float, context_tokens: int | None, thinks: bool = False
) -> Connection:
    """Connect to Ollama; it loads the model with this context size, because its default cuts longer prompts."""
    from langchain_ollama import ChatOllama

    chat = ChatOllama(
        model=model,
        base_url=base_url,
        num_ctx=context_tokens,
        reasoning=True if thinks else None,
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
    """Return a string with `***` in place of the user and password of each URL in it."""
    return CREDENTIALS.sub("***@", text)
