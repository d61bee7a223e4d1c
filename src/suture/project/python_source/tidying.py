"""Tidy a module as its readers expect: without the examples that a model appends, and without stray spaces."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from itertools import pairwise

from suture.project.python_source.parsing import first_line, parse_module
from suture.project.python_source.statement_edits import Definition, bound_names, read_names, split_lines

EXAMPLE_COMMENT = re.compile(r"#+\s*(?:example|sample|usage|test|demo)\b", re.IGNORECASE)
"""Matches the comment at the left margin that announces how a module is used."""


def tidy_module(code: str) -> str:
    """Return a module without examples at its end and without spaces inside brackets; unchanged if it is no Python."""
    if parse_module(code) is None:
        return code
    tidied = _remove_spaces_in_brackets(_remove_examples(code)).rstrip()
    return code if tidied == code.rstrip() else f"{tidied}\n"


def _remove_examples(code: str) -> str:
    """Remove what follows the comment `# Example usage` or the like, unless the module's own code needs it."""
    tree, lines = parse_module(code), split_lines(code)
    body = tree.body if tree is not None else []
    last_definition = max((node.end_lineno or 0 for node in body if isinstance(node, Definition)), default=0)
    for number, line in enumerate(lines[last_definition:], last_definition):
        if last_definition and EXAMPLE_COMMENT.match(line):
            examples = [node for node in body if first_line(node) > number]
            rest = [node for node in body if first_line(node) <= number]
            bound = frozenset[str]().union(*map(bound_names, examples))
            is_inside = any((node.end_lineno or 0) > number for node in rest)
            return code if is_inside or bound & read_names(rest) else "".join(lines[:number])
    return code


def _remove_spaces_in_brackets(code: str) -> str:
    """Remove spaces after an opening bracket and before a closing one, as in `f( x)`, inside one line."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(code).readline))
    except (tokenize.TokenError, SyntaxError):
        return code
    lines = split_lines(code)
    for token, following in reversed(list(pairwise(tokens))):
        (row, start), (next_row, end) = token.end, following.start
        is_gap = row == next_row and start < end and following.type not in (tokenize.NL, tokenize.COMMENT)
        if (
            is_gap
            and (token.string in ("(", "[", "{") or following.string in (")", "]", "}"))
            and token.string != ","
        ):
            lines[row - 1] = lines[row - 1][:start] + lines[row - 1][end:]
    tidied, before = "".join(lines), parse_module(code)
    after = parse_module(tidied)
    is_same = before is not None and after is not None and ast.dump(before) == ast.dump(after)
    return tidied if is_same else code
