"""What was proved of a result and what was done with it, as lines for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from suture.core.ledger import Payload, RunFolder, last_of, read_ledger
from suture.core.ledger.kinds import (
    ApplyStarted,
    CertificateWritten,
    CommitChecked,
    CommitMade,
    CommitStarted,
    PatchWritten,
    RunFinished,
    TreeApplied,
    TreeUndone,
)
from suture.interfaces.narrative.plain_text import format_count


def certificate_lines(folder: RunFolder) -> Iterator[str]:
    """What the run's certificate says, and how to check it; nothing where there is none."""
    events = read_ledger(folder.ledger_path).events
    written = last_of(events, CertificateWritten)
    if written is None:
        return
    ended = last_of(events, RunFinished)
    given = ended.confidence if ended is not None else written.confidence
    yield from certificate_summary_lines(written, folder.id, given, whole=True)
    if written.lint_absent:
        yield f"Lint: not run, {written.lint_absent}"
    yield f"Certificate: {written.file}"
    yield f"Check it again: suture verify {folder.id}"


def certificate_summary_lines(
    written: CertificateWritten, run: str, confidence: float, *, whole: bool = False
) -> Iterator[str]:
    """What the tests are worth that a result passes, in words.

    Args:
        written: What the certificate says.
        run: The run's id.
        confidence: The result's: what it is warned of lowers what the certificate gave.
        whole: Also why something was not measured, and the names of the edits that were left out.
    """
    yield f"{_worth(written, whole=whole)}. Confidence {confidence:.2f}."
    if written.left_out:
        edits = "1 edit was" if len(written.left_out) == 1 else f"{len(written.left_out)} edits were"
        names = f": {', '.join(written.left_out)}" if whole else ""
        yield f"{edits} not needed and left out (suture show {run} --full-diff){names}."
    yield from (f"Lint: {finding}" for finding in written.lint)


def _worth(written: CertificateWritten, *, whole: bool) -> str:
    drawn = written.mutants if written.drawn is None else written.drawn
    caught = f"catch {written.killed} of {drawn} deliberate mistakes" if drawn else ""
    if written.coverage_unmeasured:
        said = f"Coverage was not measured: {written.coverage_unmeasured}"
        if drawn:
            said = f"Your checks {caught} in it. {said}"
    else:
        every = written.covered == written.statements
        lines = "every changed line" if every else f"{written.covered} of {written.statements} changed lines"
        said = f"Your tests run {lines}" + (f" and {caught} there" if drawn else "")
    if whole and written.mutation_unmeasured:
        said += f"; deliberate mistakes not tried: {written.mutation_unmeasured}"
    if whole and written.edits_found and not written.is_minimal:
        said += "; a smaller change may do too"
    return said


def delivery_lines(folder: RunFolder) -> Iterator[str]:
    """What was done to the user's tree or repository, and how to take it back."""
    events = read_ledger(folder.ledger_path).events
    undone = [place for place, event in enumerate(events) if isinstance(event.payload, TreeUndone)]
    since = events[undone[-1] + 1 :] if undone else events
    done = [e.payload for e in since if isinstance(e.payload, TreeApplied | CommitMade | PatchWritten)]
    yield from (CERTIFICATE_RENDERERS[type(payload)](payload) for payload in done)
    if any(not isinstance(payload, PatchWritten) for payload in done):
        yield f"Undo it: suture undo {folder.id}"


def _certified(written: CertificateWritten) -> str:
    # The result's confidence is told at the end: it knows more than what can be found out anew.
    return f"certificate: {format_count(written.fixed, 'test')} fixed. {_worth(written, whole=True)}."


def _begun(begun: ApplyStarted) -> str:
    return f"about to write: {', '.join(begun.files)} in {begun.root}; to take it back: {begun.undo}"


def _commit_begun(begun: CommitStarted) -> str:
    return f"about to commit in {begun.root}" + (f" on {begun.branch}" if begun.branch else "")


def _applied(applied: TreeApplied) -> str:
    return f"Applied to {', '.join(applied.files)} in {applied.root}"


def _committed(made: CommitMade) -> str:
    where = f"on the new branch {made.branch}" if made.branch else "on what is checked out"
    return f"Committed: {made.commit[:12]} {where} in {made.root}"


def _patched(written: PatchWritten) -> str:
    return f"Patch: {written.file}"


def _checked_commit(checked: CommitChecked) -> str:
    said = f"these do not pass: {', '.join(checked.failing)}" if checked.failing else "its tests pass"
    return f"checked what would be committed, without your uncommitted changes: {said}"


def render_undo(undone: TreeUndone) -> str:
    """What was taken back, in a line."""
    if undone.why:
        return f"Taken back: {undone.why}"
    if undone.branch:
        return f"Taken back: the branch {undone.branch} is deleted"
    reverted = f", reverted by commit {undone.commit[:12]}" if undone.commit else ""
    return f"Taken back: {', '.join(undone.files)} in {undone.root}{reverted}"


CERTIFICATE_RENDERERS: dict[type[Payload], Callable[[Any], str]] = {
    CertificateWritten: _certified,
    ApplyStarted: _begun,
    TreeApplied: _applied,
    CommitChecked: _checked_commit,
    CommitStarted: _commit_begun,
    CommitMade: _committed,
    PatchWritten: _patched,
    TreeUndone: render_undo,
}
