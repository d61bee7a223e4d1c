"""Sources that tree-sitter cannot read: where it stops, and what may be wrong there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from suture.core.records import Language
from suture.mutation.syntax_repair import RewriteFamily, ParsableText, SyntaxReader, find_parsable_texts
from suture.mutation.syntax_repair.brackets_and_quotes import rewrite_brackets
from suture.mutation.syntax_repair.block_brackets import rewrite_blocks
from suture.mutation.syntax_repair.token_model import rewrite_by_token_model
from suture.mutation.syntax_repair.source_lines import LineRewrite
from suture.mutation.syntax_repair.quotes import rewrite_strings
from suture.mutation.syntax_repair.stopped import ParseStop
from suture.mutation.syntax_repair.lexer import Lexer, SourceToken
from suture.mutation.syntax_repair.python_rewrites import rewrite_look_alikes
from suture.project.languages import LANGUAGES
from suture.project.languages.grammars import grammar_for, tree_of

if TYPE_CHECKING:
    from tree_sitter import Node

PLACE = re.compile(r"process version:(\d+), .*row:(\d+), col:(\d+)")
QUOTES = "\"'`"
MOST_OTHERS = 200_000
"""Characters of other sources whose habits are counted."""
MOST_READ = 400_000
"""Characters of a file: a look at a larger one takes long (of 1 MB, 11 s), and no clock ends it."""
FEW = 3
"""Texts with which another round is spared: a tree is read at once, thousands of them are not."""


def find_parsable_trees(
    path: str, texts: Mapping[str, str], language: Language, *, seconds: float, said: int = 0
) -> list[ParsableText]:
    """Texts of a file with which its tree has no error, the likeliest first; none of one that is too large.

    Args:
        path: The file.
        texts: Path -> text of the project's files in the language: their habits tell what is likely.
        language: One with a grammar.
        seconds: Wall-clock seconds, after which what was found must do.
        said: The line at which those who run it stop, from 1: they refuse some of what its tree holds. There
            it is changed though the tree has no error; 0 where nothing is known of that.
    """
    if len(texts[path]) > MOST_READ:
        return []
    lexis, text = build_lexer(path, language), texts[path].replace("\r\n", "\n")
    room, others = MOST_OTHERS, []
    for other, held in sorted(texts.items()):
        if other != path and len(held) <= room:
            room -= len(held)
            others.append(lexis.tokens(held))
    trees, families = _Trees(path, language, text), _families(lexis, others)

    def stop_of(changed: str) -> ParseStop | None:
        stop = trees.stop_of(changed)
        if stop is None and said and changed == text:
            last = text.split("\n")[min(said - 1, text.count("\n"))]
            return ParseStop(line=said, column=len(last), message="")
        return stop

    exact = partial(_exact, path, language)
    reader = SyntaxReader(stop_of=stop_of, families=families, exact=exact, few=FEW)
    found = find_parsable_texts(texts[path], seconds=seconds, reader=reader)
    # Of a tree that was made from another one, a fresh look has the last word.
    return [one for one in found if find_tree_stop(one.text, path, language) is None]


def build_lexer(path: str, language: Language) -> Lexer:
    """The words and signs that a grammar has a name for."""
    grammar = grammar_for(path, LANGUAGES[language].grammars)
    kinds = [
        grammar.node_kind_for_id(number) or ""
        for number in range(grammar.node_kind_count)
        if grammar.node_kind_is_visible(number) and not grammar.node_kind_is_named(number)
    ]
    return Lexer(known=frozenset(kind for kind in kinds if kind and not re.search(r"[\s\"'`]", kind)))


def find_tree_stop(text: str, path: str, language: Language) -> ParseStop | None:
    """Where the first fault of a tree lies; `None` where it has none.

    Args:
        text: The file.
        path: For its ending.
        language: One with a grammar.
    """
    return _stop_at(tree_of(text, path, LANGUAGES[language].grammars), text)


def tree_has_fault(text: str, path: str, language: Language) -> bool:
    """Whether a tree holds what its grammar cannot read.

    Args:
        text: The file.
        path: For its ending.
        language: One with a grammar.
    """
    return tree_of(text, path, LANGUAGES[language].grammars).has_error


def _stop_at(root: Node, text: str) -> ParseStop | None:
    if not root.has_error:
        return None
    node = _first_fault(root)
    above = node.parent.type if node.parent is not None else ""
    row, byte = node.start_point
    return ParseStop(line=row + 1, column=_column(text, row, byte), message=f"{node.type} {above}")


class _Trees:
    """Trees of texts that differ little from one: what they share is not read again.

    Args:
        path: For its ending.
        language: One with a grammar.
        text: The one.
    """

    def __init__(self, path: str, language: Language, text: str) -> None:
        from tree_sitter import Parser

        self._parser = Parser(grammar_for(path, LANGUAGES[language].grammars))
        self._raw = text.encode("utf-8", "surrogatepass")
        self._turned = self._raw[::-1]
        self._tree = self._parser.parse(self._raw)

    def stop_of(self, text: str) -> ParseStop | None:
        """Where reading of a text stops."""
        old, raw = self._raw, text.encode("utf-8", "surrogatepass")
        if raw == old:
            return _stop_at(self._tree.root_node, text)
        start = _shared(old, raw)
        room = min(len(old), len(raw)) - start
        tail = min(room, _shared(self._turned, raw[::-1]))
        ends = len(old) - tail, len(raw) - tail
        points = (_point(old, start), _point(old, ends[0]), _point(raw, ends[1]))
        tree = self._tree.copy()
        tree.edit(start, *ends, *points)
        return _stop_at(self._parser.parse(raw, tree).root_node, text)


def _shared(one: bytes, other: bytes) -> int:
    """How many of their first bytes are the same."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def _point(raw: bytes, at: int) -> tuple[int, int]:
    return raw.count(b"\n", 0, at), at - raw.rfind(b"\n", 0, at) - 1


def _first_fault(node: Node) -> Node:
    while not (node.is_error or node.is_missing):
        inner = next((child for child in node.children if child.has_error or child.is_missing), None)
        if inner is None:
            return node
        node = inner
    return node


def _exact(path: str, language: Language, text: str, stop: ParseStop) -> ParseStop:
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
    return ParseStop(line=row + 1, column=_column(text, row, byte), message=stop.message)


def _column(text: str, row: int, byte: int) -> int:
    line = text.split("\n")[row] if row <= text.count("\n") else ""
    return len(line.encode("utf-8", "surrogatepass")[:byte].decode("utf-8", "ignore"))


def _families(lexis: Lexer, others: Sequence[Sequence[SourceToken]]) -> tuple[RewriteFamily, ...]:
    """What may be wrong at a place."""

    def marks(lines: list[str], stop: ParseStop) -> Iterator[LineRewrite]:
        yield from rewrite_strings(lines, stop, QUOTES)
        yield from _long_strings(lines, stop)

    return (
        partial(rewrite_look_alikes, own=QUOTES),
        marks,
        partial(rewrite_brackets, pattern=lexis.pattern),
        partial(rewrite_blocks, lexis=lexis),
        partial(rewrite_by_token_model, lexis=lexis, others=others),
    )


def _long_strings(lines: list[str], stop: ParseStop) -> Iterator[LineRewrite]:
    """A string of several lines takes all up to the next one with it: it began long before."""
    odd = [number for number, line in enumerate(lines) if line.replace("\\`", "").count("`") % 2]
    if len(odd) % 2:
        for number in odd:
            if number not in (stop.line - 1, stop.line - 2):
                yield from rewrite_strings(lines, ParseStop(line=number + 1, column=0, message="string"), "`")
