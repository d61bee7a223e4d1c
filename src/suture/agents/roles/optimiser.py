"""The optimiser: rewrites code that passes; trusted checks decide whether the rewrite is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from suture.agents.prompting.fitting import PromptDraft
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.prompting.prompt_parts import files_part, render_optional_task
from suture.agents.replies.coder_reply import files_from_reply
from suture.agents.roles.coder import RepairBrief
from suture.models import Reply

OptimiseGoal = Literal["faster", "simpler"]


@dataclass(frozen=True, kw_only=True)
class OptimiseBrief:
    """What the optimiser needs.

    Attributes:
        files: The passing code, path -> text.
        goal: Whether the code should become faster or simpler.
    """

    statement: str
    files: Mapping[str, str]
    entry_point: str | None = None
    goal: OptimiseGoal = "simpler"


def draft_optimiser_prompt(brief: OptimiseBrief, prompt: Prompt) -> PromptDraft:
    """Return the optimiser's prompt; `optimised_files` reads the answer."""
    texts = {
        "task": render_optional_task(brief.statement, "Task:\n\n"),
        "goal": prompt.render(brief.goal),
        "name": f"`{brief.entry_point}`" if brief.entry_point else "every function",
    }
    parts = {"files": files_part(brief.files)}
    return PromptDraft(prompt=prompt, template="optimise", texts=texts, parts=parts)


def optimised_files(reply: Reply, brief: OptimiseBrief) -> dict[str, str]:
    """Return the files that a reply rewrites, path -> text.

    Raises:
        MalformedReply: There is no code, or it changes nothing.
        EditDoesNotApply: A search/replace block does not match exactly one place.
    """
    repair = RepairBrief(statement=brief.statement, files=brief.files, entry_point=brief.entry_point)
    return files_from_reply(reply, repair)
