"""Make text of unknown origin safe to display, and format counts, labels and lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_LABEL_WORDS = {
    "greedy": "",  # the default sampling needs no mention
    "minimal": "the smallest change",
    "restructure": "another structure",
    "guard": "guards added",
}
"""Technical words in a candidate's label, and what a reader sees instead."""
MAX_TEXT_CHARS = 4000
"""Maximum length, in characters, of one message in an editor or a notebook. Chosen by judgement; not measured."""
MARKDOWN_SYNTAX = re.compile(r"([\\`*<\[\]])")
"""The characters that start a link, an image, HTML, code or emphasis in Markdown."""


def escape_unprintable(text: str) -> str:
    r"""Write control characters as visible escapes, so that the text cannot steer a terminal.

    Line feeds and tabs stay. Escape sequences, carriage returns, bidirectional control characters and lone
    surrogates become escapes such as `\x1b`.
    """
    return "\n".join(line if line.isprintable() else _escape_line(line) for line in text.split("\n"))


def _escape_line(line: str) -> str:
    return "".join(
        char if char.isprintable() or char == "\t" else char.encode("unicode_escape").decode("ascii")
        for char in line
    )


def escape_line_breaks(text: str) -> str:
    r"""Return the text as one line; each line feed becomes a visible `\n`.

    Otherwise untrusted text could start a new line that looks like one of Suture's messages.
    """
    return text.replace("\n", "\\n")


def disarm_commands(line: str) -> str:
    """Return a line that no CI service takes for a command: GitHub obeys `##[` anywhere in a line."""
    return line.replace("##[", "#\\[").replace("##vso[", "#\\vso[")


def join_lines(lines: Iterable[str]) -> str:
    """Join lines with line feeds, after escaping the line feeds inside each line."""
    return "\n".join(map(escape_line_breaks, lines))


def render_command(argv: Sequence[str]) -> str:
    """Return a command as the user typed it: without the shell that only joins commands by `&&`."""
    return argv[2] if len(argv) == 3 and tuple(argv[:2]) == ("sh", "-c") else " ".join(argv)


def format_count(count: int, noun: str) -> str:
    """Return a number with its noun, such as `1 test` or `1,200 tests`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def format_share(count: int, total: int, verb: str, noun: str = "") -> str:
    """Return how many of some tests or checks do something: `2 of 3 tests pass`, or `the only test passes`.

    Args:
        verb: What they do, in the plural, such as `pass` or `still fail`.
        noun: What one of them is called. Without a noun, several stay unnamed: `2 of 3 pass`.
    """
    ending = "" if count != 1 else "es" if verb.endswith("s") else "s"
    if total == 1:
        return f"the only {noun or 'check'} {verb if count else f'does not {verb}'}{ending}"
    return f"{count:,} of {total:,}{f' {noun}s' if noun else ''} {verb}{ending}"


def render_label(label: str) -> str:
    """Return a candidate's label as a reader sees it.

    `sample 2, T=0.8` becomes `candidate 2, varied`, and `mutation, line 9: < becomes <=` begins with the line.
    """
    if not re.match(r"(sample|repair) \d", label):
        return label.removeprefix("mutation, ")
    parts = [_LABEL_WORDS.get(part, re.sub(r"T=[\d.]+", "varied", part)) for part in label.split(", ")]
    return ", ".join(filter(None, parts)).replace("sample", "candidate", 1)


def name_candidate(candidate: str, label: str) -> str:
    """Return what a candidate is called, with its hash: `candidate 2 (1f0c95ba)` or `candidate 1f0c95ba (repair 1)`."""
    text, digest = render_label(label), candidate[:8]
    return f"{text} ({digest})" if text.startswith("candidate ") else f"candidate {digest} ({text})"


def sanitize_text(text: str, max_chars: int = MAX_TEXT_CHARS) -> str:
    """Return text for an editor without control characters, cut at `max_chars`.

    Some editors run in a terminal, so control characters become replacement characters.
    """
    cut = text if len(text) <= max_chars else text[:max_chars] + " ..."
    return "".join(
        char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in cut
    )


def escape_markdown(text: str, max_chars: int = MAX_TEXT_CHARS) -> str:
    """Return text for a Markdown view, in which nothing becomes a link, an image or HTML."""
    return MARKDOWN_SYNTAX.sub(r"\\\1", sanitize_text(text, max_chars))
