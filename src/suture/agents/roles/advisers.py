"""Roles that advise the coder: critic, planner and summariser. They decide nothing.

Each `*Reply` is the JSON that the model answers with. `record` returns the record that the run keeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated

from pydantic import BaseModel, Field

from suture.agents.prompting.fitting import PromptDraft
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.prompting.prompt_parts import (
    EarlierAttempt,
    advice_part,
    attempts_part,
    facts_part,
    files_part,
    list_part,
    render_optional_task,
    render_task,
)
from suture.agents.roles.coder import RepairBrief, failing_code_parts
from suture.agents.roles.testers import StatedExample
from suture.agents.tuning import MAX_LESSONS, MAX_SUBTASKS
from suture.core.records import Critique, Plan, Subtask
from suture.models.structured_output import describe_schema


class CritiqueReply(BaseModel, frozen=True, title="Critique"):
    """A `Critique` as a model writes it: the issues come first, so that the score follows from them."""

    issues: list[Annotated[str, Field(min_length=1, max_length=240)]] = Field(
        max_length=3, description="what is wrong, one sentence each; [] where nothing is"
    )
    score: float = Field(ge=0, le=1, description="1 is perfect")
    approved: bool = Field(description="true only where the code does all that the task demands")

    def record(self) -> Critique:
        """Return the `Critique`; repeated issues are kept once."""
        return Critique(issues=tuple(dict.fromkeys(self.issues)), score=self.score, approved=self.approved)


def draft_critique_prompt(
    brief: RepairBrief, prompt: Prompt, *, passed: int = 0, total: int = 0
) -> PromptDraft:
    """Return the critic's prompt. For passing code it asks what the checks do not see."""
    texts = {
        "task": render_task(brief.statement),
        "outcome": f"{passed} of {total} tests passed." if total else "It was not tested.",
        "how": prompt.render("passing" if total and passed == total else "failing"),
        "format": describe_schema(CritiqueReply),
    }
    parts = failing_code_parts(brief)
    if not brief.failure_report:
        parts["facts"] = facts_part(brief.facts)
    del parts["output"]  # The critic of a small model sees no output.
    return PromptDraft(prompt=prompt, template="critique", texts=texts, parts=parts)


class Objection(BaseModel, frozen=True, title="Objection"):
    """An objection to code that passes, as a capable model writes it."""

    demand: str = Field(
        min_length=1, max_length=240, description="the words of the task that the code ignores"
    )
    problem: str = Field(
        min_length=1, max_length=240, description="what the code does instead, in one sentence"
    )
    call: str = Field(
        max_length=400, description="a call that shows it, such as add(2, 3); empty if none can"
    )
    expected: str = Field(
        max_length=800,
        description="the result that the task demands, as a Python literal, or the name of an exception; "
        "empty without a call",
    )
    raises: bool = Field(description="true where the call must raise that exception")

    @property
    def example(self) -> StatedExample | None:
        """The call that shows the objection, if there is one."""
        if not self.call.strip() or not self.expected.strip():
            return None
        return StatedExample.model_construct(
            demand=self.demand, call=self.call, expected=self.expected, raises=self.raises
        )


class ObjectionsReply(BaseModel, frozen=True, title="Objections"):
    """A critique of code that passes, as a capable model writes it."""

    objections: list[Objection] = Field(
        max_length=3, description="[] where the code does all that is demanded"
    )
    score: float = Field(ge=0, le=1, description="1 is perfect")


def draft_objection_prompt(brief: RepairBrief, prompt: Prompt, *, checks: int) -> PromptDraft:
    """Return a capable critic's prompt about code that passes all of its checks."""
    texts = {
        "task": render_task(brief.statement),
        "outcome": "Its only check passes." if checks == 1 else f"All {checks} checks pass.",
        "format": describe_schema(ObjectionsReply),
    }
    return PromptDraft(
        prompt=prompt, template="object", texts=texts, parts={"files": files_part(brief.files)}
    )


class SubtaskReply(BaseModel, frozen=True, title="Subtask"):
    """A `Subtask` as a model writes it."""

    goal: str = Field(min_length=1, max_length=300, description="what to write, in one sentence")
    needs: list[Annotated[int, Field(ge=1, le=MAX_SUBTASKS)]] = Field(
        max_length=MAX_SUBTASKS,
        description="numbers of earlier subtasks that it needs; [] for none",
    )


class PlanReply(BaseModel, frozen=True, title="Plan"):
    """A `Plan` as a model writes it."""

    subtasks: list[SubtaskReply] = Field(min_length=1, max_length=MAX_SUBTASKS)

    def record(self) -> Plan:
        """Return the `Plan`. A subtask can need only earlier ones; other numbers in `needs` are dropped."""
        subtasks = [
            Subtask(goal=subtask.goal, needs=tuple(sorted({need for need in subtask.needs if need < number})))
            for number, subtask in enumerate(self.subtasks, 1)
        ]
        return Plan(subtasks=tuple(subtasks))


def draft_plan_prompt(
    prompt: Prompt,
    *,
    statement: str,
    module: str,
    project: Iterable[str] = (),
    lessons: Sequence[str] = (),
) -> PromptDraft:
    """Return the planner's prompt. `project` holds the paths of existing files."""
    texts = {
        "task": render_task(statement),
        "module": module,
        "most": str(MAX_SUBTASKS),
        "format": describe_schema(PlanReply),
    }
    parts = {
        "project": list_part("These files are there already", sorted(project)),
        "lessons": advice_part(lessons),
    }
    return PromptDraft(prompt=prompt, template="plan", texts=texts, parts=parts)


class LessonsReply(BaseModel, frozen=True, title="Lessons"):
    """Lessons as a model writes them."""

    lessons: list[Annotated[str, Field(min_length=1, max_length=200)]] = Field(
        min_length=1, max_length=MAX_LESSONS, description="one short sentence each"
    )

    def unique(self) -> tuple[str, ...]:
        """Return the lessons. Of lessons that consist of the same words, the first is kept."""
        lesson_by_words = {_words(text): text for text in reversed(self.lessons)}
        return tuple(reversed(lesson_by_words.values()))


def draft_lessons_prompt(
    prompt: Prompt,
    *,
    statement: str,
    history: Sequence[EarlierAttempt],
    remarks: Sequence[str] = (),
    lessons: Sequence[str] = (),
) -> PromptDraft:
    """Return the summariser's prompt. Its answer replaces the lessons so far."""
    texts = {
        "task": render_optional_task(statement, "Task:\n\n"),
        "count": str(MAX_LESSONS),
        "format": describe_schema(LessonsReply),
    }
    parts = {
        "history": attempts_part(history),
        "remarks": advice_part(remarks),
        "known": list_part("Lessons so far; keep those that still hold", lessons),
    }
    return PromptDraft(prompt=prompt, template="lessons", texts=texts, parts=parts)


def _words(text: str) -> str:
    """Return the words of a string without case and punctuation."""
    return " ".join("".join(c if c.isalnum() else " " for c in text.casefold()).split())
