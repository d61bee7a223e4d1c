"""How a run's end is told: what changed, how it was verified, what it cost, how to apply and to undo."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from suture.ledger import RunFolder, first_of, last_of, read_ledger
from suture.ledger.kinds import (
    ReviewAsked,
    RunFinished,
    RunStarted,
    SearchFinished,
    TreeApplied,
    TreeUndone,
    UserAnswered,
)
from suture.narrative.event_text import EVIDENCE_WORDS, describe_spend, fact_lines
from suture.narrative.exit_codes import EXIT_CODES
from suture.narrative.proof_lines import handover_lines, proof_lines
from suture.narrative.waiting import waiting_lines
from suture.records import Result, TaskKind, to_plain
from suture.settings import BudgetSettings

FACTS_SHOWN = 3


def what_to_print(result: Result, kind: TaskKind) -> str:
    """The result itself, for stdout: new code as code, a change as a diff."""
    if kind == "write" and result.candidate is not None:
        return "\n".join(result.candidate.files.values())
    return result.diff


def finished_result(folder: RunFolder) -> Result:
    """The result that a run wrote down before its hand-over failed."""
    events = read_ledger(folder.ledger_path).events
    finished = last_of(events, RunFinished)
    assert finished is not None  # the hand-over comes after it
    return folder.get_record(Result, finished.result)


def what_was_applied(folder: RunFolder) -> tuple[str, ...]:
    """The files of the user's tree that the run has changed; none where the tree is as it was."""
    events = read_ledger(folder.ledger_path).events
    applied = first_of(events, TreeApplied)
    return () if applied is None or first_of(events, TreeUndone) is not None else applied.files


def ending_lines(result: Result, budget: BudgetSettings, folder: RunFolder) -> Iterator[str]:
    """The last lines of a run, for stderr.

    Args:
        result: How the run ended.
        budget: Its limits.
        folder: Its folder.
    """
    yield f"{result.outcome}: {result.reason}"
    yield from _changed(result)
    yield from _verified(result)
    yield from doubt_line(result, folder)
    yield from (f"warning: {sign}" for sign in result.warnings)
    if result.degraded:
        yield f"went on without, because they failed: {', '.join(result.degraded)}"
    yield from proof_lines(folder)
    yield f"spent: {describe_spend(result.spend, budget.model_dump())}"
    handed_over = list(handover_lines(folder))
    yield from handed_over
    if not handed_over and result.diff:
        diff = folder.path / "result.diff"
        applicable = result.ok and is_heal(folder)
        yield f"apply: suture apply {folder.id} (its diff: {diff})" if applicable else f"diff: {diff}"
    if result.outcome == "waiting":
        asked = last_of(read_ledger(folder.ledger_path).events, ReviewAsked)
        yield from waiting_lines(folder.id, asked.stage if asked else "hand_over")
    if result.outcome in ("infra_error", "cancelled"):
        yield f"try: {way_on(folder.id)}"
    yield f"run: {folder.path} (suture show {folder.id})"


def way_on(run: str) -> str:
    """What a user can do with a run that a fault stopped, or they themselves."""
    return f"go on with it: suture resume {run}; or from one of its steps: suture fork {run} --at N"


def result_as_json(result: Result, folder: RunFolder, applied: Sequence[str]) -> dict[str, Any]:
    """A result for programs: the record itself, and what a caller would otherwise have to work out."""
    return {
        **to_plain(result),
        "exit_code": EXIT_CODES[result.outcome],
        "folder": str(folder.path),
        "applied": list(applied),
    }


def _changed(result: Result) -> Iterator[str]:
    if not result.diff or result.candidate is None:
        return
    yield f"{'changed' if result.ok else 'best so far'}: {change_size(result)}"


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
        yield "verified: no, there was nothing to check it against"
        return
    total = len(verdict.passed) + len(verdict.failed)
    said = f"{len(verdict.passed)} of {total} checks pass"
    if result.ok:
        yield f"verified: {said}; evidence: {verdict.evidence} ({EVIDENCE_WORDS[verdict.evidence]})"
    else:
        yield f"not verified: {said}"
        for fact in verdict.counterexamples[:FACTS_SHOWN]:
            yield from (f"  {line}" for line in fact_lines(fact))
    yield from (f"note: {remark}" for remark in verdict.notes)


def is_heal(folder: RunFolder) -> bool:
    """Whether the run was to mend code that is there; new code stands on stdout."""
    started = first_of(read_ledger(folder.ledger_path).events, RunStarted)
    return started is not None and started.kind == "heal"


def doubt_line(result: Result, folder: RunFolder) -> Iterator[str]:
    """What another repair answers that passes too, where nobody was asked which is right."""
    events = read_ledger(folder.ledger_path).events
    searched = last_of(events, SearchFinished)
    apart = searched.difference if searched else None
    if result.ok and apart and first_of(events, UserAnswered) is None:
        answers = " or ".join(dict.fromkeys(apart.answers.values()))
        yield f"in doubt: other repairs pass too; {apart.call} gives {answers} (--ask lets you say which)"
