"""The critic: reads a candidate beside the task and says what is wrong with it; it never decides."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from suture.agents.prompting.fitting import Draft, PromptPart
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.prompting.prompt_parts import (
    EarlierAttempt,
    advice_part,
    attempts_part,
    facts_part,
    files_part,
    task_text,
)
from suture.agents.roles.coder import RepairBrief
from suture.core.records import (
    CodeReview,
    Concern,
    ConcernKind,
    Counterexample,
    Critique,
    Lesson,
    Plan,
    Severity,
    Subtask,
)
from suture.models.structured_output import describe_schema


@dataclass(frozen=True, kw_only=True)
class CritiqueBrief:
    """What the critic needs.

    Attributes:
        statement: The task, in words or as a stub.
        files: The candidate's code, path -> text.
        passed: How many checks passed.
        total: How many there are.
        facts: What the failing checks saw, most telling first.
    """

    statement: str
    files: Mapping[str, str]
    passed: int = 0
    total: int = 0
    facts: Sequence[Counterexample] = ()


class CritiqueReply(BaseModel):
    """A `Critique` as a model writes it: the issues first, so that the score follows from them."""

    model_config = ConfigDict(frozen=True, title="Critique")

    issues: list[Annotated[str, Field(min_length=1, max_length=240)]] = Field(
        max_length=3, description="what is wrong, one sentence each; [] where nothing is"
    )
    score: float = Field(ge=0, le=1, description="1 is perfect")
    approved: bool = Field(description="true only where the code does all that the task demands")

    def record(self) -> Critique:
        """The record of it; what is said twice is kept once."""
        return Critique(issues=tuple(dict.fromkeys(self.issues)), score=self.score, approved=self.approved)


def critique_draft(brief: CritiqueBrief, prompt: Prompt) -> Draft:
    """The question, before it is cut to size. Of passing code it asks for what the checks do not see."""
    passing = bool(brief.total) and brief.passed == brief.total
    texts = {
        "task": task_text(brief.statement),
        "outcome": _outcome(brief),
        "how": prompt.render("passing" if passing else "failing"),
        "format": describe_schema(CritiqueReply),
    }
    parts = {"facts": facts_part(brief.facts), "files": files_part(brief.files)}
    return Draft(prompt=prompt, template="critique", texts=texts, parts=parts)


def _outcome(brief: CritiqueBrief) -> str:
    if not brief.total:
        return "It was not tested."
    return f"{brief.passed} of {brief.total} tests passed."


MOST_SUBTASKS = 4


@dataclass(frozen=True, kw_only=True)
class PlanBrief:
    """What the planner needs.

    Attributes:
        statement: The task, in words or as a stub.
        module: The file that the code goes to.
        project: Paths of the files that are there already.
        lessons: What earlier attempts taught.
    """

    statement: str
    module: str
    project: Collection[str] = ()
    lessons: Sequence[Lesson] = ()


class SubtaskReply(BaseModel):
    """A `Subtask` as a model writes it."""

    model_config = ConfigDict(frozen=True, title="Subtask")

    goal: str = Field(min_length=1, max_length=300, description="what to write, in one sentence")
    needs: list[Annotated[int, Field(ge=1, le=MOST_SUBTASKS)]] = Field(
        max_length=MOST_SUBTASKS,
        description="numbers of earlier subtasks that it needs; [] for none",
    )


class PlanReply(BaseModel):
    """A `Plan` as a model writes it."""

    model_config = ConfigDict(frozen=True, title="Plan")

    subtasks: list[SubtaskReply] = Field(min_length=1, max_length=MOST_SUBTASKS)

    def record(self) -> Plan:
        """The record of it; that a part needs itself or a later one is left out, since it cannot be had."""
        parts = [
            Subtask(goal=part.goal, needs=tuple(sorted({need for need in part.needs if need < number})))
            for number, part in enumerate(self.subtasks, 1)
        ]
        return Plan(subtasks=tuple(parts))


def plan_draft(brief: PlanBrief, prompt: Prompt) -> Draft:
    """The question, before it is cut to the room there is."""
    texts = {
        "task": task_text(brief.statement),
        "module": brief.module,
        "most": str(MOST_SUBTASKS),
        "format": describe_schema(PlanReply),
    }
    project = PromptPart(
        pieces=[f"- {path}" for path in sorted(brief.project)],
        before="\nThese files are there already:\n",
        after="\n",
    )
    parts = {"project": project, "lessons": advice_part([lesson.text for lesson in brief.lessons])}
    return Draft(prompt=prompt, template="plan", texts=texts, parts=parts)


class ConcernReply(BaseModel):
    """A `Concern` as a model writes it: the problem first, so that the labels follow from it."""

    model_config = ConfigDict(frozen=True, title="Concern")

    problem: str = Field(min_length=1, max_length=240, description="one sentence")
    kind: ConcernKind
    severity: Severity
    line: int = Field(ge=0, description="the line of the code, 0 for none")


class ReviewReply(BaseModel):
    """A `Review` as a model writes it."""

    model_config = ConfigDict(frozen=True, title="Review")

    concerns: list[ConcernReply] = Field(max_length=4, description="[] where there is nothing to say")

    def record(self) -> CodeReview:
        """The review as the run keeps it."""
        return CodeReview(concerns=tuple(Concern(**concern.model_dump()) for concern in self.concerns))


def review_draft(brief: RepairBrief, prompt: Prompt) -> Draft:
    """The question, before it is cut to the room there is."""
    texts = {
        "task": f"Task:\n\n{task_text(brief.statement)}\n" if brief.statement else "",
        "format": describe_schema(ReviewReply),
    }
    return Draft(prompt=prompt, template="review", texts=texts, parts={"files": files_part(brief.files)})


MOST_LESSONS = 5


@dataclass(frozen=True, kw_only=True)
class LessonsBrief:
    """What the summariser needs.

    Attributes:
        statement: The task, in words or as a stub; empty where there is only code and tests.
        history: What was tried, oldest first.
        remarks: What the debugger or the critic said of it, one sentence each.
        known: The lessons so far; the answer takes their place.
    """

    statement: str
    history: Sequence[EarlierAttempt]
    remarks: Sequence[str] = ()
    known: Sequence[Lesson] = ()


class LessonsReply(BaseModel):
    """Lessons as a model writes them."""

    model_config = ConfigDict(frozen=True, title="Lessons")

    lessons: list[Annotated[str, Field(min_length=1, max_length=200)]] = Field(
        min_length=1, max_length=MOST_LESSONS, description="one short sentence each"
    )

    def record(self) -> tuple[Lesson, ...]:
        """The records of them; what is said twice is kept once."""
        by_words = {_words(text): Lesson(text=text) for text in reversed(self.lessons)}
        return tuple(reversed(by_words.values()))


def lessons_draft(brief: LessonsBrief, prompt: Prompt) -> Draft:
    """The question, before it is cut to the room there is."""
    texts = {
        "task": f"Task:\n\n{task_text(brief.statement)}\n" if brief.statement else "",
        "count": str(MOST_LESSONS),
        "format": describe_schema(LessonsReply),
    }
    known = PromptPart(
        pieces=[f"- {lesson.text}" for lesson in brief.known],
        before="\nLessons so far; keep those that still hold:\n",
        after="\n",
    )
    parts = {"history": attempts_part(brief.history), "remarks": advice_part(brief.remarks), "known": known}
    return Draft(prompt=prompt, template="lessons", texts=texts, parts=parts)


def _words(text: str) -> str:
    return " ".join("".join(c if c.isalnum() else " " for c in text.casefold()).split())
