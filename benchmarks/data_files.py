"""Records below `$SUTURE_DATA` with fields that no problem has, such as other people's recorded answers."""

from __future__ import annotations

from functools import cache
from typing import Any

from suture.bench.datasets.record_sources import RecordPlaces, load_records

__all__ = ["read_data"]


@cache
def read_data(name: str) -> tuple[dict[str, Any], ...]:
    """Return the records of a file.

    Args:
        name: The path below `$SUTURE_DATA`, without `.jsonl.gz`.

    Raises:
        PrerequisiteError: The file does not exist.
        UsageError: The file is damaged.
    """
    stored = load_records(name, RecordPlaces(files=(f"{name}.jsonl.gz",)))
    return tuple(entry.record for entry in stored)
