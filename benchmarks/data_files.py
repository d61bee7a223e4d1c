"""Records of `$SUTURE_DATA` with fields that no problem has, such as other people's recorded answers."""

from __future__ import annotations

from functools import cache
from typing import Any

from suture.bench.datasets.sources import RecordPlaces, load_records

__all__ = ["read_data"]


@cache
def read_data(name: str) -> tuple[dict[str, Any], ...]:
    """The records of a file.

    Args:
        name: Below `$SUTURE_DATA`, without `.jsonl.gz`.

    Raises:
        PrerequisiteError: It is not there.
        UsageError: It is not what it should be.
    """
    stored = load_records(name, RecordPlaces(files=(f"{name}.jsonl.gz",)))
    return tuple(entry.record for entry in stored)
