"""Tests that are suspect themselves: unreadable files, endless loops, and contradictions with docstrings."""

from __future__ import annotations

import ast
import doctest
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from posixpath import basename

from suture.core.records import CheckOutcome
from suture.judge.suite import Suite
from suture.judge.triage.order_dependence import FunctionNode
from suture.judge.tuning import ENDLESS_PROBE_TIMEOUT_S
from suture.project.python_source.parsing import PARSE_FAULTS, parse_module
from suture.project.workspace import is_test_file

SYNTAX_ERRORS = ("SyntaxError", "IndentationError", "TabError")
LOOP_EXITS = (ast.Break, ast.Return, ast.Raise, ast.Assert, ast.Yield, ast.YieldFrom, ast.Await)
"""Syntax that may end a loop. `yield` and `await` let other code decide whether the loop continues."""
LITERAL_ERRORS = (ValueError, TypeError, SyntaxError, MemoryError, RecursionError)
"""What `ast.literal_eval` raises for an expression that is not a literal, or is too large."""
HARMLESS_CALLS = ("print", "len", "sleep", "range")
"""Calls that cannot end a loop."""
CONSTANT_LOOP_RE = re.compile(rb"\bwhile[\s(]+[\dT\"']")
"""Text of a loop whose condition is a number, `True` or a string: a quick test before a file is parsed."""
DEFINITION_RE = re.compile(rb"def ([^\s(]+)\(")
"""Text of a function's definition, with its name."""


def describe_unreadable_test(
    outcome: CheckOutcome, files: Mapping[str, bytes], test_files: Collection[str]
) -> str:
    """Return why a test's own file cannot be parsed; empty if it can, or if the fault is in the code.

    Args:
        test_files: Files that hold tests, under any name.
    """
    fact = outcome.counterexample
    if fact is None or not fact.exception.startswith(SYNTAX_ERRORS) or fact.file not in files:
        return ""
    if not (is_test_file(fact.file) or basename(fact.file) == "conftest.py" or fact.file in test_files):
        return ""
    return f"{fact.file} is not valid Python, line {fact.line}: {fact.exception}"


async def find_endless_tests(suite: Suite) -> dict[str, int]:
    """Return tests that never end, whatever the code does: test id -> line of the loop.

    The source shows the loop, and a short run that times out confirms it. Only tests of pytest can run alone,
    so others are not examined.
    """
    if suite.command is None or not suite.command.is_pytest:
        return {}
    suspects: dict[str, int] = {}
    for path in suite.test_files:
        tree = parse_module(suite.task.files.get(path, b""))
        if tree is not None:
            suspects |= {f"{path}::{name}": line for name, line in endless_loops(tree)}
    if not suspects:
        return {}
    outcomes = await suite.command.run_selected(suite.task.files, suspects, ENDLESS_PROBE_TIMEOUT_S)
    timed_out = [outcome.check_id for outcome in outcomes if outcome.status == "timeout"]
    return {test: suspects[test] for test in timed_out}


def has_endless_loops(files: Mapping[str, bytes]) -> bool:
    """Return whether the source of some test has an endless loop, which needs triage before a run."""
    return any(
        is_test_file(path) or "test" in name
        for path, content in files.items()
        if path.endswith(".py") and CONSTANT_LOOP_RE.search(content)
        if (tree := parse_module(content)) is not None
        for name, _ in endless_loops(tree)
    )


def endless_loops(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield (name as in a test id, line of the loop) of functions and methods with an endless loop."""
    scopes = [("", tree.body)]
    scopes += [(f"{node.name}::", node.body) for node in tree.body if isinstance(node, ast.ClassDef)]
    for prefix, body in scopes:
        for function in body:
            if isinstance(function, FunctionNode):
                for statement in function.body:
                    if isinstance(statement, ast.While) and _never_ends(statement):
                        yield f"{prefix}{function.name}", statement.lineno


def _never_ends(loop: ast.While) -> bool:
    """Return whether a loop's condition stays true and its body can neither leave it nor raise."""
    if not (isinstance(loop.test, ast.Constant) and loop.test.value):
        return False
    return not any(
        isinstance(node, (*LOOP_EXITS, ast.Subscript))  # a subscript may raise
        or (isinstance(node, ast.Call) and not _is_harmless(node))
        for statement in loop.body
        for node in ast.walk(statement)
    )


def _is_harmless(call: ast.Call) -> bool:
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    return name in HARMLESS_CALLS


@dataclass(frozen=True, kw_only=True)
class Contradiction:
    """A call for which a test and a docstring expect different results.

    Attributes:
        tested: The result that the test expects, as source.
        documented: The result in the docstring, as source.
    """

    call: str
    tested: str
    documented: str
    file: str

    @property
    def explanation(self) -> str:
        """The contradiction in words."""
        documented = f"the docstring in {self.file} says {self.documented}"
        return f"it expects {self.call} to be {self.tested}, but {documented}"


@dataclass(frozen=True, kw_only=True)
class DocumentedResult:
    """The result of a call that a docstring shows, as source, and the file of the docstring."""

    result: str
    file: str


def find_documented_examples(files: Mapping[str, bytes]) -> dict[str, DocumentedResult]:
    """Return call -> its result in a docstring, for literal arguments and functions that are defined once.

    A call names a function without its module, so it would match each of several functions with that name.
    """
    code = {path: text for path, text in files.items() if path.endswith(".py") and not is_test_file(path)}
    examples: dict[str, DocumentedResult] = {}
    for path, content in code.items():
        tree = parse_module(content) if b">>>" in content else None
        for node in ast.walk(tree) if tree else ():
            if isinstance(node, FunctionNode):
                for call, result in _iter_docstring_results(node):
                    examples[call] = DocumentedResult(result=result, file=path)
    if not examples:
        return {}
    definitions = Counter(name for content in code.values() for name in DEFINITION_RE.findall(content))
    return {
        call: example
        for call, example in examples.items()
        if definitions[call.partition("(")[0].encode()] == 1
    }


def find_contradictions(
    test: str, files: Mapping[str, bytes], documented: Mapping[str, DocumentedResult]
) -> tuple[Contradiction, ...]:
    """Return the contradictions between a test and the docstrings of the project's code.

    Args:
        test: The test's id, `path::name` or `path::Class::name`.
        documented: The result of `find_documented_examples`.
    """
    path, _, name = test.partition("::")
    if not documented or not name:
        return ()
    asserts_by_function = _find_equality_asserts(files.get(path, b""))
    return tuple(
        Contradiction(
            call=call, tested=tested, documented=documented[call].result, file=documented[call].file
        )
        for call, tested in asserts_by_function.get(name.partition("[")[0].split("::")[-1], ())
        if call in documented and _differ(tested, documented[call].result)
    )


@lru_cache(maxsize=64)  # called once per failing test, of which a file may have thousands
def _find_equality_asserts(content: bytes) -> Mapping[str, Sequence[tuple[str, str]]]:
    """Return function -> (call, value) of each `assert call(...) == value` in it."""
    tree = parse_module(content)
    asserts: dict[str, list[tuple[str, str]]] = {}
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, FunctionNode):
            asserts.setdefault(node.name, []).extend(_iter_equality_asserts(node))
    return asserts


def _iter_equality_asserts(function: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(function):
        if not isinstance(node, ast.Assert) or not isinstance(node.test, ast.Compare):
            continue
        left, right = node.test.left, node.test.comparators[0]
        if len(node.test.ops) != 1 or not isinstance(node.test.ops[0], (ast.Eq, ast.Is)):
            continue
        for call, value in ((left, right), (right, left)):
            if (call_source := _render_call(call)) and _is_literal(value):
                yield call_source, ast.unparse(value)


def _iter_docstring_results(function: FunctionNode) -> Iterator[tuple[str, str]]:
    """Yield (call, result) of each `>>>` example that calls the function itself."""
    try:
        examples = doctest.DocTestParser().get_examples(ast.get_docstring(function) or "")
    except ValueError:  # a docstring that doctest cannot parse
        return
    for example in examples:
        try:
            call = _render_call(ast.parse(example.source.strip(), mode="eval").body)
        except PARSE_FAULTS:
            continue
        if call and call.partition("(")[0] == function.name and example.want and not example.exc_msg:
            yield call, example.want.strip()


def _render_call(node: ast.expr) -> str:
    """Return a call with literal arguments, without its module; empty for anything else."""
    if not isinstance(node, ast.Call):
        return ""
    values = [*node.args, *(keyword.value for keyword in node.keywords)]
    if not all(_is_literal(value) for value in values):
        return ""
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
        name = node.func.attr
    call = ast.Call(func=ast.Name(id=name), args=node.args, keywords=node.keywords)
    return ast.unparse(call) if name else ""


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except LITERAL_ERRORS:
        return False
    return True


def _differ(expected: str, documented: str) -> bool:
    """Return whether two literals certainly differ; other expressions are not compared."""
    try:
        values = ast.literal_eval(expected), ast.literal_eval(documented)
    except LITERAL_ERRORS:
        return False
    return bool(values[0] != values[1]) and not any(value != value for value in values)
