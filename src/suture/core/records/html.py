"""Records as HTML, for notebooks: everything in it is text, whoever wrote it."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

MOST_CHARS = 20_000
"""The most that is shown of a diff."""
COLOURS = (("+++", ""), ("---", ""), ("+", "#1a7f37"), ("-", "#cf222e"), ("@@", "#8250df"))
"""How a line begins -> its colour; each reads on light and on dark ground."""


def as_html(title: str, rows: Iterable[tuple[str, object]], diff: str = "") -> str:
    """A table with a title, and a diff below it.

    Args:
        title: In few words.
        rows: Name and value; those without a value are left out.
        diff: A unified diff; cut where it is long.
    """
    cells = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left;white-space:pre-wrap'>{escape(str(value))}</td></tr>"
        for name, value in rows
        if value not in ("", None, ())
    )
    shown = diff if len(diff) <= MOST_CHARS else diff[:MOST_CHARS] + "\n..."
    lines = "\n".join(map(_line, shown.splitlines()))
    code = f"<pre style='text-align:left'>{lines}</pre>" if diff else ""
    return f"<div><strong>{escape(title)}</strong><table>{cells}</table>{code}</div>"


def _line(line: str) -> str:
    colour = next((colour for start, colour in COLOURS if line.startswith(start)), "")
    return f"<span style='color:{colour}'>{escape(line)}</span>" if colour else escape(line)
