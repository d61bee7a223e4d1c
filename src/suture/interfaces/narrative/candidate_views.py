"""What a run made: its candidates with their parents, each one's files and verdict, and how two differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from suture.core.ledger import Event, LedgerReading, RunFolder, first_payload, find_final_event, read_ledger
from suture.core.ledger.kinds import (
    CandidateChecked,
    CandidateProposed,
    CandidateRegressed,
    CandidateUnconfirmed,
    RunFinished,
    RunParked,
    RunStarted,
)
from suture.core.records import Candidate, Task, Verdict, encode_record
from suture.errors import UsageError
from suture.project.workspace import unified_diff

ORIGINAL = "given"
"""Names the task's own files where two candidates are held against one another."""


def candidates_as_json(run: RunFolder) -> list[dict[str, Any]]:
    """Every candidate once, in the order in which they came to be.

    Raises:
        StorageError: The ledger cannot be read.
    """
    by_id: dict[str, dict[str, Any]] = {}
    reading = read_ledger(run.ledger_path)
    for event in reading.events:
        _take(event, by_id)
    best = _best(reading)
    return [{**one, "best": one["candidate"] == best} for one in by_id.values()]


def _best(reading: LedgerReading) -> str | None:
    end = find_final_event(reading.events)
    return end.payload.best if end is not None and isinstance(end.payload, RunFinished | RunParked) else None


def _take(event: Event, by_id: dict[str, dict[str, Any]]) -> None:
    match event.payload:
        case CandidateProposed() as proposed:
            by_id.setdefault(proposed.candidate, _new(proposed.candidate, event)).update(
                origin=proposed.origin,
                parent=proposed.parent,
                label=proposed.label,
                files=list(proposed.files),
                warnings=list(proposed.warnings),
            )
        case CandidateChecked() as checked:
            one = by_id.setdefault(checked.candidate, _new(checked.candidate, event))
            one.update(passed=checked.passed, failed=checked.failed, evidence=checked.evidence)
            one["label"] = one["label"] or checked.label
        case CandidateRegressed(candidate=candidate) if candidate in by_id:
            by_id[candidate]["regressed"] = True
        case CandidateUnconfirmed(candidate=candidate) if candidate in by_id:
            by_id[candidate]["unconfirmed"] = True
        case _:
            return


def _new(candidate: str, event: Event) -> dict[str, Any]:
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
    """One candidate: the files that it writes, and what each check said of it.

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
        raise _unknown(run, candidate)
    judged = encode_record(run.get_record(Verdict, verdict)) if verdict else None
    made = dict(run.get_record(Candidate, blob).files) if blob else {}
    return {"run": run.id, "candidate": candidate, "files": made, "verdict": judged}


def diff_between(run: RunFolder, before: str, after: str) -> str:
    """What changes from one candidate to another, as a unified diff.

    Args:
        run: Whose candidates they are.
        before: A candidate's hash, or `given` for the task's own files.
        after: The same.

    Raises:
        UsageError: The run has no such candidate.
        StorageError: The run's folder is damaged.
    """
    reading = read_ledger(run.ledger_path)
    one, other = (_written(run, reading, name) for name in (before, after))
    paths = one.keys() | other.keys()  # whatever neither writes is the same in both
    given = {path: content for path, content in _given(run, reading).items() if path in paths}
    return unified_diff({**given, **one}, {**given, **other})


def diff_of_results(run: RunFolder, other: RunFolder) -> str:
    """What changes from the best candidate of one run to that of another, as a unified diff.

    Raises:
        StorageError: A run's folder is damaged.
    """
    readings = [(one, read_ledger(one.ledger_path)) for one in (run, other)]
    results = [_written(one, reading, _best(reading) or ORIGINAL) for one, reading in readings]
    paths = results[0].keys() | results[1].keys()
    given = [
        {path: content for path, content in _given(one, reading).items() if path in paths}
        for one, reading in readings
    ]
    return unified_diff({**given[0], **results[0]}, {**given[1], **results[1]})


def _given(run: RunFolder, reading: LedgerReading) -> Mapping[str, bytes]:
    started = first_payload(reading.events, RunStarted)
    return run.get_record(Task, started.task).files if started is not None and started.task else {}


def _written(run: RunFolder, reading: LedgerReading, candidate: str) -> Mapping[str, bytes]:
    if candidate == ORIGINAL:
        return {}
    for event in reading.events:
        match event.payload:
            case CandidateProposed() as proposed if proposed.candidate == candidate:
                files = run.get_record(Candidate, proposed.blob).files
                return {path: text.encode("utf-8", "surrogatepass") for path, text in files.items()}
            case CandidateChecked() as checked if checked.candidate == candidate:
                return {}  # the code as it was: nobody proposed it
    raise _unknown(run, candidate)


def _unknown(run: RunFolder, candidate: str) -> UsageError:
    return UsageError(
        f"run {run.id} has no candidate {candidate!r:.80}", remedy=f"see GET /v1/runs/{run.id}/candidates"
    )
