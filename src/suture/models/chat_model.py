"""The interface of a chat model for the rest of Suture: messages and sampling go in, a `Reply` comes out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, Literal, NoReturn, Protocol, runtime_checkable

from suture.errors import MissingAnswer, PrerequisiteError, SutureError

FinishReason = Literal["stop", "length", "thinking", "refusal", "content_filter", "other"]
"""Why a reply ended: the model ended it, its token limit cut it, the limit was spent on thinking before any
answer, the model refused, the provider's filter stopped it, or another reason."""

RequestParameter = Literal[
    "temperature",
    "seed",
    "stop",
    "logprobs",
    "response_format",
    "tools",
    "system_role",
    "stream_options",
    "max_tokens",
    "reasoning_effort",
    "chat_completions",
]
"""A part of a request that a server may refuse. The call is then sent without it; `max_tokens` gets its other name,
`system_role` is merged into the user's message, and `chat_completions` becomes the Responses API."""


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """A tool that a model calls in its reply.

    Attributes:
        id: The provider's id, by which the tool's result is assigned to the call.
        name: The tool's name as the model wrote it.
        arguments: The inputs; empty if they could not be decoded.
        undecoded: The raw inputs if they are not a JSON object; else empty.
    """

    id: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    undecoded: str = ""


@dataclass(frozen=True, kw_only=True)
class Message:
    """One turn of a conversation.

    Attributes:
        content: Its text; may be empty for an assistant's turn that only calls tools.
        tool_calls: The tools that an assistant's turn calls. Only for models whose profile has tools.
        tool_call_id: The call that a turn of the role `tool` is the result of.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""


@dataclass(frozen=True, kw_only=True)
class ToolDeclaration:
    """A tool that a model may call through its provider's tool protocol.

    Attributes:
        name: The tool's name, one word.
        description: What the tool does.
        inputs: Name of each text input -> its description.
        optional: Names of the inputs that a call may leave out.
    """

    name: str
    description: str
    inputs: Mapping[str, str]
    optional: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How a reply is generated.

    Attributes:
        temperature: The sampling temperature; 0 always takes the likeliest token.
        max_tokens: Upper limit of the reply's length.
        index: Distinguishes several replies to one prompt. It is part of the call hash and of the seed.
        logprobs: Whether to return the log probability of each token, where the provider supports it.
        schema: JSON schema (with a `title`) for the reply. Providers that can constrain their output do so;
            others ignore it. The caller must validate the reply in any case, as `ask_structured` does.
        stop: The reply ends before the first of these strings; for models that support prefill, which is a
            beginning of the reply that the model continues.
        tools: Tools that the model may call. Only for models whose profile has tools; the calls are in
            `Reply.tool_calls`.
    """

    temperature: float = 0.0
    max_tokens: int = 1024
    index: int = 0
    logprobs: bool = False
    schema: Mapping[str, Any] | None = None
    stop: tuple[str, ...] = ()
    tools: tuple[ToolDeclaration, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Reply:
    """The reply of a model, with its cost.

    Attributes:
        text: The reply's text without the model's thinking. Outside of this package it includes the prefill.
        thinking: What the model thought before its answer, where the provider shows it.
        thinking_tokens: Tokens of `completion_tokens` that were spent on thinking.
        tool_calls: The tools that the model calls, in its order.
        prefill: The beginning that the model was given; usually empty.
        finish: `length` means that the reply was cut at the token limit.
        prompt_tokens: Tokens of the prompt, as the provider counts them.
        completion_tokens: Tokens of the reply.
        cached_tokens: Prompt tokens that the provider took from its cache.
        cache_write_tokens: Prompt tokens that the provider put into its cache.
        counted_by: The `provider`, or `bound`: our own upper bound, because the provider's count was missing
            or implausible.
        logprobs: Natural logarithm of each token's probability, if requested and supported.
        tokens: The text of each of those tokens.
        seconds: Duration of the call.
        model: The model that replied, as `provider:model`.
        call_hash: Identifies the call (model, messages, sampling) among the recorded replies.
        retries: Failed tries before this one; they cost nothing.
        replayed: Whether the reply comes from a recording and cost nothing now.
        refused: Parts of the request that the server refused, so that the call was sent again without them. Only
            the first reply without a part names it.
        from_run: The recorded run that the reply comes from, if it is another run. Such a reply counts
            against the budget as it did there, so that a replay makes the same decisions. Other replayed
            replies do not count.
    """

    text: str
    finish: FinishReason = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    counted_by: Literal["provider", "bound"] = "provider"
    logprobs: tuple[float, ...] = ()
    tokens: tuple[str, ...] = ()
    seconds: float = 0.0
    model: str = ""
    call_hash: str = ""
    retries: int = 0
    replayed: bool = False
    from_run: str = ""
    prefill: str = ""
    thinking: str = ""
    thinking_tokens: int = 0
    tool_calls: tuple[ToolCall, ...] = ()
    refused: tuple[RequestParameter, ...] = ()


@runtime_checkable
class Model(Protocol):
    """A chat model."""

    name: str
    """The name as the user writes it: `provider:model`."""

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        """Generate one reply.

        Args:
            messages: The conversation, oldest message first. If the last one is the assistant's, the reply
                continues it, and `Reply.text` starts after it.
            sampling: How the reply is generated.

        Raises:
            ModelAuthError: The provider refused the key.
            ModelRateLimited: The provider asks for fewer calls, or for a pause.
            ModelTimeout: There was no reply in time.
            ContextTooLong: The prompt does not fit into the context.
            ModelError: Any other fault of the model or its provider.
        """
        ...

    async def close(self) -> None:
        """Release the server or the connection; safe to call twice."""
        ...


NO_MODEL = "none"
"""The value of `model.name` for runs without a model, which repair by search alone."""


class UnavailableModel:
    """Stand-in for a model that cannot be called; each call raises the error that `make_error` makes.

    It is used if no model is configured, if a prerequisite is missing, or if only recorded replies are used.
    """

    def __init__(self, name: str, make_error: Callable[[], SutureError]) -> None:
        self.name = name
        self._make_error = make_error

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> NoReturn:
        """Raise the error."""
        raise self._make_error()

    async def close(self) -> None:
        """Do nothing: there is no connection."""


def model_required_error(reason: str) -> PrerequisiteError:
    """Return the error for an action that needs a model while `model.name` is `none`.

    Args:
        reason: What needs the model; the message starts with it.
    """
    return PrerequisiteError(
        f"{reason}, and model.name is {NO_MODEL!r}",
        remedy="name a model with --model, as docs/models.md shows",
    )


ReplyListener = Callable[[int, str | None], None]
"""Called with a reply's number and its text so far for every token, and with `None` when the reply is
complete."""

_numbers = count()
_listener: ContextVar[ReplyListener | None] = ContextVar("listener", default=None)


@contextmanager
def listen_to_replies(listener: ReplyListener) -> Iterator[None]:
    """Let `listener` follow all replies generated inside this context, if the provider can stream."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def report_reply(listener: ReplyListener) -> Iterator[Callable[[str], None]]:
    """Yield a function that reports one reply's text so far; several replies may run at the same time."""
    number = next(_numbers)
    try:
        yield partial(listener, number)
    finally:
        listener(number, None)


def current_listener() -> ReplyListener | None:
    """Return the listener of the current context, or `None`."""
    return _listener.get()


MAX_QUOTED_REFUSAL_CHARS = 200
"""Characters of a refusal that are shown. Chosen by judgement; not measured."""


def require_answer(reply: Reply, model: str, *, may_be_empty: bool = True) -> None:
    """Refuse a reply that has no answer.

    Args:
        model: Name of the model, for the message.
        may_be_empty: Whether a reply without any text or tool call is left to the caller.

    Raises:
        MissingAnswer: It names the reason and the remedy.
    """
    if reply.finish == "thinking":
        raise MissingAnswer(
            "thinking",
            f"{model!r} spent all {reply.completion_tokens} tokens of its reply on thinking",
            remedy="raise model.profile.thinking_tokens or budget.tokens, or lower "
            "model.profile.reasoning_effort",
        )
    if reply.finish == "refusal":
        said = f": {reply.text[:MAX_QUOTED_REFUSAL_CHARS]!a}" if reply.text.strip() else ""
        raise MissingAnswer(
            "refusal",
            f"{model!r} refused to answer{said}",
            remedy="state the task in other words, or name another model in model.fallbacks",
        )
    if reply.finish == "content_filter" and not reply.tool_calls:
        raise MissingAnswer(
            "content_filter",
            f"the provider's content filter stopped the reply of {model!r}",
            remedy="look for texts in the project that the filter may object to, or name a model of another "
            "provider in model.fallbacks",
        )
    if not may_be_empty and not reply.text.strip() and not reply.tool_calls:
        raise MissingAnswer(
            "empty",
            f"{model!r} returned an empty reply",
            remedy="`suture models check` shows what the model and its server can do",
        )
