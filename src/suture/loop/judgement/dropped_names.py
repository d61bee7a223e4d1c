"""The names that a change takes away from the code: a test of what they stood for has lost its subject."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from suture.loop.judgement.proposed_change import ProposedChange
from suture.project.languages import detect_file_languages
from suture.project.python_source.parsing import parse_module
from suture.project.workspace import is_test_file

WORD = re.compile(r"[\w$]+")
OPTION = re.compile(r"-{0,2}\w[\w.-]*")
"""Matches a text that names something, such as an option of a command or a key."""


def find_dropped_names(change: ProposedChange) -> frozenset[str]:
    """Return what the changed files of code defined before and no longer define.

    In Python these are functions, classes, parameters, attributes, variables of modules and classes, and texts that
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
