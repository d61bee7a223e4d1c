"""Every fault Suture raises, sorted by who can act on it.

    SutureError
    ├── UsageError                  the caller: fix the input
    ├── PrerequisiteError           the caller: install or set something; the message is the remedy
    │   ├── ModelUnreachable        (also a ModelError)
    │   ├── ModelNotThere           (also a ModelError)
    │   └── SandboxUnavailable      (also a SandboxError)
    ├── ModelError                  the model's side
    │   ├── ModelAuthError              fix the key
    │   ├── ModelRateLimited            wait `retry_after_s`
    │   ├── ModelUnreachable            start the server, or correct its address
    │   ├── ModelNotThere               correct its address or its name
    │   ├── ReplyLost                   it may have been paid for all the same
    │   │   ├── ModelTimeout                try again, or raise the limit
    │   │   └── ForeignReply                (also a ModelNotThere) correct its address
    │   ├── ContextTooLong              shrink the prompt
    │   └── MalformedReply              a spent attempt; never a success
    │       └── EditDoesNotApply            told to the model with its next brief
    ├── SandboxError                the wall itself failed; never the program behind it
    │   ├── SandboxUnavailable
    │   └── SandboxBroken
    ├── BudgetExceeded              a limit the user set; carries kind, used, limit
    ├── StorageError                the disk or the database
    ├── CodeHostError               GitHub or GitLab refused a request, or cannot be reached
    └── Cancelled                   the user stopped it

Failing tests, a program's time-out, a diff that does not apply are outcomes, not faults: they are values.
"""

from __future__ import annotations

__all__ = [
    "BudgetExceeded",
    "Cancelled",
    "CodeHostError",
    "ContextTooLong",
    "EditDoesNotApply",
    "ModelProtocolError",
    "MalformedReply",
    "ModelAuthError",
    "ModelError",
    "ModelNotFound",
    "ModelRateLimited",
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
]


class SutureError(Exception):
    """Base of every fault that Suture raises on purpose.

    Args:
        message: What went wrong, in one line; never empty.
        remedy: What the reader can do about it, in one line.
    """

    exit_code = 6
    """The CLI's exit code when this fault ends a command (see `suture --help`)."""
    run_id = ""
    """The run that was healed all the same, where only its hand-over failed."""
    stopped_run = ""
    """The run that the fault stopped, where it was in one."""

    def __init__(self, message: str, *, remedy: str = "") -> None:
        if not message:
            raise ValueError("an error needs a message")
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} ({self.remedy})" if self.remedy else self.message


class UsageError(SutureError):
    """The input cannot be worked with; the caller can fix it."""

    exit_code = 2


class PrerequisiteError(SutureError):
    """Something must be installed or set first; the message says what."""

    exit_code = 3


class ModelError(SutureError):
    """The model, its server or its provider failed."""

    is_replayed = False
    """Whether it was recorded before and nothing was asked now."""
    is_transient = False
    """Whether the same call may well succeed in a moment (`suture.models.providers.error_table`)."""


class ModelAuthError(ModelError):
    """The provider refused the key."""

    exit_code = 3


class ModelRateLimited(ModelError):
    """The provider asks us to slow down.

    Args:
        message: What the provider said.
        retry_after_s: Seconds to wait, where the provider said so.
        remedy: What the reader can do.
    """

    def __init__(self, message: str, *, retry_after_s: float | None = None, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.retry_after_s = retry_after_s


class ModelUnreachable(PrerequisiteError, ModelError):
    """Nobody can be talked to at the model's address, so nothing was asked."""


class ModelNotFound(PrerequisiteError, ModelError):
    """Something answers at the model's address, and it is not the model: a web page, a redirect, a 404."""


class ReplyLost(ModelError):
    """The model was asked and no whole reply came back; it may have been paid for."""


class ModelTimeout(ReplyLost):
    """No reply in time."""


class ModelRequestRejected(ModelError):
    """The provider takes no such request, for a reason that is none of the other errors."""


class ModelProtocolError(ModelNotFound, ReplyLost):
    """Something answered, and not as the protocol has it: another kind of JSON, an error, no JSON at all."""


class ContextTooLong(ModelError):
    """The prompt does not fit into the model's context."""


class MalformedReply(ModelError):
    """The reply holds nothing usable. It counts as a spent attempt, never as a success."""


class EditDoesNotApply(MalformedReply):
    """A search/replace block of the reply has no one place in a file; the message names the block."""


class SandboxError(SutureError):
    """The wall failed, not the program behind it."""


class SandboxUnavailable(PrerequisiteError, SandboxError):
    """No sandbox can run here. There is no fallback to running code without one."""


class SandboxBroken(SandboxError):
    """A sandbox died or misbehaved while it worked."""


class BudgetExceeded(SutureError):
    """The next act would exceed a limit that the user set.

    Args:
        kind: Which limit: `attempts`, `tokens`, `money` or `seconds`.
        used: What is spent or reserved so far, in the limit's unit.
        limit: The limit.
        message: What went wrong; where left out, that the limit is reached.
        remedy: What to do; where left out, to raise the limit.
    """

    exit_code = 4

    def __init__(self, kind: str, used: float, limit: float, *, message: str = "", remedy: str = "") -> None:
        reached = f"budget of {limit:g} {kind} is spent ({used:g} used)"
        super().__init__(message or reached, remedy=remedy or f"raise budget.{kind}")
        self.kind = kind
        self.used = used
        self.limit = limit


class StorageError(SutureError):
    """The disk or the database failed."""


class CodeHostError(SutureError):
    """The service that keeps the project's code refused a request, or cannot be reached."""


class Cancelled(SutureError):
    """The user stopped the run."""

    exit_code = 130
