"""Events of the roles besides the coder, such as the planner, the critic and the debugger.

What a role says informs the run. Only checks decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from suture.core.ledger.event import Payload
from suture.core.records import Critique, Diagnosis, FailingGeneratedTest, Plan


class PlanMade(Payload, kind="plan.made"):
    """The planner split the task into subtasks.

    Attributes:
        plan: The subtasks.
    """

    plan: Plan


@dataclass(frozen=True, kw_only=True)
class ToolStep:
    """One step of a role that calls tools.

    In each step, the model replies with an action: the name of a tool and its input, or `done`.

    Attributes:
        number: Number of the step, from 1.
        tool: Tool that was used, or `done`; empty if the reply was not an action.
        input: Input of the tool. If the reply was not an action, its beginning.
        observation: Answer of the tool. If the reply was not an action, why not.
        code: Block of code in the tool's input; empty if there was none.
        chosen: Whether the model chose the step. Suture itself takes the first steps, before it asks.
    """

    number: int
    tool: str
    input: str
    observation: str
    code: str = ""
    chosen: bool = True


class SubtaskStepped(Payload, kind="subtask.stepped"):
    """The author of one subtask of a plan took a step.

    Attributes:
        goal: Goal of the subtask.
        step: The step.
    """

    goal: str
    step: ToolStep


class DebuggerStepped(Payload, kind="debugger.stepped"):
    """The debugger took a step.

    Attributes:
        candidate: Hash of the candidate under investigation.
        step: The step.
    """

    candidate: str
    step: ToolStep


class DiagnosisMade(Payload, kind="diagnosis.made"):
    """The debugger diagnosed why a candidate fails.

    Attributes:
        candidate: Hash of the candidate.
        diagnosis: What is wrong with it.
    """

    candidate: str
    diagnosis: Diagnosis


class CandidateCriticised(Payload, kind="candidate.criticised"):
    """The critic criticised a candidate.

    Attributes:
        candidate: Hash of the candidate.
        critique: The critique, without the refuted issues.
        refuted: Issues whose example the candidate already answers as the critic demands.
    """

    candidate: str
    critique: Critique
    refuted: tuple[str, ...] = ()


class AdviceGiven(Payload, kind="advice.given"):
    """An adviser from an installed package gave advice.

    Attributes:
        role: Name of the adviser.
        advice: Its advice, one text per point.
    """

    role: str
    advice: tuple[str, ...]


class LessonsDrawn(Payload, kind="lessons.drawn"):
    """The summariser drew lessons from the run so far.

    Attributes:
        lessons: The lessons, one sentence each, at most five.
    """

    lessons: tuple[str, ...]


class TestsWritten(Payload, kind="tests.written"):
    """A role wrote tests. They have no trust yet.

    Attributes:
        role: Role that wrote them.
        tests: Sources of the tests.
        dropped: Reason why tests cannot be used -> number of tests that were dropped for it.
    """

    role: str
    tests: tuple[str, ...]
    dropped: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class AssessedTest:
    """The trust in a generated test.

    Attributes:
        test: Source of the test.
        trust: Trust in [0, 1].
        reasons: Reasons for the trust, in words.
        failed_on: Hashes of the candidates that fail it.
    """

    test: str
    trust: float
    reasons: tuple[str, ...] = ()
    failed_on: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RemovedTest:
    """A generated test that is not useful.

    Attributes:
        test: Source of the test.
        reason: Why it is not useful.
    """

    test: str
    reason: str


class TestsAssessed(Payload, kind="tests.assessed"):
    """The trust in generated tests was assessed, by running them on the candidates.

    Attributes:
        candidates: Number of candidates that the tests ran on.
        behaviours: Number of different behaviours among these candidates.
        tests: The useful tests.
        removed: The tests that are not useful.
    """

    candidates: int = 0
    behaviours: int = 0
    tests: tuple[AssessedTest, ...]
    removed: tuple[RemovedTest, ...] = ()


class GeneratedTestsFailed(Payload, kind="generated_tests.failed"):
    """Tests by a model fail on the candidate that is handed over. They decided nothing.

    Attributes:
        candidate: Hash of the candidate.
        tests: The tests, the most trusted first.
    """

    candidate: str
    tests: tuple[FailingGeneratedTest, ...]


class CandidateOptimised(Payload, kind="candidate.optimised"):
    """The optimiser rewrote a passing candidate to make it simpler.

    Attributes:
        candidate: Hash of the new code.
        original: Hash of the old code.
        nodes: Two numbers: syntax tree nodes of the old code, and of the new code.
        accepted: Whether the new code is used: it is simpler, and passes.
    """

    candidate: str
    original: str
    nodes: tuple[int, ...]
    accepted: bool


class RoleDegraded(Payload, kind="role.degraded"):
    """A supporting role failed, and the run continues without it.

    Attributes:
        role: The role.
        act: Identifies the call that failed.
        error_type: Class of the error in `suture.errors`.
        message: Message of the error, in ASCII.
    """

    role: str
    act: str = ""
    error_type: str = ""
    message: str = ""
