"""The coder: the briefs and prompts to write Python files for a task, or to repair files that fail.

A prompt holds the task, the code, the counterexamples and one line for each earlier attempt. It never holds
earlier replies: a small model repeats what it has just read, especially wrong code.
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
    failure_parts,
    files_part,
    hints_part,
    list_part,
    refused_part,
    related_functions_part,
    render_optional_task,
    render_task,
    required_tests_part,
    suspects_part,
)
from suture.agents.tuning import LONG_CODE_CHARS, MAX_SUSPECTS
from suture.core.ledger.kinds import PartialRepair
from suture.core.records import Counterexample, Language, Strategy
from suture.project.languages import LANGUAGES
from suture.project.python_source.statement_edits import is_valid_python


@dataclass(frozen=True, kw_only=True)
class WriteBrief:
    """What the coder needs to write code for a task.

    Attributes:
        statement: The task, in words or as a stub.
        module: The main file to write.
        other_modules: The other files that the task requires, if any.
        allows_several_files: Whether the reply may contain files in addition to `module`: those of `other_modules`, and
            more of its own choice. If not, only `module` is asked for.
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
        """Return the required files, `module` first."""
        return (self.module, *self.other_modules)

    @property
    def requires_entry_point(self) -> bool:
        """Return whether a reply without the entry point is useless.

        A name that was read out of prose may be wrong. The name of a stub, a name that the tests use, or one
        that the statement does not mention was given explicitly.
        """
        if self.entry_point is None:
            return False
        name = re.compile(rf"\b{re.escape(self.entry_point)}\b")
        may_be_misread = name.search(self.statement) and not is_valid_python(self.statement)
        return not may_be_misread or name.search(self.tests) is not None


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
        strategy: How to repair: the name of the template with the instructions.
        passing_checks: The number of deciding checks if the code passes all of them; `None` if one fails.
        objections: What a critic objects to in code that passes, one sentence each.
        located_code: For a capable model, the code that may be at fault, in place of `files`.
        failure_report: For a capable model, the failing tests and what they saw, in place of `facts`.
        project: All paths of the project if the reply may create files, else `None`.
        other_files: The files that the prompt does not show, and that an edit may still change, path -> text.
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
    passing_checks: int | None = None
    objections: Sequence[str] = ()
    located_code: str = ""
    failure_report: str = ""
    project: Collection[str] | None = None
    other_files: Mapping[str, str] = field(default_factory=dict)
    excerpts: Mapping[str, str] = field(default_factory=dict)
    suspects: Sequence[Suspect] = ()
    hints: Sequence[PartialRepair] = ()
    related_functions: Sequence[RelatedFunction] = ()
    refused: Sequence[str] = ()
    advice: Sequence[str] = ()


Brief = WriteBrief | RepairBrief


def failing_code_parts(brief: RepairBrief) -> dict[str, PromptPart]:
    """Return the parts `files`, `facts` and `output` for a role that reads code which fails its tests."""
    if brief.failure_report:
        texts = {"files": brief.located_code, "facts": brief.failure_report, "output": ""}
        return {name: PromptPart(pieces=[text] if text else []) for name, text in texts.items()}
    return {**failure_parts(brief.facts, brief.output), "files": files_part(brief.files)}


def draft_coder_prompt(
    brief: Brief, prompt: Prompt, *, use_prefill: bool = False, sample_index: int = 0
) -> PromptDraft:
    """Return the coder's prompt.

    Args:
        use_prefill: Whether the reply is prefilled, so that the model writes only what is missing.
        sample_index: Number of the reply among those to the same brief, from 0. With a prefill, a repair asks
            for one function: the first reply for the likeliest suspect, the next one for the next suspect, and
            so on through the first `MAX_SUSPECTS`.
    """
    if isinstance(brief, WriteBrief):
        return _draft_write(brief, prompt, use_prefill=use_prefill)
    draft = _draft_repair(brief, prompt)
    return _limit_to_one_function(draft, brief, sample_index) if use_prefill else draft


def limit_to_shown_files(brief: Brief, fitted: FittedPrompt) -> Brief:
    """Return the brief with only the files that fit into the prompt: only an edit can change the others."""
    if isinstance(brief, WriteBrief):
        return brief
    shown = dict(islice(brief.files.items(), fitted.piece_counts["files"]))
    hidden = {path: text for path, text in brief.files.items() if path not in shown}
    return replace(brief, files=shown, other_files={**brief.other_files, **hidden})


def _draft_write(brief: WriteBrief, prompt: Prompt, *, use_prefill: bool) -> PromptDraft:
    texts, parts = {"task": render_task(brief.statement)}, {"tests": required_tests_part(brief.tests)}
    if brief.allows_several_files:  # Never prefilled: a prefilled reply is a single block.
        texts["modules"] = ", ".join(f"`{path}`" for path in brief.modules)
        return PromptDraft(prompt=prompt, template="write_files", texts=texts, parts=parts)
    texts["module"] = brief.module
    if not use_prefill:
        return PromptDraft(prompt=prompt, template="write", texts=texts, parts=parts)
    prefill = prefill_module(
        brief.statement,
        brief.entry_point,
        requires_entry_point=brief.requires_entry_point,
        tests=brief.tests,
    )
    return PromptDraft(prompt=prompt, template="write_lean", texts=texts, parts=parts, prefill=prefill)


def _limit_to_one_function(draft: PromptDraft, brief: RepairBrief, sample_index: int) -> PromptDraft:
    """Return the prompt for one suspect, or for the entry point of a single file; else the draft as it is."""
    if brief.suspects:
        suspects = brief.suspects[:MAX_SUSPECTS]
        suspect = suspects[sample_index % len(suspects)]
        path, text, name = suspect.path, brief.files.get(suspect.path, ""), suspect.function
    elif len(brief.files) == 1:
        (path, text), name = next(iter(brief.files.items())), brief.entry_point or ""
    else:
        return draft
    prefill = prefill_function(path, text, name)
    if prefill is None:
        return draft
    reply_format = draft.prompt.render("one_function", name=name)
    return replace(draft, texts={**draft.texts, "format": reply_format}, prefill=prefill)


def _draft_repair(brief: RepairBrief, prompt: Prompt) -> PromptDraft:
    shown_code = {**brief.files, **brief.excerpts}
    is_long = sum(map(len, shown_code.values())) > LONG_CODE_CHARS
    if brief.excerpts or (is_long and brief.project is not None):
        reply_format = prompt.render("edits")
    elif len(brief.files) == 1:
        reply_format = prompt.render("one_file", path=next(iter(brief.files)))
    else:
        reply_format = prompt.render("many_files")
    if brief.passing_checks is not None:
        return _draft_revision(brief, prompt, shown_code, reply_format)
    texts = {
        "task": render_optional_task(brief.statement),
        "how": prompt.render(brief.strategy),
        "format": reply_format,
    }
    parts = {
        "history": attempts_part(brief.history),
        "hints": hints_part(brief.hints),
        "suspects": suspects_part(brief.suspects),
        "siblings": related_functions_part(brief.related_functions),
        "refused": refused_part(brief.refused),
        "advice": advice_part(brief.advice),
        **failure_parts(brief.facts, brief.output, brief.divergences),
        "files": files_part(shown_code),
    }
    return PromptDraft(prompt=prompt, template="repair", texts=texts, parts=parts)


def _draft_revision(
    brief: RepairBrief, prompt: Prompt, shown_code: Mapping[str, str], reply_format: str
) -> PromptDraft:
    """Return the prompt for code that no check finds fault with, but that a critic or a person rejected."""
    count = brief.passing_checks or 0
    checks = "its only check" if count == 1 else f"all {count} checks"
    texts = {
        "task": render_optional_task(brief.statement),
        "standing": prompt.render("passing", checks=checks) if count else prompt.render("unchecked"),
        "request": prompt.render("weigh" if brief.objections else "rewrite"),
        "format": reply_format,
    }
    parts = {
        "objections": list_part("A reviewer objects", [" ".join(text.split()) for text in brief.objections]),
        "refused": refused_part(brief.refused),
        "advice": advice_part(brief.advice),
        "history": attempts_part(brief.history),
        "files": files_part(shown_code),
    }
    return PromptDraft(prompt=prompt, template="revise", texts=texts, parts=parts)


@dataclass(frozen=True, kw_only=True)
class TextBrief(RepairBrief):
    """What the coder needs to repair code in a language other than Python."""

    language: Language


def draft_text_prompt(brief: TextBrief, prompt: Prompt) -> PromptDraft:
    """Return the coder's prompt."""
    facts = LANGUAGES[brief.language]
    templates = {
        name: replace(t, text=t.text.replace("```python", f"```{facts.fence}").replace("Python", facts.label))
        for name, t in prompt.templates.items()
    }
    draft = draft_coder_prompt(brief, replace(prompt, templates=templates))
    return replace(draft, parts={**draft.parts, "files": files_part(brief.files, facts.fence)})
