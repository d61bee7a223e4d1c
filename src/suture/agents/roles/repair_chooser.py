"""Ask a model which of several repairs is meant, where the tests do not decide."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from suture.agents.prompting.fitting import PromptDraft, PromptPart
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.prompting.prompt_parts import files_part, render_optional_task
from suture.agents.tuning import MAX_CHOICE_EXPLANATION_CHARS
from suture.core.ledger.kinds import ComparedCall
from suture.core.records import Language
from suture.errors import MalformedReply
from suture.models import Reply

CHOICE_LINE = re.compile(
    r"^\W*choice\W*:\W*(?:version\s+)?(\d+|none)\b[ \t*_`.:-]*(.*)$", re.IGNORECASE | re.MULTILINE
)
"""The line that names the choice; an explanation may follow on the same line."""


FENCE = "```"


@dataclass(frozen=True, kw_only=True)
class ChoiceBrief:
    """What the model is shown.

    Attributes:
        statement: What the user reports; empty if there is only code and tests.
        files: Path -> the unchanged code around the changes, with its documentation.
        tests: Sources of the tests that the repairs fix.
        versions: Unified diff of each repair, the likeliest first.
        calls: Calls that distinguish the repairs, with one answer for each of them.
        noticed: `(mutants that the tests notice, mutants)` of the changed lines, if there is only one repair.
    """

    statement: str
    language: Language
    files: Mapping[str, str]
    tests: Sequence[str]
    versions: Sequence[str]
    calls: Sequence[ComparedCall]
    noticed: tuple[int, int] | None = None


@dataclass(frozen=True, kw_only=True)
class RepairChoice:
    """What the model replied.

    Attributes:
        number: Number of the version, from 1; 0 if no version is right.
        explanation: Why, in one line.
        text: The reply; it holds the right code if no version is.
    """

    number: int
    explanation: str
    text: str


def draft_choice_prompt(brief: ChoiceBrief, prompt: Prompt) -> PromptDraft:
    """Return the prompt that asks which version is right."""
    versions = [
        f"Version {n}:\n{FENCE}diff\n{diff.strip()}\n{FENCE}" for n, diff in enumerate(brief.versions, 1)
    ]
    texts = {
        "task": render_optional_task(brief.statement, "Somebody reports this:\n\n"),
        "doubt": _render_doubt(brief),
        "versions": "\n\n".join(versions),
        "calls": _render_calls(brief.calls),
    }
    tests = [f"{FENCE}{brief.language}\n{source.strip()}\n{FENCE}" for source in brief.tests]
    parts = {
        "files": files_part(brief.files, brief.language),
        "tests": PromptPart(
            pieces=tests, before="\nThese tests fail on it, and should pass:\n\n", after="\n"
        ),
    }
    return PromptDraft(prompt=prompt, template="choose", texts=texts, parts=parts)


def _render_doubt(brief: ChoiceBrief) -> str:
    if len(brief.versions) > 1:
        return (
            f"Each of these {len(brief.versions)} versions passes all tests. They may behave differently, so the "
            "tests do not decide which one is meant."
        )
    noticed, total = brief.noticed or (0, 0)
    return (
        "This version passes all tests. But the tests say little about it: they notice only "
        f"{noticed} of {total} deliberate mistakes in the changed lines."
    )


def _render_calls(calls: Sequence[ComparedCall]) -> str:
    """Return the calls and their answers, one line each."""
    lines = []
    for call in calls:
        answers = [f"now {call.before}"] if call.before else []
        answers += [f"version {n} {answer}" for n, answer in enumerate(call.answers, 1) if answer]
        lines.append(f"- `{call.call}`: {'; '.join(answers)}")
    return "\n".join(["These inputs tell the versions apart:", *lines, ""]) if lines else ""


def read_choice(reply: Reply, version_count: int) -> RepairChoice:
    """Return the choice in a reply.

    Raises:
        MalformedReply: The reply names no version, and holds no code.
    """
    match = CHOICE_LINE.search(reply.text)
    if match is None and FENCE not in reply.text:
        raise MalformedReply("the reply has no line `CHOICE: N`")
    named = match[1] if match is not None else "none"
    number = 0 if named.lower() == "none" else int(named)
    if number > version_count:
        raise MalformedReply(f"the reply chooses version {number} of {version_count}")
    if number == 0 and FENCE not in reply.text:
        raise MalformedReply("the reply chooses no version, and holds no code")
    after = reply.text[match.end() :] if match is not None else ""
    explanation = (match[2] if match is not None else "") or after.partition(FENCE)[0]
    explanation = " ".join(explanation.split())[:MAX_CHOICE_EXPLANATION_CHARS]
    return RepairChoice(number=number, explanation=explanation, text=reply.text)
