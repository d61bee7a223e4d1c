"""JSON views of a run's candidates: their parents, files, verdicts, and how two of them differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from suture.core.ledger import (
    Event,
    LedgerContents,
    RunFolder,
    find_final_event,
    first_payload,
    kinds,
    read_ledger,
)
from suture.core.records import Candidate, Task, Verdict, encode_record
from suture.errors import UsageError
from suture.interfaces.narrative.event_text import UNCHANGED_CODE
from suture.interfaces.narrative.plain_text import render_label
from suture.interfaces.narrative.wording import describe_evidence, render_verdict_notes
from suture.project.workspace import unified_diff

ORIGINAL = "original"
"""Stands for the task's own files where two candidates are compared."""


def candidates_as_json(run: RunFolder) -> list[dict[str, Any]]:
    """Return every candidate once, in the order in which they were proposed."""
    views: dict[str, dict[str, Any]] = {}
    ledger = read_ledger(run.ledger_path)
    for event in ledger.events:
        _apply_event(event, views)
    best = _best_candidate(ledger)
    return [
        {**view, "label": render_label(view["label"]), "best": candidate == best}
        for candidate, view in views.items()
    ]


def _best_candidate(ledger: LedgerContents) -> str | None:
    end = find_final_event(ledger.events)
    return (
        end.payload.best
        if end is not None and isinstance(end.payload, kinds.RunFinished | kinds.RunPaused)
        else None
    )


def _apply_event(event: Event, views: dict[str, dict[str, Any]]) -> None:
    """Add to the views, by candidate, what an event reports."""
    match event.payload:
        case kinds.CandidateProposed() as proposed:
            views.setdefault(proposed.candidate, _new_view(proposed.candidate, event)).update(
                origin=proposed.origin,
                parent=proposed.parent,
                label=proposed.label,
                files=list(proposed.files),
                warnings=list(proposed.warnings),
            )
        case kinds.CandidateChecked() as checked:
            view = views.setdefault(checked.candidate, _new_view(checked.candidate, event))
            view.update(passed=checked.passed, failed=checked.failed, evidence=checked.evidence)
            view["label"] = view["label"] or checked.label
        case kinds.CandidateRegressed(candidate=candidate) if candidate in views:
            views[candidate]["regressed"] = True
        case kinds.CandidateUnconfirmed(candidate=candidate) if candidate in views:
            views[candidate]["unconfirmed"] = True


def _new_view(candidate: str, event: Event) -> dict[str, Any]:
    return {
        "candidate": candidate,
        "seq": event.seq,
        "origin": "user",
        "parent": None,
        "label": "",
        "files": [],
        "warnings": [],
        "passed": None,
        "failed": None,
        "evidence": None,
        "regressed": False,
        "unconfirmed": False,
    }


def candidate_as_json(run: RunFolder, candidate: str) -> dict[str, Any]:
    """Return a candidate's files and the result of each check."""
    blob, verdict = "", ""
    for event in read_ledger(run.ledger_path).events:
        match event.payload:
            case kinds.CandidateProposed() as proposed if proposed.candidate == candidate:
                blob = proposed.blob
            case kinds.CandidateChecked() as checked if checked.candidate == candidate:
                verdict = checked.verdict
    if not blob and not verdict:
        raise _unknown_candidate(run, candidate)
    verdict_view = None
    if verdict:
        record = run.load_record(Verdict, verdict)
        verdict_view = {
            **encode_record(record),
            "notes": render_verdict_notes(record.notes),
            "evidence_text": describe_evidence(record.evidence, has_diff=candidate != UNCHANGED_CODE),
        }
    files = dict(run.load_record(Candidate, blob).files) if blob else {}
    return {"run": run.id, "candidate": candidate, "files": files, "verdict": verdict_view}


def diff_between(run: RunFolder, before: str, after: str) -> str:
    """Return the unified diff from one candidate of a run to another.

    Args:
        run: The run of both candidates.
        before: A candidate's hash, or `original` for the task's own files.
        after: A candidate's hash, or `original`.
    """
    ledger = read_ledger(run.ledger_path)
    return _diff_of_candidates((run, ledger, before), (run, ledger, after))


def diff_of_results(run: RunFolder, other: RunFolder) -> str:
    """Return the unified diff from the best candidate of one run to that of another run."""
    before, after = read_ledger(run.ledger_path), read_ledger(other.ledger_path)
    return _diff_of_candidates(
        (run, before, _best_candidate(before) or ORIGINAL), (other, after, _best_candidate(after) or ORIGINAL)
    )


def _diff_of_candidates(*sides: tuple[RunFolder, LedgerContents, str]) -> str:
    """Return the diff between two sides; each is a triple `(run, ledger, candidate)`."""
    changes = [_candidate_files(run, ledger, candidate) for run, ledger, candidate in sides]
    paths = changes[0].keys() | changes[1].keys()  # other files need no comparison
    originals = [
        {path: content for path, content in _task_files(run, ledger).items() if path in paths}
        for run, ledger, _ in sides
    ]
    return unified_diff({**originals[0], **changes[0]}, {**originals[1], **changes[1]})


def _task_files(run: RunFolder, ledger: LedgerContents) -> Mapping[str, bytes]:
    started = first_payload(ledger.events, kinds.RunStarted)
    return run.load_record(Task, started.task).files if started is not None and started.task else {}


def _candidate_files(run: RunFolder, ledger: LedgerContents, candidate: str) -> Mapping[str, bytes]:
    """Return the files that a candidate changes."""
    if candidate == ORIGINAL:
        return {}
    for event in ledger.events:
        match event.payload:
            case kinds.CandidateProposed() as proposed if proposed.candidate == candidate:
                files = run.load_record(Candidate, proposed.blob).files
                return {path: text.encode("utf-8", "surrogatepass") for path, text in files.items()}
            case kinds.CandidateChecked() as checked if checked.candidate == candidate:
                return {}  # the unchanged code, which nobody proposed
    raise _unknown_candidate(run, candidate)


def _unknown_candidate(run: RunFolder, candidate: str) -> UsageError:
    return UsageError(
        f"run {run.id} has no candidate {candidate!r:.80}", remedy=f"see GET /v1/runs/{run.id}/candidates"
    )
