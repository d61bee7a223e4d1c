"""Where Python stops reading a source."""

from __future__ import annotations

import warnings
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ParseStop:
    """The first place at which a source is no Python.

    Attributes:
        line: From 1; the last line at most.
        column: From 0, in characters.
        message: What CPython says.
    """

    line: int
    column: int
    message: str


def find_python_stop(text: str) -> ParseStop | None:
    """Where a source stops being Python; `None` where it does not.

    Args:
        text: With a line feed at the end of its lines.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "source", "exec", dont_inherit=True)
    except SyntaxError as fault:
        last = text.count("\n") + 1
        line = min(max(1, fault.lineno or 1), last)
        return ParseStop(line=line, column=max(0, (fault.offset or 1) - 1), message=fault.msg or "")
    except (ValueError, RecursionError, MemoryError) as fault:
        return ParseStop(line=1, column=0, message=str(fault))
    return None
