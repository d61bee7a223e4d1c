"""Render what a certificate proves about a result, and how the result was delivered."""

from __future__ import annotations

from collections.abc import Iterator

from suture.core.ledger import Payload, RunFolder, first_payload, kinds, last_payload, read_ledger
from suture.core.records.unmeasured_text import render_unmeasured
from suture.interfaces.narrative.plain_text import format_count
from suture.interfaces.narrative.wording import render_confidence


def certificate_lines(folder: RunFolder) -> Iterator[str]:
    """Yield what the run's certificate says and how to verify it; nothing without a certificate."""
    events = read_ledger(folder.ledger_path).events
    certificate = last_payload(events, kinds.CertificateWritten)
    if certificate is None:
        return
    ended = last_payload(events, kinds.RunFinished)
    confidence = (
        render_confidence(ended.confidence, ended.reason)
        if ended is not None
        else f"confidence {certificate.confidence:.2f}"
    )
    started = first_payload(events, kinds.RunStarted)
    is_new = started is not None and started.kind == "write"
    yield from certificate_summary_lines(certificate, folder.id, confidence, detailed=True, is_new=is_new)
    if certificate.lint_unmeasured:
        yield f"Lint: not run, {render_unmeasured(certificate.lint_unmeasured)}"
    yield f"Certificate: {certificate.file}"
    yield f"Check it again: suture verify {folder.id}"


def certificate_summary_lines(
    certificate: kinds.CertificateWritten,
    run: str,
    confidence: str,
    *,
    detailed: bool = False,
    is_new: bool = False,
) -> Iterator[str]:
    """Yield how much the tests that a result passes are worth.

    Args:
        certificate: The certificate's summary in the ledger.
        run: The run's id.
        confidence: The confidence of the result, as `render_confidence` returns it. Warnings can lower it below the
            certificate's.
        detailed: Whether to add why something was not measured, and the names of the edits that were left out.
        is_new: Whether the run wrote the code. Then Suture may have made the checks, and all lines are changed.
    """
    subject, kind = ("The checks", "line") if is_new else ("Your tests", "changed line")
    strength = _test_strength(certificate, subject, kind, detailed=detailed)
    yield f"{strength}{'. ' if strength else ''}{confidence.capitalize()}."
    if certificate.left_out:
        count = len(certificate.left_out)
        edits = "1 unneeded edit was" if count == 1 else f"{count} unneeded edits were"
        names = f": {', '.join(certificate.left_out)}" if detailed else ""
        yield f"{edits} left out (suture show {run} --full-diff){names}."
    yield from (f"Lint: {finding}" for finding in certificate.lint)


def _test_strength(
    certificate: kinds.CertificateWritten,
    subject: str = "The tests",
    kind: str = "changed line",
    *,
    detailed: bool,
) -> str:
    """Return how much of the change the tests run, and how many mutants (deliberate mistakes) of it they detect.

    The string is empty if there was nothing to run: there are no tests, or the change only removes lines.

    Args:
        subject: What the tests are called.
        kind: What the lines are called, in the singular.
    """
    if not certificate.mutants and (
        certificate.coverage_unmeasured == "no_tests"
        or (certificate.coverage_unmeasured is None and not certificate.statements)
    ):
        return ""
    # A selected mutant that did not run counts as not detected. Without a selection, only those that ran are known.
    # If none ran, for want of time or by a setting, nothing is known of the tests.
    selected = certificate.mutants if certificate.selected is None else certificate.selected
    mutants = selected if certificate.mutants else 0
    caught = f"catch {certificate.killed} of {mutants} deliberate mistakes" if mutants else ""
    if certificate.coverage_unmeasured:
        text = f"Coverage was not measured: {render_unmeasured(certificate.coverage_unmeasured)}"
        if mutants:
            text = f"{subject} {caught} in the {'code' if kind == 'line' else 'changed lines'}. {text}"
    else:
        is_complete = certificate.covered == certificate.statements
        share = f"{certificate.covered} of {certificate.statements} {kind}s"
        text = f"{subject} run {f'every {kind}' if is_complete else share}"
        text += f" and {caught} there" if mutants else ""
    if detailed and certificate.mutation_unmeasured:
        what = "not every deliberate mistake was" if mutants else "no deliberate mistakes were"
        text += f"; {what} tried: {render_unmeasured(certificate.mutation_unmeasured)}"
    if detailed and certificate.edits_found and not certificate.is_minimal:
        text += "; a smaller change may do as well"
    return text


def delivery_lines(folder: RunFolder) -> Iterator[str]:
    """Yield what was done to the user's files or repository, and how to undo it."""
    events = read_ledger(folder.ledger_path).events
    deliveries: list[Payload] = []  # since the last undo
    for event in events:
        match event.payload:
            case kinds.TreeUndone():
                deliveries = [one for one in deliveries if isinstance(one, kinds.PullRequestOpened)]
            case kinds.TreeApplied() | kinds.CommitMade() | kinds.PatchWritten() | kinds.PullRequestOpened():
                deliveries.append(event.payload)
    yield from (render_delivery(delivery) or "" for delivery in deliveries)
    if any(isinstance(delivery, kinds.TreeApplied | kinds.CommitMade) for delivery in deliveries):
        yield f"Undo it: suture undo {folder.id}"


def render_delivery(payload: Payload) -> str | None:
    """Return one line about an event of the certificate or the delivery, or `None` for another event."""
    match payload:
        case kinds.CertificateWritten(fixed=fixed):
            # The confidence is left out here: the run's result can lower it below the certificate's.
            strength = _test_strength(payload, detailed=True)
            verb = "passes" if fixed == 1 else "pass"
            newly = f"{format_count(fixed, 'test')} {verb} only with the change"
            return f"certificate: {newly}.{f' {strength}.' if strength else ''}"
        case kinds.ApplyStarted(files=files, root=root, undo=undo):
            return f"about to write: {', '.join(files)} in {root}; data for the undo: {undo}"
        case kinds.TreeApplied(files=files, root=root):
            return f"Applied to {', '.join(files)} in {root}"
        case kinds.CommitChecked(failing=failing):
            outcome = f"these tests fail: {', '.join(failing)}" if failing else "its tests pass"
            return f"checked the commit without your uncommitted changes: {outcome}"
        case kinds.CommitStarted(root=root, branch=branch):
            return f"about to commit in {root}" + (f" on {branch}" if branch else "")
        case kinds.CommitMade(commit=commit, root=root, branch=branch):
            branch_text = f"the new branch {branch}" if branch else "the current branch"
            return f"Committed: {commit[:12]} on {branch_text} in {root}"
        case kinds.PatchWritten(file=file):
            return f"Patch: {file}"
        case kinds.PullRequestOpened(address=address):
            return f"Draft pull request: {address}"
        case kinds.TreeUndone():
            return render_undo(payload)
    return None


def render_undo(undone: kinds.TreeUndone) -> str:
    """Return one line about what was reverted, and why if Suture itself did it."""
    reason = f"{undone.reason[0].upper()}{undone.reason[1:]}." if undone.reason else ""
    if undone.branch:
        return f"Reverted: the branch {undone.branch} is deleted"
    reverted = f", by commit {undone.commit[:12]}" if undone.commit else ""
    if reason and not undone.files:
        return reason
    return f"{reason} Reverted: {', '.join(undone.files)} in {undone.root}{reverted}".lstrip()
