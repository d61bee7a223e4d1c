"""The rows of the healing benchmarks can be read after the measurement was killed."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def healing_rows(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Import the script; `benchmarks/` is not a package."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("healing_rows")


@pytest.fixture
def row_files(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Import the script; `benchmarks/` is not a package."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("row_files")


def test_rows_can_be_read_despite_an_incomplete_line(
    healing_rows: ModuleType, row_files: ModuleType, tmp_path: Path
) -> None:
    def make_row(program: str, arm: str, tokens: int, *, correct: bool) -> object:
        texts = dict.fromkeys(("outcome", "origin", "label"), "")
        numbers = dict.fromkeys(
            ("cap_seconds", "proof_seconds", "search_seconds", "seconds", "cap_tokens", "candidates"), 1
        )
        zero_fields = dict.fromkeys(("plausible_found", "model_calls", "compared", "agreed"), 0)
        return healing_rows.BenchmarkRow(
            program=program,
            arm=arm,
            tokens=tokens,
            correct=correct,
            plausible=True,
            **texts,
            **numbers,
            **zero_fields,
        )

    path = tmp_path / "rows.jsonl"
    assert row_files.read_rows(path, healing_rows.BenchmarkRow) == []

    first = make_row("gcd", "search", 0, correct=True)
    second = make_row("sieve", "both:m", 7, correct=True)
    third = make_row("lis", "both:m", 0, correct=False)
    row_files.append_row(path, first)
    with path.open("a") as lines:
        lines.write('{"program": "tor')
    row_files.append_row(path, second)
    row_files.append_row(path, third)
    rows = row_files.read_rows(path, healing_rows.BenchmarkRow)
    assert rows == [first, second, third]

    sums = healing_rows.sums_of(rows)
    names = ("programs", "correct", "correct_without_tokens", "plausible", "tokens")
    assert [sums["search"][name] for name in names] == [1, 1, 1, 1, 0]
    assert [sums["both:m"][name] for name in names] == [2, 1, 0, 2, 7]
