"""Describe functions by their source: signature, docstring, complexity and calls."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from suture.project.python_source.parsing import first_line, parse_module
from suture.project.python_source.statement_edits import (
    Definition,
    bound_names,
    inner_statements,
    read_names,
    split_lines,
)
from suture.project.tuning import MAX_SUGGESTED_FUNCTIONS

BRANCHING_NODES = (
    ast.If, ast.For, ast.AsyncFor, ast.While, ast.IfExp, ast.ExceptHandler, ast.Assert, ast.match_case,
)  # fmt: skip
"""Nodes that add a path to a function."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, kw_only=True)
class FunctionFacts:
    """What the source of a function shows.

    Attributes:
        name: Name with its class, as in `Cart.total`.
        signature: Parameters and annotations, as source.
        complexity: McCabe complexity: number of paths through it, 1 without branches.
        calls: Names that it calls, sorted.
    """

    path: str
    name: str
    line: int
    signature: str
    docstring: str
    complexity: int
    calls: tuple[str, ...]
    source: str


def iter_functions(path: str, text: str) -> Iterator[FunctionFacts]:
    """Yield the functions and methods of a file, in order. An invalid file has none."""
    tree = parse_module(text)
    if tree is not None:
        yield from _iter_scope(path, text, tree.body, "")


def _iter_scope(path: str, text: str, body: Iterable[ast.stmt], prefix: str) -> Iterator[FunctionFacts]:
    for node in body:
        if isinstance(node, Function):
            yield _facts(path, prefix + node.name, node, text)
        if isinstance(node, Definition):
            yield from _iter_scope(path, text, node.body, f"{prefix}{node.name}.")
        else:
            yield from _iter_scope(path, text, inner_statements(node), prefix)


def find_function(name: str, files: Mapping[str, str]) -> FunctionFacts | None:
    """Return the function that a name means; `None` if no file has one.

    Args:
        name: The name as a model writes it, such as `total`, `Cart.total` or "`total()`". The name with its
            class is preferred to one that only has the same last part.
    """
    plain_name = name.strip("`'\" ").removesuffix("()")
    functions = [facts for path, text in files.items() for facts in iter_functions(path, text)]
    exact = [facts for facts in functions if facts.name == plain_name]
    last_part = plain_name.rpartition(".")[2]
    same_last_part = [facts for facts in functions if facts.name.rpartition(".")[2] == last_part]
    return next(iter(exact or same_last_part), None)


def describe_function(name: str, files: Mapping[str, str]) -> str:
    """Return a description of a function for a prompt.

    If there is no such function, the description lists the names of the existing ones.
    """
    facts = find_function(name, files)
    if facts is None:
        names = [facts.name for path, text in files.items() for facts in iter_functions(path, text)]
        return f"There is no function {name!r}. There are: {', '.join(names[:MAX_SUGGESTED_FUNCTIONS]) or 'none'}."
    lines = [
        f"{facts.signature} in {facts.path} line {facts.line}",
        f"cyclomatic complexity {facts.complexity}",
        f"calls {', '.join(facts.calls) or 'nothing'}",
        f"docstring: {facts.docstring}" if facts.docstring else "no docstring",
        facts.source,
    ]
    return "\n".join(lines)


def _facts(path: str, name: str, node: Function, text: str) -> FunctionFacts:
    calls = {_called_name(part.func) for part in ast.walk(node) if isinstance(part, ast.Call)}
    return FunctionFacts(
        path=path,
        name=name,
        line=node.lineno,
        signature=_signature(name, node),
        docstring=ast.get_docstring(node) or "",
        complexity=_complexity(node),
        calls=tuple(sorted(calls)),
        source=ast.get_source_segment(text, node) or "",
    )


def _signature(name: str, node: Function) -> str:
    start = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    try:
        returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
        return f"{start} {name}({ast.unparse(node.args)}){returns}"
    except RecursionError:  # a default value may be nested too deeply for `unparse`
        return f"{start} {name}(...)"


def _called_name(function: ast.expr) -> str:
    """Return the name of a called function, with its owner if that is a plain name."""
    if isinstance(function, ast.Attribute):
        owner = function.value.id if isinstance(function.value, ast.Name) else ""
        return f"{owner}.{function.attr}"
    return function.id if isinstance(function, ast.Name) else "a value"


def _complexity(node: Function) -> int:
    """Return the cyclomatic complexity by McCabe (1976).

    It is one, plus one for each branch, and one for each further operand of `and` and `or`.
    """
    count = 1
    for part in ast.walk(node):
        if isinstance(part, ast.BoolOp):
            count += len(part.values) - 1
        elif isinstance(part, ast.comprehension):
            count += 1 + len(part.ifs)
        elif isinstance(part, BRANCHING_NODES):
            count += 1
    return count


EXAMPLE_COMMENT = re.compile(r"#+\s*(?:example|sample|usage|test|demo)\b", re.IGNORECASE)
"""Matches the comment at the left margin that announces how a module is used."""


def tidy_module(code: str) -> str:
    """Return a module without examples at its end or spaces inside brackets; unchanged if it is not valid Python."""
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
