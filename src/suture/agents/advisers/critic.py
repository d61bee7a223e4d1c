"""The critic: reads a candidate beside the task and says what is wrong with it; it never decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from suture.agents.prompting.fitting import Draft
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.prompting.prompt_parts import facts_part, files_part, task_text
from suture.core.records import Counterexample, Critique
from suture.models.structured import describe_schema


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
