"""The planner: cuts a task into parts, and says which parts need which."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from suture.agents.prompting.fitting import Draft, PromptPart
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.prompting.prompt_parts import advice_part, task_text
from suture.core.records import Lesson, Plan, Subtask
from suture.models.structured import describe_schema

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
