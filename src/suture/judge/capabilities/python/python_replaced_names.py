"""Find functions that a change binds when a module is loaded, although tests replace them by their names.

What a test puts in their place is then never called: a default argument or a constant keeps the original.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePosixPath

from suture.core.records import CapabilityUse
from suture.project.python_source.parsing import parse_module
from suture.project.workspace import decode_text, is_test_file

TARGETS = (
    re.compile(r"\b(?:setattr|patch\.object)\(\s*([\w.]+)\s*,\s*[\"'](\w+)[\"']"),
    re.compile(r"\b(?:setattr|patch)\(\s*[\"']([\w.]+)\.(\w+)[\"']"),
)
"""A call of a test that replaces an attribute: the object that has it, and its name."""


def find_bound_originals(before: Mapping[str, bytes], after: Mapping[str, str]) -> Iterator[CapabilityUse]:
    """Yield each function that tests replace, and that a file newly binds instead of looking it up in its calls.

    Args:
        before: The task's files, path -> content.
        after: The changed files, path -> source.
    """
    changed = [
        path for path in sorted(after) if path.endswith(".py") and path in before and not is_test_file(path)
    ]
    tests = [decode_text(content) for path, content in before.items() if changed and is_test_file(path)]
    targets = {match for text in tests for pattern in TARGETS for match in pattern.findall(text)}
    for path in changed:
        yield from _find_in_file(path, decode_text(before[path]), after[path], targets)


def _find_in_file(
    path: str, before: str, after: str, targets: Collection[tuple[str, str]]
) -> Iterator[CapabilityUse]:
    place = PurePosixPath(path)
    module = place.parent.name if place.stem == "__init__" else place.stem
    targets = {(owner.rpartition(".")[2], name) for owner, name in targets if name in after}
    if not targets:
        return
    old_tree, new_tree = parse_module(before), parse_module(after)
    if old_tree is None or new_tree is None:
        return
    old, new = _Loads(old_tree), _Loads(new_tree)
    for owner, name in sorted(targets):
        wanted = name if owner == module else f"{owner}.{name}"
        bound = [line for text, line in new.early if text == wanted]
        is_bound = len(bound) > sum(text == wanted for text, _ in old.early)
        if is_bound and new.late.count(wanted) < old.late.count(wanted):
            yield CapabilityUse(code="hides_effects", path=path, line=bound[0], name=f"original of {wanted}")


class _Loads:
    """The names that a module reads.

    Attributes:
        early: (name, line) of what the module binds when it is loaded: arguments, defaults and values of variables.
            Names of imported functions have their modules.
        late: Names that its functions look up when they are called.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.early: list[tuple[str, int]] = []
        self.late: list[str] = []
        waiting: list[tuple[ast.AST, bool]] = [(tree, False)]
        while waiting:
            node, is_late = waiting.pop()
            if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
                text = ast.unparse(node)
                texts = {text, ".".join(text.split(".")[-2:])}
                self.late += texts if is_late else ()
                self.early += () if is_late else ((text, node.lineno) for text in texts)
            elif isinstance(node, ast.ImportFrom) and node.module:
                owner = node.module.rpartition(".")[2]
                self.early += ((f"{owner}.{name.name}", node.lineno) for name in node.names)
            called = node.func if isinstance(node, ast.Call) and not is_late else None
            body = _list_body(node)
            waiting += (
                (child, is_late or child in body)
                for child in ast.iter_child_nodes(node)
                if child is not called
            )


def _list_body(node: ast.AST) -> list[ast.AST]:
    """Return what a function runs when it is called. Its defaults and decorators are evaluated before."""
    if isinstance(node, ast.Lambda):
        return [node.body]
    return [*node.body] if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else []
