"""The parts of prompts that show facts, files, output and earlier attempts; all of them may shrink.

The wording is measured on small models and must not change.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from suture.agents.prompting.fitting import PromptPart
from suture.agents.tuning import MAX_FACT_CHARS, MAX_LINE_CHARS
from suture.core.ledger.kinds import PartialRepair
from suture.core.records import Counterexample
from suture.project.python_source.statements import defined_names, is_valid_python

NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class EarlierAttempt:
    """One line of the digest of earlier attempts."""

    label: str
    passed: int
    total: int
    first_failure: str = ""


@dataclass(frozen=True, kw_only=True)
class Suspect:
    """A function, or the top level of a module, that is likely at fault.

    Attributes:
        path: Its file.
        function: Its name; empty for the top level.
        line: The likeliest line, if one stands out; else empty.
    """

    path: str
    function: str
    line: str = ""


@dataclass(frozen=True, kw_only=True)
class RelatedFunction:
    """A function that is not at fault but informative for one that may be.

    Attributes:
        path: Its file.
        name: Its name with its class, as in `Cart.total`.
        why: Its relation to the other function, such as `calls total`.
        source: Its source.
    """

    path: str
    name: str
    why: str
    source: str


def render_task(statement: str) -> str:
    """Return the statement; Python is put into a fence, so that the model sees where it starts and ends."""
    return (
        fence_python(statement)
        if is_valid_python(statement) and defined_names(statement)
        else statement.strip()
    )


def fence_python(code: str) -> str:
    """Return code in a Python fence."""
    return f"```python\n{code.strip()}\n```"


def files_part(files: Mapping[str, str]) -> PromptPart:
    """Return files, or excerpts of them, most suspicious first; each is a piece."""
    return PromptPart(
        pieces=[f"### {path}\n{fence_python(text)}" for path, text in files.items()], separator="\n\n"
    )


def examples_part(source: str) -> PromptPart:
    """Return existing tests, line by line."""
    lines = [line for line in source.strip().splitlines() if line.strip()]
    return PromptPart(pieces=lines, before="\nThese tests exist already:\n\n```python\n", after="\n```\n")


def facts_part(facts: Sequence[Counterexample], divergences: Mapping[str, str] = NOTHING) -> PromptPart:
    """Return counterexamples, most informative first.

    Args:
        facts: One per failing check.
        divergences: Id of a check -> where its call first goes wrong, in words.
    """
    pieces = []
    for fact in facts:
        known = divergences.get(fact.check_id)
        pieces.append(f"- {describe_fact(fact)}" + (f"; {_shorten_line(known)}" if known else ""))
    return PromptPart(pieces=pieces)


def output_part(output: str) -> PromptPart:
    """Return the output of a test command, line by line."""
    lines = output.strip().splitlines() or ["no output"]
    return PromptPart(pieces=[textwrap.indent(_shorten_line(line), "    ") for line in lines])


def attempts_part(attempts: Sequence[EarlierAttempt]) -> PromptPart:
    """Return the digest of earlier attempts, oldest first."""
    pieces = [
        f"- {a.label}: {a.passed} of {a.total} checks passed"
        + (f"; {a.first_failure}" if a.first_failure else "")
        for a in attempts
    ]
    return PromptPart(pieces=pieces, before="\nEarlier attempts that did not work:\n", after="\n")


def advice_part(advice: Sequence[str]) -> PromptPart:
    """Return advice about the code, the most important first."""
    pieces = [f"- {_shorten_line(' '.join(text.split()))}" for text in advice]
    return PromptPart(pieces=pieces, before="\nAdvice that may help:\n", after="\n")


def suspects_part(suspects: Sequence[Suspect]) -> PromptPart:
    """Return the suspects, the likeliest first."""
    pieces = [
        "- " + (f"`{s.function}` in {s.path}" if s.function else s.path) + (f": `{s.line}`" if s.line else "")
        for s in suspects
    ]
    return PromptPart(pieces=pieces, before="\nThe failing tests point here:\n", after="\n")


def hints_part(hints: Sequence[PartialRepair]) -> PromptPart:
    """Return changes that made some failing tests pass, the best first."""
    pieces = [
        f"- {h.path}, {h.label}: {h.passing} of {h.passing + h.failing} failing tests then pass"
        for h in hints
    ]
    return PromptPart(pieces=pieces, before="\nSmall changes that help, but are not enough:\n", after="\n")


def related_functions_part(siblings: Sequence[RelatedFunction]) -> PromptPart:
    """Return functions related to the suspects, most informative first.

    They are indented, because fenced blocks are answers.
    """
    pieces = [f"- `{s.name}` in {s.path} {s.why}:\n{textwrap.indent(s.source, '    ')}" for s in siblings]
    return PromptPart(pieces=pieces, before="\nOther code of this project, only to compare:\n", after="\n")


def refused_part(faults: Sequence[str]) -> PromptPart:
    """Return why earlier replies were unusable, the latest last."""
    pieces = [f"- {_shorten_line(fault)}" for fault in faults]
    return PromptPart(pieces=pieces, before="\nEarlier replies could not be used:\n", after="\n")


def render_user_hints(hints: Sequence[str]) -> str:
    """Return a person's hints about earlier attempts, one line each."""
    return "".join(f"\nThe user says: {hint}\n" for hint in hints)


def describe_fact(fact: Counterexample) -> str:
    """Return a counterexample in one sentence."""
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
        text = f"{call} gave {fact.actual or 'a wrong result'}"
        text += f", but should give {fact.expected}" if fact.expected else where
    return text if len(text) <= MAX_FACT_CHARS else f"{text[:MAX_FACT_CHARS]} ... (cut)"


def _shorten_line(line: str) -> str:
    """Return a line of output without its middle if it is too long."""
    left = len(line) - MAX_LINE_CHARS
    if left <= 0:
        return line
    half = MAX_LINE_CHARS // 2
    return f"{line[:half]} ... {left} characters are cut ... {line[-half:]}"
