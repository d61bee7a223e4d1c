"""What could be meant where a source stops being Python: changes of lines, each with how likely it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from suture.repair.syntax import brackets, indentation, quotes, tokens, words
from suture.repair.syntax.lines import Rewrite
from suture.repair.syntax.stopped import Stop

__all__ = ["proposals"]

Family = Callable[[list[str], Stop], Iterator[Rewrite]]
FAMILIES: tuple[Family, ...] = (
    words.foreign,
    words.keywords,
    words.colons,
    words.assignments,
    quotes.strings,
    brackets.brackets,
    indentation.indentation,
    tokens.around_the_stop,
)


def proposals(lines: list[str], stop: Stop) -> Iterator[Rewrite]:
    """Rewrites near the place where reading stopped, of each text the first.

    Args:
        lines: The source's lines, without their ends.
        stop: Where reading stopped.
    """
    seen: set[tuple[tuple[int, str], ...]] = set()
    for family in FAMILIES:
        for rewrite in family(lines, stop):
            key = tuple(sorted(rewrite.lines.items()))
            if key not in seen and any(lines[number] != text for number, text in rewrite.lines.items()):
                seen.add(key)
                yield rewrite
