"""The coder for other languages than Python: its brief and its prompt.

The prompt is that of the Python coder with another language's name and fence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from suture.agents.prompting.fitting import PromptDraft
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.prompting.prompt_parts import files_part
from suture.agents.roles.coder import RepairBrief, draft_coder_prompt
from suture.core.records import Language
from suture.project.languages import LANGUAGES


@dataclass(frozen=True, kw_only=True)
class TextBrief(RepairBrief):
    """What the coder needs to repair code of another language than Python."""

    language: Language


def draft_text_prompt(brief: TextBrief, prompt: Prompt) -> PromptDraft:
    """Return the coder's prompt."""
    facts = LANGUAGES[brief.language]
    templates = {
        name: replace(t, text=t.text.replace("```python", f"```{facts.fence}").replace("Python", facts.label))
        for name, t in prompt.templates.items()
    }
    draft = draft_coder_prompt(brief, replace(prompt, templates=templates))
    return replace(draft, parts={**draft.parts, "files": files_part(brief.files, facts.fence)})
