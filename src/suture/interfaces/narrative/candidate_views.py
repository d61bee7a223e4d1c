"""JSON views of a run's candidates: their parents, files, verdicts, and how two of them differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from suture.core.ledger import Event, LedgerContents, RunFolder, find_final_event, first_payload, read_ledger
from suture.core.ledger.kinds import (
    CandidateChecked,
    CandidateProposed,
    CandidateRegressed,
    CandidateUnconfirmed,
    RunFinished,
    RunPaused,
    RunStarted,
)
from suture.core.records import Candidate, Task, Verdict, encode_record
from suture.errors import UsageError
from suture.interfaces.narrative.wording import render_verdict_note
from suture.project.workspace import unified_diff

ORIGINAL = "original"
"""Stands for the task's own files where two candidates are compared."""


def candidates_as_json(run: RunFolder) -> list[dict[str, Any]]:
    """Return every candidate once, in the order in which they were proposed.

    Raises:
        StorageError: The ledger cannot be read.
    """
    by_id: dict[str, dict[str, Any]] = {}
    reading = read_ledger(run.ledger_path)
    for event in reading.events:
        _apply_event(event, by_id)
    best = _best_candidate(reading)
    return [{**one, "best": one["candidate"] == best} for one in by_id.values()]


def _best_candidate(reading: LedgerContents) -> str | None:
    end = find_final_event(reading.events)
    return end.payload.best if end is not None and isinstance(end.payload, RunFinished | RunPaused) else None


def _apply_event(event: Event, by_id: dict[str, dict[str, Any]]) -> None:
    match event.payload:
        case CandidateProposed() as proposed:
            by_id.setdefault(proposed.candidate, _new_entry(proposed.candidate, event)).update(
                origin=proposed.origin,
                parent=proposed.parent,
                label=proposed.label,
                files=list(proposed.files),
                warnings=list(proposed.warnings),
            )
        case CandidateChecked() as checked:
            one = by_id.setdefault(checked.candidate, _new_entry(checked.candidate, event))
            one.update(passed=checked.passed, failed=checked.failed, evidence=checked.evidence)
            one["label"] = one["label"] or checked.label
        case CandidateRegressed(candidate=candidate) if candidate in by_id:
            by_id[candidate]["regressed"] = True
        case CandidateUnconfirmed(candidate=candidate) if candidate in by_id:
            by_id[candidate]["unconfirmed"] = True
        case _:
            return


def _new_entry(candidate: str, event: Event) -> dict[str, Any]:
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
    """Return a candidate's files and the result of each check.

    Raises:
        UsageError: The run has no such candidate.
        StorageError: The run's folder is damaged.
    """
    blob, verdict = "", ""
    for event in read_ledger(run.ledger_path).events:
        match event.payload:
            case CandidateProposed() as proposed if proposed.candidate == candidate:
                blob = proposed.blob
            case CandidateChecked() as checked if checked.candidate == candidate:
                verdict = checked.verdict
    if not blob and not verdict:
        raise _unknown_candidate(run, candidate)
    judged = None
    if verdict:
        record = run.load_record(Verdict, verdict)
        judged = {**encode_record(record), "notes": [render_verdict_note(note) for note in record.notes]}
    made = dict(run.load_record(Candidate, blob).files) if blob else {}
    return {"run": run.id, "candidate": candidate, "files": made, "verdict": judged}


def diff_between(run: RunFolder, before: str, after: str) -> str:
    """Return the unified diff from one candidate to another.

    Args:
        run: The run of both candidates.
        before: A candidate's hash, or `original` for the task's own files.
        after: A candidate's hash, or `original`.

    Raises:
        UsageError: The run has no such candidate.
        StorageError: The run's folder is damaged.
    """
    reading = read_ledger(run.ledger_path)
    one, other = (_candidate_files(run, reading, name) for name in (before, after))
    paths = one.keys() | other.keys()  # other files are the same on both sides
    originals = {path: content for path, content in _task_files(run, reading).items() if path in paths}
    return unified_diff({**originals, **one}, {**originals, **other})


def diff_of_results(run: RunFolder, other: RunFolder) -> str:
    """Return the unified diff from the best candidate of one run to that of another run.

    Raises:
        StorageError: A run's folder is damaged.
    """
    readings = [(one, read_ledger(one.ledger_path)) for one in (run, other)]
    results = [
        _candidate_files(one, reading, _best_candidate(reading) or ORIGINAL) for one, reading in readings
    ]
    paths = results[0].keys() | results[1].keys()
    originals = [
        {path: content for path, content in _task_files(one, reading).items() if path in paths}
        for one, reading in readings
    ]
    return unified_diff({**originals[0], **results[0]}, {**originals[1], **results[1]})


def _task_files(run: RunFolder, reading: LedgerContents) -> Mapping[str, bytes]:
    started = first_payload(reading.events, RunStarted)
    return run.load_record(Task, started.task).files if started is not None and started.task else {}


def _candidate_files(run: RunFolder, reading: LedgerContents, candidate: str) -> Mapping[str, bytes]:
    if candidate == ORIGINAL:
        return {}
    for event in reading.events:
        match event.payload:
            case CandidateProposed() as proposed if proposed.candidate == candidate:
                files = run.load_record(Candidate, proposed.blob).files
                return {path: text.encode("utf-8", "surrogatepass") for path, text in files.items()}
            case CandidateChecked() as checked if checked.candidate == candidate:
                return {}  # the unchanged code, which nobody proposed
    raise _unknown_candidate(run, candidate)


def _unknown_candidate(run: RunFolder, candidate: str) -> UsageError:
    return UsageError(
        f"run {run.id} has no candidate {candidate!r:.80}", remedy=f"see GET /v1/runs/{run.id}/candidates"
    )
