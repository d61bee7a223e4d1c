"""What untrusted processes said, read with care: an entry of another shape is passed over."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

from suture.core.records import decode_record
from suture.judge.trials.trial_records import TestOutcome

BITS = tuple(tuple(bit for bit in range(8) if byte >> bit & 1) for byte in range(256))
MOST_PACKED = 250_000
"""Hexadecimal digits: a file has no more lines than a million."""
MOST_NUMBER = 1e6
"""Neither a line nor a count nor seconds can be more."""

ToldT = TypeVar("ToldT")


@dataclass(frozen=True, kw_only=True)
class ExecutionReport:
    """What ran, and what it failed with; lines, frames and places as they were sent."""

    seconds: float
    wall_s: float
    lines: Mapping[str, str]
    frames: tuple[tuple[Any, ...], ...]
    calls: tuple[tuple[Any, ...], ...]
    fault: str = ""
    reached: tuple[tuple[Any, ...], ...] = ()


@dataclass(frozen=True, kw_only=True)
class CollectionReport(ExecutionReport):
    """What was seen until the tests were collected."""

    collected: tuple[str, ...]
    errors: int


@dataclass(frozen=True, kw_only=True)
class TestReport(ExecutionReport):
    """What one test did."""

    test: str
    outcome: TestOutcome


@dataclass(frozen=True, kw_only=True)
class FailureTrace:
    """How far a failing test got, as `suture.judge.trials.trial_records.FailurePoint`, and its lines where noted."""

    test: str
    fault: str
    reached: tuple[tuple[Any, ...], ...]
    lines: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class AttemptReport:
    """What one candidate showed: a letter for each test, whether it ended, and how far failing tests got."""

    words: str
    ended: bool
    unsupported: bool
    marks: tuple[FailureTrace, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AnswerReport:
    """What one candidate answered, each answer a JSON text."""

    mutant: int
    answers: tuple[str, ...]


def parse_reports(content: bytes | None, *kinds: type[ToldT]) -> Iterator[ToldT]:
    """The entries of a file, a JSON object a line, each as the first kind that it fits.

    Args:
        content: What was said; the code under test may have had its hand in it.
        kinds: Records that an entry may be.
    """
    for line in (content or b"").splitlines():
        try:
            plain = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(plain, dict) and _is_bounded(plain):
            record = next((found for kind in kinds if (found := _read(kind, plain)) is not None), None)
            if record is not None:
                yield record


@lru_cache(maxsize=4096)
def lines_of(packed: str) -> frozenset[int]:
    """Line numbers that were sent as the bits of a number; none where it is no such thing."""
    try:
        found = bytes.fromhex(packed[:MOST_PACKED])
    except ValueError:
        return frozenset()
    return frozenset(8 * place + bit for place, byte in enumerate(found) if byte for bit in BITS[byte])


def valid_places(pairs: Sequence[tuple[Any, ...]]) -> tuple[tuple[str, int], ...]:
    """Paths and lines, where they are such."""
    return tuple((one[0], one[1]) for one in pairs if tuple(map(type, one)) == (str, int))


def _read(kind: type[ToldT], plain: dict[str, Any]) -> ToldT | None:
    try:
        return decode_record(kind, plain)
    except (ValueError, TypeError):
        return None


def _is_bounded(value: object) -> bool:
    if isinstance(value, dict):
        return all(map(_is_bounded, value.values()))
    if isinstance(value, list):
        return all(map(_is_bounded, value))
    return not isinstance(value, int | float) or 0 <= value <= MOST_NUMBER
