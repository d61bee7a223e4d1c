"""The rows of the field set, and their summary by package and by cause."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Row", "baseline_agrees", "describe_outcome", "format_row", "print_rows", "sums_of"]

ENOUGH_A_SECOND = 5.0
"""Candidates per second. A search that ran out of time with fewer is reported as slow."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """The result of one run.

    Attributes:
        bug: The id of the bug.
        package: The name of the package.
        half: `tune` or `report`.
        kind: `one` or `two`.
        operator: The operators of the mutation tool.
        cap_seconds: The time limit of the run.
        exit_code: The exit code of the process; `None` if it was killed.
        outcome: The outcome of the run, or its error message.
        seconds: Wall-clock seconds from the start of the process to its end.
        failing: Number of tests that fail outside any sandbox.
        interrupted: Whether these are files that cannot be imported.
        baseline: Number of tests that fail in the run's first check; `None` if there was none.
        baseline_passed: Number of tests that pass in that check.
        cause: The cause by the run's triage; empty for a fault in the code.
        search_ended: The code of why the search ended, a `SearchEnding`; empty without a search.
        tried: Number of candidates that the search tried.
        search_seconds: Seconds of the search.
        claimed: Whether the run reports a repair and has changed the files.
        suite: Whether the suite passes then, outside any sandbox.
        same: Whether the code is as published, except for layout and comments.
        confidence: The confidence that the run states.
        undetermined: Number of rivals that the run names.
        share: The first proposed repair's share of the scores of itself and its rivals.
        changed: The lines that differ from the published ones, for reading by hand.
    """

    bug: str
    package: str
    half: str
    kind: str
    operator: str
    cap_seconds: float
    exit_code: int | None
    outcome: str
    seconds: float
    failing: int
    interrupted: bool
    baseline: int | None
    baseline_passed: int
    cause: str
    search_ended: str
    tried: int
    search_seconds: float
    claimed: bool
    suite: bool
    same: bool
    confidence: float | None
    changed: str
    undetermined: int = 0
    share: float | None = None


def baseline_agrees(row: Row) -> bool:
    """Return whether the run's first check agrees with the suite outside any sandbox."""
    if row.interrupted:  # pytest counts such a file once, and a run counts each of its tests
        return bool(row.baseline) and not row.baseline_passed
    return row.baseline == row.failing


def describe_outcome(row: Row) -> str:
    """Return in a few words what came of a run, or why a bug was not healed."""
    if row.claimed:
        return "correct" if row.same and row.suite else "differs" if row.suite else "wrong"
    if row.exit_code is None:
        return "killed: it kept no limit"
    if row.exit_code not in (0, 1, 4):
        return f"error: exit {row.exit_code}"
    if row.baseline is None:
        return "no baseline"
    if not baseline_agrees(row):
        return "baseline is not the suite's"
    if row.cause:
        return f"triage: {row.cause}"
    return _search_cause(row)


def _search_cause(row: Row) -> str:
    if not row.search_ended:
        return "no search"
    if row.search_ended in ("no_failing_test", "trials_disagree", "targets_pass_alone"):
        return "the trial disagrees"
    if row.search_ended == "time_over":
        slow = row.tried < ENOUGH_A_SECOND * row.search_seconds
        return "time over, slow" if slow else "time over, not yet tried"
    return (
        "found, but not delivered" if row.search_ended == "enough_repairs" else "not among the changes tried"
    )


def format_row(row: Row) -> str:
    """Return a row as a line of text."""
    return (
        f"{row.bug:24} {row.seconds:6.1f} s  {row.failing:4} failing, baseline {row.baseline}, "
        f"{row.tried:5} tried ({row.tried / (row.search_seconds or 1):.1f}/s)  {describe_outcome(row)}"
        f"  [{row.outcome}; {row.search_ended}]"
    )


def sums_of(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """Return the summary of each package, half and kind."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        for name in (row.package, f"half: {row.half}", f"kind: {row.kind}", "all"):
            groups.setdefault(name, []).append(row)
    return {name: _sum(members) for name, members in groups.items()}


def _sum(rows: Sequence[Row]) -> dict[str, Any]:
    searched = [row for row in rows if row.search_seconds]
    good = [row for row in rows if row.same and row.claimed and row.suite]
    return {
        "bugs": len(rows),
        "baseline": sum(map(baseline_agrees, rows)),
        "triage": sum(row.baseline is not None and not row.cause for row in rows),
        "trial": sum(row.tried > 0 for row in rows),
        "healed": sum(row.claimed for row in rows),
        "same": len(good),
        "differs": sum(row.claimed and row.suite and not row.same for row in rows),
        "flagged": sum(row.claimed and row.undetermined > 0 for row in rows),
        "wrong": sum(row.claimed and not row.suite for row in rows),
        "median_seconds": round(statistics.median(row.seconds for row in rows), 1),
        "median_seconds_healed": round(statistics.median([r.seconds for r in good] or [0.0]), 1),
        "per_second": round(
            sum(row.tried for row in searched) / (sum(row.search_seconds for row in searched) or 1.0), 1
        ),
        "ended": dict(Counter(map(describe_outcome, rows)).most_common()),
    }


def print_rows(rows: Sequence[Row], *, as_json: bool = False) -> None:
    """Print a summary for each package, half and kind with the causes, or rows and summary as JSON."""
    if as_json:
        print(json.dumps({"rows": [asdict(row) for row in rows], "sums": sums_of(rows)}, indent=1))
        return
    for name, told in sums_of(rows).items():
        print(
            f"{name:18} {told['bugs']:3} bugs: baseline {told['baseline']}, triage {told['triage']}, "
            f"trial {told['trial']}, healed {told['healed']} (same {told['same']}, "
            f"differs {told['differs']}, wrong {told['wrong']}; "
            f"with rivals {told['flagged']}); {told['median_seconds']} s, "
            f"{told['per_second']} tried a second"
        )
        print(f"{'':18} {'; '.join(f'{count} {cause}' for cause, count in told['ended'].items())}")
