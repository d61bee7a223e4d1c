"""What was proved of a result and what was done with it, as lines for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from suture.ledger import Payload, RunFolder, last_of, read_ledger
from suture.ledger.kinds import (
    ApplyStarted,
    CertificateWritten,
    CommitChecked,
    CommitMade,
    CommitStarted,
    PatchWritten,
    TreeApplied,
    TreeUndone,
)


def proof_lines(folder: RunFolder) -> Iterator[str]:
    """What the run's certificate says, and how to check it; nothing where there is none."""
    events = read_ledger(folder.ledger_path).events
    written = last_of(events, CertificateWritten)
    if written is None:
        return
    yield f"proved: {_measured(written)}"
    if written.left_out:
        parts = ", ".join(written.left_out)
        yield f"left out, for no test needs it: {parts}; the whole: suture show {folder.id} --full-diff"
    yield from (f"lint: {finding}" for finding in written.lint)
    if written.lint_absent:
        yield f"lint: not asked, {written.lint_absent}"
    yield f"certificate: {written.file} (suture verify {folder.id})"


def handover_lines(folder: RunFolder) -> Iterator[str]:
    """What was done to the user's tree or repository, and how to take it back."""
    events = read_ledger(folder.ledger_path).events
    undone = [place for place, event in enumerate(events) if isinstance(event.payload, TreeUndone)]
    since = events[undone[-1] + 1 :] if undone else events
    done = [e.payload for e in since if isinstance(e.payload, TreeApplied | CommitMade | PatchWritten)]
    yield from (PROOF_TELLERS[type(payload)](payload) for payload in done)
    if any(not isinstance(payload, PatchWritten) for payload in done):
        yield f"undo: suture undo {folder.id}"


def _measured(written: CertificateWritten) -> str:
    parts = []
    if written.edits_found:
        least = "" if written.is_minimal else ", perhaps not the fewest"
        parts.append(f"{written.edits} of {written.edits_found} edits are left{least}")
    parts.append(
        f"coverage of the change not measured ({written.coverage_unmeasured})"
        if written.coverage_unmeasured
        else f"the tests run {written.covered} of {written.statements} changed statements"
    )
    drawn = written.mutants if written.drawn is None else written.drawn
    parts.append(
        f"mutants not run ({written.mutation_unmeasured})"
        if written.mutation_unmeasured and not written.mutants
        else f"they notice {written.killed} of {drawn} mutants of these"
        + (f" ({written.mutation_unmeasured})" if written.mutation_unmeasured else "")
    )
    return f"{'; '.join(parts)}; confidence {written.confidence:.2f}"


def _certified(written: CertificateWritten) -> str:
    return f"certificate: {written.fixed} tests fixed; {_measured(written)}"


def _begun(begun: ApplyStarted) -> str:
    return f"about to write: {', '.join(begun.files)} in {begun.root}; to take it back: {begun.undo}"


def _commit_begun(begun: CommitStarted) -> str:
    return f"about to commit in {begun.root}" + (f" on {begun.branch}" if begun.branch else "")


def _applied(applied: TreeApplied) -> str:
    return f"applied to: {', '.join(applied.files)} in {applied.root}"


def _committed(made: CommitMade) -> str:
    where = f"on the new branch {made.branch}" if made.branch else "on what is checked out"
    return f"committed: {made.commit[:12]} {where} in {made.root}"


def _patched(written: PatchWritten) -> str:
    return f"patch: {written.file}"


def _checked_commit(checked: CommitChecked) -> str:
    said = f"these do not pass: {', '.join(checked.failing)}" if checked.failing else "its tests pass"
    return f"checked what would be committed, without your uncommitted changes: {said}"


def undone_line(undone: TreeUndone) -> str:
    """What was taken back, in a line."""
    if undone.why:
        return f"taken back: {undone.why}"
    if undone.branch:
        return f"taken back: the branch {undone.branch} is deleted"
    reverted = f", reverted by commit {undone.commit[:12]}" if undone.commit else ""
    return f"taken back: {', '.join(undone.files)} in {undone.root}{reverted}"


PROOF_TELLERS: dict[type[Payload], Callable[[Any], str]] = {
    CertificateWritten: _certified,
    ApplyStarted: _begun,
    TreeApplied: _applied,
    CommitChecked: _checked_commit,
    CommitStarted: _commit_begun,
    CommitMade: _committed,
    PatchWritten: _patched,
    TreeUndone: undone_line,
}
