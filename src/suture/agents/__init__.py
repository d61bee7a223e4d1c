"""Roles that ask a model: their briefs, prompts, tools and replies, and the calls to the model.

`prompts` holds the YAML prompts and `prompting` fits them into a context; `roles` defines each role; `replies`
turns replies into files and checks; `tools` lets a model act; `context` selects what a prompt shows; `calling`
charges each call to the budget; `conversation` is the agent with native tools. This package never decides: a
reply without anything usable is a `MalformedReply`, and what a role says is checked by the deciding checks.
"""

from suture.agents.prompting.fitting import FittedPrompt, PromptDraft, fit_prompt
from suture.agents.prompting.prompt_files import (
    Prompt,
    PromptBook,
    load_prompt,
    packaged_prompt,
    packaged_prompt_names,
    prompt_to_dict,
    prompt_to_yaml,
)
from suture.agents.prompting.prompt_parts import EarlierAttempt, RelatedFunction, Suspect, describe_fact
from suture.agents.replies.coder_reply import files_from_reply
from suture.agents.roles.coder import Brief, RepairBrief, WriteBrief, draft_coder_prompt, limit_to_shown_files
from suture.agents.roles.debugger import DiagnosisReply, draft_diagnosis_prompt

__all__ = [
    "Brief",
    "DiagnosisReply",
    "EarlierAttempt",
    "FittedPrompt",
    "Prompt",
    "PromptBook",
    "PromptDraft",
    "RelatedFunction",
    "RepairBrief",
    "Suspect",
    "WriteBrief",
    "describe_fact",
    "draft_coder_prompt",
    "draft_diagnosis_prompt",
    "files_from_reply",
    "fit_prompt",
    "limit_to_shown_files",
    "load_prompt",
    "packaged_prompt",
    "packaged_prompt_names",
    "prompt_to_dict",
    "prompt_to_yaml",
]
