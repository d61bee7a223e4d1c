"""What stands on a line stays on it: a line end in a text of others could begin with words of ours."""

from __future__ import annotations

from collections.abc import Iterable


def one_line(text: str) -> str:
    r"""A text as one line; line ends in it become visible, as `\n`."""
    return text.replace("\n", "\\n")


def as_lines(lines: Iterable[str]) -> str:
    """Lines under each other, each kept on one."""
    return "\n".join(map(one_line, lines))
