"""Reports of trial processes, parsed with care: code under test may have written them.

An entry that does not have the expected shape is skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

from suture.core.records import decode_record
from suture.judge.trials.trial_records import TestOutcome

BITS = tuple(tuple(bit for bit in range(8) if byte >> bit & 1) for byte in range(256))
"""The bits that are set in each byte."""
MAX_PACKED_DIGITS = 250_000
"""Hexadecimal digits of packed line numbers: no file has more than a million lines."""
MAX_NUMBER = 1e6
"""No line number, count or duration in a report can be larger."""

ReportT = TypeVar("ReportT")


@dataclass(frozen=True, kw_only=True)
class ExecutionReport:
    """What ran in a trial process; lines and frames are as they were sent.

    Attributes:
        seconds: CPU seconds.
        wall_s: Wall-clock seconds.
        lines: Path -> line numbers, packed as hexadecimal digits; see `unpack_lines`.
        frames: (path, line) of an exception's frames in the traced files.
        calls: (path, function, first line, arguments) of calls that the tests made.
        kinds: Path -> first line of a function -> variable -> the kind of its values; empty if it is not known.
        error: Class and message of the exception.
        traceback: (path, line) of the exception's frames in the project.
    """

    seconds: float
    wall_s: float
    lines: Mapping[str, str]
    frames: tuple[tuple[Any, ...], ...]
    calls: tuple[tuple[Any, ...], ...]
    kinds: Mapping[str, Mapping[str, Mapping[str, str]]] = field(default_factory=dict)
    error: str = ""
    traceback: tuple[tuple[Any, ...], ...] = ()


@dataclass(frozen=True, kw_only=True)
class CollectionReport(ExecutionReport):
    """The report of a process that collected the tests.

    Attributes:
        collected: Ids of the tests, in the order of the run.
        errors: Number of files that could not be collected.
    """

    collected: tuple[str, ...]
    errors: int


@dataclass(frozen=True, kw_only=True)
class TestReport(ExecutionReport):
    """The report of one test on the unchanged code.

    Attributes:
        waited_s: Wall-clock seconds in which it did not run, if it waited for something other than a processor.
    """

    __test__ = False

    test: str
    outcome: TestOutcome
    waited_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class FailureTrace:
    """How far a test got on a candidate, with the lines that it ran if they were recorded."""

    test: str
    error: str
    traceback: tuple[tuple[Any, ...], ...]
    lines: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class AttemptReport:
    """The report of the tests on one candidate.

    Attributes:
        outcomes: One letter for each test that ran: `P` passed, `f` failed, `s` skipped.
        finished: Whether the process ran to its end.
        unsupported: Whether the candidate cannot be put into the running process.
    """

    outcomes: str
    finished: bool
    unsupported: bool
    failures: tuple[FailureTrace, ...] = ()

    @property
    def has_failed(self) -> bool:
        """Whether any test failed."""
        return "f" in self.outcomes


@dataclass(frozen=True, kw_only=True)
class AnswerReport:
    """The answers of one candidate to calls, each as a JSON string."""

    number: int
    answers: tuple[str, ...]


def parse_reports(content: bytes | None, *kinds: type[ReportT]) -> Iterator[ReportT]:
    """Yield the reports in a message, which has one JSON value per line.

    Args:
        content: The message; code under test may have written parts of it.
        kinds: Types of reports; each line becomes the first type that it fits.
    """
    for line in (content or b"").splitlines():
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(data, dict) and _is_bounded(data):
            for kind in kinds:
                report = _decode(kind, data)
                if report is not None:
                    yield report
                    break


@lru_cache(maxsize=4096)
def unpack_lines(packed: str) -> frozenset[int]:
    """Return the line numbers in a packed string, which has one bit per line; none if it is malformed."""
    try:
        packed_bytes = bytes.fromhex(packed[:MAX_PACKED_DIGITS])
    except ValueError:
        return frozenset()
    return frozenset(8 * index + bit for index, byte in enumerate(packed_bytes) if byte for bit in BITS[byte])


def valid_places(entries: Sequence[tuple[Any, ...]]) -> tuple[tuple[str, int], ...]:
    """Return the entries that have the form (path, line)."""
    return tuple((entry[0], entry[1]) for entry in entries if tuple(map(type, entry)) == (str, int))


def _decode(kind: type[ReportT], data: dict[str, Any]) -> ReportT | None:
    try:
        return decode_record(kind, data)
    except (ValueError, TypeError):
        return None


def _is_bounded(value: object) -> bool:
    if isinstance(value, dict):
        return all(map(_is_bounded, value.values()))
    if isinstance(value, list):
        return all(map(_is_bounded, value))
    return not isinstance(value, int | float) or 0 <= value <= MAX_NUMBER
