"""The spec tester: writes tests from the task alone. Its brief has no place for code."""

from __future__ import annotations

from dataclasses import dataclass

from suture.roles.prompting.fitting import Draft, PromptPart
from suture.roles.prompting.prompt_files import Prompt
from suture.roles.prompting.prompt_parts import examples_part, task_text


@dataclass(frozen=True, kw_only=True)
class SpecTestBrief:
    """What the spec tester may know.

    Attributes:
        statement: The task, in words or as a stub.
        entry_point: The function or class to test, where known.
        examples: Source of tests that exist already: they show how it is called, and are not to be
            repeated.
        count: How many tests to ask for.
    """

    statement: str
    entry_point: str | None = None
    examples: str = ""
    count: int = 6


def spec_test_draft(brief: SpecTestBrief, prompt: Prompt) -> Draft:
    """The spec tester's prompt, before it is cut to size; the answer is for `checks_from_reply`."""
    texts = {
        "task": task_text(brief.statement),
        "name": f"`{brief.entry_point}`" if brief.entry_point else "the function of the task",
        "count": str(brief.count),
    }
    parts: dict[str, PromptPart] = {"examples": examples_part(brief.examples)}
    return Draft(prompt=prompt, template="tests", texts=texts, parts=parts)
