"""Sources that tree-sitter cannot read: where it stops, and what may be wrong there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from suture.languages import LANGUAGES
from suture.languages.grammars import grammar_for, tree_of
from suture.records import Language
from suture.repair.syntax import Readable, Reader, readable_texts
from suture.repair.syntax.brackets import brackets
from suture.repair.syntax.layout import blocks
from suture.repair.syntax.likely import around_the_stop
from suture.repair.syntax.lines import Rewrite
from suture.repair.syntax.quotes import strings
from suture.repair.syntax.stopped import Stop
from suture.repair.syntax.whole import Lexis, Placed
from suture.repair.syntax.words import look_alikes

if TYPE_CHECKING:
    from tree_sitter import Node

PLACE = re.compile(r"process version:(\d+), .*row:(\d+), col:(\d+)")
QUOTES = "\"'`"
MOST_OTHERS = 200_000
"""Characters of other sources whose habits are counted."""


def readable_trees(
    path: str, texts: Mapping[str, str], language: Language, *, seconds: float
) -> list[Readable]:
    """Texts of a file with which its tree has no error, the likeliest first.

    Args:
        path: The file.
        texts: Path -> text of the project's files in the language: their habits tell what is likely.
        language: One with a grammar.
        seconds: Wall-clock seconds, after which what was found must do.
    """
    lexis = lexis_of(path, language)
    room, others = MOST_OTHERS, []
    for other, text in sorted(texts.items()):
        if other != path and len(text) <= room:
            room -= len(text)
            others.append(lexis.tokens(text))
    return readable_texts(texts[path], seconds=seconds, reader=_reader(path, language, lexis, others))


def lexis_of(path: str, language: Language) -> Lexis:
    """The words and signs that a grammar has a name for."""
    grammar = grammar_for(path, LANGUAGES[language].grammars)
    kinds = [
        grammar.node_kind_for_id(number) or ""
        for number in range(grammar.node_kind_count)
        if grammar.node_kind_is_visible(number) and not grammar.node_kind_is_named(number)
    ]
    return Lexis(known=frozenset(kind for kind in kinds if kind and not re.search(r"[\s\"'`]", kind)))


def stop_in_tree(text: str, path: str, language: Language) -> Stop | None:
    """Where the first fault of a tree lies; `None` where it has none.

    Args:
        text: The file.
        path: For its ending.
        language: One with a grammar.
    """
    root = tree_of(text, path, LANGUAGES[language].grammars)
    if not root.has_error:
        return None
    node = _first_fault(root)
    above = node.parent.type if node.parent is not None else ""
    row, byte = node.start_point
    return Stop(line=row + 1, column=_column(text, row, byte), message=f"{node.type} {above}")


def _first_fault(node: Node) -> Node:
    while not (node.is_error or node.is_missing):
        inner = next((child for child in node.children if child.has_error or child.is_missing), None)
        if inner is None:
            return node
        node = inner
    return node


def _exact(path: str, language: Language, text: str, stop: Stop) -> Stop:
    """The token that no parse could go on with: a fault's node may begin before it, or lie behind."""
    from tree_sitter import Parser

    places: dict[str, tuple[int, int]] = {}
    last, found = "", list[tuple[int, int]]()
    died: tuple[int, int] | None = None

    def heard(kind: object, message: str) -> None:
        nonlocal last, died
        if found:
            return
        if (match := PLACE.match(message)) is not None:
            last = match[1]
            places[last] = int(match[2]), int(match[3])
        elif message.startswith("detect_error"):
            died = max(died or (0, 0), places[last])
        elif message.startswith(("resume", "recover")) and died is not None:
            found.append(died)

    parser = Parser(grammar_for(path, LANGUAGES[language].grammars))
    parser.logger = heard
    parser.parse(text.encode("utf-8", "surrogatepass"))
    if not found:
        return stop
    row, byte = found[0]
    return Stop(line=row + 1, column=_column(text, row, byte), message=stop.message)


def _column(text: str, row: int, byte: int) -> int:
    line = text.split("\n")[row] if row <= text.count("\n") else ""
    return len(line.encode("utf-8", "surrogatepass")[:byte].decode("utf-8", "ignore"))


def _reader(path: str, language: Language, lexis: Lexis, others: Sequence[Sequence[Placed]]) -> Reader:
    def marks(lines: list[str], stop: Stop) -> Iterator[Rewrite]:
        yield from strings(lines, stop, QUOTES)
        yield from _long_strings(lines, stop)

    return Reader(
        stop_of=partial(_stop_of, path, language),
        families=(
            look_alikes,
            marks,
            partial(brackets, pattern=lexis.pattern),
            partial(blocks, lexis=lexis),
            partial(around_the_stop, lexis=lexis, others=others),
        ),
        exact=partial(_exact, path, language),
    )


def _stop_of(path: str, language: Language, text: str) -> Stop | None:
    return stop_in_tree(text, path, language)


def _long_strings(lines: list[str], stop: Stop) -> Iterator[Rewrite]:
    """A string of several lines takes all up to the next one with it: it began long before."""
    odd = [number for number, line in enumerate(lines) if line.replace("\\`", "").count("`") % 2]
    if len(odd) % 2:
        for number in odd:
            if number not in (stop.line - 1, stop.line - 2):
                yield from strings(lines, Stop(line=number + 1, column=0, message="string"), "`")
