"""The reviewer: reads code that works, for its security and quality; what it finds decides nothing."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from suture.agents.coding.coder import RepairBrief
from suture.agents.prompting.fitting import Draft
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.prompting.prompt_parts import files_part, task_text
from suture.core.records import CodeReview, Concern, ConcernKind, Severity
from suture.models.structured import describe_schema


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
