"""What somebody asked for, and how it ended, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from suture.errors import Cancelled, StorageError, SutureError

JobKind = Literal["write", "heal", "fork", "replay", "resume", "verify"]
RUN_KINDS: tuple[JobKind, ...] = ("write", "heal", "fork", "replay")
"""Kinds that make a new run, called as the job is."""

KINDS: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "JobKind": (str,),
    "int": (int,),
    "float": (int, float),
    "Mapping[str, Any]": (dict,),
}
"""What the fields below are in JSON."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One piece of work for a process of its own.

    Attributes:
        id: As ids of runs are; a new run is called as its job.
        run: The run that it makes, goes on with, or looks at.
        kind: What is to be done.
        request: The arguments, as JSON values (`suture.interfaces.jobs.job_execution` reads them).
        flags: Settings of this job by their dotted key; they beat the server's own.
        caller: Who asked.
        created_s: When, in seconds since the epoch.
        tokens: The most that it may use.
        seconds: The same, of wall-clock time.
        key: The caller's name for the request, by which they may ask twice and have it done once.
        digest: SHA-256 of what was asked under that name.
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
        exit_code: As of the command that does the same.
        error: What went wrong, in one line; empty where nothing did.
        remedy: What the caller can do about it.
        fault: The name of the error's class.
        answer: What came of it, as JSON values, where the ledger does not say.
        tokens: What its run had used then.
        seconds: The same, of wall-clock time.
        ended_s: When, in seconds since the epoch.
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
        """Whether it was stopped before its end."""
        return self.exit_code == Cancelled.exit_code


class JobFailed(SutureError):
    """A job ended with an error, in another process; these are its words, and its exit code."""

    def __init__(self, end: JobEnd) -> None:
        super().__init__(end.error, remedy=end.remedy)
        self.exit_code = end.exit_code


def job_end_from_error(fault: SutureError) -> JobEnd:
    """The end of a job that a fault stopped."""
    return JobEnd(
        exit_code=fault.exit_code, error=fault.message, remedy=fault.remedy, fault=type(fault).__name__
    )


def job_as_json(job: Job | JobEnd) -> dict[str, Any]:
    """A job or its end as JSON values."""
    return asdict(job)


def job_from_json(plain: Any) -> Job:
    """The job of `job_as_json`'s values.

    Raises:
        StorageError: They are none.
    """
    return Job(**_values(Job, plain))


def job_end_from_json(plain: Any) -> JobEnd:
    """The end of `job_as_json`'s values.

    Raises:
        StorageError: They are none.
    """
    return JobEnd(**_values(JobEnd, plain))


def _values(cls: type[Job | JobEnd], plain: Any) -> dict[str, Any]:
    needed = {"id", "run", "kind", "request"} if cls is Job else {"exit_code"}
    if not isinstance(plain, dict) or not needed <= plain.keys():
        raise StorageError(f"a file of a job is no {cls.__name__}", remedy="move it out of the folder `jobs`")
    known = {one.name: KINDS[str(one.type)] for one in fields(cls)}
    values = {name: value for name, value in plain.items() if name in known}
    for name, value in values.items():
        if not isinstance(value, known[name]):
            raise StorageError(f"the {name!r} of a {cls.__name__} is a {type(value).__name__}")
    return values
