"""What a format of task folders must provide, and the settings and faults that all formats share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from suture.bench.folder_tasks.folder_rows import AttemptRow
from suture.bench.running.evaluation import explain_infrastructure_fault
from suture.core.ledger import RunFolder, read_ledger
from suture.core.records import Result
from suture.core.settings import Settings
from suture.errors import PrerequisiteError, SandboxError, SutureError, UsageError
from suture.models import Model
from suture.sandbox import Sandbox

MAX_REASON_CHARS = 200
"""Length of the reason of a failed attempt. Chosen by judgement; not measured."""
TERMINAL_CODE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
"""Matches a control sequence, such as a colour of Maven's output."""


class UnusableTask(SutureError):
    """A task cannot be measured on this machine, for a reason that no attempt could change."""


@dataclass(frozen=True, kw_only=True)
class AttemptTools:
    """What the attempts at a task need.

    Attributes:
        model: The model of every role.
        settings: The settings; run folders are below their `paths.home`.
        judge: Another sandbox, in which hidden tests run.
    """

    model: Model
    settings: Settings
    sandbox: Sandbox
    judge: Sandbox


class FolderTask(Protocol):
    """A task that was read from a folder."""

    @property
    def id(self) -> str:
        """The id, unique in its set; the part before a `/` groups tasks in tables."""
        ...

    @property
    def content_hash(self) -> str:
        """Hash of everything that defines the task."""
        ...

    @property
    def max_attempts(self) -> int:
        """Number of attempts that the benchmark allows."""
        ...

    async def measure(self, tools: AttemptTools) -> tuple[AttemptRow, ...]:
        """Check that the task works on this machine, then attempt it and grade each attempt.

        Raises:
            UnusableTask: The task does not work here.
            SutureError: The sandbox or the model failed.
        """
        ...


@contextmanager
def refuse_task_on_fault() -> Iterator[None]:
    """Turn a fault that is about one task, such as a missing language, into `UnusableTask`.

    A fault of the sandbox stays what it is, because every other task would have it too.
    """
    try:
        yield
    except SandboxError:
        raise
    except (PrerequisiteError, UsageError) as fault:
        raise UnusableTask(f"its tests cannot run here: {fault}") from fault


def shorten_reason(text: str) -> str:
    """Return why an attempt failed as one short line without terminal codes."""
    return " ".join(TERMINAL_CODE.sub("", text).split())[:MAX_REASON_CHARS]


def require_result(result: Result, settings: Settings) -> None:
    """Check that a run ended by what the model wrote, and not because the model or the sandbox failed.

    Raises:
        UnusableTask: It has no result.
    """
    events = read_ledger(RunFolder(settings.paths.home / "runs" / result.run_id).ledger_path).events
    if fault := explain_infrastructure_fault(result, events):
        raise UnusableTask(fault)


def hash_files(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return files, path -> content, as text that can be hashed with the other fields of a task."""
    return {path: content.decode("latin-1") for path, content in sorted(files.items())}
