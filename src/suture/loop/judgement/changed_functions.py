"""Which functions of a Python file a change alters, and whether it alters what its import does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from suture.loop.judgement.base_results import ProposedChange
from suture.project.languages import detect_file_languages
from suture.project.python_source.parsing import first_line, parse_module
from suture.project.workspace import is_test_file

Function = ast.FunctionDef | ast.AsyncFunctionDef
Level = tuple[str, ...]
"""Names of the classes around a definition; empty for the module."""


@dataclass(kw_only=True)
class ChangedFunctions:
    """What a change alters of a file.

    Attributes:
        lines: First lines of the changed functions before the change, with their decorators. Of a class that gets a
            method, these are all its methods.
        alters_import: Whether the import of the file may do something else, so that all that imports it is affected.
    """

    lines: set[int] = field(default_factory=set)
    alters_import: bool = False


@dataclass(kw_only=True)
class _Contents:
    """The functions and the other statements of a file, by the classes around them."""

    functions: dict[Level, dict[str, list[Function]]] = field(default_factory=dict)
    statements: dict[Level, list[ast.stmt]] = field(default_factory=dict)
    classes: dict[Level, ast.ClassDef] = field(default_factory=dict)


def find_changed_functions(before: str, after: str) -> ChangedFunctions:
    """Return what a change alters of a Python file. A file that is no Python counts as altered in its import."""
    old_tree, new_tree = parse_module(before), parse_module(after)
    if old_tree is None or new_tree is None:
        return ChangedFunctions(alters_import=True)
    old, new = _Contents(), _Contents()
    _read(old_tree.body, (), old)
    _read(new_tree.body, (), new)
    changed = ChangedFunctions()
    for level in {*old.functions, *new.functions}:
        _compare_functions(level, old, new, changed)
    changed.alters_import = changed.alters_import or any(
        _alters_level(level, old, new) for level in {*old.statements, *new.statements}
    )
    return changed


def _read(body: list[ast.stmt], level: Level, contents: _Contents) -> None:
    functions = contents.functions.setdefault(level, {})
    statements = contents.statements.setdefault(level, [])
    for node in body:
        if isinstance(node, Function):
            functions.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.ClassDef):
            contents.classes[*level, node.name] = node
            _read(node.body, (*level, node.name), contents)
        else:
            statements.append(node)


def _compare_functions(level: Level, old: _Contents, new: _Contents, changed: ChangedFunctions) -> None:
    old_functions, new_functions = old.functions.get(level, {}), new.functions.get(level, {})
    for name, nodes in old_functions.items():
        others = new_functions.get(name, [])
        if _dump(nodes) != _dump(others):
            changed.lines |= {first_line(node) for node in nodes}
            # An import of a removed function fails. A decorator may register a function.
            changed.alters_import |= not others
            changed.alters_import |= _dump(_list_decorators(nodes)) != _dump(_list_decorators(others))
    added = [node for name, nodes in new_functions.items() if name not in old_functions for node in nodes]
    if not added:
        return
    # A method of a class may replace one that it inherits.
    owner = old.classes.get(level)
    is_special = any(node.decorator_list or (owner and node.name.startswith("__")) for node in added)
    changed.alters_import |= is_special or bool(owner and owner.bases)
    changed.lines |= {first_line(node) for nodes in old_functions.values() for node in nodes if owner}


def _alters_level(level: Level, old: _Contents, new: _Contents) -> bool:
    """Return whether the statements of a module or a class do something else, besides binding new names."""
    if level not in old.statements:
        return False  # a new class, which nothing uses without another change
    if level and (level not in new.classes or _head(old.classes[level]) != _head(new.classes[level])):
        return True
    left = [ast.dump(node) for node in old.statements[level]]
    added: list[ast.stmt] = []
    for node in new.statements[level]:
        if left and ast.dump(node) == left[0]:
            left.pop(0)
        else:
            added.append(node)
    known = {name for node in old.statements[level] for name in _bound_names(node)}
    known |= {*old.functions.get(level, {})}
    return bool(left) or any(level or not _binds_only_new(node, known) for node in added)


def _head(node: ast.ClassDef) -> list[str]:
    return _dump([*node.bases, *node.keywords, *node.decorator_list])


def _binds_only_new(node: ast.stmt, known: set[str]) -> bool:
    names = set(_bound_names(node))
    return bool(names) and names.isdisjoint(known)


def _bound_names(node: ast.stmt) -> Iterator[str]:
    """Yield the names that an import or an assignment binds; none for another statement."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def _dump(nodes: list[Function] | list[ast.expr] | list[ast.AST]) -> list[str]:
    return [ast.dump(node) for node in nodes]


def _list_decorators(nodes: list[Function]) -> list[ast.expr]:
    return [decorator for node in nodes for decorator in node.decorator_list]


WORD = re.compile(r"[\w$]+")
OPTION = re.compile(r"-{0,2}\w[\w.-]*")
"""Matches a string that names something, such as an option of a command or a key."""


def find_dropped_names(change: ProposedChange) -> frozenset[str]:
    """Return what the changed files of code defined before and no longer define.

    In Python these are functions, classes, parameters, attributes, variables of modules and classes, and strings that
    name something; in other languages all words.
    """
    before: set[str] = set()
    after: set[str] = set()
    for path in change.changed:
        if detect_file_languages((path,)) and not is_test_file(path):
            before.update(_read_names(path, change.old_text(path)))
            after.update(_read_names(path, change.new_text(path)))
    return frozenset(before - after)


def _read_names(path: str, text: str) -> Iterator[str]:
    if not path.endswith(".py"):
        yield from WORD.findall(text)
        return
    tree = parse_module(text)
    for node in ast.walk(tree) if tree is not None else ():
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.name
            case ast.ClassDef() | ast.Module():
                yield from _read_variables(node)
            case ast.arg(arg=name) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.alias():
                yield node.asname or node.name
            case ast.Constant(value=str() as name) if OPTION.fullmatch(name):
                yield name


def _read_variables(scope: ast.ClassDef | ast.Module) -> Iterator[str]:
    if isinstance(scope, ast.ClassDef):
        yield scope.name
    for statement in scope.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))
