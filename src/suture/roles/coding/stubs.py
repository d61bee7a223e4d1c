"""A task's stub and a reply that takes it for granted: what the stub gives is put in front of the reply."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator

from suture.pysource.parsing import parsed
from suture.pysource.python_code import Definition, defined_names, names_of, parses
from suture.pysource.source_lines import indented, put_in_front


def with_rest_of_stub(code: str, stub: str) -> str:
    """Put in front of `code` the imports and helpers that the stub gives and the code leaves out.

    Args:
        code: A module that the model wrote.
        stub: Python with a signature and a docstring, as in the task's statement; or any other text.
    """
    tree, wanted = _wanted(stub)
    if tree is None:
        return code
    have = defined_names(code)
    given = [n for n in tree.body if n is not wanted and (names := names_of(n)) and not names & have]
    missing = "\n".join(ast.get_source_segment(stub, node) or "" for node in given)
    return put_in_front(code, missing) if missing else code


def body_under_stub(code: str, stub: str) -> str | None:
    """Put the body of the stub's last function under its signature.

    Returns:
        The module; `None` where there is no stub, or the code does not look like a body: indented, or with a
        `return` that belongs to no function.
    """
    tree, wanted = _wanted(stub)
    alone = parsed(textwrap.dedent(code))
    looks_like_body = code[:1].isspace() or (alone is not None and any(_loose_returns(alone)))
    if tree is None or isinstance(wanted, ast.ClassDef) or not looks_like_body:
        return None
    body = textwrap.dedent(code) if alone is not None else code
    joined = f"{stub.rstrip()}\n{indented(body, '    ')}"
    return joined if parses(joined) else None


def _wanted(stub: str) -> tuple[ast.Module | None, ast.stmt | None]:
    tree = parsed(stub)
    definitions = [node for node in tree.body if isinstance(node, Definition)] if tree else []
    return (tree, definitions[-1]) if definitions else (None, None)


def _loose_returns(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Return | ast.Yield):
            yield child
        elif not isinstance(child, Definition | ast.Lambda):
            yield from _loose_returns(child)
