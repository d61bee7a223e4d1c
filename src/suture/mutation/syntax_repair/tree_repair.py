"""Repairs sources that tree-sitter cannot parse: finds where parsing stops, and rewrites the lines there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from suture.core.records import Language
from suture.mutation.edits import common_prefix
from suture.mutation.syntax_repair.brackets_and_quotes import (
    rewrite_blocks,
    rewrite_brackets,
    rewrite_strings,
)
from suture.mutation.syntax_repair.python_rewrites import rewrite_look_alikes
from suture.mutation.syntax_repair.repair_search import (
    ParsableText,
    RewriteFamily,
    SyntaxReader,
    find_parsable_texts,
)
from suture.mutation.syntax_repair.source_lines import LineRewrite, ParseStop, Token
from suture.mutation.syntax_repair.token_model import Lexer, rewrite_by_token_model
from suture.mutation.tuning import FEW_TREE_RESULTS, MAX_CORPUS_CHARS, MAX_TREE_CHARS
from suture.project.languages import LANGUAGES
from suture.project.languages.reports import grammar_for, parse_tree

if TYPE_CHECKING:
    from tree_sitter import Node

LOGGED_POSITION = re.compile(r"process version:(\d{1,9}), .*row:(\d{1,9}), col:(\d{1,9})")
"""Matches the line of tree-sitter's log that says where a version of the parse is."""
QUOTES = "\"'`"


def find_parsable_trees(
    path: str, texts: Mapping[str, str], language: Language, *, seconds: float, reported_line: int = 0
) -> list[ParsableText]:
    """Return versions of a file whose tree has no error, the likeliest first; none for a very large file.

    Args:
        texts: Path -> text of the project's files in the language, whose token statistics are used.
        seconds: Wall-clock seconds, after which what has been found is returned.
        reported_line: The line, from 1, at which the language's runtime rejects the file; 0 if it reports no
            line. It counts as the stop if the file's tree has no error.
    """
    if len(texts[path]) > MAX_TREE_CHARS:
        return []
    lexer, text = build_lexer(path, language), texts[path].replace("\r\n", "\n")
    remaining_chars, corpus = MAX_CORPUS_CHARS, []
    for other_path, other_text in sorted(texts.items()):
        if other_path != path and len(other_text) <= remaining_chars:
            remaining_chars -= len(other_text)
            corpus.append(lexer.tokens(other_text))
    parser = _IncrementalParser(path, language, text)

    def find_stop(changed: str) -> ParseStop | None:
        stop = parser.find_stop(changed)
        if stop is None and reported_line and changed == text:
            line = text.split("\n")[min(reported_line - 1, text.count("\n"))]
            return ParseStop(line=reported_line, column=len(line), message="")
        return stop

    reader = SyntaxReader(
        find_stop=find_stop,
        families=_families(lexer, corpus),
        locate_exactly=partial(_locate_exactly, path, language),
        few_results=FEW_TREE_RESULTS,
    )
    parsable_texts = find_parsable_texts(texts[path], seconds=seconds, reader=reader)
    # An incrementally parsed tree may differ from a fresh one, and only the fresh one counts.
    return [parsable for parsable in parsable_texts if find_tree_stop(parsable.text, path, language) is None]


def build_lexer(path: str, language: Language) -> Lexer:
    """Return a lexer with the keywords and signs of a file's grammar."""
    grammar = grammar_for(path, LANGUAGES[language].grammars)
    # In a grammar, the visible nodes without a name are the keywords and signs: their kind is their text.
    texts = [
        grammar.node_kind_for_id(number) or ""
        for number in range(grammar.node_kind_count)
        if grammar.node_kind_is_visible(number) and not grammar.node_kind_is_named(number)
    ]
    return Lexer(reserved=frozenset(text for text in texts if text and not re.search(r"[\s\"'`]", text)))


def find_tree_stop(text: str, path: str, language: Language) -> ParseStop | None:
    """Return the position of the first error in a file's tree; `None` if there is none."""
    return _stop_in(parse_tree(text, path, LANGUAGES[language].grammars), text)


def tree_has_error(text: str, path: str, language: Language) -> bool:
    """Return whether a file's tree has an error."""
    return parse_tree(text, path, LANGUAGES[language].grammars).has_error


def _stop_in(root: Node, text: str) -> ParseStop | None:
    """Return the position of the first error below a root node; `None` if there is none."""
    if not root.has_error:
        return None
    node = _first_error(root)
    above = node.parent.type if node.parent is not None else ""
    row, byte = node.start_point
    return ParseStop(line=row + 1, column=_column(text, row, byte), message=f"{node.type} {above}")


class _IncrementalParser:
    """Parses sources that differ little from a first one, without parsing again what they share with it."""

    def __init__(self, path: str, language: Language, text: str) -> None:
        from tree_sitter import Parser

        self._parser = Parser(grammar_for(path, LANGUAGES[language].grammars))
        self._raw = text.encode("utf-8", "surrogatepass")
        self._reversed = self._raw[::-1]
        self._tree = self._parser.parse(self._raw)

    def find_stop(self, text: str) -> ParseStop | None:
        """Return where parsing a source stops; `None` if it parses."""
        old, new = self._raw, text.encode("utf-8", "surrogatepass")
        if new == old:
            return _stop_in(self._tree.root_node, text)
        start = common_prefix(old, new)
        suffix = min(min(len(old), len(new)) - start, common_prefix(self._reversed, new[::-1]))
        old_end, new_end = len(old) - suffix, len(new) - suffix
        tree = self._tree.copy()
        tree.edit(start, old_end, new_end, _point(old, start), _point(old, old_end), _point(new, new_end))
        return _stop_in(self._parser.parse(new, tree).root_node, text)


def _point(raw: bytes, offset: int) -> tuple[int, int]:
    """Return `(row, column)` of an offset, both from 0 and the column in bytes, as tree-sitter counts them."""
    return raw.count(b"\n", 0, offset), offset - raw.rfind(b"\n", 0, offset) - 1


def _first_error(node: Node) -> Node:
    """Return the innermost node of the first error: one that could not be parsed, or a missing one."""
    while not (node.is_error or node.is_missing):
        inner = next((child for child in node.children if child.has_error or child.is_missing), None)
        if inner is None:
            return node
        node = inner
    return node


def _locate_exactly(path: str, language: Language, text: str, stop: ParseStop) -> ParseStop:
    """Return the position of the token that the parser could not accept, which only its log shows.

    The error node of a tree may begin before that token, or after it. The parser follows several versions of a
    parse at once. The furthest token at which a version fails before error recovery begins is the one.
    """
    from tree_sitter import Parser

    positions: dict[str, tuple[int, int]] = {}  # version of the parse -> row and column in bytes
    version = ""
    furthest: tuple[int, int] | None = None
    is_recovering = False

    def read_log(kind: object, message: str) -> None:
        nonlocal version, furthest, is_recovering
        if is_recovering:
            return
        if (match := LOGGED_POSITION.match(message)) is not None:
            version = match[1]
            positions[version] = int(match[2]), int(match[3])
        elif message.startswith("detect_error"):
            furthest = max(furthest or (0, 0), positions[version])
        elif message.startswith(("resume", "recover")) and furthest is not None:
            is_recovering = True

    parser = Parser(grammar_for(path, LANGUAGES[language].grammars))
    parser.logger = read_log
    parser.parse(text.encode("utf-8", "surrogatepass"))
    if furthest is None or not is_recovering:
        return stop
    row, byte = furthest
    return ParseStop(line=row + 1, column=_column(text, row, byte), message=stop.message)


def _column(text: str, row: int, byte: int) -> int:
    """Return the column in characters of a column in bytes."""
    line = text.split("\n")[row] if row <= text.count("\n") else ""
    return len(line.encode("utf-8", "surrogatepass")[:byte].decode("utf-8", "ignore"))


def _families(lexer: Lexer, corpus: Sequence[Sequence[Token]]) -> tuple[RewriteFamily, ...]:
    """Return the families of rewrites for a language with bracketed blocks."""

    def rewrite_all_strings(lines: list[str], stop: ParseStop) -> Iterator[LineRewrite]:
        yield from rewrite_strings(lines, stop, QUOTES)
        yield from _rewrite_template_strings(lines, stop)

    return (
        partial(rewrite_look_alikes, quotes=QUOTES),
        rewrite_all_strings,
        partial(rewrite_brackets, pattern=lexer.pattern),
        partial(rewrite_blocks, lexer=lexer),
        partial(rewrite_by_token_model, lexer=lexer, corpus=corpus),
    )


def _rewrite_template_strings(lines: list[str], stop: ParseStop) -> Iterator[LineRewrite]:
    """Rewrite lines with an odd number of backticks, which may be far from the stop.

    An unterminated template string extends to the next backtick.
    """
    odd_lines = [number for number, line in enumerate(lines) if line.replace("\\`", "").count("`") % 2]
    if len(odd_lines) % 2:
        for number in odd_lines:
            # The other families rewrite the lines next to the stop.
            if number not in (stop.line - 1, stop.line - 2):
                yield from rewrite_strings(lines, ParseStop(line=number + 1, column=0, message="string"), "`")
