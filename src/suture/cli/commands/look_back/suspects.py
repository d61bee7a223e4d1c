"""`suture show --faults`: the suspicious lines that a run's search found, from its ledger."""

from __future__ import annotations

from suture.cli.terminal.output import answer, answer_json, table
from suture.errors import StorageError, UsageError
from suture.ledger import RunFolder, first_of, last_of, read_ledger
from suture.ledger.kinds import RunStarted, SearchFinished
from suture.records import Task
from suture.workspace import text_of


def show_suspects(run: RunFolder, *, as_json: bool) -> None:
    """Print the lines that may be at fault, with their scores and their text.

    Raises:
        UsageError: The run did not look for any.
    """
    events = read_ledger(run.ledger_path).events
    searched = last_of(events, SearchFinished)
    if searched is None:
        raise UsageError(
            f"run {run.id} has not located any fault",
            remedy="`suture heal` does where pytest tests fail and repair.enabled is on",
        )
    if as_json:
        answer_json([vars(fault) for fault in searched.faults])
        return
    started = first_of(events, RunStarted)
    texts = _texts(run, started.task) if started else {}
    rows = []
    for fault in searched.faults:
        lines = texts.get(fault.path, "").splitlines()
        text = lines[fault.line - 1].strip() if 0 < fault.line <= len(lines) else ""
        rows.append((f"{fault.score:.2f}", f"{fault.path}:{fault.line}", fault.function or "-", text))
    answer(table(rows) if rows else "no line of the project ran in a failing test")


def _texts(run: RunFolder, blob: str) -> dict[str, str]:
    """The project's files as the run began; none where the folder no longer has them."""
    try:
        files = run.get_record(Task, blob).files
    except (StorageError, ValueError, KeyError, TypeError):
        return {}
    return {path: text_of(content) for path, content in files.items()}
