"""Try what a model can do, with three small requests."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from suture.core.settings.schema import Settings
from suture.errors import ModelAuthError, ModelError, ModelRequestRejected, UsageError
from suture.models.chat_model import (
    NO_MODEL,
    Message,
    Model,
    Reply,
    Sampling,
    ToolDeclaration,
    listen_to_replies,
    require_answer,
)
from suture.models.profiles import ModelProfile, find_profile
from suture.models.role_models import apply_served_contexts, open_model

Feature = Literal[
    "text", "streaming", "thinking", "tools", "parallel_tools", "structured_output", "prompt_cache"
]
"""What is tried."""
PROFILE_ATTRIBUTES: Mapping[Feature, str] = {
    "thinking": "reasoning",
    "tools": "tools",
    "structured_output": "structured_output",
}
"""Feature -> the attribute of a profile, and the setting, that says whether the model has it."""

SHARED_PROMPT = (
    "You help to test a chat model. Here is a list of numbered lines, to be kept in mind.\n"
    + "\n".join(
        f"{number}. The box with the number {number} holds {number * 7 % 89} marbles."
        for number in range(1, 111)
    )
)
"""The beginning of the first and the third request, which the provider may cache. It has some 1,500 tokens, because
OpenAI and Anthropic cache nothing below 1,024."""
COUNT_PROMPT = "Count from one to twenty in words, in one line. Write nothing else."
TOOL_PROMPT = "Call the tool `file_size` for `a.txt` and for `b.txt`. Make both calls in this one reply."
SCHEMA_PROMPT = "How many marbles does box 3 hold, and is that number odd? Reply with JSON: marbles, is_odd."
FILE_SIZE = ToolDeclaration(
    name="file_size", description="Return the size of a file in bytes.", inputs={"path": "path of the file"}
)
ANSWER_SCHEMA: Mapping[str, Any] = {
    "title": "Answer",
    "description": "What a box holds.",
    "type": "object",
    "properties": {"marbles": {"type": "integer"}, "is_odd": {"type": "boolean"}},
    "required": ["marbles", "is_odd"],
    "additionalProperties": False,
}
ANSWER_TOKENS = 256
"""Tokens for each answer, in addition to thinking: the longest answer has some forty."""
MAX_DETAIL_CHARS = 100
"""Characters of a reply or a message that are shown."""


@dataclass(frozen=True, kw_only=True)
class FeatureCheck:
    """The result for one feature.

    Attributes:
        works: Whether the model has it; `None` if that could not be found out.
        detail: What was observed, or the provider's message.
    """

    feature: Feature
    works: bool | None
    detail: str


@dataclass(frozen=True, kw_only=True)
class ModelCheck:
    """What a model can do, as far as three requests show it.

    Attributes:
        profile: What Suture assumes about the model.
        features: In the order in which they were tried.
        seconds: Duration of all requests.
    """

    model: str
    profile: ModelProfile
    features: tuple[FeatureCheck, ...]
    replies: tuple[Reply, ...]
    seconds: float

    @property
    def mismatches(self) -> tuple[FeatureCheck, ...]:
        """Return the features that work although the profile denies them, or the reverse.

        A model need not think about small questions, and a small model gets no tools, whether it can call
        them or not.
        """
        return tuple(
            check
            for check in self.features
            if check.feature in PROFILE_ATTRIBUTES
            and check.works is not None
            and check.works != getattr(self.profile, PROFILE_ATTRIBUTES[check.feature])
            and (check.works or check.feature != "thinking")
            and (self.profile.is_capable or check.feature != "tools")
        )


async def open_and_check(settings: Settings, name: str) -> ModelCheck:
    """Open a model by its name, check it, and close it; raises as `check_model` does.

    Raises:
        UsageError: The name is not a model name, or names no model.
    """
    if name == NO_MODEL:
        raise UsageError("without a model there is nothing to check", remedy="name one as PROVIDER:MODEL")
    model = open_model(settings, name)
    try:
        return await check_model(model, find_profile(name, apply_served_contexts(settings, [model])))
    finally:
        await model.close()


async def check_model(model: Model, profile: ModelProfile) -> ModelCheck:
    """Send three small requests to a model, and return what worked.

    Raises:
        MissingAnswer: The first reply has no text, so that the model cannot be used.
        ModelError: The first request failed, or the key was refused.
        PrerequisiteError: The model cannot be asked at all.
    """
    start_s = time.monotonic()
    max_tokens = profile.reply_tokens(ANSWER_TOKENS)
    pieces: list[str] = []
    with listen_to_replies(lambda _, text: pieces.append(text) if text else None):
        counted = await model.complete(_prompt(COUNT_PROMPT), Sampling(max_tokens=max_tokens))
    require_answer(counted, model.name, may_be_empty=False)
    called = await _reply_or_fault(
        model.complete(
            (Message(role="user", content=TOOL_PROMPT),), Sampling(max_tokens=max_tokens, tools=(FILE_SIZE,))
        )
    )
    structured = await _reply_or_fault(
        model.complete(_prompt(SCHEMA_PROMPT), Sampling(max_tokens=max_tokens, schema=ANSWER_SCHEMA))
    )
    replies = tuple(reply for reply in (counted, called, structured) if isinstance(reply, Reply))
    return ModelCheck(
        model=model.name,
        profile=profile,
        features=(
            FeatureCheck(feature="text", works=True, detail=_shorten(counted.text)),
            FeatureCheck(
                feature="streaming", works=len(set(pieces)) > 1, detail=f"{len(set(pieces))} pieces came"
            ),
            _check_thinking(replies),
            *_check_tools(called),
            _check_schema(structured),
            _check_cache(structured),
        ),
        replies=replies,
        seconds=time.monotonic() - start_s,
    )


def _prompt(question: str) -> tuple[Message, ...]:
    return (Message(role="system", content=SHARED_PROMPT), Message(role="user", content=question))


async def _reply_or_fault(reply: Awaitable[Reply]) -> Reply | ModelError:
    """Return the reply, or the reason why this feature does not work; the model itself has answered before."""
    try:
        return await reply
    except ModelAuthError:
        raise
    except ModelError as fault:
        return fault


def _failed(feature: Feature, fault: ModelError) -> FeatureCheck:
    is_refused = isinstance(fault, ModelRequestRejected)
    return FeatureCheck(feature=feature, works=False if is_refused else None, detail=_shorten(fault.message))


def _check_thinking(replies: tuple[Reply, ...]) -> FeatureCheck:
    tokens = sum(reply.thinking_tokens for reply in replies)
    is_shown = any(reply.thinking for reply in replies)
    if not tokens and not is_shown:
        return FeatureCheck(feature="thinking", works=False, detail="it did not think about these questions")
    counted = f"{tokens} tokens" if tokens else "its tokens are not counted apart"
    return FeatureCheck(
        feature="thinking", works=True, detail=f"{counted}, {'shown' if is_shown else 'not shown'}"
    )


def _check_tools(reply: Reply | ModelError) -> tuple[FeatureCheck, ...]:
    if isinstance(reply, ModelError):
        return _failed("tools", reply), _failed("parallel_tools", reply)
    good = [call for call in reply.tool_calls if call.name == FILE_SIZE.name and call.arguments.get("path")]
    detail = ", ".join(f"{call.name}({json.dumps(dict(call.arguments))})" for call in reply.tool_calls)
    detail = _shorten(detail or f"no call; it wrote {reply.text!r}")
    return (
        FeatureCheck(feature="tools", works=bool(good), detail=detail),
        FeatureCheck(
            feature="parallel_tools",
            works=len(good) > 1,
            detail=f"{len(reply.tool_calls)} calls in one reply",
        ),
    )


def _check_schema(reply: Reply | ModelError) -> FeatureCheck:
    if isinstance(reply, ModelError):
        return _failed("structured_output", reply)
    try:
        answer = json.loads(reply.text)
    except ValueError:
        answer = None
    works = (
        isinstance(answer, dict)
        and type(answer.get("marbles")) is int
        and isinstance(answer.get("is_odd"), bool)
    )
    return FeatureCheck(feature="structured_output", works=works, detail=_shorten(reply.text))


def _check_cache(reply: Reply | ModelError) -> FeatureCheck:
    if isinstance(reply, ModelError):
        return _failed("prompt_cache", reply)
    detail = f"{reply.cached_tokens} of {reply.prompt_tokens} prompt tokens came from the cache"
    # A provider that caches may still miss at the second request, or may not say that it has a cache.
    return FeatureCheck(feature="prompt_cache", works=True if reply.cached_tokens else None, detail=detail)


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MAX_DETAIL_CHARS else f"{text[:MAX_DETAIL_CHARS]}..."
