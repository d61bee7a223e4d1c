"""Count what ends exceptions in a Python program, so that the failure of a test goes unnoticed."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Mapping

from suture.project.python_source.scopes import FUNCTIONS

BROAD_EXCEPTIONS = ("Exception", "BaseException", "AssertionError")
"""Exceptions whose handlers catch the failures of tests."""
EXIT_METHODS = ("__exit__", "__aexit__")
"""Methods of context managers that end an exception if they return a true value."""
EXIT_STACKS = ("ExitStack", "AsyncExitStack")
COLLECTING_METHODS = ("append", "add", "put", "extend")
WORK_STARTERS: Mapping[str, frozenset[str]] = {
    "submit": frozenset(
        ("result", "exception", "as_completed", "add_done_callback", "gather", "wrap_future", "map")
    ),
    "apply_async": frozenset(("get", "error_callback")),
    "map_async": frozenset(("get", "error_callback")),
    "starmap_async": frozenset(("get", "error_callback")),
    "Process": frozenset(("exitcode", "sentinel")),
    "Timer": frozenset(("join", "cancel", "timeit", "repeat", "autorange")),
    "asyncio.wait": frozenset(("result", "exception", "gather")),
}
"""A function that starts work in the background -> the names by which a module learns that the work failed."""
MAX_FOLLOWED_NAMES = 3
"""Variables through which the classes of an `except` are followed. Chosen by judgement."""
RECORDING_METHODS = frozenset(
    ("critical", "debug", "error", "exception", "info", "log", "print_exc", "warn", "warning")
)
"""Methods of loggers, `warnings` and `traceback` that show an exception."""


def count_hiding_handlers(tree: ast.AST, module: ast.AST | None = None) -> int:
    """Count handlers that catch everything and handlers that do nothing; one that is both counts twice.

    A handler that raises, logs or uses the exception does not hide it. What else ends an exception counts as well.

    Args:
        module: The whole module, which says what the names in `tree` mean; `tree` itself by default.
    """
    count = 0
    facts = _ModuleFacts(module or tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            count += facts.is_broad(node.type) and not _shows_exception(node, facts)
            count += all(isinstance(statement, (ast.Pass, ast.Continue)) for statement in node.body)
        elif isinstance(node, ast.Try):
            count += any(map(_leaves, node.finalbody))
        elif isinstance(node, ast.Call):
            count += _suppresses_broadly(node, facts) or facts.forgets_work(node)
        elif isinstance(node, FUNCTIONS) and node.name == "__del__":
            count += any(map(facts.calls_stored_function, ast.walk(node)))
        elif isinstance(node, FUNCTIONS):
            count += node.name in facts.exit_functions and any(map(_may_answer_true, ast.walk(node)))
        elif isinstance(node, ast.keyword):  # of `asyncio.gather`
            count += node.arg == "return_exceptions" and not _is_false(node.value)
    return count


class _ModuleFacts:
    """What the names of a module mean to exceptions.

    Attributes:
        exit_functions: Names of the functions whose answer ends an exception.
        names: How often each name and each attribute is read.
    """

    def __init__(self, module: ast.AST) -> None:
        self._values: dict[str, list[ast.expr]] = defaultdict(list)
        self.exit_functions = set(EXIT_METHODS)
        self._parameters = {part.arg for part in ast.walk(module) if isinstance(part, ast.arg)}
        self.names: Counter[str] = Counter()
        pushed: set[str] = set()
        for node in ast.walk(module):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    self._values[_get_name(target)].append(node.value)
            elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
                self.names[_get_name(node)] += 1
            elif isinstance(node, ast.alias | ast.keyword):
                self.names[(node.name if isinstance(node, ast.alias) else node.arg) or ""] += 1
            if (
                isinstance(node, ast.Call)
                and node.args
                and _get_name(node.func) in ("push", "push_async_exit")
            ):
                pushed.add(_get_name(node.args[0]))
        if any(self.names[name] for name in EXIT_STACKS):
            self.exit_functions |= pushed

    def is_broad(self, exceptions: ast.expr | None, depth: int = 0) -> bool:
        """Return whether what is caught includes the failures of tests; so does a class that only the run shows."""
        if exceptions is None or isinstance(exceptions, ast.Call | ast.Subscript):
            return True
        if isinstance(exceptions, ast.Tuple):
            return any(self.is_broad(part, depth) for part in exceptions.elts)
        name = _get_name(exceptions)
        if name in BROAD_EXCEPTIONS:
            return True
        values = self._values[name] if depth < MAX_FOLLOWED_NAMES else []
        return any(self.is_broad(value, depth + 1) for value in values)

    def calls_stored_function(self, node: ast.AST) -> bool:
        """Return whether a node calls what a caller gave to the object, and no method of the object."""
        name = _get_name(node.func) if isinstance(node, ast.Call) else ""
        return any(
            isinstance(value, ast.Name) and value.id in self._parameters for value in self._values[name]
        )

    def forgets_work(self, call: ast.Call) -> bool:
        """Return whether a call starts work whose failure nothing in the module checks."""
        if _get_name(call.func) == "finalize":  # Python ignores the exceptions of finalizers
            return any(
                isinstance(value, ast.Name) and value.id in self._parameters for value in call.args[1:]
            )
        readers = WORK_STARTERS.get(_get_name(call.func)) or WORK_STARTERS.get(ast.unparse(call.func))
        return readers is not None and not any(self.names[name] for name in readers)

    def is_only_collected(self, node: ast.Call) -> bool:
        """Return whether a call such as `failures.append(error)` fills a variable of the module that nothing reads."""
        if not isinstance(node.func, ast.Attribute) or node.func.attr not in COLLECTING_METHODS:
            return False
        owner = node.func.value
        return isinstance(owner, ast.Name) and bool(self._values[owner.id]) and self.names[owner.id] == 1


def _get_name(node: ast.expr) -> str:
    """Return the last part of a dotted name, empty for other expressions."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _suppresses_broadly(call: ast.Call, facts: _ModuleFacts) -> bool:
    return _get_name(call.func) == "suppress" and any(map(facts.is_broad, call.args))


def _leaves(statement: ast.stmt, *, in_loop: bool = False) -> bool:
    """Return whether a statement of a `finally` leaves it, so that the exception is lost."""
    if isinstance(statement, ast.Return) or (
        isinstance(statement, (ast.Break, ast.Continue)) and not in_loop
    ):
        return True
    if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
        return False
    is_loop = in_loop or isinstance(statement, (ast.For, ast.AsyncFor, ast.While))
    parts = ast.iter_child_nodes(statement)
    return any(_leaves(part, in_loop=is_loop) for part in parts if isinstance(part, ast.stmt))


def _may_answer_true(node: ast.AST) -> bool:
    """Return whether a statement of `__exit__` may end any exception: it returns no constant, and asks for no class."""
    return isinstance(node, ast.Return) and node.value is not None and not _ends_only_some(node.value)


def _ends_only_some(value: ast.expr) -> bool:
    """Return whether a returned value is false, comes from another `__exit__`, or depends on the exception's class."""
    match value:
        case ast.Constant(value=constant):
            return not constant
        case ast.Name(id="NotImplemented"):
            return True
        case ast.Await(value=inner):
            return _ends_only_some(inner)
        case ast.BoolOp(op=ast.And(), values=parts):
            return any(map(_ends_only_some, parts))
        case ast.BoolOp(values=parts):
            return all(map(_ends_only_some, parts))
        case ast.IfExp(body=body, orelse=other):
            return _ends_only_some(body) and _ends_only_some(other)
        case ast.Call(func=func, args=[*_, classes]) if _get_name(func) in ("issubclass", "isinstance"):
            return ast.unparse(classes).removeprefix("builtins.") not in BROAD_EXCEPTIONS
        case ast.Call(func=func):
            return _get_name(func) in EXIT_METHODS
        case ast.Compare(ops=[ast.Is() | ast.Eq() | ast.In()], comparators=[other]):
            return isinstance(other, ast.Name | ast.Attribute | ast.Tuple) or ast.unparse(other) == "None"
    return False


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def _shows_exception(handler: ast.ExceptHandler, facts: _ModuleFacts) -> bool:
    """Whether a handler raises, logs the exception, or uses it in any way other than collecting it unread."""
    collected = [
        part
        for call in ast.walk(handler)
        if isinstance(call, ast.Call) and facts.is_only_collected(call)
        for argument in call.args
        for part in ast.walk(argument)
    ]
    for node in (part for statement in handler.body for part in ast.walk(statement)):
        is_used = isinstance(node, ast.Name) and node.id == handler.name and node not in collected
        is_logged = (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in RECORDING_METHODS
        )
        if is_used or is_logged or isinstance(node, ast.Raise):
            return True
    return False
