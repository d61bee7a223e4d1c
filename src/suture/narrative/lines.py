"""Texts of others as they may be shown: harmless, and what stands on a line stays on it."""

from __future__ import annotations

from collections.abc import Iterable


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


def one_line(text: str) -> str:
    r"""A text as one line; line ends, after which words could look like ours, become visible as `\n`."""
    return text.replace("\n", "\\n")


def as_lines(lines: Iterable[str]) -> str:
    """Lines under each other, each kept on one."""
    return "\n".join(map(one_line, lines))


def counted(count: int, noun: str) -> str:
    """A number and what it counts, such as `1 test` and `1,200 tests`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
