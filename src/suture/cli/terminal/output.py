"""What reaches the user's terminal, and how text that a model wrote is kept from steering it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["answer", "answer_json", "console", "file_bytes", "note", "printable", "table"]

DIFF_STYLES = (("+++", "bold"), ("---", "bold"), ("@@", "cyan"), ("+", "green"), ("-", "red"))


def printable(text: str) -> str:
    r"""Text of unknown origin as the terminal may see it: control characters become visible escapes.

    Line ends and tabs stay. Escape sequences, carriage returns, characters that turn the direction of text
    and lone surrogates are written out, such as `\x1b`.
    """
    if text.isprintable():
        return text
    return "".join(
        character
        if character.isprintable() or character in "\n\t"
        else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def console(*, stderr: bool = False) -> Console:
    """A console that takes every text literally: no markup, no emoji codes, no highlighting, no wrapping."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=True)


def note(text: str, *, style: str | None = None) -> None:
    """Say something beside the result, on stderr."""
    console(stderr=True).print(printable(text), style=style)


def answer(text: str, *, diff: bool = False) -> None:
    """Print a result on stdout.

    A terminal gets it escaped, and a diff coloured. A pipe or a file gets exactly the bytes, because a patch
    or a program with something replaced in it would be another one.

    Args:
        text: The result; a last line end is added where it is missing.
        diff: Whether it is a unified diff.
    """
    if text and not text.endswith("\n"):
        text += "\n"
    if not sys.stdout.isatty():
        sys.stdout.flush()
        sys.stdout.buffer.write(file_bytes(text))
        sys.stdout.buffer.flush()
        return
    screen = console()
    for line in printable(text).splitlines():
        style = next((style for mark, style in DIFF_STYLES if line.startswith(mark)), None) if diff else None
        screen.print(line, style=style)


def answer_json(value: Any) -> None:
    """Print a result for programs: one JSON document on stdout, ASCII only."""
    import json

    sys.stdout.write(json.dumps(value, indent=2) + "\n")
    sys.stdout.flush()  # a command that goes on, such as a server, must be heard through a pipe too


def file_bytes(text: str) -> bytes:
    """Text as the bytes of a file; a surrogate that stands for a byte becomes that byte again."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")


def table(rows: Iterable[Sequence[str]]) -> str:
    """Rows as aligned columns, two spaces apart, one line each."""
    cells = [[printable(cell).replace("\n", " ") for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))] if cells else []
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)
    return "\n".join(line.rstrip() for line in lines)


def stdin_is_terminal() -> bool:
    """Whether there is somebody to ask."""
    try:
        return os.isatty(sys.stdin.fileno())
    except (OSError, ValueError, AttributeError):
        return False  # closed, or replaced by something that is no file
