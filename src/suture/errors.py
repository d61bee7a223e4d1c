"""All exceptions that Suture raises on purpose, sorted by who can act on them.

    SutureError
    ├── UsageError                  the caller: fix the input
    ├── PrerequisiteError           the caller: install or set something; the message says what
    │   ├── ModelUnreachable            (also a ModelError)
    │   ├── ModelNotFound               (also a ModelError)
    │   └── SandboxUnavailable          (also a SandboxError)
    ├── ModelError                  the model, its server or its provider failed
    │   ├── ModelAuthError              fix the key
    │   ├── ModelRateLimited            wait `retry_after_s`
    │   ├── ModelUnreachable            start the server, or correct its address
    │   ├── ModelNotFound               correct the address, or the name of the model
    │   ├── ModelRequestRejected        the provider does not accept this request
    │   ├── ReplyLost                   the call may have been paid for
    │   │   ├── ModelTimeout                try again, or raise the limit
    │   │   └── ModelProtocolError          (also a ModelNotFound) correct the address
    │   ├── ContextTooLong              shorten the prompt
    │   └── MalformedReply              a spent attempt, never a success
    │       ├── MissingAnswer               the message says why: thinking only, a refusal, a content filter
    │       └── EditDoesNotApply            the next prompt tells the model which edit failed
    ├── SandboxError                the sandbox itself failed, not the program inside it
    │   ├── SandboxUnavailable
    │   └── SandboxBroken
    ├── BudgetExceeded              the user: raise the limit
    ├── StorageError                the disk or the database failed
    ├── CodeHostError               GitHub or GitLab rejected a request, or cannot be reached
    └── Cancelled                   the user stopped the run

Failing tests, a program that times out and a diff that does not apply are outcomes, not faults: they are
values.
"""

from __future__ import annotations

from typing import Literal

__all__ = [
    "BudgetExceeded",
    "Cancelled",
    "CodeHostError",
    "ContextTooLong",
    "EditDoesNotApply",
    "MalformedReply",
    "MissingAnswer",
    "ModelAuthError",
    "ModelError",
    "ModelNotFound",
    "ModelProtocolError",
    "ModelRateLimited",
    "ModelRequestRejected",
    "ModelTimeout",
    "ModelUnreachable",
    "PrerequisiteError",
    "ReplyLost",
    "SandboxBroken",
    "SandboxError",
    "SandboxUnavailable",
    "StorageError",
    "SutureError",
    "UsageError",
    "describe_fault",
]


class SutureError(Exception):
    """Base of every exception that Suture raises on purpose.

    Args:
        message: What went wrong, in one line; never empty.
        remedy: What the reader can do about it, in one line.
    """

    exit_code = 6
    """Exit code of a command that ends with this error (see `suture --help`)."""
    run_id = ""
    """Id of the run that healed its task, if only the delivery of the result failed; otherwise empty."""
    stopped_run_id = ""
    """Id of the run that this error stopped; empty if there was none."""

    def __init__(self, message: str, *, remedy: str = "") -> None:
        if not message:
            raise ValueError("an error needs a message")
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} ({self.remedy})" if self.remedy else self.message


class UsageError(SutureError):
    """The input cannot be used. The caller can fix it."""

    exit_code = 2


class PrerequisiteError(SutureError):
    """Something must be installed or set first. The message says what."""

    exit_code = 3


class ModelError(SutureError):
    """The model, its server or its provider failed."""

    is_replayed = False
    """Whether the error was read from a recording, so that no model was asked now."""
    is_transient = False
    """Whether the same call may succeed in a moment."""


class ModelAuthError(ModelError):
    """The provider rejected the key."""

    exit_code = 3


class ModelRateLimited(ModelError):
    """The provider asks for fewer requests.

    Args:
        message: The provider's message.
        retry_after_s: Seconds to wait, if the provider said so.
        remedy: What the reader can do.
    """

    def __init__(self, message: str, *, retry_after_s: float | None = None, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.retry_after_s = retry_after_s


class ModelUnreachable(PrerequisiteError, ModelError):
    """Nothing answers at the model's address, so no request was sent."""


class ModelNotFound(PrerequisiteError, ModelError):
    """Something answers at the model's address, but it is not the model: a web page, a redirect, a 404."""


class ModelRequestRejected(ModelError):
    """The provider does not accept the request, for a reason that no other error covers."""


class ReplyLost(ModelError):
    """The model was asked and no complete reply arrived. The call may have been paid for."""


class ModelTimeout(ReplyLost):
    """No reply arrived in time."""


class ModelProtocolError(ModelNotFound, ReplyLost):
    """The reply does not follow the protocol: other JSON, an error in place of a reply, or no JSON at all."""


class ContextTooLong(ModelError):
    """The prompt does not fit into the model's context."""


class MalformedReply(ModelError):
    """The reply contains nothing usable. It counts as a spent attempt, never as a success."""


class MissingAnswer(MalformedReply):
    """The model replied without an answer, so that the same question would be wasted again.

    Args:
        reason: All of the reply was spent on `thinking`, the model gave a `refusal`, the provider's
            `content_filter` stopped the reply, or it is `empty`.
        message: What happened, with the model's name.
        remedy: What the reader can do.
    """

    def __init__(
        self,
        reason: Literal["thinking", "refusal", "content_filter", "empty"],
        message: str,
        *,
        remedy: str = "",
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.reason = reason


class UnchangedCode(MalformedReply):
    """The reply gives the code back as it was."""


class EditDoesNotApply(MalformedReply):
    """A search/replace block of the reply does not match exactly one place of a file.

    The message names the block.
    """


class SandboxError(SutureError):
    """The sandbox failed, not the program inside it."""


class SandboxUnavailable(PrerequisiteError, SandboxError):
    """No sandbox can run on this machine. Suture never falls back to running code without one."""


class SandboxBroken(SandboxError):
    """A sandbox died or misbehaved while it was in use."""


class BudgetExceeded(SutureError):
    """The next act would exceed a limit that the user set.

    Args:
        kind: Which limit it is: `attempts`, `tokens`, `completion_tokens`, `money` or `seconds`.
        used: What is spent or reserved so far, in the unit of the limit.
        limit: The value of the limit.
        message: What went wrong. By default, the message says that the limit is reached or could be exceeded.
        remedy: What to do. By default, the remedy is to raise the limit.
    """

    exit_code = 4

    def __init__(self, kind: str, used: float, limit: float, *, message: str = "", remedy: str = "") -> None:
        unit = {"money": "US dollars", "completion_tokens": "tokens of replies"}.get(kind, kind)
        bound = f"the limit of {limit:,.12g} {unit}"
        verdict = f"{bound} is reached" if used >= limit else f"the next call could exceed {bound}"
        default_message = f"{verdict}, {used:,.6g} are used"
        super().__init__(message or default_message, remedy=remedy or f"raise budget.{kind}")
        self.kind = kind
        self.used = used
        self.limit = limit


class StorageError(SutureError):
    """The disk or the database failed."""


class CodeHostError(SutureError):
    """The service that hosts the project's code rejected a request, or cannot be reached."""


class Cancelled(SutureError):
    """The user stopped the run."""

    exit_code = 130


def describe_fault(fault: Exception) -> str:
    """Return what went wrong with a file, a socket or an encoding, without error numbers and names of codecs."""
    if isinstance(fault, UnicodeDecodeError):
        return f"it is no UTF-8 text (byte {fault.start})"
    return fault.strerror if isinstance(fault, OSError) and fault.strerror else str(fault)
