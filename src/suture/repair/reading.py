"""What untrusted processes said, read with care: an entry of another shape is passed over."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from suture.records import from_plain

__all__ = ["Answered", "Collected", "Screened", "Seen", "entries_of"]

MOST_NUMBER = 1e6
"""Neither a line nor a count nor seconds can be more."""

ToldT = TypeVar("ToldT")


@dataclass(frozen=True, kw_only=True)
class Collected:
    """What was seen until the tests were collected."""

    collected: tuple[str, ...]
    errors: int
    seconds: float
    lines: Mapping[str, tuple[int, ...]]
    calls: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What one test did."""

    test: str
    outcome: Literal["passed", "failed", "skipped", "timeout"]
    seconds: float
    lines: Mapping[str, tuple[int, ...]]
    frames: tuple[tuple[Any, ...], ...]
    calls: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Screened:
    """What one candidate showed."""

    mutant: int
    passing: int
    failing: int
    broken: int
    plausible: bool
    unsupported: bool
    late: bool


@dataclass(frozen=True, kw_only=True)
class Answered:
    """What one candidate answered, each answer a JSON text."""

    mutant: int
    answers: tuple[str, ...]


def entries_of(content: bytes, *kinds: type[ToldT]) -> Iterator[ToldT]:
    """The entries of a file, a JSON object a line, each as the first kind that it fits.

    Args:
        content: The file; the code under test may have written to it.
        kinds: Records that an entry may be.
    """
    for line in content.splitlines():
        try:
            plain = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(plain, dict) and _is_bounded(plain):
            told = next((found for kind in kinds if (found := _read(kind, plain)) is not None), None)
            if told is not None:
                yield told


def _read(kind: type[ToldT], plain: dict[str, Any]) -> ToldT | None:
    try:
        return from_plain(kind, plain)
    except (ValueError, TypeError):
        return None


def _is_bounded(value: object) -> bool:
    if isinstance(value, dict):
        return all(map(_is_bounded, value.values()))
    if isinstance(value, list):
        return all(map(_is_bounded, value))
    return not isinstance(value, int | float) or 0 <= value <= MOST_NUMBER
