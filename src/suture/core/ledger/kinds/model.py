"""Calls of models, and what became of their replies."""

from __future__ import annotations

from collections.abc import Mapping

from suture.core.ledger.event import Payload
from suture.core.records import Reason


class ModelCalled(Payload, kind="model.called"):
    """A model has answered; the reply lies in the run's folder by its call's hash.

    Attributes:
        role: Who asked.
        move: The kind of move that it belongs to; empty where it brings no candidate.
        index: Tells equal calls of one run apart.
        call: Hash of model, messages and parameters.
        model: Who answered, as `provider:model`.
        prompt: Hash of the prompt's file.
        prompt_tokens: Tokens of the prompt.
        completion_tokens: Tokens of the reply.
        counted: Who counted them: the `provider`, or we, as an upper `bound`.
        money: US dollars; null where no price is known.
        finish: Why the reply ended; `length` means that it was cut short.
        seconds: Wall-clock seconds of the call.
        retries: Tries that failed before.
        replayed: Whether it came from a record, so that nothing was paid.
        from_run: The run whose record that is, where it is not this one's.
        begun: Whether the reply was begun for it (prefill).
    """

    role: str = "coder"
    move: str = ""
    index: int = 0
    call: str = ""
    model: str = ""
    prompt: str = ""
    prompt_tokens: int
    completion_tokens: int
    token_count_source: str = "provider"
    money: float | None = None
    finish_reason: str = ""
    seconds: float = 0.0
    retries: int = 0
    replayed: bool = False
    from_run: str = ""
    prefilled: bool = False


class ModelFellBack(Payload, kind="model.stepped_down"):
    """A model failed, and the next of the chain that the user named is asked.

    Attributes:
        role: Who asked.
        from_: Who failed, as `provider:model`.
        to: Who is asked now.
        kind: Class of the error, of `suture.errors`.
        message: Its message.
    """

    role: str
    from_: str
    to: str
    error_type: str
    message: str


class ModelEscalated(Payload, kind="model.escalated"):
    """A stronger model writes the code from now on.

    Attributes:
        round: From which round, from 0.
        from_: Who wrote it until now, as `provider:model`.
        to: Who takes over.
        reason: Why the run needs a stronger model.
    """

    round: int
    from_: str
    to: str
    reason: Reason


class ReplyTruncated(Payload, kind="reply.cut"):
    """A reply broke off in its code, or before it had any, and is asked for again with more room.

    Attributes:
        role: Who asked.
        call: Hash of the call that brought it.
        retry_max_tokens: The most tokens of the second reply.
    """

    role: str
    call: str
    retry_max_tokens: int


class PromptShrunk(Payload, kind="prompt.shrunk"):
    """A prompt had to be cut to the room that the model has.

    Attributes:
        role: Who asks.
        left_out: Part of the prompt -> how many pieces of it are not shown.
    """

    role: str
    omitted: Mapping[str, int]
