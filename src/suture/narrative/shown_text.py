"""Text of models, projects and test runs, made fit for an editor or a notebook to show."""

from __future__ import annotations

import re

MOST_CHARS = 4000
MARKUP = re.compile(r"([\\`*<\[\]])")
"""What begins a link, an image, HTML, code or emphasis in Markdown."""


def plain(text: str, most: int = MOST_CHARS) -> str:
    """A text without control characters, cut where it is long; some editors live in a terminal."""
    cut = text if len(text) <= most else text[:most] + " ..."
    return "".join(one if one.isprintable() or one in "\n\t" else "\N{REPLACEMENT CHARACTER}" for one in cut)


def markdown(text: str, most: int = MOST_CHARS) -> str:
    """The same for where Markdown is read: nothing in it is a link, an image or HTML."""
    return MARKUP.sub(r"\\\1", plain(text, most))
