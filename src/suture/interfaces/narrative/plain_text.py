"""Texts of others as they may be shown: harmless, and what stands on a line stays on it."""

from __future__ import annotations

import re
from collections.abc import Iterable

_PLAIN = {
    "greedy": "",  # what a model thinks likeliest is what a reader expects of it
    "minimal": "the smallest change",
    "restructure": "another structure",
    "guard": "guards added",
}
"""Words of a candidate's label that are the field's, and what a reader is told in their place."""
MAX_TEXT_CHARS = 4000
"""Of one text in an editor or a notebook."""
MARKUP = re.compile(r"([\\`*<\[\]])")
"""What begins a link, an image, HTML, code or emphasis in Markdown."""


def escape_unprintable(text: str) -> str:
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


def escape_line_breaks(text: str) -> str:
    r"""A text as one line; line ends, after which words could look like ours, become visible as `\n`."""
    return text.replace("\n", "\\n")


def join_lines(lines: Iterable[str]) -> str:
    """Lines under each other, each kept on one."""
    return "\n".join(map(escape_line_breaks, lines))


def format_count(count: int, noun: str) -> str:
    """A number and what it counts, such as `1 test` and `1,200 tests`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def render_label(label: str) -> str:
    """A candidate's label in a reader's words: `sample 2, T=0.8` is `try 2, varied`.

    What a search or a person made has a label that is plain already.
    """
    if not re.match(r"(sample|repair) \d", label):
        return label
    words = [_PLAIN.get(word, re.sub(r"T=[\d.]+", "varied", word)) for word in label.split(", ")]
    return ", ".join(filter(None, words)).replace("sample", "try", 1)


def sanitize_text(text: str, most: int = MAX_TEXT_CHARS) -> str:
    """A text for an editor: no control characters, cut where it is long; some editors live in a terminal."""
    cut = text if len(text) <= most else text[:most] + " ..."
    return "".join(one if one.isprintable() or one in "\n\t" else "\N{REPLACEMENT CHARACTER}" for one in cut)


def escape_markdown(text: str, most: int = MAX_TEXT_CHARS) -> str:
    """The same for where Markdown is read: nothing in it is a link, an image or HTML."""
    return MARKUP.sub(r"\\\1", sanitize_text(text, most))
