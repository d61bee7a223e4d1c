"""How a run's end is told: what changed, how it was verified, what it cost, how to apply and to undo."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from suture.core.ledger import RunFolder, first_payload, last_of, read_ledger, load_result, select_events
from suture.core.ledger.kinds import (
    CandidateProposed,
    ProposerRan,
    ReviewAsked,
    RunStarted,
    SearchFinished,
    TreeApplied,
    TreeUndone,
    UserAnswered,
)
from suture.core.records import Result, Task, TaskKind, Verdict, encode_record
from suture.core.settings import BudgetSettings
from suture.interfaces.narrative.render_certificate import certificate_lines, delivery_lines
from suture.interfaces.narrative.deselection_advice import deselection_hint
from suture.interfaces.narrative.event_text import EVIDENCE_TEXTS, NO_MODEL, counterexample_lines
from suture.interfaces.narrative.exit_codes import EXIT_CODES
from suture.interfaces.narrative.plain_text import format_count
from suture.interfaces.narrative.review_text import answer_instructions
from suture.interfaces.narrative.spend_text import describe_spend
from suture.project.python_source.imports import imported_paths, loaded_files
from suture.sandbox.packages import is_lock_path

FACTS_SHOWN = 3
RIVALS_SHOWN = 2


def result_output(result: Result, kind: TaskKind) -> str:
    """The result itself, for stdout: new code as code, a change as a diff."""
    if kind != "write" or result.candidate is None:
        return result.diff
    files = {path: text for path, text in result.candidate.files.items() if not is_lock_path(path)}
    if len(files) == 1:
        return next(iter(files.values()))
    return "\n".join(f"==> {path} <==\n{text.rstrip()}\n" for path, text in files.items())


def ignored_reply_files(result: Result, folder: RunFolder) -> tuple[str, ...]:
    """The files that the reply behind the result holds besides, and that are no part of it."""
    best = result.candidate.hash if result.candidate else ""
    proposed = select_events(read_ledger(folder.ledger_path).events, CandidateProposed)
    return next((one.surplus for _, one in proposed if one.candidate == best), ())


def ignored_reply_lines(result: Result, folder: RunFolder) -> Iterator[str]:
    """What a reply held that is not handed over, and how to get it."""
    surplus = ignored_reply_files(result, folder)
    if not surplus:
        return
    way = "" if is_heal_run(folder) else " To have every file: suture run ... --into FOLDER"
    yield f"Not taken from the model's reply, as not asked for or protected: {', '.join(surplus)}.{way}"


def untested_files(result: Result, folder: RunFolder) -> tuple[str, ...]:
    """The modules of new code that no check loads, so that nothing is known of them; sorted."""
    started = first_payload(read_ledger(folder.ledger_path).events, RunStarted)
    if result.candidate is None or started is None or started.kind != "write":
        return ()
    written = {path: text for path, text in result.candidate.files.items() if path.endswith(".py")}
    if len(written) < 2:
        return ()
    task = folder.get_record(Task, started.task)
    given = {path: text.decode(errors="replace") for path, text in task.files.items() if path.endswith(".py")}
    named = [name for check in task.checks for name in imported_paths(check.source, "check.py")]
    first = (task.module.removesuffix(".py"), *named)
    roots = (*given, *(f"{name}{end}" for name in first for end in (".py", "/__init__.py")))
    return tuple(sorted(written.keys() - loaded_files({**given, **written}, roots)))


def untested_lines(result: Result, folder: RunFolder) -> Iterator[str]:
    """What of the result no check has tried."""
    if result.ok and (unchecked := untested_files(result, folder)):
        yield f"No check loads {', '.join(unchecked)}: whether that works is not known."


def load_result(folder: RunFolder) -> Result:
    """The result that a run wrote down before its hand-over failed."""
    result = load_result(folder)
    assert result is not None  # the hand-over comes after it
    return result


def applied_files(folder: RunFolder) -> tuple[str, ...]:
    """The files of the user's tree that the run has changed; none where the tree is as it was."""
    events = read_ledger(folder.ledger_path).events
    applied = first_payload(events, TreeApplied)
    return () if applied is None or first_payload(events, TreeUndone) is not None else applied.files


def render_full_result(result: Result, budget: BudgetSettings, folder: RunFolder) -> Iterator[str]:
    """The last lines of a run, for stderr."""
    yield f"{result.outcome}: {result.reason}"
    yield from _changed(result)
    yield from _verified(result)
    yield from caution_lines(result, folder)
    yield from certificate_lines(folder)
    yield f"Used {describe_spend(result.spend, budget.model_dump())}"
    yield from next_step_lines(result, folder)
    if result.diff:
        yield f"Diff: {folder.path / 'result.diff'}"
    yield f"Run: {folder.path}"
    yield f"More: suture show {folder.id}"


def caution_lines(result: Result, folder: RunFolder, *, typed: bool = True) -> Iterator[str]:
    """What takes from a result, however it is told: doubts, rivals, what was not checked or not asked."""
    yield from difference_lines(result, folder, typed=typed)
    yield from rival_lines(result)
    yield from untested_lines(result, folder)
    yield from ignored_reply_lines(result, folder)
    yield from (f"Warning: {sign}" for sign in result.warnings)
    if result.degraded:
        yield f"Went on without these, because they failed: {', '.join(result.degraded)}"


def next_step_lines(result: Result, folder: RunFolder) -> Iterator[str]:
    """What was done with the result, and what to type next."""
    events = read_ledger(folder.ledger_path).events
    handed_over = list(delivery_lines(folder))
    yield from handed_over
    if result.ok and result.diff and not handed_over and is_heal_run(folder):
        yield f"Apply it: suture apply {folder.id}"
    new = result.candidate.files if result.candidate and not handed_over and not is_heal_run(folder) else {}
    if result.ok and len(new) == 1:
        yield f"Save it as {next(iter(new))}: suture apply {folder.id}"
    if len(new) > 1:
        yield (
            f"Write all {len(new)} files: suture apply {folder.id} --into FOLDER"
            if result.ok
            else f"All files, not verified, as a diff for git apply: {folder.path / 'result.diff'}"
        )
    if result.outcome == "waiting":
        asked = last_of(events, ReviewAsked)
        yield from answer_instructions(folder.id, asked.stage if asked else "hand_over")
    if result.outcome == "not_healed" and (ran := last_of(events, ProposerRan)) is not None:
        yield f"Your program ran {format_count(ran.turn, 'time')}: suture show {folder.id} has what it printed."
        return
    if not result.ok and (way := list(deselection_hint(events))):
        yield from way
        return
    started = last_of(events, RunStarted)
    yield from _way_on_lines(
        result, folder.id, asked_nobody=started is not None and started.model == NO_MODEL
    )


def _way_on_lines(result: Result, run: str, *, asked_nobody: bool) -> Iterator[str]:
    if result.outcome in ("infra_error", "cancelled"):
        yield f"Go on with it: suture resume {run}"
        yield f"Or go on from one of its steps: suture fork {run} --at N"
    elif result.verdict is not None and not result.verdict.outcomes:
        yield "Give it something to check: an example in the task, or a file of tests with --test."
    elif result.outcome == "not_healed" and asked_nobody:
        yield "Ask a model too: leave out --no-model, or name one with --model PROVIDER:MODEL."
    elif result.outcome == "budget_exhausted" and (asked_nobody or result.verdict is None):
        return  # the reason says what to raise; where no model had its turn, a larger one is no way on
    elif result.outcome in ("stuck", "budget_exhausted", "not_healed"):
        yield f"Try a larger model: suture fork {run} --model PROVIDER:MODEL"


def continuation_hint(run: str) -> str:
    """What a user can do with a run that a fault stopped, or they themselves."""
    return f"go on with it: suture resume {run}; or from one of its steps: suture fork {run} --at N"


def result_as_json(result: Result, folder: RunFolder, applied: Sequence[str]) -> dict[str, Any]:
    """A result for programs: the record itself, and what a caller would otherwise have to work out."""
    return {
        **encode_record(result),
        "exit_code": EXIT_CODES[result.outcome],
        "folder": str(folder.path),
        "applied": list(applied),
        "surplus": list(ignored_reply_files(result, folder)),
        "unchecked": list(untested_files(result, folder)),
    }


def _changed(result: Result) -> Iterator[str]:
    if not result.diff or result.candidate is None:
        return
    yield f"{'Changed' if result.ok else 'Best so far'}: {change_size(result)}"


def change_size(result: Result) -> str:
    """The files that a result changes, and by how many lines."""
    lines = result.diff.splitlines()
    plus = sum(line.startswith("+") and not line.startswith("+++") for line in lines)
    minus = sum(line.startswith("-") and not line.startswith("---") for line in lines)
    files = sorted(result.candidate.files) if result.candidate else []
    return f"{', '.join(files)} (+{plus} -{minus} lines)"


def _verified(result: Result) -> Iterator[str]:
    verdict = result.verdict
    if verdict is None or not verdict.outcomes:
        yield "Not checked: there is nothing to check it against."
        return
    total = len(verdict.passed) + len(verdict.failed)
    if result.ok:
        yield f"{total} of {total} checks pass; checked by {EVIDENCE_TEXTS[verdict.evidence]}"
    else:
        yield from failing_lines(verdict)
    yield from (f"Note: {remark}" for remark in verdict.notes if remark not in result.warnings)


def failing_lines(verdict: Verdict) -> Iterator[str]:
    """How many checks fail, and the first facts about them."""
    total = len(verdict.passed) + len(verdict.failed)
    yield f"{len(verdict.failed)} of {total} still fail:"
    for fact in verdict.counterexamples[:FACTS_SHOWN]:
        yield from (f"  {line}" for line in counterexample_lines(fact))


def is_heal_run(folder: RunFolder) -> bool:
    """Whether the run was to mend code that is there; new code stands on stdout."""
    started = first_payload(read_ledger(folder.ledger_path).events, RunStarted)
    return started is not None and started.kind == "heal"


def rival_lines(result: Result) -> Iterator[str]:
    """What passes the same tests, and may do otherwise: the change is one of several then."""
    if result.ok and result.undetermined:
        named = "; ".join(result.undetermined[:RIVALS_SHOWN])
        yield (
            "Your tests do not decide: other changes pass them too, and may do otherwise. Add a test that "
            f"tells them apart, or read the diff ({named})"
        )


def difference_lines(result: Result, folder: RunFolder, *, typed: bool = True) -> Iterator[str]:
    """What another repair answers that passes too, where nobody was asked which is right."""
    events = read_ledger(folder.ledger_path).events
    searched = last_of(events, SearchFinished)
    apart = searched.difference if searched else None
    if result.ok and apart and first_payload(events, UserAnswered) is None:
        answers = " or ".join(dict.fromkeys(apart.answers.values()))
        way = " (--ask lets you say which)" if typed else ""
        yield f"In doubt: other repairs pass too; {apart.call} gives {answers}{way}"
