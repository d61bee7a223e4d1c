"""Roles that ask a model: typed inputs, a YAML prompt, a typed answer.

This room turns a task and facts into messages, and a reply into files. It never touches the sandbox, and it
never decides anything: a reply with nothing usable in it is a `MalformedReply`, not a success.
"""

from suture.roles.coder import (
    Attempt,
    RepairBrief,
    WriteBrief,
    describe_fact,
    repair_messages,
    write_messages,
)
from suture.roles.coder_reply import files_from_reply
from suture.roles.prompt_files import Prompt, load_prompt

__all__ = [
    "Attempt",
    "Prompt",
    "RepairBrief",
    "WriteBrief",
    "describe_fact",
    "files_from_reply",
    "load_prompt",
    "repair_messages",
    "write_messages",
]
