"""Events of a run as a whole: how it starts, resumes and ends, and what its task is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from suture.core.ledger.event import Payload
from suture.core.records import FLAKY_CAUSES, FaultCause, Outcome, Reason, TaskKind


@dataclass(frozen=True, kw_only=True)
class ForkPoint:
    """The point of another run at which a fork begins. A fork is a run that continues a copy of another one.

    Attributes:
        run: Id of the other run.
        step: Number of decisions that the other run had carried out.
        state: Blob of the graph's state at that point; empty if the fork failed before it copied anything.
        events: Number of events after this one that were copied from the other run.
    """

    run: str
    step: int
    state: str
    events: int


class RunStarted(Payload, kind="run.started"):
    """A run starts. Large values are in the run folder. Keys are never recorded.

    Attributes:
        schema_version: Version of the graph's state.
        kind: Whether the run writes new code or heals existing code.
        statement: Statement of the task, at most 2,000 characters.
        task: Blob of the task, files included.
        recipe: Name of the recipe.
        model: Model that writes the code, as `provider:model`.
        unpriced_models: Models whose price is unknown; their cost is not counted.
        default_model: Model of the roles that have none of their own.
        sandbox: Name of the preferred sandbox; `sandbox.substituted` says if another one is used.
        limits: Limits of the budget by the names of its settings; null means no limit.
        settings: Blob of the settings, without keys.
        interpreter: What `python` means in the test command, as a `languages.Interpreter`; null if the run
            has no interpreter.
        project: Folder of the project.
        escalation_model: Model that takes over a hard case, as `provider:model`; empty if none does.
        fork: Where the run begins, if it is a fork of another run; otherwise null.
        replayed_run: Id of the run that this one replays; empty if it is not a replay.
        excluded_files: Files that the run does not read because they may hold secrets.
        namespace: Namespace of the run in a shared database.
        preparation_s: Seconds between the user's request and this event. The budget counts them as used.
        unsearched_language: Label of the code's language, if no search without a model repairs it; otherwise empty.
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
    unsearched_language: str = ""


class RunResumed(Payload, kind="run.resumed"):
    """A run that was killed, was paused or failed continues.

    Attributes:
        next_nodes: Nodes of the graph that run next; empty at the very beginning.
        project: Folder of the project.
    """

    next_nodes: tuple[str, ...] = ()
    project: str = ""


class SandboxSubstituted(Payload, kind="sandbox.substituted"):
    """The run uses another sandbox because the preferred one cannot be built on this machine.

    Attributes:
        preferred: Name of the sandbox that cannot be used.
        used: Name of the sandbox that is used.
        level: How well it isolates, confirmed by the self-test.
        cause: Why the preferred one cannot be used.
    """

    preferred: str
    used: str
    level: str
    cause: str


class _RunEnd(Payload):
    """The fields that `run.finished` and `run.paused` share."""

    outcome: Outcome
    reason: Reason
    best: str | None = None
    confidence: float = 0.0
    warnings: tuple[str, ...] = ()
    result: str = ""


class RunFinished(_RunEnd, kind="run.finished"):
    """A run ends with an outcome.

    Attributes:
        outcome: The outcome.
        reason: Why the run ended with this outcome.
        best: Hash of the best candidate.
        confidence: Confidence in the result, in [0, 1] (see docs/proof.md).
        warnings: Signs that the change games the tests.
        result: Blob of the result.
    """


class RunPaused(_RunEnd, kind="run.paused"):
    """A run waits for a person, and its process ends.

    Attributes:
        outcome: `waiting`.
        reason: `waiting_for_answer`, with the question as its detail.
        best: Hash of the best candidate so far.
        confidence: Confidence in the result so far, in [0, 1].
        warnings: Signs that the change games the tests.
        result: Blob of the result so far.
    """


class RunFailed(Payload, kind="run.failed"):
    """A run ends with an error that the user can fix.

    Attributes:
        error_type: Class of the error in `suture.errors`.
        message: Message of the error.
    """

    error_type: str
    message: str


class TaskPrepared(Payload, kind="task.prepared"):
    """The task is complete: its checks and its test command are known.

    Attributes:
        checks: Number of deciding checks that are not in the test command: function-level checks, and smoke
            checks of a whole project.
        test_command: The user's test command; empty if there is none.
        test_origin: How the test command was found.
        language: Language of the code.
        toolchain: Program that the tests of the language need.
        python: What `python` means in the test command: an absolute path.
        python_origin: How that interpreter was chosen.
        unused_examples: Parts of the statement that look like examples and did not become checks.
        inferred_examples: Checks whose call the statement does not show, as in `3661 becomes '1:01:01'`.
        tools: Names of linters, type checkers and compilers in the test command, whose diagnostics are checks.
    """

    checks: int
    test_command: tuple[str, ...] = ()
    test_origin: str = ""
    language: str = ""
    toolchain: str = ""
    python: str = ""
    python_origin: str = ""
    unused_examples: tuple[str, ...] = ()
    inferred_examples: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class NonCodeFailure:
    """A failing test that no change of the code can fix.

    Attributes:
        test: Id of the test.
        cause: Cause of the failure.
        explanation: The cause in words.
        advice: What to do about it; empty if there is no specific advice.
        is_permanent: Whether the test fails with any code, and not only with the present code.
    """

    test: str
    cause: FaultCause
    explanation: str
    advice: str = ""
    is_permanent: bool = False


class TriageFinished(Payload, kind="triage.finished"):
    """Triage decided whether the code is at fault at all.

    Attributes:
        cause: Why no change of the code can help; null if a change may help.
        non_code_failures: Failing tests that are not the code's fault: the first 500, and all flaky ones.
        code_failure_count: Number of failing tests that are the code's fault.
        rootdir: Folder that pytest's test ids are relative to, as a path in the project.
    """

    cause: FaultCause | None
    non_code_failures: tuple[NonCodeFailure, ...]
    code_failure_count: int
    rootdir: str = "."

    @property
    def flaky_tests(self) -> frozenset[str]:
        """Ids of the flaky tests that fail beside faults of the code, and so decide nothing; else empty."""
        failures = self.non_code_failures if self.cause is None else ()
        return frozenset(failure.test for failure in failures if failure.cause in FLAKY_CAUSES)
