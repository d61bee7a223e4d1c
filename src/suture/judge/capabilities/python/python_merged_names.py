"""Find names of a Python module that a change makes another name's value, or a kind of it.

A test that expects one of two exceptions, or compares with one of two constants, then accepts the other one.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator, Mapping

from suture.judge.capabilities.use import MERGED_NAME, SECOND_NAME_FOR, Use
from suture.project.python_source.module_names import ModuleNames
from suture.project.python_source.parsing import parse_module

Definition = ast.ClassDef | ast.expr
"""A class, or the value of a variable or key."""


def find_merged_python_names(before: str, after: str, changed: Iterable[str] = ()) -> Iterator[Use]:
    """Yield each name that both versions define, and of which only the new one says that it is another of them.

    Args:
        changed: Texts of all changed files, in which a new exception of two kinds may be raised.
    """
    old_tree, new_tree = parse_module(before), parse_module(after)
    if old_tree is None or new_tree is None:
        return
    old_names, new_names = ModuleNames(old_tree), ModuleNames(new_tree)
    old_scopes, new_scopes = _read_scopes(old_tree), _read_scopes(new_tree)
    for scope in sorted(old_scopes.keys() & new_scopes.keys()):
        old, new = old_scopes[scope], new_scopes[scope]
        known = old.keys() & new.keys()
        is_table = isinstance(new_scopes[""].get(scope), ast.Dict)
        for name in sorted(known):
            merged = _find_equals(name, new, new_names) & known - _find_equals(name, old, old_names)
            is_hidden = _is_exception(name, old) and isinstance(new[name], ast.Call)
            is_changed = _get_meaning(old[name]) != _get_meaning(new[name])
            is_value = is_table and not _spells_itself(name, old[name], old_names)
            if (merged or is_hidden) and is_changed and not is_value and not name.startswith("_"):
                for other in sorted(merged) or [""]:
                    yield _make_use(f"{scope}.{name}".lstrip("."), other, new[name])
    old, new = old_scopes[""], new_scopes[""]
    for name in sorted(new.keys() - old.keys()):
        joined = sorted(_find_joined(new[name], new, old))
        if joined and any(_uses_class(text, name) for text in (after, *changed)):
            yield _make_use(joined[0], joined[1], new[name])


def _spells_itself(key: str, node: Definition, names: ModuleNames) -> bool:
    """Return whether a key of a dictionary is also its value, as in a table of states, and in no table to look up."""
    value = "" if isinstance(node, ast.ClassDef) else names.fold_text(node) or ""
    return re.sub(r"[\W_]", "", key).lower() == re.sub(r"[\W_]", "", value).lower()


def _uses_class(text: str, name: str) -> bool:
    """Return whether some source does more with a class than define, import or catch it."""
    return re.search(rf"(?<!class )(?<!import )(?<!except )(?<![\"'])\b{name}\b", text) is not None


def _make_use(name: str, other: str, node: Definition) -> Use:
    # A test must mention both names to take one for the other.
    key = MERGED_NAME + SECOND_NAME_FOR.join(filter(None, (name, other)))
    return Use(code="loosens_comparison", name=key, line=node.lineno, key=key)


def _read_scopes(tree: ast.Module) -> dict[str, dict[str, Definition]]:
    """Return the names of a module, of its classes and of its dictionaries that are defined once there.

    Those of the module have an empty scope. An enumeration itself merges equal members.
    """
    scopes: dict[str, dict[str, Definition]] = {"": _read_body(tree.body)}
    for name, node in scopes[""].copy().items():
        if isinstance(node, ast.ClassDef):
            if not any(ast.unparse(base).endswith(("Enum", "Flag")) for base in node.bases):
                scopes[name] = _read_body(node.body)
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            scopes[name] = {
                key.value: value
                for key, value in pairs
                if isinstance(key, ast.Constant)
                and isinstance(key.value, str)
                and not isinstance(value, ast.Name)
            }
    return scopes


def _read_body(body: list[ast.stmt]) -> dict[str, Definition]:
    found: dict[str, Definition] = {}
    twice: set[str] = set()
    for node in body:
        if isinstance(node, ast.ClassDef):
            added: dict[str, Definition] = {node.name: node}
        elif isinstance(node, ast.Assign):
            added = {target.id: node.value for target in node.targets if isinstance(target, ast.Name)}
        else:
            continue
        twice |= found.keys() & added.keys()
        found |= added
    return {name: node for name, node in found.items() if name not in twice}


def _get_meaning(node: Definition) -> list[str]:
    return [ast.dump(part) for part in (node.bases if isinstance(node, ast.ClassDef) else [node])]


def _find_equals(name: str, scope: Mapping[str, Definition], names: ModuleNames) -> set[str]:
    """Return the other names that a test takes for a name: bases of an exception, and names of the same value."""
    node = scope[name]
    if isinstance(node, ast.ClassDef):
        return _list_bases(name, scope) if _is_exception(name, scope) else set()
    others = {other for other, found in scope.items() if other != name and found is node}
    if isinstance(node, ast.Name):
        return others | {node.id}
    text = names.fold_text(node)
    return others | {
        other
        for other, found in scope.items()
        if text and other != name and not isinstance(found, ast.ClassDef) and names.fold_text(found) == text
    }


def _list_bases(name: str, scope: Mapping[str, Definition]) -> set[str]:
    """Return the names of all bases of a class, and of classes that a base is another name for."""
    bases: set[str] = set()
    waiting = [name]
    while waiting:
        node = scope.get(waiting.pop())
        parts = node.bases if isinstance(node, ast.ClassDef) else [node] if isinstance(node, ast.Name) else []
        direct = set(map(ast.unparse, parts))
        waiting += direct - bases
        bases |= direct
    return bases - {name}


def _is_exception(name: str, scope: Mapping[str, Definition]) -> bool:
    kinds = (
        getattr(builtins, base.removeprefix("builtins."), None)
        for base in _list_bases(name, scope)
        if isinstance(scope.get(name), ast.ClassDef)
    )
    return any(isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds)


def _find_joined(
    node: Definition, scope: Mapping[str, Definition], before: Mapping[str, Definition]
) -> set[str]:
    """Return the existing exceptions that are all bases of a new class, and of which none is a kind of another."""
    bases = [ast.unparse(base) for base in node.bases] if isinstance(node, ast.ClassDef) else []
    known = [base for base in bases if _is_exception(base, scope) and base in before]
    return {
        base
        for base in known
        for other in known
        if other != base and other not in _list_bases(base, scope) and base not in _list_bases(other, scope)
    }
