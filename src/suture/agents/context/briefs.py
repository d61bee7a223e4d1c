"""From a move to what the coder is told: facts of the failing candidate, and a digest of what was tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from suture.agents import Brief, EarlierAttempt, RepairBrief, WriteBrief, describe_fact
from suture.agents.context.excerpts import MAX_WHOLE_CHARS, excerpt
from suture.agents.context.file_selection import named_files, suspect_files
from suture.agents.context.project_briefs import fresh_brief, mending_brief, writes_files
from suture.agents.context.related_functions import siblings_of
from suture.agents.context.search_clues import Clues, clues_of, suspects_in
from suture.agents.roles.project_coder import ProjectBrief
from suture.agents.roles.text_coder import TextBrief
from suture.core.records import Candidate, Counterexample, Move, Strategy, Task, Verdict
from suture.judge import Suite
from suture.judge import protected_files as refused_files
from suture.loop.context import RunContext
from suture.loop.memories import recalled_lines
from suture.loop.policy.attempts import Attempt
from suture.loop.state import LoopState, aids_of, proposals_in, tried_in
from suture.project.languages import LANGUAGES
from suture.project.python_source.parsing import parsed
from suture.project.workspace import DEFAULT_PROTECTED, is_protected, overlay, text_of

DIGEST = 3
"""Earlier attempts that a repair prompt lists."""


def brief_for(
    move: Move, parent: Attempt | None, state: LoopState, context: RunContext, suite: Suite
) -> Brief:
    """The brief of a move, with what a person and the helpers have told."""
    aids = aids_of(state)
    remarks = aids.remarks.get(parent.candidate, ()) if parent else ()
    brief = with_advice(
        _brief(move, parent, state, context, suite),
        (*remarks, *aids.lessons, *recalled_lines("coder", context)),
    )
    return with_hints(brief, state["hints"])


def _brief(move: Move, parent: Attempt | None, state: LoopState, context: RunContext, suite: Suite) -> Brief:
    task = context.task
    if writes_files(task):
        return _project_brief(move, parent, state, context, suite)
    if move.kind == "sample" or parent is None:
        tests = _visible_tests(context)
        return WriteBrief(
            statement=task.statement,
            module=task.module,
            beside=task.beside,
            several=task.several,
            entry_point=task.entry_point,
            tests=tests,
        )
    if not LANGUAGES[task.language].parsed:
        return _text_brief(move, parent, state, context, suite)
    return repair_brief(parent, state, context, suite, move.strategy)


def _project_brief(
    move: Move, parent: Attempt | None, state: LoopState, context: RunContext, suite: Suite
) -> ProjectBrief:
    fresh = fresh_brief(context, suite)
    if move.kind == "sample" or parent is None:
        return replace(fresh, refused=_refused(state))
    verdict = context.verdict(parent.verdict)
    known = replace(
        fresh,
        facts=deciding_facts(verdict, context.settings.loop.trust_threshold),
        output=verdict.output,
        history=digest(parent, state, context),
        refused=_refused(state),
    )
    return mending_brief(move, parent, known, context, suite)


def _text_brief(
    move: Move, parent: Attempt, state: LoopState, context: RunContext, suite: Suite
) -> TextBrief:
    """A brief of code that is judged by exit status: what the command printed is all that is known."""
    task = context.task
    output = context.verdict(parent.verdict).output
    files = overlay(task.files, context.candidate(parent.blob).files)
    closed = refused_files(dict.fromkeys(files, ""), suite)
    return TextBrief(
        statement=task.statement,
        language=task.language,
        files=named_files(files, output, closed, task.language),
        output=output,
        history=digest(parent, state, context),
        strategy=move.strategy,
        project=frozenset(files),
        refused=_refused(state),
    )


def _visible_tests(context: RunContext) -> str:
    """Tests that the user gave: the coder may read them. Examples already stand in the statement."""
    task = context.task
    asserts = [check.source for check in task.checks if check.provenance == "user"]
    files = [
        content.decode("utf-8", "replace")
        for path, content in task.files.items()
        if path in task.test_command and path.endswith(".py")
    ]
    return "\n".join(text.strip("\n") for text in [*asserts, *files])


def repair_brief(
    parent: Attempt, state: LoopState, context: RunContext, suite: Suite, strategy: Strategy = "minimal"
) -> RepairBrief:
    """What there is to know about a candidate of Python code that fails."""
    task = context.task
    candidate = context.candidate(parent.blob)
    verdict = context.verdict(parent.verdict)
    facts = deciding_facts(verdict, context.settings.loop.trust_threshold)
    brief = RepairBrief(
        statement=task.statement,
        files=_with_the_module_first(candidate, task) if task.kind == "write" else {},
        entry_point=task.entry_point,
        facts=facts,
        output=verdict.output,
        history=digest(parent, state, context),
        strategy=strategy,
        refused=_refused(state),
        project=frozenset((*task.files, *candidate.files)) if task.kind == "write" and task.several else None,
    )
    return brief if task.kind == "write" else _localised(brief, candidate, context, suite)


def _with_the_module_first(candidate: Candidate, task: Task) -> dict[str, str]:
    """A new candidate's files in the order in which a prompt that is too long loses them, from the end."""
    return {
        path: candidate.files[path] for path in (*task.modules, *candidate.files) if path in candidate.files
    }


def _localised(brief: RepairBrief, candidate: Candidate, context: RunContext, suite: Suite) -> RepairBrief:
    """A brief of a project's code, with what the search found out about it."""
    files = overlay(context.task.files, candidate.files)
    clues = clues_of(context.ledger.events)
    closed = refused_files(dict.fromkeys(files, ""), suite)
    shown = suspect_files(files, brief.facts, closed, [fault.path for fault in clues.faults])
    # The lines of the clues are those of the user's code; a file that the candidate changes has others.
    as_was = {path: text for path, text in shown.items() if path not in candidate.files}
    suspects = suspects_in(as_was, clues)
    lines = {path: _suspicious_lines(path, clues if path in as_was else None, brief.facts) for path in shown}
    shown = _without_innocent(shown, lines)
    excerpts = _excerpts(shown, lines)
    code = {
        path: text_of(files[path]) for path in files if path.endswith(".py") and not _is_test(path, suite)
    }
    return replace(
        brief,
        files=shown,
        divergences={} if candidate.files else clues.divergences,
        project=frozenset(files),
        excerpts=excerpts,
        suspects=suspects,
        hints=[hint for hint in clues.hints if hint.path in as_was],
        siblings=siblings_of(suspects, code, tuple({**shown, **excerpts}.values())),
    )


def _is_test(path: str, suite: Suite) -> bool:
    return path in suite.test_files or is_protected(path, DEFAULT_PROTECTED)


def _suspicious_lines(path: str, clues: Clues | None, facts: Sequence[Counterexample]) -> list[int]:
    """Lines of a file, the most suspicious first: those of the search, then those that raised in a test."""
    located = [fault.line for fault in clues.faults if fault.path == path] if clues else []
    raised = [fact.line for fact in facts if fact.file == path and fact.line is not None]
    return list(dict.fromkeys([*located, *raised]))


def _without_innocent(shown: Mapping[str, str], lines: Mapping[str, Sequence[int]]) -> dict[str, str]:
    """Without the files that nothing points at, where together they are long: a small model reads slowly."""
    if not any(lines.values()) or sum(map(len, shown.values())) <= MAX_WHOLE_CHARS:
        return dict(shown)
    return {path: text for path, text in shown.items() if lines[path]}


def _excerpts(files: Mapping[str, str], lines: Mapping[str, Sequence[int]]) -> dict[str, str]:
    parts = {path: excerpt(text, lines[path]) for path, text in files.items()}
    return {path: part for path, part in parts.items() if part is not None}


def _refused(state: LoopState) -> list[str]:
    """Why the last round's replies could not be used, each reason once."""
    last = [p for p in proposals_in(state) if p.round == state["round"] - 1]
    reasons = [p.message.strip("'\"") for p in last if p.fault == "malformed"]
    return list(dict.fromkeys(reasons))


def deciding_facts(verdict: Verdict, threshold: float) -> tuple[Counterexample, ...]:
    """No repair against an untrusted test: facts of checks below the threshold are left out."""
    outcomes = [o for o in verdict.outcomes if o.trust >= threshold and not o.passed]
    return tuple(o.counterexample for o in outcomes if o.counterexample is not None)


def digest(apart: Attempt | None, state: LoopState, context: RunContext) -> tuple[EarlierAttempt, ...]:
    """The last attempts in a line each, apart from one that is shown in full."""
    shown = apart.candidate if apart else ""
    others = [e for e in tried_in(state) if e.origin != "user" and e.candidate != shown]
    return tuple(_attempt(entry, context) for entry in others[-DIGEST:])


def _attempt(entry: Attempt, context: RunContext) -> EarlierAttempt:
    facts = deciding_facts(context.verdict(entry.verdict), context.settings.loop.trust_threshold)
    return EarlierAttempt(
        label=entry.label,
        passed=entry.passed,
        total=entry.passed + entry.failed,
        first_failure=describe_fact(facts[0]) if facts else "",
    )


SAYS = "A person who reviews this adds: "


def with_hints(brief: Brief, hints: Sequence[str]) -> Brief:
    """The brief with what a person told; the last they said comes first, and before all other advice.

    Args:
        brief: Of a move.
        hints: One text each, in the order in which they were given.
    """
    return with_advice(brief, [f"{SAYS}{hint}" for hint in reversed(hints)])


def with_advice(brief: Brief, advice: Sequence[str]) -> Brief:
    """The brief with advice, before all other that it holds."""
    if not advice:
        return brief
    if isinstance(brief, RepairBrief):
        return replace(brief, advice=(*advice, *brief.advice))
    # A stub stays Python with the hints as comments, and so keeps its fence in the prompt.
    mark = "# " if parsed(brief.statement) is not None else ""
    lines = "\n".join(f"{mark}{' '.join(line.split())}" for line in advice)
    return replace(brief, statement=f"{brief.statement.rstrip()}\n\n{lines}".lstrip())
