"""Roles that ask a model: typed inputs, a YAML prompt, a typed answer.

This room turns a task and facts into messages that fit, and a reply into files or into a record. It never
touches the sandbox, and it never decides anything: a reply with nothing usable in it is a `MalformedReply`,
not a success.
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
from suture.agents.prompting.prompt_parts import EarlierAttempt, Hint, RelatedFunction, Suspect, describe_fact
from suture.agents.replies.coder_reply import files_from_reply
from suture.agents.roles.coder import Brief, RepairBrief, WriteBrief, draft_coder_prompt, limit_to_shown_files
from suture.agents.roles.debugger import DiagnosisReply, draft_diagnosis_prompt

__all__ = [
    "Brief",
    "DiagnosisReply",
    "EarlierAttempt",
    "FittedPrompt",
    "Hint",
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
