"""Wrong classes in checks and handlers, unhandled exceptions, and mutable defaults that all calls share.

`suture.mutation.changes` explains the weights.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from itertools import islice

from suture.mutation.changes import Change, replace_span, shorten
from suture.mutation.edits import Edit
from suture.mutation.python.operators.statements import in_loop, line_text, reindent
from suture.mutation.python.operators.undefined_names import known_names
from suture.mutation.python.python_tree import PythonOperator, PythonTree, replace_with
from suture.mutation.tuning import MAX_HANDLED_EXCEPTIONS
from suture.project.python_source.scopes import FUNCTIONS
from suture.project.python_source.statement_edits import is_docstring

CONFUSABLE_EXCEPTIONS = (
    ("KeyError", "IndexError", "LookupError", "AttributeError"),
    ("ValueError", "TypeError", "ZeroDivisionError", "ArithmeticError", "OverflowError"),
    ("FileNotFoundError", "OSError", "PermissionError"),
    ("RuntimeError", "NotImplementedError", "RecursionError", "StopIteration"),
    ("ValueError", "KeyError", "IndexError", "TypeError", "Exception"),
)

COMMON_EXCEPTIONS = (
    "KeyError", "IndexError", "TypeError", "AttributeError", "OSError", "RuntimeError", "ImportError",
    "NotImplementedError", "StopIteration", "ZeroDivisionError", "AssertionError", "UnicodeDecodeError",
    "LookupError", "OverflowError", "RecursionError",
)  # fmt: skip
COMMON_PAIRS = (
    "(KeyError, IndexError)",
    "(TypeError, ValueError)",
    "(AttributeError, TypeError)",
    "(KeyError, TypeError)",
    "(KeyError, AttributeError)",
    "(IndexError, TypeError)",
)
"""Exceptions that are often caught together."""
EXCEPTION_SUFFIXES = ("Error", "Exception")
CONTAINER_CALLS = ("list", "dict", "set")


def _change_exception(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Raise or catch another exception class."""
    exception: ast.expr | None = None
    if isinstance(node, ast.ExceptHandler):
        exception = node.type
    elif isinstance(node, ast.Raise):
        exception = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    if isinstance(exception, ast.Tuple):
        yield from _change_tuple(exception, tree)
    elif isinstance(exception, ast.Name):
        for other, weight in _other_exceptions(exception.id, tree):
            yield replace_with(tree, exception, other, weight)
        if isinstance(node, ast.ExceptHandler):
            yield from _catch_two(exception, tree)
    if isinstance(node, ast.ExceptHandler) and exception is not None:
        yield from _catch_more(exception, tree)


def _change_tuple(classes: ast.Tuple, tree: PythonTree) -> Iterator[Change]:
    """Drop a class of a tuple, or replace it."""
    texts = [tree.text(element) for element in classes.elts]
    for index, element in enumerate(classes.elts):
        remaining = texts[:index] + texts[index + 1 :]
        if remaining:
            # `replace_with` puts a second pair of parentheses around the tuple, which does no harm.
            yield replace_with(tree, classes, f"({', '.join(remaining)},)", 0.4)
        if isinstance(element, ast.Name):
            for other, weight in _other_exceptions(element.id, tree):
                if other not in texts:
                    yield replace_with(tree, element, other, 0.7 * weight)


def _catch_two(exception: ast.Name, tree: PythonTree) -> Iterator[Change]:
    """Catch two classes: the class and a similar one.

    A class that nothing defines may stand for several, so the tuples that the file catches elsewhere and pairs
    that are often caught together are tried in its place.
    """
    pairs = {f"({exception.id}, {other})": 0.7 for other in _confusable_with(exception.id)}
    if not _is_defined(exception.id, tree):
        pairs |= dict.fromkeys((*tree.cached("caught together", _exception_tuples), *COMMON_PAIRS), 0.6)
    start, end = tree.span(exception)
    for text, weight in pairs.items():
        # Not `replace_with`, which would put a second pair of parentheses around the tuple.
        yield replace_span(start, end, text, f"{exception.id} becomes {shorten(text)}", weight)


def _catch_more(caught: ast.expr, tree: PythonTree) -> Iterator[Change]:
    """Catch one more class, or one of Python's instead of another module's."""
    texts = [tree.text(part) for part in getattr(caught, "elts", [caught])]
    start, end = tree.span(caught)
    for other, weight in _other_exceptions(texts[0], tree):
        if other not in texts:
            text = f"({', '.join((*texts, other))})"
            yield replace_span(start, end, text, f"{other} is caught too", 0.25 * weight)
            if isinstance(caught, ast.Attribute):
                yield replace_span(start, end, other, f"{texts[0]} becomes {other}", 0.2 * weight)


def _other_exceptions(name: str, tree: PythonTree) -> Iterator[tuple[str, float]]:
    """Yield exception classes that may be meant instead of one, each with its weight.

    Likely are the classes that the file defines, those that are easily confused with this one, and any if
    nothing defines this one. Of the others, those in `COMMON_EXCEPTIONS` rank lowest; `ValueError` and
    `Exception` are not in it, because they are common enough to rank with the classes that the file uses.
    """
    defined, used = tree.cached("exceptions", _collect_exceptions)
    confusable, is_defined = _confusable_with(name), _is_defined(name, tree)
    others = (*defined, *confusable, *used, "ValueError", "Exception", *COMMON_EXCEPTIONS)
    for other in dict.fromkeys(others):
        if other != name:
            is_likely = other in (*defined, *confusable) or not is_defined
            unlikely_weight = 0.3 if other in COMMON_EXCEPTIONS else 0.5
            yield other, 1.0 if is_likely else unlikely_weight


def _confusable_with(name: str) -> list[str]:
    return [other for group in CONFUSABLE_EXCEPTIONS if name in group for other in group if other != name]


def _is_defined(name: str, tree: PythonTree) -> bool:
    # Functions count, because `raise make_error()` names one.
    return name in tree.functions or hasattr(builtins, name) or name in known_names(tree)


def _exception_tuples(tree: PythonTree) -> list[str]:
    """Return the tuples of classes that handlers of the file catch."""
    handlers = [n for n in tree.nodes if isinstance(n, ast.ExceptHandler)]
    return [tree.text(n.type) for n in handlers if isinstance(n.type, ast.Tuple)]


def _collect_exceptions(tree: PythonTree) -> tuple[list[str], list[str]]:
    """Return `(defined, used)`: the names of exception classes that the file defines, and that it uses."""
    classes = [node for node in tree.nodes if isinstance(node, ast.ClassDef)]
    defined = [
        node.name
        for node in classes
        if any(ast.unparse(base).endswith(EXCEPTION_SUFFIXES) for base in node.bases)
    ]
    names = [node.id for node in tree.nodes if isinstance(node, ast.Name)]
    others = ("StopIteration", "KeyboardInterrupt")
    used = [name for name in names if name.endswith(EXCEPTION_SUFFIXES) or name in others]
    return defined, list(dict.fromkeys(used))


def _handle_exception(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Handle an exception that a statement may raise."""
    assert isinstance(node, ast.stmt)
    lines, indent = tree.line_span(node), tree.indent(node)
    if lines is None or is_docstring(node) or tree.enclosing_function(node) is None:
        return
    body = reindent(line_text(tree, lines), indent, f"{indent}    ")
    exits = ["return None", "return False" if isinstance(node, ast.Return) else "pass"]
    exits += ["continue"] if in_loop(node, tree) else []
    for exception, weight in islice(_other_exceptions("", tree), MAX_HANDLED_EXCEPTIONS):
        for exit_word in exits:
            text = f"{indent}try:\n{body}{indent}except {exception}:\n{indent}    {exit_word}\n"
            yield replace_span(*lines, text, f"{exception}: {exit_word}", weight)


def _accept_class(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Check for another class, or for one more."""
    assert isinstance(node, ast.Call)
    classes = _checked_classes(node, tree)
    for other in tree.cached("checked classes", _collect_checked_classes) if classes else ():
        if other not in classes:
            joined = f"({', '.join((*classes, other))})"
            yield replace_with(tree, node.args[1], joined, 0.6)
            if len(classes) == 1:
                yield replace_with(tree, node.args[1], other, 0.5)


def _checked_classes(call: ast.Call, tree: PythonTree) -> list[str]:
    """Return the classes of a call of `isinstance` or `issubclass`; none for other calls."""
    if tree.text(call.func) not in ("isinstance", "issubclass") or len(call.args) != 2:
        return []
    return [tree.text(part) for part in getattr(call.args[1], "elts", [call.args[1]])]


def _collect_checked_classes(tree: PythonTree) -> list[str]:
    """Return the classes that the file checks for, then common ones."""
    calls = (node for node in tree.nodes if isinstance(node, ast.Call))
    classes = (name for call in calls for name in _checked_classes(call, tree))
    return list(dict.fromkeys((*classes, "str", "bytes", "int", "float", "dict", "list", "tuple")))


def _create_default_per_call(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Create a mutable default in each call instead of sharing it between calls."""
    assert isinstance(node, FUNCTIONS)
    body = [statement for statement in node.body if not is_docstring(statement)]
    lines = tree.line_span(body[0]) if body else None
    if lines is None:
        return
    positional = [*node.args.posonlyargs, *node.args.args]
    with_default = positional[len(positional) - len(node.args.defaults) :]
    pairs = [
        *zip(with_default, node.args.defaults, strict=True),
        *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True),
    ]
    for argument, default in pairs:
        is_literal = isinstance(default, (ast.List, ast.Dict, ast.Set))
        is_call = isinstance(default, ast.Call) and ast.unparse(default.func) in CONTAINER_CALLS
        if default is not None and (is_literal or is_call):
            indent, name = tree.indent(body[0]), argument.arg
            text = f"{indent}if {name} is None:\n{indent}    {name} = {tree.text(default)}\n"
            edits = (tree.replacement(default, "None"), Edit(start=lines[0], end=lines[0], text=text))
            yield Change(edits=edits, note=f"each call creates its own {name}")


OPERATORS = (
    PythonOperator(name="exception_class", nodes=(ast.ExceptHandler, ast.Raise), changes=_change_exception),
    PythonOperator(
        name="handled_exception",
        nodes=(ast.Assign, ast.Expr, ast.Delete, ast.Return),
        changes=_handle_exception,
    ),
    PythonOperator(name="accepted_class", nodes=(ast.Call,), changes=_accept_class),
    PythonOperator(name="mutable_default", nodes=FUNCTIONS, changes=_create_default_per_call),
)
