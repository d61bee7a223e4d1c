"""The records `Job` and `JobEnd`, and how they are read from JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from suture.errors import Cancelled, StorageError, SutureError, describe_fault

RUN_ID = r"[0-9]{8}-[0-9]{9}-[0-9a-f]{6}"
"""The form of the ids of runs, as `new_run_id` makes them."""
REPLY_FILE = "reply.txt"
"""A file of the run's folder with the end of the reply that a model is writing; not part of the run's record."""
SEARCH_FILE = "search.json"
"""A file of the run's folder with the progress of its search: the number of edits tried, the number of failing tests,
and how many of these pass with the best edit. Not part of the run's record."""
JobKind = Literal["write", "heal", "fork", "replay", "rival", "resume", "verify", "judge"]
"""What a job does: the command of the same name, for `write` the command `run`, or for `rival` `apply --rival`."""
RUN_KINDS: tuple[JobKind, ...] = ("write", "heal", "fork", "replay", "rival")
"""Kinds that create a new run, whose id is the job's id."""
INSPECTION_KINDS: tuple[JobKind, ...] = ("verify", "judge")
"""Kinds that neither create nor continue a run; the caller waits for the answer."""

JSON_TYPES: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "JobKind": (str,),
    "int": (int,),
    "float": (int, float),
    "Mapping[str, Any]": (dict,),
}
"""The JSON types of the fields below, by their annotation."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A piece of work that runs in its own process, such as one repair.

    Attributes:
        id: An id like that of a run; a new run gets the job's id.
        run: The run that the job creates, continues or inspects.
        request: The arguments as JSON values, which `suture.interfaces.jobs.job_execution` reads.
        flags: Settings of this job by dotted key; they take precedence over the server's.
        caller: The name of who requested it; empty without callers, such as in an editor.
        created_s: When it was requested, in seconds since the epoch.
        tokens: The maximum number of tokens.
        seconds: The maximum wall-clock time in seconds.
        key: The caller's idempotency key: requests with the same key are executed once.
        digest: SHA-256 of the request under that key.
    """

    id: str
    run: str
    kind: JobKind
    request: Mapping[str, Any]
    flags: Mapping[str, Any] = field(default_factory=dict)
    caller: str = ""
    created_s: float = 0.0
    tokens: int = 0
    seconds: float = 0.0
    key: str = ""
    digest: str = ""


@dataclass(frozen=True, kw_only=True)
class JobEnd:
    """How a job ended.

    Attributes:
        exit_code: The exit code of the equivalent command (docs/errors.md), such as 6 for an internal or
            infrastructure error.
        error: What went wrong, in one line; empty without an error.
        fault: The name of the error's class.
        answer: The result as JSON values, if the ledger does not contain it.
        tokens: The tokens that its run has used.
        seconds: The seconds that its run has used.
        ended_s: When it ended, in seconds since the epoch.
    """

    exit_code: int
    error: str = ""
    remedy: str = ""
    fault: str = ""
    answer: Mapping[str, Any] = field(default_factory=dict)
    tokens: int = 0
    seconds: float = 0.0
    ended_s: float = 0.0

    @property
    def cancelled(self) -> bool:
        """Whether the job was stopped before its end."""
        return self.exit_code == Cancelled.exit_code


class JobFailed(SutureError):
    """A job ended with an error in another process; it carries that error's message and exit code."""

    def __init__(self, end: JobEnd) -> None:
        super().__init__(end.error, remedy=end.remedy)
        self.exit_code = end.exit_code


def job_end_from_error(fault: Exception) -> JobEnd:
    """Return the end of a job that an error stopped."""
    name = type(fault).__name__
    if isinstance(fault, SutureError):
        return JobEnd(exit_code=fault.exit_code, error=fault.message, remedy=fault.remedy, fault=name)
    # 6 is the exit code of an internal or infrastructure error (docs/errors.md).
    return JobEnd(exit_code=6, error=f"{name}: {describe_fault(fault)}", fault=name)


def job_as_json(job: Job | JobEnd) -> dict[str, Any]:
    """Return a job or its end as JSON values."""
    return asdict(job)


def job_from_json(plain: Any) -> Job:
    """Return the job encoded by `job_as_json`.

    Raises:
        StorageError: The values are not a job.
    """
    return Job(**_checked_values(Job, plain))


def job_end_from_json(plain: Any) -> JobEnd:
    """Return the job end encoded by `job_as_json`.

    Raises:
        StorageError: The values are not a job end.
    """
    return JobEnd(**_checked_values(JobEnd, plain))


def _checked_values(cls: type[Job | JobEnd], plain: Any) -> dict[str, Any]:
    needed = {"id", "run", "kind", "request"} if cls is Job else {"exit_code"}
    if not isinstance(plain, dict) or not needed <= plain.keys():
        raise StorageError(
            f"a job file does not contain a {cls.__name__}", remedy="move it out of the folder `jobs`"
        )
    types_by_field = {field.name: JSON_TYPES[str(field.type)] for field in fields(cls)}
    values = {name: value for name, value in plain.items() if name in types_by_field}
    for name, value in values.items():
        if not isinstance(value, types_by_field[name]):
            raise StorageError(f"the {name!r} of a {cls.__name__} is a {type(value).__name__}")
    return values
