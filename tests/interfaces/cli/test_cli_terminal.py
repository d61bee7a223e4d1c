"""Text of a model cannot control the terminal."""

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
    ("text", "escaped"),
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
def test_control_characters_are_escaped(text: str, escaped: str) -> None:
    assert escape_unprintable(text) == escaped


@given(st.text())
def test_escaped_text_has_no_unprintable_characters(text: str) -> None:
    assert all(c.isprintable() or c in "\n\t" for c in escape_unprintable(text))


@given(st.binary())
def test_bytes_that_are_not_text_are_preserved(raw: bytes) -> None:
    assert file_bytes(raw.decode("utf-8", "surrogateescape")) == raw


def test_a_lone_surrogate_is_escaped() -> None:
    assert file_bytes("a\ud800") == b"a\\ud800"


def test_a_table_aligns_and_keeps_each_row_on_a_line() -> None:
    assert format_table([("a", "b\nc"), ("long", "d")]) == "a     b c\nlong  d"
    assert format_table([]) == ""


def test_a_long_cell_in_a_pipe_does_not_widen_other_rows() -> None:
    lines = format_table([("a", "x" * 300, "default"), ("b", "y", "default")]).split("\n")
    assert lines[0] == f"a  {'x' * 300}  default"
    assert lines[1] == f"b  y{' ' * 39}  default"


OUTPUT_MODULE = "suture.interfaces.cli.terminal.terminal_output"
PRINT_DIFF = f"from {OUTPUT_MODULE} import print_raw; print_raw('+a\\x1b[2J[red]\\n', diff=True)"


def test_control_characters_are_escaped_in_a_pipe_too() -> None:
    printing_code = f"from {OUTPUT_MODULE} import print_text; print_text('a\\x1b[2J\\r\\u2028')"
    result = subprocess.run([sys.executable, "-c", printing_code], capture_output=True, check=True)
    assert result.stdout == b"a\\x1b[2J\\r\\u2028\n"


def test_a_diff_in_a_pipe_keeps_its_exact_bytes() -> None:
    result = subprocess.run([sys.executable, "-c", PRINT_DIFF], capture_output=True, check=True)
    assert result.stdout == b"+a\x1b[2J[red]\n"


@pytest.mark.parametrize(("no_color", "coloured"), [("1", False), ("", True)])
def test_a_terminal_gets_escaped_text_and_colour_unless_disabled(no_color: str, coloured: bool) -> None:
    output = run_in_terminal(PRINT_DIFF, {"NO_COLOR": no_color, "TERM": "xterm-256color"})
    assert b"+a\\x1b[2J[red]" in output
    assert b"\x1b[2J" not in output
    assert (b"\x1b[32m" in output) is coloured


def run_in_terminal(program: str, env: dict[str, str]) -> bytes:
    """Run a program whose stdout is a terminal, and return its output."""
    terminal_fd, program_fd = pty.openpty()
    with io.FileIO(terminal_fd, "rb") as screen:
        subprocess.run(
            [sys.executable, "-c", program],
            stdout=program_fd,
            env={**os.environ, **env},
            check=True,
            timeout=60,
        )
        os.close(program_fd)
        output = b""
        while True:
            try:
                chunk = screen.read(4096)
            except OSError:  # Linux: the other end is closed
                return output
            if not chunk:
                return output
            output += chunk
