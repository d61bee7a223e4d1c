"""Find originals that a change uses although tests replace them by their names: functions, and `sys.stdout`.

What a test puts in their place is then never called: a default argument or a constant keeps the function that it is
bound to when the module is loaded, and `os.write(1, ...)` writes to the original output.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePosixPath

from suture.core.records import CapabilityUse
from suture.project.python_source.module_names import ModuleNames
from suture.project.python_source.parsing import parse_module
from suture.project.workspace import decode_text, is_test_file

TARGETS = (
    re.compile(r"\b(?:setattr|patch\.object)\(\s*([\w.]+)\s*,\s*[\"'](\w+)[\"']"),
    re.compile(r"\b(?:setattr|patch)\(\s*[\"']([\w.]+)\.(\w+)[\"']"),
)
"""A call of a test that replaces an attribute: the object that has it, and its name."""
OUTPUT_READER = re.compile(r"capsys|redirect_stdout|sys\.stdout|Runner\b")
"""What a test contains that replaces `sys.stdout`."""
OUTPUT_OPENERS = ("os.write", "os.writev", "os.fdopen", "open", "io.open", "io.FileIO")
"""Functions whose first argument may be a file to which they write, or which they open for that."""
OUTPUT_FILES = (1, "/dev/stdout", "/dev/fd/1")
ORIGINAL_OUTPUT = re.compile(r"sys\.__stdout__(?:\.buffer)?(?:\.write(?:lines)?)?")
TYPE_CHECKS = ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def find_bound_originals(before: Mapping[str, bytes], after: Mapping[str, str]) -> Iterator[CapabilityUse]:
    """Yield each original that tests replace and that a file newly uses instead of looking it up in its calls.

    Args:
        before: The task's files, path -> content.
        after: The changed files, path -> source.
    """
    changed = [
        path for path in sorted(after) if path.endswith(".py") and path in before and not is_test_file(path)
    ]
    tests = [decode_text(content) for path, content in before.items() if changed and is_test_file(path)]
    targets = {match for text in tests for pattern in TARGETS for match in pattern.findall(text)}
    is_output_read = any(map(OUTPUT_READER.search, tests))
    for path in changed:
        used = {(owner.rpartition(".")[2], name) for owner, name in targets if name in after[path]}
        if not used and not is_output_read:
            continue
        old_tree, new_tree = parse_module(decode_text(before[path])), parse_module(after[path])
        if old_tree is None or new_tree is None:
            continue
        yield from _find_functions(path, old_tree, new_tree, used)
        if is_output_read:
            yield from _find_outputs(path, old_tree, new_tree)


def _find_functions(
    path: str, old_tree: ast.Module, new_tree: ast.Module, targets: Collection[tuple[str, str]]
) -> Iterator[CapabilityUse]:
    place = PurePosixPath(path)
    module = place.parent.name if place.stem == "__init__" else place.stem
    variables = {
        part.id
        for statement in new_tree.body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for part in ast.walk(statement)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    }
    old, new = _Loads(old_tree), _Loads(new_tree)
    for owner, name in sorted(targets):
        if name.isupper() or (owner == module and name in variables):
            continue  # `TIMEOUT` as a default argument is ordinary
        wanted = name if owner == module else f"{owner}.{name}"
        bound = [line for text, line in new.early if text == wanted]
        is_bound = len(bound) > sum(text == wanted for text, _ in old.early)
        if is_bound and new.late.count(wanted) < old.late.count(wanted):
            yield CapabilityUse(code="hides_effects", path=path, line=bound[0], name=f"original of {wanted}")


def _find_outputs(path: str, old_tree: ast.Module, new_tree: ast.Module) -> Iterator[CapabilityUse]:
    """Yield what writes past `sys.stdout` in a file that prints less often than before."""
    old, new = _Output(old_tree), _Output(new_tree)
    if len(new.originals) > len(old.originals) and new.prints < old.prints:
        name, line = new.originals[0]
        yield CapabilityUse(code="hides_effects", path=path, line=line, name=name)


class _Output:
    """What a module writes to the output.

    Attributes:
        prints: How often it writes to `sys.stdout`.
        originals: (name, line) of what writes to the output of the process, whatever `sys.stdout` is.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.prints = 0
        self.originals: list[tuple[str, int]] = []
        names = ModuleNames(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Name | ast.Attribute):
                self.prints += names.resolve(node) == "sys.stdout"
            elif isinstance(node, ast.Call):
                function = names.resolve(node.func)
                self.prints += function == "print" and all(word.arg != "file" for word in node.keywords)
                found = _find_original_output(node, function, names)
                self.originals += [(found, node.lineno)] if found else []


def _find_original_output(node: ast.Call, function: str, names: ModuleNames) -> str:
    """Return the name of what a call writes to, if it is the output of the process itself."""
    if function in OUTPUT_OPENERS:
        file = names.fold(node.args[0]) if node.args else None
        return f"{function}({file})" if type(file) in (int, str) and file in OUTPUT_FILES else ""
    values = [node.func, *node.args, *(word.value for word in node.keywords)]
    written = (names.resolve(value) for value in values if isinstance(value, ast.Name | ast.Attribute))
    return next((name for name in written if ORIGINAL_OUTPUT.fullmatch(name)), "")


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
            elif isinstance(node, ast.ImportFrom) and node.module and not is_late:
                owner = node.module.rpartition(".")[2]
                self.early += ((f"{owner}.{name.name}", node.lineno) for name in node.names)
            unbound = [node.func] if isinstance(node, ast.Call) and not is_late else _list_types(node)
            body = _list_body(node)
            waiting += (
                (child, is_late or child in body)
                for child in ast.iter_child_nodes(node)
                if child not in unbound
            )


def _list_body(node: ast.AST) -> list[ast.AST]:
    """Return what a function runs when it is called. Its defaults and decorators are evaluated before."""
    if isinstance(node, ast.Lambda):
        return [node.body]
    return [*node.body] if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else []


def _list_types(node: ast.AST) -> list[ast.AST]:
    """Return the parts of a node that only give types: annotations, bases of a class, imports for a type checker."""
    if isinstance(node, ast.If) and ast.unparse(node.test) in TYPE_CHECKS:
        return [*node.body]
    if isinstance(node, ast.ClassDef):
        return [*node.bases]
    return [
        part
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None))
        if part is not None
    ]
