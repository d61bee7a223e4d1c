"""How a run begins, goes on and ends, and what it was given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from suture.core.ledger.event import Payload
from suture.core.records import FaultCause, Outcome, Reason, TaskKind


@dataclass(frozen=True, kw_only=True)
class ForkPoint:
    """Where a fork begins.

    Attributes:
        run: The run that it is a fork of.
        at: How many decisions of that run had been carried out.
        state: Blob of the graph's state then; empty where the fork failed before it had taken over anything.
        events: How many events after this one were taken over.
    """

    run: str
    step: int
    state: str
    events: int


class RunStarted(Payload, kind="run.started"):
    """A run begins. What is large lies in its folder; keys lie nowhere.

    Attributes:
        schema_version: Of the graph's state.
        kind: What is wanted: new code, or code mended.
        statement: The task in words, at most 2,000 characters.
        task: Blob of the task, files included.
        recipe: The recipe's name.
        model: Who writes the code, as `provider:model`.
        unpriced_models: Models whose price nobody knows, so that their money is not counted.
        default_model: Who answers for roles without a model of their own.
        sandbox: The wall's name.
        limits: What the run may use, by the names of the budget's settings; null means no limit.
        settings: Blob of the settings, without keys.
        interpreter: What `python` means in the test command, as a `languages.Interpreter`; null for none.
        project: The folder that it is about.
        escalation_model: Who takes over a hard case, as `provider:model`.
        forks: Where it begins, where it is a fork of another run.
        replays: The run that it does again.
        left_out: Files that no run sees, as they may hold secrets.
        namespace: Whose run it is among those that share a database.
        seconds: Those that were used since it was asked for, before it could begin.
    """

    schema_version: int = 0
    kind: TaskKind
    statement: str = ""
    task: str = ""
    recipe: str = ""
    model: str = ""
    unpriced_models: tuple[str, ...] = ()
    default_model: str = ""
    sandbox: str = ""
    limits: Mapping[str, float | None] = field(default_factory=dict)
    settings: str = ""
    interpreter: Mapping[str, Any] | None = None
    project: str = ""
    escalation_model: str = ""
    fork: ForkPoint | None = None
    replayed_run: str = ""
    excluded_files: tuple[str, ...] = ()
    namespace: str = "default"
    preparation_s: float = 0.0


class RunResumed(Payload, kind="run.resumed"):
    """A run goes on that was killed, was parked, or met a fault that has passed.

    Attributes:
        at: Nodes of the graph that come next; none at the very beginning.
        project: The folder that it is about.
    """

    next_nodes: tuple[str, ...] = ()
    project: str = ""


class _Stand(Payload):
    outcome: Outcome
    reason: Reason
    best: str | None = None
    confidence: float = 0.0
    warnings: tuple[str, ...] = ()
    result: str = ""


class RunFinished(_Stand, kind="run.finished"):
    """A run ends with an outcome of its own.

    Attributes:
        outcome: One of the closed set.
        reason: Why the run ended so.
        best: Hash of the best candidate.
        confidence: In [0, 1], see docs/proof.md.
        warnings: Signs that the change games the tests.
        result: Blob of the result.
    """


class RunPaused(_Stand, kind="run.parked"):
    """A run waits for a person, and its process ends.

    Attributes:
        outcome: `waiting`.
        reason: `waiting_for_answer`, with the question as its detail.
        best: Hash of the best candidate up to now.
        confidence: In [0, 1].
        warnings: Signs that the change games the tests.
        result: Blob of the result up to now.
    """


class RunFailed(Payload, kind="run.refused"):
    """A run ends by an error that is the user's to set right.

    Attributes:
        kind: Class of the error, of `suture.errors`.
        message: Its message.
    """

    error_type: str
    message: str


class TaskPrepared(Payload, kind="task.prepared"):
    """The checks are there.

    Attributes:
        checks: Checks that decide: of functions, and looks at a project that is started.
        test_command: The user's test command; empty where there is none.
        test_origin: How it was found.
        language: What the code is written in; empty for Python in ledgers of earlier versions.
        toolchain: The program that the language's tests need.
        python: What `python` means in the test command: an absolute path.
        python_origin: How that was chosen.
        unread: What looks like an example of the statement and became no check.
    """

    checks: int
    test_command: tuple[str, ...] = ()
    test_origin: str = ""
    language: str = ""
    toolchain: str = ""
    python: str = ""
    python_origin: str = ""
    unused_examples: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class NonCodeFailure:
    """A failing test that no change of the code could help.

    Attributes:
        test: Its id.
        cause: Why.
        why: The same in words.
        advice: What to do about it; empty where nothing particular.
        stays: Whether it fails so whatever the code is, and not only as the code is now.
    """

    test: str
    cause: FaultCause
    explanation: str
    advice: str = ""
    is_permanent: bool = False


class TriageFinished(Payload, kind="triage.finished"):
    """It was asked whether the code is at fault at all.

    Attributes:
        cause: Why no change of the code could help; null where one may.
        set_apart: Failing tests that are not the code's, at most 500.
        code_failure_count: How many failing tests are.
        rootdir: The folder from which pytest itself counts the ids of tests, seen from the project's.
    """

    cause: FaultCause | None
    non_code_failures: tuple[NonCodeFailure, ...]
    code_failure_count: int
    rootdir: str = "."
