"""Events of model calls, and of what happened to their replies."""

from __future__ import annotations

from collections.abc import Mapping

from suture.core.ledger.event import Payload
from suture.core.records import Reason


class ModelCalled(Payload, kind="model.called"):
    """A model has answered. The reply is in the run folder under the hash of the call.

    Attributes:
        role: Role that asked.
        move: Kind of move that the call belongs to; empty if it produces no candidate.
        index: Number that makes equal calls of one run distinct, so that each gets its own reply.
        call: Hash of the model, the messages and the parameters of the call.
        model: Model that answered, as `provider:model`.
        prompt: Hash of the prompt file.
        prompt_tokens: Tokens of the prompt.
        cached_tokens: Tokens of the prompt that the provider took from its cache.
        prompt_bytes: Length of the prompt in bytes, from which the run learns how long its tokens are.
        completion_tokens: Tokens of the reply.
        thinking_tokens: Tokens of the reply that were spent on thinking, as far as the provider says so.
        token_count_source: Whether the `provider` counted the tokens, or Suture estimated an upper `bound`.
        money: Cost in US dollars; null if the price is unknown.
        finish_reason: Why the reply ended; `length` means that it was truncated, `thinking` that it was spent on
            thinking.
        seconds: Wall-clock seconds of the call.
        retries: Number of failed attempts before this one.
        replayed: Whether the reply was recorded earlier, so that nothing was paid now.
        from_run: Run that recorded the reply; empty if it is this one.
        prefilled: Whether the request contained the beginning of the reply, which the model continued.
    """

    role: str = "coder"
    move: str = ""
    index: int = 0
    call: str = ""
    model: str = ""
    prompt: str = ""
    prompt_tokens: int
    cached_tokens: int = 0
    prompt_bytes: int = 0
    completion_tokens: int
    thinking_tokens: int = 0
    token_count_source: str = "provider"
    money: float | None = None
    finish_reason: str = ""
    seconds: float = 0.0
    retries: int = 0
    replayed: bool = False
    from_run: str = ""
    prefilled: bool = False


class ModelFellBack(Payload, kind="model.fell_back"):
    """A model failed, and the next model in the setting `model.fallbacks` is asked.

    Attributes:
        role: Role that asked.
        from_: Model that failed, as `provider:model`.
        to: Model that is asked now.
        error_type: Class of the error in `suture.errors`.
        message: Message of the error.
    """

    role: str
    from_: str
    to: str
    error_type: str
    message: str


class ModelParameterRefused(Payload, kind="model.parameter_refused"):
    """The server of a model refused a part of a request. From now on the model is called without it.

    Attributes:
        model: Model that was called, as `provider:model`.
        parameter: What it refused: `temperature`, `seed`, `stop`, `logprobs`, `response_format`, `tools`,
            `system_role`, `stream_options`, `max_tokens`, `reasoning_effort` or `chat_completions`. Of
            `max_tokens`, the name or the size is changed; `system_role` is merged into the user's message;
            `chat_completions` is replaced with the Responses API.
    """

    model: str
    parameter: str


class ModelEscalated(Payload, kind="model.escalated"):
    """A stronger model writes the code from now on.

    Attributes:
        round: First round of the stronger model, from 0.
        from_: Model that wrote the code so far, as `provider:model`.
        to: Model that takes over.
        reason: Why it takes over.
    """

    round: int
    from_: str
    to: str
    reason: Reason


class ReplyTruncated(Payload, kind="reply.truncated"):
    """A reply reached its token limit before its answer was complete. It is requested again with a higher one.

    Attributes:
        role: Role that asked.
        call: Hash of the call that returned it.
        retry_max_tokens: Max tokens of the second reply.
    """

    role: str
    call: str
    retry_max_tokens: int


class PromptShrunk(Payload, kind="prompt.shrunk"):
    """A prompt was shortened to fit into the model's context.

    Attributes:
        role: Role that asks.
        omitted: Part of the prompt -> number of its pieces that are omitted.
    """

    role: str
    omitted: Mapping[str, int]
