"""Limits of one server address: concurrent calls, calls per minute, and retries.

What an Ollama server says about its models: which it has, and how long their contexts are.

Ollama cuts a longer prompt at its beginning without an error, so Suture must know the context that is in force.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from suture.core.settings.schema import Settings
from suture.errors import ModelError, ModelRateLimited
from suture.models.profiles import find_profile
from suture.models.profiles.model_profile import override_context_tokens
from suture.models.providers.connections import is_loopback
from suture.models.tuning import (
    FIRST_RETRY_PAUSE_S,
    MAX_OLLAMA_ANSWER_BYTES,
    MAX_RETRY_PAUSE_S,
    MIN_OLLAMA_CONTEXT_TOKENS,
    OLLAMA_TIMEOUT_S,
)

if TYPE_CHECKING:
    from tenacity import RetryCallState


@dataclass(frozen=True, kw_only=True)
class EndpointLimits:
    """The load that an endpoint may get.

    Attributes:
        concurrency: Maximum number of concurrent calls.
        requests_per_minute: Tries started per minute, evenly spaced; `None` for no limit.
    """

    concurrency: int = 8
    requests_per_minute: float | None = None


class Endpoint:
    """The limits of one address, shared by all models of this process that use it.

    `now` is a monotonic clock in seconds.
    """

    def __init__(
        self,
        limits: EndpointLimits,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._limits = limits
        self._now = now
        self._sleep = sleep
        # A semaphore belongs to the event loop that waits for it.
        self._slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
        self._queues: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        self._lock = threading.Lock()
        self._next_start = 0.0

    def slot(self) -> asyncio.Semaphore:
        """Return the context in which a call waits for one of the concurrent slots; it keeps it during retries."""
        semaphore = asyncio.Semaphore(self._limits.concurrency)
        return self._slots.setdefault(asyncio.get_running_loop(), semaphore)

    async def admit(self) -> None:
        """Wait until one try may start. A cancelled waiter does not take a turn from those after it."""
        async with self._queues.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            while (wait_s := self._take_turn()) > 0:
                await self._sleep(wait_s)

    def _take_turn(self) -> float:
        """Take the turn if it has come, else return the seconds until then."""
        with self._lock:
            now = self._now()
            if now < self._next_start:
                return self._next_start - now
            if self._limits.requests_per_minute is not None:
                self._next_start = now + 60 / self._limits.requests_per_minute
            return 0


_endpoints: WeakValueDictionary[tuple[str, EndpointLimits], Endpoint] = WeakValueDictionary()
_endpoints_lock = threading.Lock()


def get_endpoint(address: str, limits: EndpointLimits) -> Endpoint:
    """Return the shared endpoint of an address; it exists as long as any model uses it."""
    with _endpoints_lock:
        return _endpoints.setdefault((address, limits), Endpoint(limits))


T = TypeVar("T")


async def call_with_retries(
    call: Callable[[], Awaitable[T]],
    *,
    retries: int,
    timeout_s: float,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> T:
    """Return the result of `call`, which is repeated after transient faults, at most `retries` times.

    The pause is the provider's Retry-After, or random up to a bound that doubles each time ("full jitter",
    Brooker 2015). All tries and pauses together take at most `timeout_s`. A pause that would exceed this limit
    is not started: the fault is raised at once.
    """
    import tenacity

    backoff = tenacity.wait_random_exponential(multiplier=FIRST_RETRY_PAUSE_S, max=MAX_RETRY_PAUSE_S)

    def pause_s(state: RetryCallState) -> float:
        fault = state.outcome.exception() if state.outcome else None
        retry_after_s = fault.retry_after_s if isinstance(fault, ModelRateLimited) else None
        return backoff(state) if retry_after_s is None else retry_after_s

    tries = tenacity.AsyncRetrying(
        sleep=sleep,
        wait=pause_s,
        stop=tenacity.stop_after_attempt(retries + 1) | tenacity.stop_before_delay(timeout_s),
        retry=tenacity.retry_if_exception(lambda fault: isinstance(fault, ModelError) and fault.is_transient),
        reraise=True,
    )
    return await tries(call)


CONFIGURED_CONTEXT = re.compile(r"^num_ctx\s+(\d{1,9})\s*$", re.MULTILINE)
"""The context size in the parameters of a model's file."""


def list_ollama_models(address: str) -> list[str] | None:
    """Return the models of an Ollama server, newest first, or `None` if there is no such server."""
    answer = _request_json(address, "/api/tags")
    try:
        return [str(model["name"]) for model in answer["models"]]
    except (KeyError, TypeError):
        return None


def apply_served_context(settings: Settings, name: str, address: str) -> Settings:
    """Return the settings with the context size that an Ollama model gets.

    That is the size of the settings. If they name none, it is the `num_ctx` of the model's file. It is never more
    than the model was trained with, because the server would silently use that instead.

    Args:
        name: The model, as `ollama:NAME`.
        address: The server; if it does not answer, the size of the settings remains.
    """
    wanted_tokens = find_profile(name, settings).context_tokens
    assert wanted_tokens is not None  # `find_profile` gives Ollama's models the size of the settings
    configured_tokens, trained_tokens = _read_context_sizes(address, name.partition(":")[2])
    own_profile = settings.model.profiles.get(name)
    is_set = (
        "context_tokens" in settings.model.model_fields_set
        or settings.model.profile.context_tokens is not None
        or (own_profile is not None and own_profile.context_tokens is not None)
    )
    if configured_tokens is not None and not is_set:
        wanted_tokens = configured_tokens
    return override_context_tokens(settings, name, min(wanted_tokens, trained_tokens or wanted_tokens))


def _read_context_sizes(address: str, model: str) -> tuple[int | None, int | None]:
    """Return `(num_ctx of the model's file, context of its training)` in tokens; `None` for what is not known."""
    answer = _request_json(address, "/api/show", {"model": model})
    if not isinstance(answer, Mapping):
        return None, None
    configured = CONFIGURED_CONTEXT.search(str(answer.get("parameters", "")))
    info = answer.get("model_info")
    architecture = info.get("general.architecture") if isinstance(info, Mapping) else None
    trained = info.get(f"{architecture}.context_length") if isinstance(info, Mapping) else None
    return _plausible_size(int(configured[1]) if configured else None), _plausible_size(trained)


def _plausible_size(tokens: object) -> int | None:
    """Return a context size that a server states, or `None` if no prompt would fit into it."""
    return tokens if isinstance(tokens, int) and tokens >= MIN_OLLAMA_CONTEXT_TOKENS else None


def _request_json(address: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
    """Return the JSON value at a path of a server, or `None` if it gives none in time.

    The request runs in a thread because a server may send its headers arbitrarily slowly, which httpx's timeouts
    do not bound.

    Args:
        address: The server's base URL.
        path: The path below it.
        body: The JSON body of a POST; `None` for a GET.
    """
    import httpx

    answers: list[Any] = []

    def request() -> None:
        method, url = "GET" if body is None else "POST", f"{address.rstrip('/')}{path}"
        content = b""
        # A `RuntimeError` (of which `RecursionError` is one) means that the client was closed in the meantime.
        with contextlib.suppress(httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, RuntimeError):
            with client.stream(method, url, json=body, headers={"accept-encoding": "identity"}) as response:
                response.raise_for_status()
                for chunk in response.iter_raw():  # not decompressed: a compressed body is rejected as JSON
                    content += chunk
                    if len(content) > MAX_OLLAMA_ANSWER_BYTES:
                        return
            answers.append(json.loads(content))

    with (
        contextlib.suppress(ValueError),  # of httpx, for a proxy variable that it does not understand
        httpx.Client(timeout=OLLAMA_TIMEOUT_S, trust_env=not is_loopback(address)) as client,
    ):
        thread = threading.Thread(target=request, daemon=True)
        thread.start()
        thread.join(OLLAMA_TIMEOUT_S)  # closing the client ends an unfinished request
    return answers[0] if answers else None
