"""The coder: writes a module for a task, or repairs files from counterexamples.

Its prompts hold the task, the code, the facts and a digest of earlier attempts, never the transcript: a small
model repeats what it has just read, especially wrong code.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from suture.agents.prompting.fitting import FittedPrompt, PromptDraft, PromptPart
from suture.agents.prompting.prefill import prefill_function, prefill_module
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.prompting.prompt_parts import (
    EarlierAttempt,
    RelatedFunction,
    Suspect,
    advice_part,
    attempts_part,
    facts_part,
    files_part,
    hints_part,
    output_part,
    refused_part,
    related_functions_part,
    render_task,
    suspects_part,
)
from suture.agents.tuning import LONG_CODE_CHARS, MAX_SUSPECTS
from suture.core.ledger.kinds import PartialRepair
from suture.core.records import Counterexample, Strategy
from suture.project.python_source.statements import is_valid_python


@dataclass(frozen=True, kw_only=True)
class WriteBrief:
    """What the coder needs to write a module.

    Attributes:
        statement: The task, in words or as a stub.
        module: The file to write.
        other_modules: Further files to write, which the task names.
        allows_several_files: Whether the reply may hold other named files.
        entry_point: The required name, if known.
        tests: Source of the user's visible tests; empty if there are none.
    """

    statement: str
    module: str
    other_modules: tuple[str, ...] = ()
    allows_several_files: bool = False
    entry_point: str | None = None
    tests: str = ""

    @property
    def modules(self) -> tuple[str, ...]:
        """Return the files to write, the module first."""
        return (self.module, *self.other_modules)

    @property
    def requires_entry_point(self) -> bool:
        """Return whether a reply without the entry point is useless.

        A name in prose may have been misread there. A stub's name, one in the tests, or one that the
        statement does not mention was given explicitly.
        """
        name = self.entry_point
        if name is None:
            return False
        in_prose = re.search(rf"\b{re.escape(name)}\b", self.statement) and not is_valid_python(
            self.statement
        )
        return not in_prose or re.search(rf"\b{re.escape(name)}\b", self.tests) is not None


@dataclass(frozen=True, kw_only=True)
class RepairBrief:
    """What the coder needs to repair code.

    Attributes:
        statement: The task, in words or as a stub; empty if there is only code and tests.
        files: The files that it may change, path -> text.
        entry_point: The name that must stay, if known.
        facts: Counterexamples, most informative first.
        divergences: Id of a check -> where its call first differs from a passing run.
        output: Output of the test command; used if there are no facts.
        history: Earlier attempts, oldest first.
        strategy: How to repair.
        project: All paths of the project if the reply may create files, else `None`.
        excerpts: Path -> the part of a file that is shown instead of the whole.
        suspects: Functions that are likely at fault, the likeliest first.
        hints: Changes that made some failing tests pass, the best first.
        related_functions: Functions that call or resemble the suspects, most informative first.
        refused: Why earlier replies were unusable, the latest last.
        advice: Advice of one sentence each, the most important first: a diagnosis, a critic's issues,
            lessons, a person's hint.
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
    hints: Sequence[PartialRepair] = ()
    related_functions: Sequence[RelatedFunction] = ()
    refused: Sequence[str] = ()
    advice: Sequence[str] = ()


Brief = WriteBrief | RepairBrief


def draft_coder_prompt(
    brief: Brief, prompt: Prompt, *, use_prefill: bool = False, sample_index: int = 0
) -> PromptDraft:
    """Return the coder's prompt.

    Args:
        brief: What to write or repair.
        prompt: The coder's templates.
        use_prefill: Whether the reply is prefilled, so that the model writes only what is missing.
        sample_index: Number of the sample: repairs of one candidate take turns with its suspects.
    """
    if isinstance(brief, WriteBrief):
        return _draft_prefilled_write(brief, prompt) if use_prefill else _draft_write(brief, prompt)
    draft = _draft_repair(brief, prompt)
    return _limit_to_one_function(draft, brief, sample_index) if use_prefill else draft


def limit_to_shown_files(brief: Brief, fitted: FittedPrompt) -> Brief:
    """Return the brief without files that did not fit into the prompt: the reply cannot change those."""
    if isinstance(brief, WriteBrief):
        return brief
    return replace(brief, files=dict(islice(brief.files.items(), fitted.piece_counts["files"])))


def _draft_write(brief: WriteBrief, prompt: Prompt) -> PromptDraft:
    tests = PromptPart(
        pieces=brief.tests.strip().splitlines(),
        before="\nIt must pass these tests:\n\n```python\n",
        after="\n```\n",
    )
    texts = {"task": render_task(brief.statement)}
    if brief.allows_several_files:
        texts["modules"] = ", ".join(f"`{path}`" for path in brief.modules)
        return PromptDraft(prompt=prompt, template="write_files", texts=texts, parts={"tests": tests})
    texts["module"] = brief.module
    return PromptDraft(prompt=prompt, template="write", texts=texts, parts={"tests": tests})


def _draft_prefilled_write(brief: WriteBrief, prompt: Prompt) -> PromptDraft:
    if brief.allows_several_files:
        return _draft_write(brief, prompt)  # a prefilled reply is a single block
    beginning = prefill_module(
        brief.statement, brief.entry_point, certain=brief.requires_entry_point, tests=brief.tests
    )
    return replace(_draft_write(brief, prompt), template="write_lean", prefill=beginning)


def _limit_to_one_function(draft: PromptDraft, brief: RepairBrief, turn: int) -> PromptDraft:
    """Return the prompt for one function: the likeliest suspect, or the next one with each further sample."""
    found = None
    if brief.suspects:
        suspects = brief.suspects[:MAX_SUSPECTS]
        suspect = suspects[turn % len(suspects)]
        names = [suspect.function] if suspect.function else []
        found = prefill_function(suspect.path, brief.files.get(suspect.path, ""), names)
    elif len(brief.files) == 1:
        path, text = next(iter(brief.files.items()))
        found = prefill_function(path, text, [brief.entry_point] if brief.entry_point else [])
    if found is None:
        return draft
    name, beginning = found
    answer = draft.prompt.render("one_function", name=name)
    return replace(draft, texts={**draft.texts, "format": answer}, prefill=beginning)


def _draft_repair(brief: RepairBrief, prompt: Prompt) -> PromptDraft:
    shown = {**brief.files, **brief.excerpts}
    is_long = sum(map(len, shown.values())) > LONG_CODE_CHARS
    if brief.excerpts or (is_long and brief.project is not None):
        answer = prompt.render("edits")
    elif len(brief.files) == 1:
        answer = prompt.render("one_file", path=next(iter(brief.files)))
    else:
        answer = prompt.render("many_files")
    texts = {
        "task": f"{render_task(brief.statement)}\n" if brief.statement else "",
        "how": prompt.render(brief.strategy),
        "format": answer,
    }
    parts = {
        "history": attempts_part(brief.history),
        "hints": hints_part(brief.hints),
        "suspects": suspects_part(brief.suspects),
        "siblings": related_functions_part(brief.related_functions),
        "refused": refused_part(brief.refused),
        "advice": advice_part(brief.advice),
        "facts": facts_part(brief.facts, brief.divergences),
        "output": output_part(brief.output) if not brief.facts else PromptPart(pieces=()),
        "files": files_part(shown),
    }
    return PromptDraft(prompt=prompt, template="repair", texts=texts, parts=parts)
