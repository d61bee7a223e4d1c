"""One assertion of a test, in any language, and how strict it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

MAX_SHOWN_CHARS = 120
"""Length of quoted source; the rest of a longer line says little."""
BROAD_EXCEPTIONS = frozenset(("", "Exception", "BaseException", "Error"))
DIGIT_BOUNDS = ("places", "decimal", "digits")
"""Bounds of which a smaller number is wider."""
USUAL_TOLERANCE = 1e-6
"""The relative error that an approximate comparison without a bound accepts, in pytest and numpy alike."""


class Strength(IntEnum):
    """How much an assertion demands."""

    TRUTH = 0
    RELATION = 1
    APPROXIMATE = 2
    EQUALITY = 3


@dataclass(frozen=True, kw_only=True)
class Assertion:
    """One assertion of a test.

    Attributes:
        subject: Source of what is tested, without what it is compared with.
        expected: Source of what it is compared with; empty if it is only tested for truth.
        tolerances: Name -> value of the arguments that bound the error of an approximate comparison.
        exceptions: For an assertion about a raised exception, the names of the accepted ones; else empty.
        is_guarded: Whether a handler around it catches its failure, so that the test goes on.
        is_conditional: Whether it stands in a branch that may not run.
        line: Its line, from 1.
        text: Its source in one line.
    """

    subject: str
    strength: Strength
    expected: str = ""
    tolerances: tuple[tuple[str, float], ...] = ()
    exceptions: tuple[str, ...] = ()
    is_guarded: bool = False
    is_conditional: bool = False
    line: int = 0
    text: str = ""

    @property
    def demand(self) -> tuple[object, ...]:
        """What the assertion asks for, without its place."""
        return (
            self.subject,
            self.strength,
            self.expected,
            self.tolerances,
            self.exceptions,
            self.is_guarded,
            self.is_conditional,
        )


def shorten_source(source: str) -> str:
    """Return source in one line, shortened."""
    text = " ".join(source.split())
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]} ..."


def has_wider_tolerance(before: Assertion, after: Assertion) -> bool:
    """Return whether an approximate comparison accepts a larger error than before."""
    old, new = dict(before.tolerances), dict(after.tolerances)
    for name, value in new.items():
        is_digits = name in DIGIT_BOUNDS
        if name in old and (value < old[name] if is_digits else value > old[name]):
            return True
        if name not in old and not is_digits and (old or value > USUAL_TOLERANCE):
            return True
    return any(name in DIGIT_BOUNDS for name in old.keys() - new.keys())


def is_broader(before: Assertion, after: Assertion) -> bool:
    """Return whether an assertion about an exception accepts more of them, or more messages, than before."""
    if not before.exceptions or not after.exceptions:
        return False
    gained = set(after.exceptions) - set(before.exceptions)
    keeps_all = set(before.exceptions) <= set(after.exceptions)
    lost_message = bool(before.expected) and not after.expected
    return bool(gained & BROAD_EXCEPTIONS) or (bool(gained) and keeps_all) or lost_message
