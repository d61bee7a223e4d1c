"""The question why code fails, and the type of its answer."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from suture.models.structured import describe_schema
from suture.records import Diagnosis, FaultCategory, Strategy
from suture.roles.coding.coder import RepairBrief
from suture.roles.prompting.fitting import Draft, Part
from suture.roles.prompting.prompt_files import Prompt
from suture.roles.prompting.prompt_parts import attempts_part, facts_part, files_part, output_part, task_text

__all__ = ["DiagnosisReply", "diagnosis_draft"]


class DiagnosisReply(BaseModel):
    """A `Diagnosis` as a model writes it: the cause first, so that the label follows from it."""

    model_config = ConfigDict(frozen=True, title="Diagnosis")

    root_cause: str = Field(min_length=1, max_length=400, description="what goes wrong, and in which line")
    category: FaultCategory
    strategy: Strategy
    confidence: float = Field(ge=0, le=1)

    def record(self) -> Diagnosis:
        """The record of it."""
        return Diagnosis(**self.model_dump())


def diagnosis_draft(brief: RepairBrief, prompt: Prompt) -> Draft:
    """The question, before it is cut to the room there is."""
    texts = {
        "task": f"{task_text(brief.statement)}\n" if brief.statement else "",
        "format": describe_schema(DiagnosisReply),
    }
    parts = {
        "history": attempts_part(brief.history),
        "facts": facts_part(brief.facts),
        "output": output_part(brief.output) if not brief.facts else Part(pieces=()),
        "files": files_part(brief.files),
    }
    return Draft(prompt=prompt, template="diagnose", texts=texts, parts=parts)
