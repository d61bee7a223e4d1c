"""How facts, files, output and earlier attempts are shown to a model; each is a part that may shrink."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from suture.agents.prompting.fitting import PromptPart
from suture.core.records import Counterexample
from suture.project.python_source.statements import defined_names, parses

MAX_FACT_CHARS = 600
MAX_LINE_CHARS = 300
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
    """A function that is likely at fault, or the top of a module.

    Attributes:
        path: The file that it is in.
        function: Its name; empty at the top of a module.
        line: The likeliest line, where one is likelier than the others; empty where none is.
    """

    path: str
    function: str
    line: str = ""


@dataclass(frozen=True, kw_only=True)
class Hint:
    """A small change that helped without being enough.

    Attributes:
        path: The file.
        label: The change in a few words, such as `line 4: < becomes <=`.
        passing: Failing tests that pass with it.
        failing: Failing tests that still fail.
    """

    path: str
    label: str
    passing: int
    failing: int


@dataclass(frozen=True, kw_only=True)
class Sibling:
    """A function that is not at fault and tells something about one that may be.

    Attributes:
        path: The file that it is in.
        name: With its class, as in `Cart.total`.
        why: What it has to do with the other, such as `calls total`.
        source: Its text.
    """

    path: str
    name: str
    why: str
    source: str


def task_text(statement: str) -> str:
    """A statement that is Python goes into a fence; the model then sees where it starts and ends."""
    return fenced(statement) if parses(statement) and defined_names(statement) else statement.strip()


def fenced(code: str) -> str:
    """Code in a fence."""
    return f"```python\n{code.strip()}\n```"


def files_part(files: Mapping[str, str]) -> PromptPart:
    """Files or what is shown of them, most suspect first; each is a piece."""
    return PromptPart(pieces=[f"### {path}\n{fenced(text)}" for path, text in files.items()], joint="\n\n")


def examples_part(source: str) -> PromptPart:
    """Tests that exist already, line by line."""
    lines = [line for line in source.strip().splitlines() if line.strip()]
    return PromptPart(pieces=lines, before="\nThese tests exist already:\n\n```python\n", after="\n```\n")


def facts_part(facts: Sequence[Counterexample], divergences: Mapping[str, str] = NOTHING) -> PromptPart:
    """Counterexamples, most telling first.

    Args:
        facts: One for each failing check.
        divergences: Id of a check -> where its call first goes wrong, in words.
    """
    pieces = []
    for fact in facts:
        known = divergences.get(fact.check_id)
        pieces.append(f"- {describe_fact(fact)}" + (f"; {_shortened(known)}" if known else ""))
    return PromptPart(pieces=pieces)


def output_part(output: str) -> PromptPart:
    """What a test command printed, line by line."""
    lines = output.strip().splitlines() or ["no output"]
    return PromptPart(pieces=[textwrap.indent(_shortened(line), "    ") for line in lines])


def attempts_part(attempts: Sequence[EarlierAttempt]) -> PromptPart:
    """The digest of earlier attempts, oldest first."""
    pieces = [
        f"- {a.label}: {a.passed} of {a.total} checks passed"
        + (f"; {a.first_failure}" if a.first_failure else "")
        for a in attempts
    ]
    return PromptPart(pieces=pieces, before="\nEarlier attempts that did not work:\n", after="\n")


def advice_part(advice: Sequence[str]) -> PromptPart:
    """What others say of the code, the weightiest first."""
    pieces = [f"- {_shortened(' '.join(text.split()))}" for text in advice]
    return PromptPart(pieces=pieces, before="\nAdvice that may help:\n", after="\n")


def suspects_part(suspects: Sequence[Suspect]) -> PromptPart:
    """What is likely at fault, the likeliest first."""
    pieces = [
        "- " + (f"`{s.function}` in {s.path}" if s.function else s.path) + (f": `{s.line}`" if s.line else "")
        for s in suspects
    ]
    return PromptPart(pieces=pieces, before="\nThe failing tests point here:\n", after="\n")


def hints_part(hints: Sequence[Hint]) -> PromptPart:
    """Changes that made some failing tests pass, the best first."""
    pieces = [
        f"- {h.path}, {h.label}: {h.passing} of {h.passing + h.failing} failing tests then pass"
        for h in hints
    ]
    return PromptPart(pieces=pieces, before="\nSmall changes that help, but are not enough:\n", after="\n")


def siblings_part(siblings: Sequence[Sibling]) -> PromptPart:
    """Functions beside the suspicious ones, the most telling first; indented, for blocks are an answer."""
    pieces = [f"- `{s.name}` in {s.path} {s.why}:\n{textwrap.indent(s.source, '    ')}" for s in siblings]
    return PromptPart(pieces=pieces, before="\nOther code of this project, only to compare:\n", after="\n")


def refused_part(faults: Sequence[str]) -> PromptPart:
    """Why earlier replies could not be used, the latest last."""
    pieces = [f"- {_shortened(fault)}" for fault in faults]
    return PromptPart(pieces=pieces, before="\nEarlier replies could not be used:\n", after="\n")


def hints_text(hints: Sequence[str]) -> str:
    """What a person said of earlier tries, a line each; empty where they said nothing."""
    return "".join(f"\nThe user says: {hint}\n" for hint in hints)


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
        text = f"{call} gave {fact.actual or 'a wrong result'}"
        text += f", but should give {fact.expected}" if fact.expected else where
    return text if len(text) <= MAX_FACT_CHARS else f"{text[:MAX_FACT_CHARS]} ... (cut)"


def _shortened(line: str) -> str:
    """A line of a log with its middle left out, where it is a whole screen."""
    left = len(line) - MAX_LINE_CHARS
    if left <= 0:
        return line
    half = MAX_LINE_CHARS // 2
    return f"{line[:half]} ... {left} characters are cut ... {line[-half:]}"
