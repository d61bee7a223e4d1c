"""Read tables of CSV, JSON or JSON lines, and write results as JSON or CSV."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Row = dict[str, Any]
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)?(\.[0-9]*)?(e[+-]?[0-9]+)?", re.IGNORECASE)
"""A number as programs write it. Others, such as `01234` or `+49170`, are codes that stay text."""


def read_rows(path: str) -> list[Row]:
    """Return the rows of a table. An empty cell is `None`, and a number is an `int` or a `float`.

    Raises:
        ValueError: The file holds no table.
    """
    text = Path(path).read_text(encoding="utf-8-sig")
    if path.endswith((".json", ".jsonl")):
        lines = [line for line in text.split("\n") if line.strip()]
        rows = json.loads(text) if path.endswith(".json") else [json.loads(line) for line in lines]
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise ValueError(f"{path} does not hold a list of objects")
        return rows
    header = text.partition("\n")[0]
    delimiter = max(",;\t|", key=header.count)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    # The key `None` holds surplus cells of a row that is longer than the header.
    return [{name: _convert(cell) for name, cell in row.items() if name is not None} for row in reader]


def _convert(cell: str | None) -> Any:
    text = (cell or "").strip()
    for kind in (int, float) if NUMBER.fullmatch(text) else ():
        try:
            number = kind(text)
        except ValueError:
            continue
        if math.isfinite(number):
            return number
    return text or None


def write_result(result: Any, path: str) -> None:
    """Write a result as CSV if the path ends in `.csv`, else as JSON.

    Raises:
        ValueError: The result cannot be written in this format.
    """
    if not path.endswith(".csv"):
        Path(path).write_text(json.dumps(result, indent=2, allow_nan=False) + "\n", encoding="utf-8")
        return
    rows = [_flatten(result)] if isinstance(result, Mapping) else list(result)
    names = list(dict.fromkeys(name for row in rows for name in row))
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)


def _flatten(values: Mapping[str, Any], prefix: str = "") -> Row:
    """Return nested mappings as one row with names such as `amount.mean`."""
    row: Row = {}
    for name, value in values.items():
        row |= _flatten(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return row
