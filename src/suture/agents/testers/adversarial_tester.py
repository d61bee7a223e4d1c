"""The adversarial tester: sees the task and the code, and looks for inputs that break it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from suture.agents.prompting.fitting import Draft
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.prompting.prompt_parts import examples_part, files_part, task_text


@dataclass(frozen=True, kw_only=True)
class AdversarialBrief:
    """What the adversarial tester needs.

    Attributes:
        statement: The task, in words or as a stub.
        files: The candidate's code, path -> text.
        entry_point: The function or class to break, where known.
        examples: Source of tests that exist already, and are not to be repeated.
        count: How many tests to ask for.
    """

    statement: str
    files: Mapping[str, str]
    entry_point: str | None = None
    examples: str = ""
    count: int = 6


def adversarial_draft(brief: AdversarialBrief, prompt: Prompt) -> Draft:
    """The adversarial tester's prompt, before it is cut to size; the answer is for `checks_from_reply`."""
    texts = {
        "task": task_text(brief.statement),
        "name": f"`{brief.entry_point}`" if brief.entry_point else "the code",
        "count": str(brief.count),
    }
    parts = {"examples": examples_part(brief.examples), "files": files_part(brief.files)}
    return Draft(prompt=prompt, template="tests", texts=texts, parts=parts)
