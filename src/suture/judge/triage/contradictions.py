"""Tests that contradict the examples in the docstring of what they test."""

from __future__ import annotations

import ast
import doctest
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from suture.project.python_source.parsing import PARSE_FAULTS, parsed
from suture.project.workspace import is_test_file


@dataclass(frozen=True, kw_only=True)
class Contradiction:
    """A call of which a test and a docstring want different things."""

    call: str
    tested: str
    documented: str
    file: str

    def __str__(self) -> str:
        documented = f"the docstring in {self.file} says {self.documented}"
        return f"it wants {self.call} to be {self.tested}, but {documented}"


@dataclass(frozen=True, kw_only=True)
class Example:
    """What a docstring shows of a call, and where."""

    shown: str
    file: str


def find_documented_examples(files: Mapping[str, bytes]) -> dict[str, Example]:
    """Call -> what the project's docstrings show of it: literal arguments, functions defined once.

    Args:
        files: The project's files, path -> content.
    """
    code = {path: text for path, text in files.items() if path.endswith(".py") and not is_test_file(path)}
    found: dict[str, Example] = {}
    for path, content in code.items():
        tree = parsed(content) if b">>>" in content else None
        for node in ast.walk(tree) if tree else ():
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found |= {call: Example(shown=shown, file=path) for call, shown in _shown_in(node)}
    once = {call: _definitions(call.partition("(")[0], code) == 1 for call in found}
    return {call: example for call, example in found.items() if once[call]}


def _definitions(name: str, code: Mapping[str, bytes]) -> int:
    return sum(content.count(f"def {name}(".encode()) for content in code.values())


def find_contradictions(
    test: str, files: Mapping[str, bytes], documented: Mapping[str, Example]
) -> tuple[Contradiction, ...]:
    """Where one test disagrees with the docstrings of the project's code.

    Args:
        test: The test's id, `path::name` or `path::Class::name`.
        files: The project's files, path -> content.
        documented: What `find_documented_examples` finds in the project.
    """
    path, _, name = test.partition("::")
    if not documented or not name:
        return ()
    claims = _claims_in(files.get(path, b""))
    return tuple(
        Contradiction(call=call, tested=tested, documented=documented[call].shown, file=documented[call].file)
        for call, tested in claims.get(name.partition("[")[0].split("::")[-1], ())
        if call in documented and _differ(tested, documented[call].shown)
    )


@lru_cache(maxsize=64)  # asked for once for each failing test, and there may be thousands in a file
def _claims_in(content: bytes) -> Mapping[str, Sequence[tuple[str, str]]]:
    """Function -> each `assert call(...) == value` of it, as the call and the value."""
    tree = parsed(content)
    found: dict[str, list[tuple[str, str]]] = {}
    for function in ast.walk(tree) if tree is not None else ():
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.setdefault(function.name, []).extend(_claims_of(function))
    return found


def _claims_of(function: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(function):
        if not isinstance(node, ast.Assert) or not isinstance(node.test, ast.Compare):
            continue
        left, right = node.test.left, node.test.comparators[0]
        if len(node.test.ops) != 1 or not isinstance(node.test.ops[0], (ast.Eq, ast.Is)):
            continue
        for call, value in ((left, right), (right, left)):
            if (plain := _plain_call(call)) and _is_literal(value):
                yield plain, ast.unparse(value)


def _shown_in(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, str]]:
    try:
        examples = doctest.DocTestParser().get_examples(ast.get_docstring(function) or "")
    except ValueError:  # a docstring whose prompts doctest cannot read
        return
    for example in examples:
        try:
            call = _plain_call(ast.parse(example.source.strip(), mode="eval").body)
        except PARSE_FAULTS:
            continue
        if call and call.partition("(")[0] == function.name and example.want and not example.exc_msg:
            yield call, example.want.strip()


def _plain_call(node: ast.expr) -> str:
    """A call with literal arguments, without the module it is taken from; empty for anything else."""
    if not isinstance(node, ast.Call):
        return ""
    values = [*node.args, *(keyword.value for keyword in node.keywords)]
    if not all(_is_literal(value) for value in values):
        return ""
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
        name = node.func.attr
    plain = ast.Call(func=ast.Name(id=name), args=node.args, keywords=node.keywords)
    return ast.unparse(plain) if name else ""


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _differ(tested: str, shown: str) -> bool:
    """Whether two literals are surely different; what is no literal is not compared."""
    try:
        values = ast.literal_eval(tested), ast.literal_eval(shown)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return bool(values[0] != values[1]) and not any(value != value for value in values)
