"""Render the parts of a prompt: the task, files, failures, earlier attempts and advice.

Every `*_part` function returns a part that `fit_prompt` may shrink. The wording is measured on small models and
must not change.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from suture.agents.prompting.fitting import PromptPart
from suture.agents.tuning import MAX_FACT_CHARS, MAX_LINE_CHARS
from suture.core.ledger.kinds import PartialRepair
from suture.core.records import Counterexample
from suture.core.text_excerpts import shorten_pair
from suture.project.python_source.statement_edits import defined_names, is_valid_python

NO_DIVERGENCES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class EarlierAttempt:
    """An earlier attempt, which a prompt describes in one line.

    Attributes:
        label: The candidate's label, such as `sample 2`.
        passed: How many deciding checks passed.
        total: How many checks decided.
        first_failure: The first counterexample in words; empty if there is none.
    """

    label: str
    passed: int
    total: int
    first_failure: str = ""


@dataclass(frozen=True, kw_only=True)
class Suspect:
    """A function, or the top level of a module, that is likely at fault.

    Attributes:
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
        name: Its name with its class, as in `Cart.total`.
        why: Its relation to the other function, such as `calls total`.
    """

    path: str
    name: str
    why: str
    source: str


def render_task(statement: str) -> str:
    """Return the statement; Python is put into a fence, so that the model sees where it starts and ends."""
    is_stub = is_valid_python(statement) and defined_names(statement)
    return fence_python(statement) if is_stub else statement.strip()


def render_optional_task(statement: str, heading: str = "") -> str:
    """Return the heading and the statement as a paragraph; empty if there is only code and tests."""
    return f"{heading}{render_task(statement)}\n" if statement else ""


def fence_python(code: str) -> str:
    """Return code in a Python fence."""
    return f"```python\n{code.strip()}\n```"


def files_part(files: Mapping[str, str], fence: str = "python") -> PromptPart:
    """Return files, or excerpts of them, in their order; each is a piece."""
    pieces = [f"### {path}\n```{fence}\n{text.strip()}\n```" for path, text in files.items()]
    return PromptPart(pieces=pieces, separator="\n\n")


def required_tests_part(source: str, fence: str = "python") -> PromptPart:
    """Return the tests that the code must pass, line by line."""
    return PromptPart(
        pieces=source.strip().splitlines(),
        before=f"\nIt must pass these tests:\n\n```{fence}\n",
        after="\n```\n",
    )


def examples_part(source: str) -> PromptPart:
    """Return existing tests, line by line."""
    lines = [line for line in source.strip().splitlines() if line.strip()]
    return PromptPart(pieces=lines, before="\nThese tests exist already:\n\n```python\n", after="\n```\n")


def failure_parts(
    facts: Sequence[Counterexample], output: str, divergences: Mapping[str, str] = NO_DIVERGENCES
) -> dict[str, PromptPart]:
    """Return the parts `facts` and `output`. The output is shown only if there are no facts.

    The divergences say for the id of a check, in words, where its call first goes wrong.
    """
    lines = [] if facts else output.strip().splitlines() or ["no output"]
    return {
        "facts": facts_part(facts, divergences),
        "output": PromptPart(pieces=[textwrap.indent(_shorten_line(line), "    ") for line in lines]),
    }


def facts_part(
    facts: Sequence[Counterexample], divergences: Mapping[str, str] = NO_DIVERGENCES
) -> PromptPart:
    """Return counterexamples, most informative first, each with its divergence in words if one is known."""
    pieces = []
    for fact in facts:
        divergence = divergences.get(fact.check_id)
        pieces.append(f"- {describe_fact(fact)}" + (f"; {_shorten_line(divergence)}" if divergence else ""))
    return PromptPart(pieces=pieces)


def list_part(title: str, items: Iterable[str]) -> PromptPart:
    """Return a titled list; each item is a piece."""
    return PromptPart(pieces=[f"- {item}" for item in items], before=f"\n{title}:\n", after="\n")


def attempts_part(attempts: Sequence[EarlierAttempt]) -> PromptPart:
    """Return the digest of earlier attempts, oldest first."""
    lines = [
        f"{a.label}: {a.passed} of {a.total} checks passed"
        + (f"; {a.first_failure}" if a.first_failure else "")
        for a in attempts
    ]
    return list_part("Earlier attempts that did not work", lines)


def advice_part(advice: Sequence[str]) -> PromptPart:
    """Return advice about the code, the most important first."""
    return list_part("Advice that may help", [_shorten_line(" ".join(text.split())) for text in advice])


def suspects_part(suspects: Sequence[Suspect]) -> PromptPart:
    """Return the suspects, the likeliest first."""
    lines = [
        (f"`{s.function}` in {s.path}" if s.function else s.path) + (f": `{s.line}`" if s.line else "")
        for s in suspects
    ]
    return list_part("The failing tests point here", lines)


def hints_part(hints: Sequence[PartialRepair]) -> PromptPart:
    """Return changes that made some failing tests pass, the best first."""
    lines = [
        f"{h.path}, {h.label}: {h.passing} of {h.passing + h.failing} failing tests then pass" for h in hints
    ]
    return list_part("Small changes that help, but are not enough", lines)


def related_functions_part(functions: Sequence[RelatedFunction]) -> PromptPart:
    """Return functions related to the suspects. They are indented, because fenced blocks are answers."""
    items = [f"`{f.name}` in {f.path} {f.why}:\n{textwrap.indent(f.source, '    ')}" for f in functions]
    return list_part("Other code of this project, only to compare", items)


def refused_part(faults: Sequence[str]) -> PromptPart:
    """Return why earlier replies were unusable, the latest last."""
    return list_part("Earlier replies could not be used", map(_shorten_line, faults))


def render_user_hints(hints: Sequence[str]) -> str:
    """Return a person's hints about earlier attempts, one line each."""
    return "".join(f"\nThe user says: {hint}\n" for hint in hints)


def describe_fact(fact: Counterexample) -> str:
    """Return a counterexample in one sentence; of long values the part around their first difference."""
    text = _render_fact(fact)
    if len(text) > MAX_FACT_CHARS and fact.actual and fact.expected:
        actual, expected = shorten_pair(fact.actual, fact.expected, MAX_FACT_CHARS // 3)
        text = _render_fact(replace(fact, actual=actual, expected=expected))
    return text if len(text) <= MAX_FACT_CHARS else f"{text[:MAX_FACT_CHARS]} ... (cut)"


def _render_fact(fact: Counterexample) -> str:
    call = f"`{fact.call}`" if fact.call else f"test {fact.check_id}"
    where = ""
    if fact.line:
        where = f" in {fact.file} line {fact.line}" if fact.file else f" in line {fact.line}"
    if fact.exception:
        text = f"{call} raised {fact.exception}{where}"
        text += f", but should give {fact.expected}" if fact.expected else ""
    else:
        text = f"{call} gave {fact.actual or 'a wrong result'}"
        text += f", but should give {fact.expected}" if fact.expected else where
    return text


def _shorten_line(line: str) -> str:
    """Return a line of output without its middle if it is too long."""
    excess = len(line) - MAX_LINE_CHARS
    if excess <= 0:
        return line
    half = MAX_LINE_CHARS // 2
    return f"{line[:half]} ... {excess} characters are cut ... {line[-half:]}"
