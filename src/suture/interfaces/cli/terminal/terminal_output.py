"""Write to the terminal, and prevent untrusted text from controlling it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from suture.errors import StorageError
from suture.interfaces.cli.terminal.line_folding import fold_line, fold_table
from suture.interfaces.narrative.plain_text import escape_line_breaks, escape_unprintable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

DIFF_STYLES = (("+++", "bold"), ("---", "bold"), ("@@", "cyan"), ("+", "green"), ("-", "red"))
"""(start of a line, style) of a diff; the first start that fits counts."""


def make_console(*, stderr: bool = False) -> Console:
    """Return a console that prints text literally: no markup, emoji codes, highlighting or wrapping.

    Everything drawn on it is escaped.
    """
    console_class = _escaping_console_class()
    return console_class(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=True)


@cache
def _escaping_console_class() -> type[Console]:
    """Return a console class that escapes control characters, also those in views and progress bars."""
    from rich.console import Console  # imported here, because Rich takes a tenth of a command's start-up time
    from rich.segment import Segment

    class EscapingConsole(Console):
        """A console that escapes control characters in text, but keeps Rich's own control sequences."""

        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                if segment.control or segment.text.isprintable():
                    yield segment
                else:
                    yield Segment(escape_unprintable(segment.text), segment.style)

    return EscapingConsole


def print_note(text: str, *, style: str | None = None) -> None:
    """Print a message on stderr; its line breaks become visible, and a terminal folds it."""
    line = escape_line_breaks(escape_unprintable(text))
    if sys.stderr.isatty():
        print_line(make_console(stderr=True), line, style=style)
    else:  # Rich would write the same, and takes a tenth of a command's start-up time
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


@contextmanager
def show_activity(text: str) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows on stderr what the program is busy with.

    It first shows `text`. On a terminal it is one animated line that is erased at the end. Otherwise each message is a
    line.
    """
    if not sys.stderr.isatty():
        print_note(text)
        yield print_note
        return
    with make_console(stderr=True).status(text) as status:
        yield status.update


def print_line(screen: Console, line: str, *, style: str | None = None) -> None:
    """Print one line; on a terminal it is folded between words."""
    if screen.is_terminal:
        for part in fold_line(line, screen.width):
            screen.print(part, style=style)
    else:
        screen.print(line, style=style)


def print_prompt(text: str) -> None:
    """Print a question on stderr and leave the cursor after it."""
    make_console(stderr=True).print(
        escape_line_breaks(escape_unprintable(text)), end=" " if not text.endswith(" ") else ""
    )


def print_text(text: str) -> None:
    """Print text on stdout, escaped even through a pipe, which can end at a terminal.

    A terminal gets long lines folded between words.
    """
    text = escape_unprintable(text)
    if (columns := stdout_columns()) is not None:
        text = "\n".join(part for line in text.split("\n") for part in fold_line(line, columns))
    print_raw(text)


def print_text_line(line: str) -> None:
    """Print one line on stdout like `print_text`; its line breaks become visible."""
    print_text(escape_line_breaks(line))


def print_raw(text: str, *, diff: bool = False) -> None:
    """Print output that other programs use, such as a program, a patch or a path.

    A terminal gets it escaped, and a diff in colour. A pipe or a file gets exactly the bytes: a patch with
    replaced characters would be a different patch.

    Args:
        text: The output; a missing final line feed is added.
        diff: Whether it is a unified diff.
    """
    if text and not text.endswith("\n"):
        text += "\n"
    if not sys.stdout.isatty():
        _write(file_bytes(text))
        return
    screen = make_console()
    if diff:
        print_diff(text, screen)
        return
    for line in escape_unprintable(text).splitlines():
        screen.print(line)


def print_diff(diff: str, screen: Console) -> None:
    """Print a unified diff in colour."""
    for line in escape_unprintable(diff).splitlines():
        screen.print(line, style=next((style for mark, style in DIFF_STYLES if line.startswith(mark)), None))


def _write(content: bytes) -> None:
    """Write bytes to stdout. Raises `StorageError` if that fails, such as on a full disk."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise  # the reader has closed the pipe
    except OSError as fault:
        raise StorageError(f"the output cannot be written: {fault.strerror}") from fault


def escape_library_output() -> None:
    """Escape what libraries, threads and the interpreter itself write to stderr."""
    import logging
    import threading
    import warnings
    from traceback import format_exception

    class EscapingFormatter(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return escape_unprintable(super().format(record))

    def report(fault: BaseException | None) -> None:
        if fault is not None:
            sys.stderr.write(escape_unprintable("".join(format_exception(fault))))

    format_warning = warnings.formatwarning
    warnings.formatwarning = lambda *args, **options: escape_unprintable(format_warning(*args, **options))
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(EscapingFormatter())
    sys.excepthook = lambda kind, fault, trace: report(fault)
    sys.unraisablehook = lambda details: report(details.exc_value)
    threading.excepthook = lambda details: report(details.exc_value)


def print_json(value: Any) -> None:
    """Print one JSON document on stdout, ASCII only."""
    import json

    sys.stdout.write(json.dumps(value, indent=2) + "\n")
    sys.stdout.flush()  # a long-running command, such as a server, must be readable through a pipe


def print_answer(value: Any, text: str, *, as_json: bool) -> None:
    """Print an answer on stdout: its JSON value for programs, or its text for people."""
    if as_json:
        print_json(value)
    else:
        print_text(text)


def file_bytes(text: str) -> bytes:
    """Return text as bytes; a surrogate that stands for an undecodable byte becomes that byte again."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")


def format_table(rows: Iterable[Sequence[str]]) -> str:
    """Return rows as aligned columns, one line each unless the terminal is too narrow."""
    cells = [[escape_unprintable(cell).replace("\n", " ") for cell in row] for row in rows]
    return "\n".join(fold_table(cells, stdout_columns()))


def stdout_columns() -> int | None:
    """Return the width of the terminal, or `None` if stdout is not a terminal."""
    return make_console().width if sys.stdout.isatty() else None


def stdin_is_terminal() -> bool:
    """Return whether a person can be asked."""
    try:
        return os.isatty(sys.stdin.fileno())
    except (OSError, ValueError, AttributeError):
        return False  # stdin is closed, or replaced by an object without a file descriptor
