"""Find names of a Python module that a change makes another name's value, or a kind of it.

A test that expects one of two exceptions, or compares with one of two constants, then accepts the other one.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping

from suture.judge.capabilities.use import MERGED_NAME, Use
from suture.project.python_source.parsing import parse_module


def find_merged_python_names(before: str, after: str) -> Iterator[Use]:
    """Yield each name that both versions define, and of which only the new one says that it is another of them."""
    old_tree, new_tree = parse_module(before), parse_module(after)
    if old_tree is None or new_tree is None:
        return
    old, new = _read_definitions(old_tree), _read_definitions(new_tree)
    known = old.keys() & new.keys()
    for name in sorted(known):
        merged = _find_equals(name, new) & known - _find_equals(name, old)
        if merged and not name.startswith("_") and _get_meaning(old[name]) != _get_meaning(new[name]):
            key = f"{MERGED_NAME}{name}"
            yield Use(code="loosens_comparison", name=key, line=new[name].lineno, key=key)


def _read_definitions(tree: ast.Module) -> dict[str, ast.ClassDef | ast.Assign]:
    """Return the classes of a module and its variables that are assigned once, by name."""
    found: dict[str, ast.ClassDef | ast.Assign] = {}
    twice: set[str] = set()
    for node in tree.body:
        names = [node.name] if isinstance(node, ast.ClassDef) else []
        if isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        if isinstance(node, ast.ClassDef | ast.Assign):
            twice |= found.keys() & set(names)
            found.update(dict.fromkeys(names, node))
    return {name: node for name, node in found.items() if name not in twice}


def _get_meaning(node: ast.ClassDef | ast.Assign) -> list[str]:
    return [ast.dump(part) for part in (node.bases if isinstance(node, ast.ClassDef) else [node.value])]


def _find_equals(name: str, definitions: Mapping[str, ast.ClassDef | ast.Assign]) -> set[str]:
    """Return the other names that a test takes for a name: bases of an exception, and names of the same value."""
    node = definitions[name]
    if isinstance(node, ast.ClassDef):
        bases = _list_bases(name, definitions)
        return bases if any(map(_is_builtin_exception, bases)) else set()
    value = node.value
    others = {other for other, found in definitions.items() if other != name and found is node}
    if isinstance(value, ast.Name):
        return others | {value.id}
    if isinstance(value, ast.Constant) and isinstance(value.value, str) and value.value:
        others |= {
            other
            for other, found in definitions.items()
            if isinstance(found, ast.Assign) and other != name and ast.dump(found.value) == ast.dump(value)
        }
    return others


def _list_bases(name: str, definitions: Mapping[str, ast.ClassDef | ast.Assign]) -> set[str]:
    """Return the names of all bases of a class, as far as the module shows them."""
    bases: set[str] = set()
    waiting = [name]
    while waiting:
        node = definitions.get(waiting.pop())
        direct = {ast.unparse(base) for base in node.bases} if isinstance(node, ast.ClassDef) else set()
        waiting += direct - bases
        bases |= direct
    return bases - {name}


def _is_builtin_exception(name: str) -> bool:
    kind = getattr(builtins, name.removeprefix("builtins."), None)
    return isinstance(kind, type) and issubclass(kind, BaseException)
