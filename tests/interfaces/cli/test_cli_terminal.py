"""Text that a model wrote reaches a terminal only as text."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suture.interfaces.cli.terminal.terminal_output import file_bytes, format_table
from suture.interfaces.narrative.plain_text import escape_unprintable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\n\ttext", "plain\n\ttext"),
        ("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
        ("over\rwritten", "over\\rwritten"),
        ("\u202eright to left", "\\u202eright to left"),
        ("\ud800", "\\ud800"),
        ("été 中文 🙂", "été 中文 🙂"),
        ("[bold red]markup[/]", "[bold red]markup[/]"),
    ],
)
def test_control_characters_become_visible(text: str, shown: str) -> None:
    assert escape_unprintable(text) == shown


@given(st.text())
def test_nothing_unprintable_is_left(text: str) -> None:
    assert all(c.isprintable() or c in "\n\t" for c in escape_unprintable(text))


@given(st.binary())
def test_bytes_that_were_no_text_come_back(raw: bytes) -> None:
    assert file_bytes(raw.decode("utf-8", "surrogateescape")) == raw


def test_a_surrogate_that_no_byte_stands_for_does_not_break_the_output() -> None:
    assert file_bytes("a\ud800") == b"a\\ud800"


def test_a_table_aligns_and_keeps_each_row_on_a_line() -> None:
    assert format_table([("a", "b\nc"), ("long", "d")]) == "a     b c\nlong  d"
    assert format_table([]) == ""


def test_through_a_pipe_one_long_cell_moves_no_other_row() -> None:
    lines = format_table([("a", "x" * 300, "default"), ("b", "y", "default")]).split("\n")
    assert lines[0] == f"a  {'x' * 300}  default"
    assert lines[1] == f"b  y{' ' * 39}  default"


OUTPUT_MODULE = "suture.interfaces.cli.terminal.terminal_output"
PRINT_DIFF = f"from {OUTPUT_MODULE} import print_raw; print_raw('+a\\x1b[2J[red]\\n', diff=True)"


def test_control_characters_are_escaped_in_a_pipe_too() -> None:
    said = f"from {OUTPUT_MODULE} import print_text; print_text('a\\x1b[2J\\r\\u2028')"
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, check=True)
    assert done.stdout == b"a\\x1b[2J\\r\\u2028\n"


def test_a_pipe_gets_the_exact_bytes() -> None:
    done = subprocess.run([sys.executable, "-c", PRINT_DIFF], capture_output=True, check=True)
    assert done.stdout == b"+a\x1b[2J[red]\n"


@pytest.mark.parametrize(("no_color", "coloured"), [("1", False), ("", True)])
def test_a_terminal_gets_escaped_text_and_colour_unless_told_not_to(no_color: str, coloured: bool) -> None:
    output = in_a_terminal(PRINT_DIFF, {"NO_COLOR": no_color, "TERM": "xterm-256color"})
    assert b"+a\\x1b[2J[red]" in output
    assert b"\x1b[2J" not in output
    assert (b"\x1b[32m" in output) is coloured


def in_a_terminal(program: str, env: dict[str, str]) -> bytes:
    """What a program prints when its stdout is a terminal."""
    here, there = pty.openpty()
    with io.FileIO(here, "rb") as screen:
        subprocess.run(
            [sys.executable, "-c", program], stdout=there, env={**os.environ, **env}, check=True, timeout=60
        )
        os.close(there)
        output = b""
        while True:
            try:
                chunk = screen.read(4096)
            except OSError:  # Linux: the other end is closed
                return output
            if not chunk:
                return output
            output += chunk
