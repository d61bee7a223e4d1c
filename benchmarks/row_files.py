"""Rows of a measurement, kept as JSON lines: one that was killed goes on where it was."""

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
    """The rows of a file; a last line that was torn by the end of a process is passed over.

    Args:
        path: The file, which need not be there.
        row: Makes a row of its fields.
    """
    rows = []
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        try:
            rows.append(row(**json.loads(line)))
        except (ValueError, TypeError):
            print(f"{path}: a line that is no row is passed over", file=sys.stderr)
    return rows


def append_row(path: Path, row: DataclassInstance) -> None:
    """Put a row at the end of a file, on a line of its own whatever stands before."""
    torn = path.exists() and not path.read_bytes().endswith(b"\n") and path.stat().st_size
    with path.open("a", encoding="utf-8") as lines:
        lines.write(("\n" if torn else "") + json.dumps(asdict(row)) + "\n")
