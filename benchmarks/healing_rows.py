"""The rows of a healing benchmark, and their summary as a table."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["BenchmarkRow", "format_row", "print_rows", "sums_of"]


@dataclass(frozen=True, kw_only=True)
class BenchmarkRow:
    """The result of one program under one arm. `seconds` ends at the last decision; certification is separate."""

    program: str
    arm: str
    cap_seconds: float
    cap_tokens: int
    outcome: str
    origin: str
    plausible: bool
    correct: bool
    seconds: float
    proof_seconds: float
    search_seconds: float
    candidates: int
    plausible_found: int
    tokens: int
    model_calls: int
    compared: int
    agreed: int
    label: str


def _verdict(row: BenchmarkRow) -> str:
    return "correct" if row.correct else "plausible" if row.plausible else "-"


def format_row(row: BenchmarkRow) -> str:
    """Return a row as a line of text."""
    return (
        f"{row.program:27} {row.arm:30} {_verdict(row):9} {row.agreed:3}/{row.compared:<3} "
        f"{row.seconds:6.1f} s (search {row.search_seconds:5.1f}, certification {row.proof_seconds:5.1f}) "
        f"{row.tokens:6} tokens  {row.label or row.outcome}"
    )


def sums_of(rows: Sequence[BenchmarkRow]) -> dict[str, dict[str, float]]:
    """Return counts, tokens and medians for each arm."""
    return {arm: _sum([row for row in rows if row.arm == arm]) for arm in dict.fromkeys(r.arm for r in rows)}


def _sum(rows: Sequence[BenchmarkRow]) -> dict[str, float]:
    return {
        "programs": len(rows),
        "correct": sum(row.correct for row in rows),
        "correct_without_tokens": sum(row.correct and not row.tokens for row in rows),
        "plausible": sum(row.plausible for row in rows),
        "tokens": sum(row.tokens for row in rows),
        "median_seconds": round(statistics.median(row.seconds for row in rows), 1),
        "median_search_seconds": round(statistics.median(row.search_seconds for row in rows), 1),
    }


def print_rows(rows: Sequence[BenchmarkRow]) -> None:
    """Print a table of programs and arms, and a summary line for each arm."""
    table: dict[str, dict[str, BenchmarkRow]] = {}
    for row in rows:
        table.setdefault(row.program, {})[row.arm] = row
    for program, by_arm in table.items():
        cells = (f"{arm}: {_verdict(row)}, {row.seconds:.1f} s, {row.tokens}" for arm, row in by_arm.items())
        print(f"{program:27} {'; '.join(cells)} tokens")
    for arm, sums in sums_of(rows).items():
        print(
            f"{arm}: correct {sums['correct']} ({sums['correct_without_tokens']} without a token), "
            f"plausible {sums['plausible']} of {sums['programs']}; median {sums['median_seconds']} s a run, "
            f"{sums['median_search_seconds']} s of search; {sums['tokens']} tokens"
        )
