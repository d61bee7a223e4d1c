"""Extracting `>>>` examples from a text as checks.

The parser of doctest is not used, because it rejects many texts that people write.
"""

from __future__ import annotations

import ast
import builtins
import re
from dataclasses import dataclass, field

from suture.core.records import Check
from suture.judge.extraction.assert_checks import make_check
from suture.judge.extraction.prose_literals import is_literal
from suture.project.python_source.parsing import PARSE_FAULTS

PROMPT_RE = re.compile(r"^([ \t]*)>>>(?:[ ]|(?=\S)|$)(.*)$")
CONTINUATION_RE = re.compile(r"^[ \t]*\.\.\.(?:[ ]|$)(.*)$")
"""A further line of the code behind a prompt."""
EXCEPTION_RE = re.compile(r"^(?:[\w.]*\.)?(\w+)(?::|$)")
"""The last line of a traceback; the group is the exception's name without its module."""
TRACEBACK_HEAD = "Traceback (most recent call last):"
RAISED_BY_HELPER = """def raised_by(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return "nothing"
"""
"""Added to a check whose example shows a traceback."""


@dataclass
class DoctestPrompt:
    """One `>>>` prompt.

    Attributes:
        start: The position of the prompt in the text.
        output: The lines of output below it.
    """

    start: int
    source: list[str]
    output: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Doctests:
    """The `>>>` examples of a text.

    Attributes:
        checks: Pairs (position in the text, check).
        unread: The prompts that show a result and became no check, with their positions.
        rest: The text with the examples blanked out.
    """

    checks: list[tuple[int, Check]]
    unread: list[tuple[int, str]]
    rest: str


def extract_doctests(text: str, functions: frozenset[str] | None) -> Doctests:
    """Return the `>>>` examples of a text.

    Args:
        text: A docstring or a statement.
        functions: The functions of which an example must call one; `None` for any function.
    """
    checks: list[tuple[int, Check]] = []
    unread: list[tuple[int, str]] = []
    groups, rest = _find_prompts(text)
    for group in groups:
        setup: list[str] = []
        for prompt in group:
            source = "\n".join(prompt.source).strip()
            check = _make_doctest_check(source, prompt.output, setup, functions)
            if check is not None:
                checks.append((prompt.start, check))
            elif any(line.strip() for line in prompt.output):
                unread.append((prompt.start, f">>> {source}"))
            setup.append(source)
    return Doctests(checks=checks, unread=unread, rest=rest)


def _find_prompts(text: str) -> tuple[list[list[DoctestPrompt]], str]:
    """Return (groups, rest): the prompts of each interactive session, and the text with them blanked out."""
    groups: list[list[DoctestPrompt]] = [[]]
    rest: list[str] = []
    current: DoctestPrompt | None = None
    indent = start = 0
    for line in text.splitlines(keepends=True):
        content = line.rstrip("\r\n")
        prompt, continuation = PROMPT_RE.match(content), CONTINUATION_RE.match(content)
        if prompt:
            current, indent = DoctestPrompt(start=start, source=[prompt[2]]), len(prompt[1])
            groups[-1].append(current)
        elif current and continuation and not current.output:
            current.source.append(continuation[1])
        elif current and content[:indent].strip() == "" and content.strip() not in ("", '"""', "'''"):
            current.output.append(content[indent:])
        else:
            if current and content.strip():
                groups.append([])  # other text ends an interactive session
            current = None
        rest.append(line if current is None else " " * len(content) + line[len(content) :])
        start += len(line)
    return groups, "".join(rest)


def _make_doctest_check(
    source: str, output: list[str], setup: list[str], functions: frozenset[str] | None
) -> Check | None:
    try:
        tree = ast.parse(source)
        setup_tree = ast.parse("\n".join(setup))
    except PARSE_FAULTS:
        return None
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.Expr):
        return None
    expression = tree.body[0].value
    if not _is_example(expression, setup_tree, functions):
        return None
    program = _make_assert(ast.unparse(expression), expression, "\n".join(output).strip())
    if program is None:
        return None
    needed_setup = setup if _uses_setup(expression, setup_tree) else []
    helper = [RAISED_BY_HELPER] if "raised_by(" in program else []
    return make_check(program, "visible", setup=[*helper, *needed_setup], name=program)


def _make_assert(call: str, expression: ast.expr, output: str) -> str | None:
    if not output:
        # A comparison such as `>>> f(1) == 2` without output below it is an assertion.
        is_equality = isinstance(expression, ast.Compare) and isinstance(expression.ops[0], ast.Eq)
        return f"assert {call}" if is_equality else None
    if output.startswith(TRACEBACK_HEAD):
        exception = EXCEPTION_RE.match(output.splitlines()[-1])
        return f"assert raised_by(lambda: {call}) == {exception[1]!r}" if exception else None
    try:
        expected = ast.parse(output, mode="eval")
    except PARSE_FAULTS:
        return None
    # An output such as `1 - 2` is printed text and no `repr`.
    if not is_literal(expected) or isinstance(expected.body, ast.BinOp):
        return None
    # Built as a tree, because text would need brackets: `f(1) is None == True` means something else.
    comparison = ast.Compare(left=expression, ops=[ast.Eq()], comparators=[expected.body])
    return ast.unparse(ast.Assert(test=comparison))


def _is_example(expression: ast.expr, setup_tree: ast.Module, functions: frozenset[str] | None) -> bool:
    """Whether an expression uses one of the functions and no unknown name; of any, whether it calls something."""
    names = {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}
    called_names = {
        node.func.id
        for node in ast.walk(expression)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    bound_names = _find_bound_names(expression) | _find_bound_names(setup_tree)
    if functions is None:
        return bool(called_names - set(dir(builtins)))
    if names - bound_names - functions - set(dir(builtins)):
        return False
    setup_names = {node.id for node in ast.walk(setup_tree) if isinstance(node, ast.Name)}
    return bool(names & functions) or (bool(setup_names & functions) and _uses_setup(expression, setup_tree))


def _uses_setup(expression: ast.expr, setup_tree: ast.Module) -> bool:
    names = {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}
    return bool(names & _find_bound_names(setup_tree))


def _find_bound_names(tree: ast.AST) -> set[str]:
    bound: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            bound.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
    return bound
