"""Put code without a place into a file: it is the whole file, or it replaces the definitions that it contains."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Collection, Iterator

from suture.agents.replies.edit_problems import EditFault, ProblemCode
from suture.agents.replies.text_edits import ELIDING_COMMENT, ELISION
from suture.agents.replies.tree_definitions import find_tree_names, has_tree_grammar, merge_tree_definitions
from suture.agents.tuning import MIN_WHOLE_FILE_SHARE
from suture.project.python_source.module_definitions import is_stub, preserves_definitions, top_level_names
from suture.project.python_source.parsing import parse_module
from suture.project.python_source.splicing import NoPlaceError, merge_snippet, move_to_margin
from suture.project.python_source.statement_edits import (
    bound_names,
    is_docstring,
    is_main_guard,
    is_valid_python,
)

PYTHON_ENDINGS = (".py", ".pyi", ".pyw")
DEFINITION = re.compile(
    r"\b(?:fn|struct|enum|trait|union|class|interface|record|namespace)\s+(\w+)"
    r"|\b(?!(?:if|for|while|switch|catch|match)\b)(\w+)\s*\([^;{}()]*\)[^;{}()]*\{"
)
"""Matches what defines a name in Rust, Java, C or C++: a keyword and the name, or a function's head."""


def merge_code(path: str, original: str, code: str, context: str, *, is_whole: bool) -> str:
    """Return a file with the code of a reply merged in; the original file if the code changes nothing.

    Args:
        context: Prose about the code, which may name a class.
        is_whole: Whether the reply says that this is the whole file.

    Raises:
        EditFault: The code is only a part of the file and its place is unknown, or it leaves out code.
    """
    if not original.strip():
        return code
    is_python = path.endswith(PYTHON_ENDINGS)
    elisions = list(_find_elisions(code, original, is_python=is_python))
    if not elisions and (is_whole or _is_whole_file(path, original, code)):
        return _end_like(original, code)
    if is_python:
        return _merge_python(original, code, context)
    if has_tree_grammar(path):
        return merge_tree_definitions(path, original, code, context)
    raise EditFault("elided" if elisions else "partial_file", quote=elisions[0] if elisions else "")


def _end_like(original: str, code: str) -> str:
    """Return code with the blank lines, or the missing newline, at the end of the original."""
    return code.rstrip() + original[len(original.rstrip()) :]


def _is_whole_file(path: str, original: str, code: str) -> bool:
    """Return whether code is a whole file: it has all definitions, or begins like the file and has most lines."""
    if path.endswith(PYTHON_ENDINGS):
        if is_valid_python(original) and preserves_definitions(code, original):
            return True
    else:
        find_names = find_tree_names if has_tree_grammar(path) else _find_defined_names
        names = find_names(path, original)
        if names and names <= find_names(path, code) and first_line(original) == first_line(code):
            return True
    if first_line(original) != first_line(code):
        return False
    old, new = (
        Counter(line.strip() for line in text.split("\n") if line.strip()) for text in (original, code)
    )
    return (old & new).total() >= MIN_WHOLE_FILE_SHARE * old.total()


def _find_defined_names(path: str, text: str) -> frozenset[str]:
    """Return the names that a file in a language without a grammar seems to define, such as Rust or Java."""
    # Conditions have no parentheses in Rust, so that a call in one looks like a function's head.
    has_heads = not path.endswith(".rs")
    return frozenset(match[1] or match[2] for match in DEFINITION.finditer(text) if match[1] or has_heads)


def first_line(text: str) -> str:
    """Return the first line of a string that is not blank."""
    return next((line.strip() for line in text.split("\n") if line.strip()), "")


def _find_elisions(code: str, original: str, *, is_python: bool) -> Iterator[str]:
    """Yield the lines that stand for code which the model left out."""
    known = {line.strip() for line in original.split("\n")}
    lines = _python_comments(code) if is_python and is_valid_python(code) else code.split("\n")
    pattern = ELIDING_COMMENT if is_python else ELISION
    yield from (line.strip() for line in lines if pattern.match(line) and line.strip() not in known)


def _python_comments(code: str) -> list[str]:
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(code).readline))
    except (tokenize.TokenError, SyntaxError):
        return code.split("\n")
    return [token.string for token in tokens if token.type == tokenize.COMMENT]


def _merge_python(original: str, code: str, context: str) -> str:
    _, moved = move_to_margin(code)
    tree = parse_module(moved)
    if tree is None:
        raise EditFault("syntax_error", quote=first_line(code))
    if not is_valid_python(original):
        raise EditFault("partial_file")
    _require_complete_functions(tree, moved, original)
    try:
        return merge_snippet(original, code, context)
    except NoPlaceError as fault:
        name = next(iter(sorted(top_level_names(moved))), "")
        kind: ProblemCode = "ambiguous_definition" if fault.candidates else "no_place"
        raise EditFault(kind, quote=name, candidates=fault.candidates) from fault


def _require_complete_functions(tree: ast.Module, code: str, original: str) -> None:
    """Check that no function of the code leaves out a part of its body. A stub stands for the whole function."""
    known = {line.strip() for line in original.split("\n")}
    lines = code.split("\n")
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    for node in functions:
        if is_stub(node):
            continue
        source = "\n".join(lines[node.lineno - 1 : node.end_lineno])
        comments = [text for text in _python_comments(source) if ELIDING_COMMENT.match(text)]
        for line in comments:
            if line.strip() not in known:
                raise EditFault("elided", quote=line.strip())
        has_dots = any(
            isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Constant) and inner.value.value is ...
            for inner in node.body
        )
        if has_dots and "..." not in known:
            raise EditFault("elided", quote=f"def {node.name}")


def find_defined_names(path: str, code: str) -> Collection[str]:
    """Return the names of the definitions in code, as far as the language is known."""
    if path.endswith(PYTHON_ENDINGS):
        return top_level_names(move_to_margin(code)[1])
    return find_tree_names(path, code) if has_tree_grammar(path) else frozenset()


def is_usage(code: str, path: str) -> bool:
    """Return whether code only uses a file: it imports from it, calls, prints or asserts, and defines nothing."""
    tree = parse_module(code)
    if tree is None or (find_defined_names("x.py", code) and not _imports_module(tree, path)):
        return False
    return shows_results(code) or _imports_module(tree, path)


def shows_results(code: str) -> bool:
    """Return whether code prints or asserts something at its top level, as an example of use does."""
    tree = parse_module(move_to_margin(code)[1])
    return tree is not None and any(
        isinstance(node, ast.Assert) or _is_print(node) or is_main_guard(node) for node in tree.body
    )


def _is_print(node: ast.stmt) -> bool:
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "print"


def _imports_module(tree: ast.Module, path: str) -> bool:
    module = path.rpartition("/")[2].partition(".")[0]
    return any(
        isinstance(node, ast.ImportFrom) and (node.module or "").rpartition(".")[2] == module
        for node in tree.body
    )


def drops_statements(code: str, merged: str) -> bool:
    """Return whether a file lacks a statement of the snippet that was merged into it, such as an example of use."""
    snippet, tree = parse_module(move_to_margin(code)[1]), parse_module(merged)
    if snippet is None or tree is None:
        return False
    known = {ast.dump(node) for node in tree.body}
    names = {name for node in ast.walk(tree) if isinstance(node, ast.stmt) for name in bound_names(node)}
    return any(
        not (
            bound_names(node) <= names if bound_names(node) else ast.dump(node) in known or is_docstring(node)
        )
        for node in snippet.body
    )
