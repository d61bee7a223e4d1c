"""Rows from the folders of benchmark runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from suture.errors import UsageError
from suture.evals.rows import Row
from suture.records import from_plain

__all__ = ["ROWS_FILE", "read_rows"]

ROWS_FILE = "rows.jsonl"


def read_rows(folders: Sequence[Path]) -> list[Row]:
    """Every row of some runs; one that stands there twice, word for word, counts once.

    Args:
        folders: Each holds `rows.jsonl`. A last line without its line end is being written, or was when the
            run was killed, and is passed over.

    Raises:
        UsageError: A folder has no such file, a line is no row, or two rows are of the same task, arm
            and seed.
    """
    seen: dict[tuple[object, ...], Row] = {}
    for folder in folders:
        for row in _rows_of(folder / ROWS_FILE):
            cell = (row.dataset, row.regime, row.model, row.cap)
            key = (*cell, row.arm, row.problem, row.problem_hash, row.seed)
            if seen.setdefault(key, row) != row:
                raise UsageError(
                    f"two different rows of {row.arm!r} on {row.problem!r} with seed {row.seed}, "
                    f"runs {seen[key].run!r} and {row.run!r}",
                    remedy="report one of the two runs, or compare them with `suture bench compare`",
                )
    return list(seen.values())


def _rows_of(path: Path) -> list[Row]:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise UsageError(
            f"no rows can be read from {str(path)!r}", remedy="name the folder of a benchmark run"
        ) from fault
    whole, _, _unfinished = text.rpartition("\n")
    return [_row(line, path, n) for n, line in enumerate(whole.split("\n"), 1) if line.strip()]


def _row(line: str, path: Path, number: int) -> Row:
    try:
        return from_plain(Row, json.loads(line))
    except (ValueError, AttributeError, TypeError) as fault:
        raise UsageError(f"{str(path)!r} line {number} is no row: {fault}") from fault
