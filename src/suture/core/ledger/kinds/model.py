"""Calls of models, and what became of their replies."""

from __future__ import annotations

from collections.abc import Mapping

from suture.core.ledger.event import Payload, if_absent


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

    role: str = if_absent("coder")
    move: str = if_absent("")
    index: int = if_absent(0)
    call: str = if_absent("")
    model: str = if_absent("")
    prompt: str = if_absent("")
    prompt_tokens: int
    completion_tokens: int
    counted: str = if_absent("provider")
    money: float | None = if_absent(None)
    finish: str = if_absent("")
    seconds: float = if_absent(0.0)
    retries: int = if_absent(0)
    replayed: bool = if_absent(False)
    from_run: str = if_absent("")
    begun: bool = if_absent(False)


class ModelSteppedDown(Payload, kind="model.stepped_down"):
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
    kind: str
    message: str


class ModelEscalated(Payload, kind="model.escalated"):
    """A stronger model writes the code from now on.

    Attributes:
        round: From which round, from 0.
        from_: Who wrote it until now, as `provider:model`.
        to: Who takes over.
        reason: Why.
    """

    round: int
    from_: str
    to: str
    reason: str


class ReplyCut(Payload, kind="reply.cut"):
    """A reply broke off in its code, or before it had any, and is asked for again with more room.

    Attributes:
        role: Who asked.
        call: Hash of the call that brought it.
        again_with_tokens: The most tokens of the second reply.
    """

    role: str
    call: str
    again_with_tokens: int


class PromptShrunk(Payload, kind="prompt.shrunk"):
    """A prompt had to be cut to the room that the model has.

    Attributes:
        role: Who asks.
        left_out: Part of the prompt -> how many pieces of it are not shown.
    """

    role: str
    left_out: Mapping[str, int]
