"""The coder: writes a module for a task, or mends files from facts.

Its prompts hold the task, the code, the facts and a digest of earlier attempts, never the transcript: a small
model repeats what it has just read, wrong code above all.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from suture.models import Message
from suture.records import Counterexample, Strategy
from suture.roles.prompt_files import Prompt, load_prompt
from suture.roles.python_code import defined_names, parses

__all__ = ["Attempt", "RepairBrief", "WriteBrief", "describe_fact", "repair_messages", "write_messages"]

MAX_FACTS = 4
"""Facts shown in one prompt; more of them distract a small model more than they help it."""
MAX_FACT_CHARS = 600


@dataclass(frozen=True, kw_only=True)
class WriteBrief:
    """What the coder needs to write a module.

    Attributes:
        statement: The task, in words or as a stub.
        module: The file to write.
        entry_point: The name that must be there, where known.
        tests: Source of the user's tests, which the coder may see; empty where there are none.
    """

    statement: str
    module: str
    entry_point: str | None = None
    tests: str = ""

    @property
    def name_is_certain(self) -> bool:
        """Whether a reply without the name is of no use.

        A name that stands in prose may have been misread there; a stub's, the tests' or one that the
        statement does not mention was given.
        """
        name = self.entry_point
        if name is None:
            return False
        in_prose = re.search(rf"\b{re.escape(name)}\b", self.statement) and not parses(self.statement)
        return not in_prose or re.search(rf"\b{re.escape(name)}\b", self.tests) is not None


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One line of the digest of earlier attempts."""

    label: str
    passed: int
    total: int
    first_failure: str = ""


@dataclass(frozen=True, kw_only=True)
class RepairBrief:
    """What the coder needs to mend code.

    Attributes:
        statement: The task, in words or as a stub; empty where there is only code and tests.
        files: The files it may change, path -> text.
        entry_point: The name that must stay there, where known.
        facts: Counterexamples, most telling first.
        output: Tail of what the test command printed; used where there are no facts.
        history: Earlier attempts, oldest first.
        strategy: How to go about it.
    """

    statement: str
    files: Mapping[str, str]
    entry_point: str | None = None
    facts: Sequence[Counterexample] = ()
    output: str = ""
    history: Sequence[Attempt] = ()
    strategy: Strategy = "minimal"


def write_messages(brief: WriteBrief) -> tuple[Message, ...]:
    """The prompt for a fresh sample."""
    prompt = load_prompt("coder")
    tests = f"\nIt must pass these tests:\n\n{_fence(brief.tests)}\n" if brief.tests else ""
    text = prompt.render("write", module=brief.module, task=_task(brief.statement), tests=tests)
    return _conversation(prompt, text)


def repair_messages(brief: RepairBrief) -> tuple[Message, ...]:
    """The prompt for a repair."""
    prompt = load_prompt("coder")
    if len(brief.files) == 1:
        answer = prompt.render("one_file", path=next(iter(brief.files)))
    else:
        answer = prompt.render("many_files")
    text = prompt.render(
        "repair",
        task=f"{_task(brief.statement)}\n" if brief.statement else "",
        files="\n\n".join(f"### {path}\n{_fence(text)}" for path, text in brief.files.items()),
        facts=_facts(brief),
        history=_history(brief.history),
        how=prompt.render(brief.strategy),
        format=answer,
    )
    return _conversation(prompt, text)


def _conversation(prompt: Prompt, text: str) -> tuple[Message, ...]:
    system = Message(role="system", content=prompt.render("system"))
    return system, Message(role="user", content=text)


def _task(statement: str) -> str:
    """A statement that is Python goes into a fence; the model then sees where it starts and ends."""
    return _fence(statement) if parses(statement) and defined_names(statement) else statement.strip()


def _fence(code: str) -> str:
    return f"```python\n{code.strip()}\n```"


def _facts(brief: RepairBrief) -> str:
    if not brief.facts:
        return textwrap.indent(brief.output.strip()[-2000:] or "no output", "    ")
    shown = [f"- {describe_fact(fact)}" for fact in brief.facts[:MAX_FACTS]]
    left = len(brief.facts) - len(shown)
    return "\n".join([*shown, f"- and {left} more failures"] if left > 0 else shown)


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


def _history(attempts: Sequence[Attempt]) -> str:
    if not attempts:
        return ""
    lines = [
        f"- {a.label}: {a.passed} of {a.total} checks passed"
        + (f"; {a.first_failure}" if a.first_failure else "")
        for a in attempts
    ]
    return "\nEarlier attempts that did not work:\n" + "\n".join(lines) + "\n"
