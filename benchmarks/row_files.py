"""Rows of a measurement as JSON lines, so that a measurement that was killed can continue."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["append_row", "read_rows"]

R = TypeVar("R")


def read_rows(path: Path, row: Callable[..., R]) -> list[R]:
    """Return the rows of a file. A last line that a killed process left incomplete is skipped.

    Args:
        path: The file; it may be missing.
        row: Makes a row from its fields.
    """
    rows = []
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        try:
            rows.append(row(**json.loads(line)))
        except (ValueError, TypeError):
            print(f"{path}: a line that is no row is passed over", file=sys.stderr)
    return rows


def append_row(path: Path, row: DataclassInstance) -> None:
    """Append a row to a file, on a line of its own even if the last line is incomplete."""
    torn = path.exists() and not path.read_bytes().endswith(b"\n") and path.stat().st_size
    with path.open("a", encoding="utf-8") as lines:
        lines.write(("\n" if torn else "") + json.dumps(asdict(row)) + "\n")
