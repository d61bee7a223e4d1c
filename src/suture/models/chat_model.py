"""The one seam to a model: messages in, a `Reply` out, and the reply on disk before anyone uses it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, Protocol, runtime_checkable

from suture.errors import PrerequisiteError, SutureError

Finish = Literal["stop", "length", "other"]


@dataclass(frozen=True, kw_only=True)
class Message:
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, kw_only=True)
class Tool:
    """What a model may call in place of writing a command out.

    Attributes:
        name: A word.
        description: What it does.
        inputs: Name of each input, a text -> what it is.
    """

    name: str
    description: str
    inputs: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How to draw a reply.

    Attributes:
        temperature: The sampling temperature; 0 takes the likeliest token each time.
        max_tokens: The most tokens of the reply.
        index: Distinguishes replies to the same prompt; with it the call hash, and the seed, change.
        logprobs: Whether to tell how likely each token was, where the provider can.
        schema: The JSON schema that the reply must follow, with a `title`. It is a wish: where the provider
            can constrain its output it does, and elsewhere nothing happens. So whoever asks validates, as
            `structured.ask` does.
        stop: Texts before which the reply ends; for models that go on from a beginning (`may_begin`).
        tools: What a model may call, where it calls tools (`may_call_tools`). Its first call becomes the end
            of the reply's text: a line `TOOL: name`, and one `INPUT:` with the inputs as JSON.
    """

    temperature: float = 0.0
    max_tokens: int = 1024
    index: int = 0
    logprobs: bool = False
    schema: Mapping[str, Any] | None = None
    stop: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What a model answered.

    Attributes:
        text: The reply's text; what it went on from stands in front once it has left the seam.
        begun: The beginning that it was given; empty for most.
        finish: `length` means that it was cut short.
        prompt_tokens: Tokens of the prompt, as the provider counts.
        completion_tokens: Tokens of the reply.
        cached_tokens: Those of the prompt that the provider had evaluated before and did not again.
        counted: Who counted them: the provider, or we, as an upper `bound`.
        logprobs: The natural logarithm of each token's probability, where asked for and told.
        tokens: The text of each of those tokens.
        seconds: How long it took.
        model: Who answered, as `provider:model`.
        call_hash: Names the call (model, messages, sampling) in the run's reply store.
        retries: Tries after the first one, which failed and cost nothing.
        replayed: Whether the reply was recorded before, and so cost nothing now.
        from_run: The run whose record it came from, where that is not the run that asks. Its tokens count
            against the budget as they did there, so that a replay decides alike; other replayed ones do not.
    """

    text: str
    finish: Finish = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    counted: Literal["provider", "bound"] = "provider"
    logprobs: tuple[float, ...] = ()
    tokens: tuple[str, ...] = ()
    seconds: float = 0.0
    model: str = ""
    call_hash: str = ""
    retries: int = 0
    replayed: bool = False
    from_run: str = ""
    begun: str = ""


@runtime_checkable
class Model(Protocol):
    """A chat model behind our one seam: messages in, a `Reply` out."""

    name: str
    """`provider:model`, as the user would write it."""

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        """Ask for one reply.

        Args:
            messages: The conversation, oldest first. Where the last turn is the assistant's, the reply goes
                on from there, and its text begins behind it.
            sampling: How to draw the reply.

        Raises:
            ModelAuthError: The key was refused.
            ModelRateLimited: The provider asks for fewer calls, or a pause.
            ModelTimeout: No reply in time.
            ContextTooLong: The prompt does not fit.
            ModelError: Anything else on the model's side.
        """
        ...

    async def close(self) -> None:
        """Release the server or the connection; safe to call twice."""
        ...


NO_MODEL = "none"
"""The value of `model.name` with which nobody is asked: what a search finds is all that a run can find."""


class RefusingModel:
    """Stands where there is no model to ask: none is wanted, something is missing for it, or it is replayed.

    Args:
        name: `provider:model`, or `NO_MODEL`.
        fault: Makes the error that whoever asks it all the same is told.
    """

    def __init__(self, name: str, fault: Callable[[], SutureError]) -> None:
        self.name = name
        self._fault = fault

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> NoReturn:
        """Refuse.

        Raises:
            SutureError: Always.
        """
        raise self._fault()

    async def close(self) -> None:
        """Do nothing: no connection is held."""


def without_model(why: str) -> PrerequisiteError:
    """What cannot be done without a model, as an error; `why` says what would ask one."""
    return PrerequisiteError(
        f"{why}, and model.name is {NO_MODEL!r}", remedy="name a model with --model, as docs/models.md shows"
    )
