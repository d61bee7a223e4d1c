"""What reaches the user's terminal, and how text that somebody else wrote is kept from steering it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from suture.errors import StorageError
from suture.interfaces.cli.terminal.line_folding import fold_line, fold_table
from suture.interfaces.narrative.plain_text import escape_line_breaks, escape_unprintable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

DIFF_STYLES = (("+++", "bold"), ("---", "bold"), ("@@", "cyan"), ("+", "green"), ("-", "red"))


def make_console(*, stderr: bool = False) -> Console:
    """A console that takes every text literally: no markup, no emoji codes, no highlighting, no wrapping.

    Whatever is drawn on it is made harmless.
    """
    return _screen_type()(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=True)


@cache
def _screen_type() -> type[Console]:
    """A console that no text can steer: also what a view or a bar draws passes it."""
    from rich.console import Console  # here, as Rich takes a tenth of a command's start to load
    from rich.segment import Segment

    class Screen(Console):
        """Control characters in a text become visible escapes; Rich's own, which draw, stay."""

        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                if segment.control or segment.text.isprintable():
                    yield segment
                else:
                    yield Segment(escape_unprintable(segment.text), segment.style)

    return Screen


def print_note(text: str, *, style: str | None = None) -> None:
    """Say something beside the result, on stderr; line ends in it become visible, and a terminal folds it."""
    line = escape_line_breaks(escape_unprintable(text))
    if sys.stderr.isatty():
        print_line(make_console(stderr=True), line, style=style)
    else:  # Rich would write the same, and takes a tenth of a command's start to load
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


def print_line(screen: Console, line: str, *, style: str | None = None) -> None:
    """Print a line of ours; a terminal gets it folded between words."""
    if screen.is_terminal:
        for part in fold_line(line, screen.width):
            screen.print(part, style=style)
    else:
        screen.print(line, style=style)


def print_prompt(text: str) -> None:
    """Ask on stderr, with the cursor left behind the question."""
    make_console(stderr=True).print(
        escape_line_breaks(escape_unprintable(text)), end=" " if not text.endswith(" ") else ""
    )


def print_text(text: str) -> None:
    """Print what there is to say, on stdout: harmless also through a pipe, which may end at a terminal.

    A terminal gets long lines folded between words.
    """
    text = escape_unprintable(text)
    if sys.stdout.isatty():
        columns = make_console().width
        text = "\n".join(part for line in text.split("\n") for part in fold_line(line, columns))
    print_raw(text)


def print_raw(text: str, *, diff: bool = False) -> None:
    """Print what others are to use, such as a program, a patch or a path.

    A terminal gets it escaped, and a diff coloured. A pipe or a file gets exactly the bytes, because a patch
    or a program with something replaced in it would be another one.

    Args:
        text: The result; a last line end is added where it is missing.
        diff: Whether it is a unified diff.
    """
    if text and not text.endswith("\n"):
        text += "\n"
    if not sys.stdout.isatty():
        _write(file_bytes(text))
        return
    screen = make_console()
    for line in escape_unprintable(text).splitlines():
        style = next((style for mark, style in DIFF_STYLES if line.startswith(mark)), None) if diff else None
        screen.print(line, style=style)


def _write(content: bytes) -> None:
    """Write to stdout what is no terminal's.

    Raises:
        StorageError: What it leads to takes no more.
    """
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise  # whoever reads has enough
    except OSError as fault:
        raise StorageError(f"the output cannot be written: {fault.strerror}") from fault


def escape_library_output() -> None:
    """What libraries, threads and the interpreter itself write to stderr is no way around this room."""
    import logging
    import threading
    import warnings
    from traceback import format_exception

    class Harmless(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return escape_unprintable(super().format(record))

    def report(fault: BaseException | None) -> None:
        if fault is not None:
            sys.stderr.write(escape_unprintable("".join(format_exception(fault))))

    format_warning = warnings.formatwarning
    warnings.formatwarning = lambda *about, **more: escape_unprintable(format_warning(*about, **more))
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(Harmless())
    sys.excepthook = lambda kind, fault, trace: report(fault)
    sys.unraisablehook = lambda about: report(about.exc_value)
    threading.excepthook = lambda about: report(about.exc_value)


def print_json(value: Any) -> None:
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


def format_table(rows: Iterable[Sequence[str]]) -> str:
    """Rows as aligned columns, two spaces apart, one line each, but for a terminal that is too narrow."""
    cells = [[escape_unprintable(cell).replace("\n", " ") for cell in row] for row in rows]
    return "\n".join(fold_table(cells, make_console().width if sys.stdout.isatty() else None))


def stdin_is_terminal() -> bool:
    """Whether there is somebody to ask."""
    try:
        return os.isatty(sys.stdin.fileno())
    except (OSError, ValueError, AttributeError):
        return False  # closed, or replaced by something that is no file
