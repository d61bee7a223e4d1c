"""What roles beside the coder said and did. They inform; the checks decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from suture.core.ledger.event import Payload
from suture.core.records import CodeReview, Critique, Diagnosis, Plan


class PlanMade(Payload, kind="planned"):
    """The planner has cut the task into parts.

    Attributes:
        plan: The parts.
    """

    plan: Plan


@dataclass(frozen=True, kw_only=True)
class ToolStep:
    """One turn of a role that has tools.

    Attributes:
        number: From 1.
        tool: The tool, or `done`; empty where the reply was no action.
        input: What was given to it; of a reply that was no action, its beginning.
        observation: What came of it, or why it was no action.
        code: The block of code that was given to it; empty where there was none.
        chosen: Whether the model asked for it; else it was done before the model was asked.
    """

    number: int
    tool: str
    input: str
    observation: str
    code: str = ""
    chosen: bool = True


class SubtaskStepped(Payload, kind="part.stepped"):
    """A step of whoever writes one part of a plan.

    Attributes:
        goal: What the part is to do.
        step: The step.
    """

    goal: str
    step: ToolStep


class DebuggerStepped(Payload, kind="debugger.stepped"):
    """A step of the debugger.

    Attributes:
        candidate: Hash of the candidate that it looks into.
        step: The step.
    """

    candidate: str
    step: ToolStep


class DiagnosisMade(Payload, kind="diagnosed"):
    """Why a candidate fails, as the debugger says.

    Attributes:
        candidate: Its hash.
        diagnosis: What is wrong with it.
    """

    candidate: str
    diagnosis: Diagnosis


class CandidateCriticised(Payload, kind="criticised"):
    """What the critic says of a candidate.

    Attributes:
        candidate: Its hash.
        critique: The critic's view.
    """

    candidate: str
    critique: Critique


class AdviceGiven(Payload, kind="advised"):
    """What an adviser of an installed package says.

    Attributes:
        role: The adviser's name.
        said: What it says.
    """

    role: str
    advice: tuple[str, ...]


class LessonsDrawn(Payload, kind="lessons.drawn"):
    """The lessons of the run up to now.

    Attributes:
        lessons: One sentence each, five at most.
    """

    lessons: tuple[str, ...]


class TestsWritten(Payload, kind="tests.written"):
    """Tests were written; nobody trusts them yet.

    Attributes:
        role: Who wrote them.
        tests: Their sources.
        dropped: Why others cannot be used -> how many.
    """

    role: str
    tests: tuple[str, ...]
    dropped: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class AssessedTest:
    """The trust that a generated test has earned.

    Attributes:
        test: Its source.
        trust: In [0, 1].
        reasons: Why, in words.
    """

    test: str
    trust: float
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RemovedTest:
    """A generated test that is of no use.

    Attributes:
        test: Its source.
        reason: Why.
    """

    test: str
    reason: str


class TestsAssessed(Payload, kind="tests.assessed"):
    """Generated tests were weighed by how the candidates fare under them.

    Attributes:
        heard: Candidates that were heard.
        behaviours: How many ways these behave in.
        tests: The tests that stay.
        removed: Those that do not.
    """

    candidates: int = 0
    behaviours: int = 0
    tests: tuple[AssessedTest, ...]
    removed: tuple[RemovedTest, ...] = ()


class CandidateOptimised(Payload, kind="optimised"):
    """Code that passes was written more simply.

    Attributes:
        candidate: Hash of the new code.
        of: Hash of the old.
        nodes: Nodes of the syntax trees of the old and the new.
        kept: Whether the new is kept: it is simpler, and passes.
    """

    candidate: str
    original: str
    nodes: tuple[int, ...]
    accepted: bool


class CandidateReviewed(Payload, kind="reviewed"):
    """What a reviewer finds in code that passes.

    Attributes:
        candidate: Its hash.
        review: The findings.
    """

    candidate: str
    review: CodeReview


class RoleDegraded(Payload, kind="role.degraded"):
    """Somebody who helps has failed, and the run goes on without.

    Attributes:
        role: Who.
        act: Tells one failure from another; empty in ledgers that do not name it.
        kind: Class of the error.
        message: Its message, in ASCII.
    """

    role: str
    act: str = ""
    error_type: str = ""
    message: str = ""
