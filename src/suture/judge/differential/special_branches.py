"""Find new branches that serve single examples of the tests in code that was written anew.

Where a function failed on every input before a change, the comparison with the code before it shows nothing. Each new
branch with a fixed answer is therefore switched off, and the code without it is compared: a branch that gives an
example another answer, and nothing near it, has memorised this example.
"""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from suture.core.records import Candidate
from suture.judge.differential.memorised_examples import ChangedBehaviour, compare_near_examples
from suture.judge.signs import is_specific
from suture.judge.signs.argument_changes import CHANGING_METHODS
from suture.judge.suite import Suite
from suture.judge.tuning import EXAMPLES_TIMEOUT_S
from suture.project.python_source.parsing import parse_module
from suture.project.workspace import decode_text, overlay_candidate

MAX_BRANCHES = 3
"""Branches that are switched off, those with rare conditions first: each costs two processes. Chosen by judgement."""
MAX_REACHED_SHARE = 0.1
"""Share of the inputs near an example that may reach its branch, as a checksum is met by chance. By judgement."""
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef
Branch = ast.If | ast.IfExp | ast.match_case


@dataclass(frozen=True, kw_only=True)
class SpecialBranch:
    """A new branch with a rare literal in its condition or answer that answers with nothing else than literals.

    Attributes:
        path: Its file.
        function: Name of the function around it.
        line: Its line, from 1.
        is_edge_case: Whether its condition compares only with values that are usual in code, such as 0 and 1.
        counts_calls: Whether its condition depends on what the function itself changes in a variable of the module.
        without: The text of the file in which it is switched off.
        is_certain: Whether it is known to serve only an example; otherwise nothing shows what else it serves.
    """

    path: str
    function: str
    line: int
    is_edge_case: bool
    counts_calls: bool
    without: str
    is_certain: bool = False


async def find_special_branches(
    code: Mapping[str, str], suite: Suite, fixed: tuple[str, ...], *, timeout_s: float = EXAMPLES_TIMEOUT_S
) -> list[SpecialBranch]:
    """Return the new branches of a change that serve single examples of the tests, and those that may.

    Args:
        code: Path -> new text of the changed files.
        suite: The suite on the code before the change.
        fixed: Ids of the checks that fail before the change and pass after it.
        timeout_s: Wall-clock seconds.

    Raises:
        SandboxError: The sandbox failed.
    """
    before = {path: decode_text(suite.task.files.get(path, b"")) for path in code}
    branches = [branch for path, text in code.items() for branch in list_branches(path, before[path], text)]
    left = sorted(branches, key=lambda branch: branch.is_edge_case)[:MAX_BRANCHES]
    found: list[SpecialBranch] = []
    files = overlay_candidate(suite.task.files, code)
    try:
        async with asyncio.timeout(timeout_s):
            while left:
                branch = left[0]
                task = replace(suite.task, files={**files, branch.path: branch.without.encode()})
                candidate = Candidate(files={branch.path: code[branch.path]}, origin="repair")
                compared = compare_near_examples(
                    candidate, replace(suite, task=task), fixed, timeout_s, usual=True
                )
                behaviours = [behaviour async for behaviour in compared]
                left.pop(0)
                is_special = any(map(_is_special_case, behaviours))
                if branch.counts_calls or is_special:
                    found.append(replace(branch, is_certain=branch.counts_calls or not branch.is_edge_case))
    except TimeoutError:
        found += left
    return found


def _is_special_case(behaviour: ChangedBehaviour) -> bool:
    """Return whether a branch replaces an answer that the code gives anyway, and hardly any near the example."""
    is_sparse = behaviour.differing <= MAX_REACHED_SHARE * behaviour.neighbours
    return behaviour.serves_examples_only and behaviour.replaces_answer and is_sparse


def list_branches(path: str, before: str, after: str) -> list[SpecialBranch]:
    """Return the new branches of a Python file that answer with rare literals, or with literals on rare conditions."""
    old, new = parse_module(before), parse_module(after)
    if not path.endswith(".py") or new is None:
        return []
    known = {ast.dump(node) for node in ast.walk(old)} if old is not None else set()
    tables = {
        target.id
        for node in new.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict) and ast.dump(node) not in known
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found: list[SpecialBranch] = []
    for function, branch in _iter_branches(new):
        condition = _get_condition(branch)
        literals = _find_literals(condition)
        counts = any(type(value) is int for value in literals) and bool(
            _find_changed_variables(function, new) & _find_names(condition)
        )
        answer = _find_answer(branch, tables)
        if ast.dump(branch) in known or answer is None:
            continue
        has_table = isinstance(answer, ast.Subscript)
        is_usual = not any(map(_is_rare, literals))
        if has_table or counts or not is_usual or any(map(_is_rare, _find_literals(answer))):
            found.append(
                SpecialBranch(
                    path=path,
                    function=function.name,
                    line=condition.lineno,
                    is_edge_case=is_usual and not has_table,
                    counts_calls=counts,
                    without=_switch_off(new, branch),
                )
            )
    return found


def _iter_branches(tree: ast.Module) -> Iterator[tuple[Function, Branch]]:
    """Yield each branch once, with the innermost function around it."""
    owners: dict[Branch, Function] = {}
    for function in ast.walk(tree):  # outer functions first
        if isinstance(function, FUNCTIONS):
            owners |= {node: function for node in ast.walk(function) if isinstance(node, Branch)}
    yield from ((function, branch) for branch, function in owners.items())


def _get_condition(branch: Branch) -> ast.expr | ast.pattern:
    return branch.pattern if isinstance(branch, ast.match_case) else branch.test


def _find_answer(branch: Branch, tables: set[str]) -> ast.expr | None:
    """Return the answer of a branch that is a literal, or that is looked up in a new table."""
    last = branch.body if isinstance(branch, ast.IfExp) else branch.body[-1]
    answer = last.value if isinstance(last, ast.Return) else last
    if not isinstance(answer, ast.expr):
        return None
    if isinstance(answer, ast.Subscript) and isinstance(answer.value, ast.Name) and answer.value.id in tables:
        return answer
    is_fixed = not any(isinstance(node, (ast.Name, ast.Call, ast.Subscript)) for node in ast.walk(answer))
    return answer if is_fixed else None


def _find_literals(node: ast.AST) -> list[object]:
    return [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]


def _is_rare(value: object) -> bool:
    """Return whether a value is rare in a branch, where single characters are as usual as small numbers."""
    return is_specific(value) and not (isinstance(value, (str, bytes)) and len(value) == 1)


def _find_names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _find_changed_variables(function: Function, tree: ast.Module) -> set[str]:
    """Return the variables of the module that a function assigns or changes in place."""
    variables = {name for node in tree.body if isinstance(node, ast.Assign) for name in _find_names(node)}
    changed: set[str] = set()
    for node in ast.walk(function):
        match node:
            case ast.Global(names=names):
                changed.update(names)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if (
                method in CHANGING_METHODS
            ):
                changed.add(name)
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
                changed.add(name)
    bound = {argument.arg for argument in ast.walk(function) if isinstance(argument, ast.arg)}
    local = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return changed & variables - bound - (local - changed)


def _switch_off(tree: ast.Module, branch: Branch) -> str:
    """Return the source of a module in which the condition of a branch never holds."""
    field = "guard" if isinstance(branch, ast.match_case) else "test"
    test = getattr(branch, field)
    setattr(branch, field, ast.copy_location(ast.Constant(value=False), _get_condition(branch)))
    try:
        return ast.unparse(tree)
    finally:
        setattr(branch, field, test)
