"""Roles that ask a model: typed inputs, a YAML prompt, a typed answer.

This room turns a task and facts into messages that fit, and a reply into files or into a record. It never
touches the sandbox, and it never decides anything: a reply with nothing usable in it is a `MalformedReply`,
not a success.
"""

from suture.agents.prompting.fitting import Draft, Fitted, fit
from suture.agents.prompting.prompt_files import (
    Prompt,
    PromptBook,
    packaged_names,
    packaged_prompt,
    prompt_as_plain,
    prompt_as_yaml,
    read_prompt,
)
from suture.agents.prompting.prompt_parts import EarlierAttempt, Hint, Sibling, Suspect, describe_fact
from suture.agents.replies.coder_reply import files_from_reply
from suture.agents.roles.coder import Brief, RepairBrief, WriteBrief, as_shown, coder_draft
from suture.agents.roles.debugger import DiagnosisReply, diagnosis_draft

__all__ = [
    "Brief",
    "DiagnosisReply",
    "Draft",
    "EarlierAttempt",
    "Fitted",
    "Hint",
    "Prompt",
    "PromptBook",
    "RepairBrief",
    "Sibling",
    "Suspect",
    "WriteBrief",
    "as_shown",
    "coder_draft",
    "describe_fact",
    "diagnosis_draft",
    "files_from_reply",
    "fit",
    "packaged_names",
    "packaged_prompt",
    "prompt_as_plain",
    "prompt_as_yaml",
    "read_prompt",
]
