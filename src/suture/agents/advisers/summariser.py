"""The summariser: draws a few short lessons from what was tried, for those who try next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from suture.agents.prompting.fitting import Draft, PromptPart
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.prompting.prompt_parts import EarlierAttempt, advice_part, attempts_part, task_text
from suture.core.records import Lesson
from suture.models.structured import describe_schema

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
