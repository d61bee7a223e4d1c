"""The coder: writes a module for a task, or mends files from facts.

Its prompts hold the task, the code, the facts and a digest of earlier attempts, never the transcript: a small
model repeats what it has just read, wrong code above all.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from suture.agents.prompting.fitting import Draft, Fitted, PromptPart
from suture.agents.prompting.prefill import begin_function, begin_module
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.prompting.prompt_parts import (
    EarlierAttempt,
    Hint,
    Sibling,
    Suspect,
    advice_part,
    attempts_part,
    facts_part,
    files_part,
    hints_part,
    output_part,
    refused_part,
    siblings_part,
    suspects_part,
    task_text,
)
from suture.core.records import Counterexample, Strategy
from suture.project.python_source.statements import parses

LONG_CHARS = 4000
"""About 1,200 tokens of code: of more, only what changes is asked for."""
MOST_SUSPECTS = 3
"""Functions that repairs of one candidate take turns with."""


@dataclass(frozen=True, kw_only=True)
class WriteBrief:
    """What the coder needs to write a module.

    Attributes:
        statement: The task, in words or as a stub.
        module: The file to write.
        beside: Further files to write, which the task names.
        several: Whether the reply may hold other files too, each with its name.
        entry_point: The name that must be there, where known.
        tests: Source of the user's tests, which the coder may see; empty where there are none.
    """

    statement: str
    module: str
    beside: tuple[str, ...] = ()
    several: bool = False
    entry_point: str | None = None
    tests: str = ""

    @property
    def modules(self) -> tuple[str, ...]:
        """The files to write, the module first."""
        return (self.module, *self.beside)

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
class RepairBrief:
    """What the coder needs to mend code.

    Attributes:
        statement: The task, in words or as a stub; empty where there is only code and tests.
        files: The files it may change, path -> text.
        entry_point: The name that must stay there, where known.
        facts: Counterexamples, most telling first.
        divergences: Id of a check -> where its call first goes wrong, beside a run that goes well.
        output: What the test command printed; used where there are no facts.
        history: Earlier attempts, oldest first.
        strategy: How to go about it.
        project: Every path of the project, where the reply may make files; `None` where it may not.
        excerpts: Path -> what is shown of a file in the place of the whole.
        suspects: Functions that are likely at fault, the likeliest first.
        hints: Changes that made some failing test pass, the best first.
        siblings: Other functions that call or resemble those, the most telling first.
        refused: Why earlier replies could not be used, the latest last.
        advice: What others say of the code, one sentence each, the weightiest first: a diagnosis, a critic's
            issues, lessons, a person's hint.
    """

    statement: str
    files: Mapping[str, str]
    entry_point: str | None = None
    facts: Sequence[Counterexample] = ()
    divergences: Mapping[str, str] = field(default_factory=dict)
    output: str = ""
    history: Sequence[EarlierAttempt] = ()
    strategy: Strategy = "minimal"
    project: Collection[str] | None = None
    excerpts: Mapping[str, str] = field(default_factory=dict)
    suspects: Sequence[Suspect] = ()
    hints: Sequence[Hint] = ()
    siblings: Sequence[Sibling] = ()
    refused: Sequence[str] = ()
    advice: Sequence[str] = ()


Brief = WriteBrief | RepairBrief


def coder_draft(brief: Brief, prompt: Prompt, *, lean: bool = False, turn: int = 0) -> Draft:
    """The coder's prompt, before it is cut to the room there is.

    Args:
        brief: What is wanted.
        prompt: The coder's templates.
        lean: Whether only what is missing is asked for, with the reply begun where the model can go on.
        turn: The number of the draw: repairs of one candidate go through its suspects.
    """
    if isinstance(brief, WriteBrief):
        return _lean_write_draft(brief, prompt) if lean else _write_draft(brief, prompt)
    draft = _repair_draft(brief, prompt)
    return _for_one_function(draft, brief, turn) if lean else draft


def as_shown(brief: Brief, fitted: Fitted) -> Brief:
    """The brief without the files that the prompt had no room for: the reply cannot change those."""
    if isinstance(brief, WriteBrief):
        return brief
    return replace(brief, files=dict(islice(brief.files.items(), fitted.kept["files"])))


def _write_draft(brief: WriteBrief, prompt: Prompt) -> Draft:
    tests = PromptPart(
        pieces=brief.tests.strip().splitlines(),
        before="\nIt must pass these tests:\n\n```python\n",
        after="\n```\n",
    )
    texts = {"task": task_text(brief.statement)}
    if brief.several:
        texts["modules"] = ", ".join(f"`{path}`" for path in brief.modules)
        return Draft(prompt=prompt, template="write_files", texts=texts, parts={"tests": tests})
    texts["module"] = brief.module
    return Draft(prompt=prompt, template="write", texts=texts, parts={"tests": tests})


def _lean_write_draft(brief: WriteBrief, prompt: Prompt) -> Draft:
    if brief.several:
        return _write_draft(brief, prompt)  # a reply that is begun is one block, and ends with it
    beginning = begin_module(
        brief.statement, brief.entry_point, certain=brief.name_is_certain, tests=brief.tests
    )
    return replace(_write_draft(brief, prompt), template="write_lean", beginning=beginning)


def _for_one_function(draft: Draft, brief: RepairBrief, turn: int) -> Draft:
    """The repair of one function: the likeliest, or with each further turn the next."""
    found = None
    if brief.suspects:
        suspects = brief.suspects[:MOST_SUSPECTS]
        suspect = suspects[turn % len(suspects)]
        names = [suspect.function] if suspect.function else []
        found = begin_function(suspect.path, brief.files.get(suspect.path, ""), names)
    elif len(brief.files) == 1:
        path, text = next(iter(brief.files.items()))
        found = begin_function(path, text, [brief.entry_point] if brief.entry_point else [])
    if found is None:
        return draft
    name, beginning = found
    answer = draft.prompt.render("one_function", name=name)
    return replace(draft, texts={**draft.texts, "format": answer}, beginning=beginning)


def _repair_draft(brief: RepairBrief, prompt: Prompt) -> Draft:
    shown = {**brief.files, **brief.excerpts}
    is_long = sum(map(len, shown.values())) > LONG_CHARS
    if brief.excerpts or (is_long and brief.project is not None):
        answer = prompt.render("edits")
    elif len(brief.files) == 1:
        answer = prompt.render("one_file", path=next(iter(brief.files)))
    else:
        answer = prompt.render("many_files")
    texts = {
        "task": f"{task_text(brief.statement)}\n" if brief.statement else "",
        "how": prompt.render(brief.strategy),
        "format": answer,
    }
    parts = {
        "history": attempts_part(brief.history),
        "hints": hints_part(brief.hints),
        "suspects": suspects_part(brief.suspects),
        "siblings": siblings_part(brief.siblings),
        "refused": refused_part(brief.refused),
        "advice": advice_part(brief.advice),
        "facts": facts_part(brief.facts, brief.divergences),
        "output": output_part(brief.output) if not brief.facts else PromptPart(pieces=()),
        "files": files_part(shown),
    }
    return Draft(prompt=prompt, template="repair", texts=texts, parts=parts)
