"""The optimiser: rewrites code that passes; the deciding checks say whether the rewrite is kept."""

from __future__ import annotations

from dataclasses import replace

from suture.agents.prompting.fitting import PromptDraft
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.prompting.prompt_parts import files_part, render_optional_task
from suture.agents.replies.coder_reply import files_from_reply
from suture.agents.roles.coder import RepairBrief
from suture.models import Reply


def draft_optimiser_prompt(brief: RepairBrief, prompt: Prompt) -> PromptDraft:
    """Return the prompt to simplify the passing code of a brief; `optimised_files` reads the answer."""
    texts = {
        "task": render_optional_task(brief.statement, "Task:\n\n"),
        "name": f"`{brief.entry_point}`" if brief.entry_point else "every function",
    }
    parts = {"files": files_part(brief.files)}
    return PromptDraft(prompt=prompt, template="optimise", texts=texts, parts=parts)


def optimised_files(reply: Reply, brief: RepairBrief) -> dict[str, str]:
    """Return the files that a reply rewrites, path -> text."""
    return files_from_reply(reply, replace(brief, project=None))  # A rewrite adds no files.
