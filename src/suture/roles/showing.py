"""How facts, files, output and earlier attempts are shown to a model; each is a part that may shrink."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from suture.records import Counterexample
from suture.roles.fitting import Part
from suture.roles.python_code import defined_names, parses

__all__ = [
    "Attempt",
    "attempts_part",
    "describe_fact",
    "facts_part",
    "fenced",
    "files_part",
    "output_part",
    "task_text",
]

MAX_FACT_CHARS = 600
MAX_LINE_CHARS = 300


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One line of the digest of earlier attempts."""

    label: str
    passed: int
    total: int
    first_failure: str = ""


def task_text(statement: str) -> str:
    """A statement that is Python goes into a fence; the model then sees where it starts and ends."""
    return fenced(statement) if parses(statement) and defined_names(statement) else statement.strip()


def fenced(code: str) -> str:
    """Code in a fence."""
    return f"```python\n{code.strip()}\n```"


def files_part(files: Mapping[str, str]) -> Part:
    """Files, most suspect first; a file is shown whole or not at all."""
    return Part(pieces=[f"### {path}\n{fenced(text)}" for path, text in files.items()], joint="\n\n")


def facts_part(facts: Sequence[Counterexample]) -> Part:
    """Counterexamples, most telling first."""
    return Part(pieces=[f"- {describe_fact(fact)}" for fact in facts])


def output_part(output: str) -> Part:
    """What a test command printed, line by line."""
    lines = output.strip().splitlines() or ["no output"]
    return Part(pieces=[textwrap.indent(_shortened(line), "    ") for line in lines])


def attempts_part(attempts: Sequence[Attempt]) -> Part:
    """The digest of earlier attempts, oldest first."""
    pieces = [
        f"- {a.label}: {a.passed} of {a.total} checks passed"
        + (f"; {a.first_failure}" if a.first_failure else "")
        for a in attempts
    ]
    return Part(pieces=pieces, before="\nEarlier attempts that did not work:\n", after="\n")


def describe_fact(fact: Counterexample) -> str:
    """A counterexample in one sentence."""
    call = f"`{fact.call}`" if fact.call else f"test {fact.check_id}"
    where = (
        f" in {fact.file} line {fact.line}"
        if fact.line and fact.file
        else f" in line {fact.line}"
        if fact.line
        else ""
    )
    if fact.exception:
        text = f"{call} raised {fact.exception}{where}"
        text += f", but should give {fact.expected}" if fact.expected else ""
    else:
        text = f"{call} gave {fact.got or 'a wrong result'}"
        text += f", but should give {fact.expected}" if fact.expected else where
    return text if len(text) <= MAX_FACT_CHARS else f"{text[:MAX_FACT_CHARS]} ... (cut)"


def _shortened(line: str) -> str:
    """A line of a log with its middle left out, where it is a whole screen."""
    left = len(line) - MAX_LINE_CHARS
    if left <= 0:
        return line
    half = MAX_LINE_CHARS // 2
    return f"{line[:half]} ... {left} characters are cut ... {line[-half:]}"
