"""The optimiser: rewrites code that works; whether the rewriting is kept, the trusted checks decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from suture.agents.prompting.fitting import Draft
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.prompting.prompt_parts import files_part, task_text
from suture.agents.replies.coder_reply import files_from_reply
from suture.agents.roles.coder import RepairBrief
from suture.models import Reply

OptimiseGoal = Literal["faster", "simpler"]


@dataclass(frozen=True, kw_only=True)
class OptimiseBrief:
    """What the optimiser needs.

    Attributes:
        statement: The task, in words or as a stub; empty where there is only code and tests.
        files: The code that passes, path -> text.
        entry_point: The name that must stay there, where known.
        goal: What it is to become.
    """

    statement: str
    files: Mapping[str, str]
    entry_point: str | None = None
    goal: OptimiseGoal = "simpler"


def optimise_draft(brief: OptimiseBrief, prompt: Prompt) -> Draft:
    """The optimiser's prompt, before it is cut to size; the answer is for `optimised_files`."""
    texts = {
        "task": f"Task:\n\n{task_text(brief.statement)}\n" if brief.statement else "",
        "goal": prompt.render(brief.goal),
        "name": f"`{brief.entry_point}`" if brief.entry_point else "every function",
    }
    return Draft(prompt=prompt, template="optimise", texts=texts, parts={"files": files_part(brief.files)})


def optimised_files(reply: Reply, brief: OptimiseBrief) -> dict[str, str]:
    """The files that a reply rewrites, path -> text.

    Raises:
        MalformedReply: It holds no code, or changes nothing.
        EditDoesNotApply: A search/replace block in it has no one place.
    """
    repair = RepairBrief(statement=brief.statement, files=brief.files, entry_point=brief.entry_point)
    return files_from_reply(reply, repair)
