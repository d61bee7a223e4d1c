"""Extracting `>>>` examples from a text as checks; the standard parser rejects texts that people do write."""

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
MORE_RE = re.compile(r"^[ \t]*\.\.\.(?:[ ]|$)(.*)$")
RAISED_RE = re.compile(r"^(?:[\w.]*\.)?(\w+)(?::|$)")
TRACEBACK = "Traceback (most recent call last):"
RAISED_BY_HELPER = """def raised_by(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return "nothing"
"""


@dataclass
class DoctestPrompt:
    """One `>>>` prompt with its lines, and the output that is shown below it."""

    start: int
    source: list[str]
    shown: list[str] = field(default_factory=list)


def extract_doctests(
    text: str, entry_point: str | None, functions: frozenset[str]
) -> tuple[list[tuple[int, Check]], str]:
    """Return the `>>>` examples of a text.

    Args:
        text: A docstring or a statement.
        entry_point: The function that an example must call; `None` for any function.
        functions: Functions that the text defines.

    Returns:
        Each check with its position in the text, and the text with these examples blanked out.
    """
    checks: list[tuple[int, Check]] = []
    groups, rest = _prompts(text)
    for group in groups:
        setup: list[str] = []
        for prompt in group:
            source = "\n".join(prompt.source).strip()
            made = _check(source, prompt.shown, setup, entry_point, functions)
            if made is not None:
                checks.append((prompt.start, made))
            setup.append(source)
    return checks, rest


def _prompts(text: str) -> tuple[list[list[DoctestPrompt]], str]:
    groups: list[list[DoctestPrompt]] = [[]]
    rest: list[str] = []
    current: DoctestPrompt | None = None
    indent = start = 0
    for line in text.splitlines(keepends=True):
        bare = line.rstrip("\r\n")
        prompt, more = PROMPT_RE.match(bare), MORE_RE.match(bare)
        if prompt:
            current, indent = DoctestPrompt(start=start, source=[prompt[2]]), len(prompt[1])
            groups[-1].append(current)
        elif current and more and not current.shown:
            current.source.append(more[1])
        elif current and bare.strip() and bare[:indent].strip() == "" and not _closes(bare):
            current.shown.append(bare[indent:])
        else:
            if current and bare.strip():
                groups.append([])  # other text ends an interactive session
            current = None
        rest.append(line if current is None else " " * len(bare) + line[len(bare) :])
        start += len(line)
    return groups, "".join(rest)


def _closes(line: str) -> bool:
    return line.strip() in ('"""', "'''")


def _check(
    source: str, shown: list[str], setup: list[str], entry_point: str | None, functions: frozenset[str]
) -> Check | None:
    try:
        tree = ast.parse(source)
        before = ast.parse("\n".join(setup))
    except PARSE_FAULTS:
        return None
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.Expr):
        return None
    expression = tree.body[0].value
    if not _is_about(expression, before, entry_point, functions):
        return None
    program = _assertion(ast.unparse(expression), expression, "\n".join(shown).strip())
    if program is None:
        return None
    needed = setup if _uses(expression, before) else []
    helper = [RAISED_BY_HELPER] if "raised_by(" in program else []
    return make_check(program, "visible", setup=[*helper, *needed], name=program)


def _assertion(call: str, expression: ast.expr, shown: str) -> str | None:
    if not shown:
        # A comparison such as `>>> f(1) == 2` without output below it is an assertion.
        plain = isinstance(expression, ast.Compare) and isinstance(expression.ops[0], ast.Eq)
        return f"assert {call}" if plain else None
    if shown.startswith(TRACEBACK):
        raised = RAISED_RE.match(shown.splitlines()[-1])
        return f"assert raised_by(lambda: {call}) == {raised[1]!r}" if raised else None
    try:
        expected = ast.parse(shown, mode="eval")
    except PARSE_FAULTS:
        return None
    if not is_literal(expected) or isinstance(expected.body, ast.BinOp):
        return None
    # Built as a tree, because text would need brackets: `f(1) is None == True` means something else.
    compared = ast.Compare(left=expression, ops=[ast.Eq()], comparators=[expected.body])
    return ast.unparse(ast.Assert(test=compared))


def _is_about(
    expression: ast.expr, before: ast.Module, entry_point: str | None, functions: frozenset[str]
) -> bool:
    names = {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}
    called = {
        node.func.id
        for node in ast.walk(expression)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    bound = _bound(expression) | _bound(before)
    if entry_point is not None:
        unknown = names - bound - functions - {entry_point} - set(dir(builtins))
        return not unknown and (entry_point in names or _uses_entry(expression, before, entry_point))
    return bool(called - set(dir(builtins)))


def _uses_entry(expression: ast.expr, before: ast.Module, entry_point: str) -> bool:
    in_setup = any(isinstance(node, ast.Name) and node.id == entry_point for node in ast.walk(before))
    return in_setup and _uses(expression, before)


def _uses(expression: ast.expr, before: ast.Module) -> bool:
    names = {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}
    return bool(names & _bound(before))


def _bound(tree: ast.AST) -> set[str]:
    bound = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            bound.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
    return bound
