"""The rows of the field set: kept as JSON lines, and told as a table of packages and of causes."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Row", "baseline_agrees", "describe_outcome", "format_row", "print_rows", "sums_of"]

ENOUGH_A_SECOND = 5.0
"""Candidates. A search that ran out of time while it tried fewer is told as a slow one."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """How one run went.

    Attributes:
        bug: Its id.
        package: The package's name.
        half: `tune` or `report`.
        kind: `one` or `two`.
        operator: The tool's operators.
        cap_seconds: What the run was allowed.
        exit_code: Of the process; `None` where it was killed.
        outcome: What the run says of itself; the message, where it ended with an error.
        seconds: Wall clock, from the start of the process to its end.
        failing: Tests that fail outside of any sandbox.
        interrupted: Whether those are files that cannot be imported.
        baseline: Tests that fail in the run's first check; `None` where it did not come to that.
        baseline_passed: Tests that pass there.
        cause: The run's triage; empty for a fault in the code.
        search_ended: The code of why the search ended, a `SearchEnding`; empty without a search.
        tried: Candidates.
        search_seconds: Of them.
        claimed: Whether it says healed and has changed the files.
        suite: Whether the suite passes then, outside of any sandbox.
        same: Whether the code is again what it was, layout and comments apart.
        confidence: The run's own.
        undetermined: How many rivals the run names, between which and its repair the tests do not decide.
        share: The first proposed repair's part of the scores of itself and its rivals.
        changed: The lines that the repair left different from the published ones, for reading by hand.
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
    """Whether the run's first check says what the suite says outside of any sandbox."""
    if row.interrupted:  # such a file counts once there, and with each of its tests here
        return bool(row.baseline) and not row.baseline_passed
    return row.baseline == row.failing


def describe_outcome(row: Row) -> str:
    """In a few words why a bug was not healed, or what came of it."""
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
    """A row for people."""
    return (
        f"{row.bug:24} {row.seconds:6.1f} s  {row.failing:4} failing, baseline {row.baseline}, "
        f"{row.tried:5} tried ({row.tried / (row.search_seconds or 1):.1f}/s)  {describe_outcome(row)}"
        f"  [{row.outcome}; {row.search_ended}]"
    )


def sums_of(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """What the table says of each package, each half and each kind."""
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
    """A line for each package, half and kind, and under it how its runs ended; or rows and sums as JSON."""
    if as_json:
        print(json.dumps({"rows": [asdict(row) for row in rows], "sums": sums_of(rows)}, indent=1))
        return
    for name, told in sums_of(rows).items():
        print(
            f"{name:18} {told['bugs']:3} bugs: baseline {told['baseline']}, triage {told['triage']}, "
            f"trial {told['trial']}, healed {told['healed']} (same {told['same']}, "
            f"differs {told['differs']}, wrong {told['wrong']}; "
            f"not told apart {told['flagged']}); {told['median_seconds']} s, "
            f"{told['per_second']} tried a second"
        )
        print(f"{'':18} {'; '.join(f'{count} {cause}' for cause, count in told['ended'].items())}")
