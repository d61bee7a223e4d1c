"""Find modules of a project that serve only its tests, though their names do not show it.

Expected results, tolerances, predicates, decorators and bases of test classes may be in a source file such as
`golden/user.py`. A change of what they say changes what the tests ask for. A module counts only if nothing but tests
imports it. That holds for much code under test too, so what tests use a changed name for decides: code under test is
called, and its answers are compared.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import PurePosixPath

from suture.core.records import Task
from suture.judge.signs.tampering_warning import TamperingWarning
from suture.project.python_source.parsing import imported_paths, parse_module
from suture.project.python_source.scopes import FUNCTIONS
from suture.project.workspace import decode_text, is_protected, is_test_file

DATA = (ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.UnaryOp, ast.BinOp, ast.JoinedStr)
"""Expressions whose value is data; a call may make a part of the program."""
VARIABLE_ROUNDS = 2
"""Variables through which an answer is followed to an assert. Tests are short; chosen by judgement."""


def find_test_support_signs(
    task: Task, tests: Iterable[str], changed: Mapping[str, str]
) -> list[tuple[str, TamperingWarning]]:
    """Return (path, sign) of each changed Python file that decides what the tests of a repair's project expect.

    Files that the user allowed by name (`--only`) are left out. By judgement, only a repair is doubted: a
    task for new code says which files are to be written.

    Args:
        task: The task, with the files before the change.
        tests: Paths of the files that hold the tests.
        changed: Path -> new text.
    """
    paths = [
        path
        for path in sorted(changed)
        if path.endswith(".py")
        and path in task.files
        and not (task.writable and is_protected(path, task.writable))
    ]
    if not paths or task.kind != "heal":
        return []
    files = {path: decode_text(content) for path, content in task.files.items() if path.endswith(".py")}
    support = TestSupport(files, frozenset(filter(is_test_file, files)) | (frozenset(tests) & files.keys()))
    signs = ((path, support.find_sign(path, changed[path])) for path in paths)
    return [(path, sign) for path, sign in signs if sign is not None]


class TestSupport:
    """The modules of a project that only tests import.

    Args:
        files: Path -> text of the project's Python files, before the change.
        tests: The paths of those that are tests or serve only tests by their names.
    """

    __test__ = False  # keeps pytest from collecting this class

    def __init__(self, files: Mapping[str, str], tests: frozenset[str]) -> None:
        self._files = files
        self._tests = tests
        self._imports: dict[str, frozenset[str]] = {}
        self._trees: dict[str, ast.Module | None] = {}

    def find_sign(self, path: str, after: str) -> TamperingWarning | None:
        """Return a sign if a changed module decides what tests expect, with the names that changed."""
        before = self._files.get(path)
        if before is None or path in self._tests or before == after:
            return None
        changed, importers = _find_changed_names(before, after), self._find_importers(path)
        helpers = importers - self._tests
        if not changed or not importers or not all(map(self._is_helper, helpers)):
            return None
        supporting = {name for importer in importers for name in self._find_supporting_names(importer, path)}
        used = changed & _add_references(supporting, self._parse(path))
        # A module of helpers passes on to the tests what it takes from this one.
        if importers == helpers:
            used = changed
        return TamperingWarning(code="changes_test_support", names=tuple(sorted(used))) if used else None

    def _find_importers(self, path: str) -> set[str]:
        stem = _get_stem(path)
        name = stem.rpartition("/")[2]
        return {
            other
            for other, text in self._files.items()
            if other != path
            and name in text
            and any(_is_module(imported, stem) for imported in self._list_imports(other))
        }

    def _list_imports(self, path: str) -> frozenset[str]:
        if path not in self._imports:
            self._imports[path] = imported_paths(self._files[path], path)
        return self._imports[path]

    def _find_supporting_names(self, test: str, path: str) -> frozenset[str]:
        """Return the names of a module by which a test decides what it expects."""
        tree, definitions = self._parse(test), self._parse(path)
        if tree is None or definitions is None:
            return frozenset()
        uses = _ModuleUses(tree, test, _get_stem(path), self._stems)
        data = frozenset(name for name, value in _iter_module_values(definitions) if isinstance(value, DATA))
        return frozenset(name for node in ast.walk(tree) for name in uses.find_supporting(node, data))

    def _parse(self, path: str) -> ast.Module | None:
        if path not in self._trees:
            self._trees[path] = parse_module(self._files[path])
        return self._trees[path]

    @cached_property
    def _stems(self) -> frozenset[str]:
        """The paths of the project's modules without extension, also without leading folders."""
        parts = [_get_stem(path).split("/") for path in self._files]
        return frozenset("/".join(names[start:]) for names in parts for start in range(len(names)))

    def _is_helper(self, path: str) -> bool:
        """Return whether only tests import a module, and it gives them something by which they decide.

        The whole of a package gives them code under test as well.
        """
        importers = self._find_importers(path)
        is_package = PurePosixPath(path).name == "__init__.py"
        has_tests_only = bool(importers) and importers <= self._tests and not is_package
        return has_tests_only and any(self._find_supporting_names(importer, path) for importer in importers)


class _ModuleUses:
    """What a test uses of one module, and of the other modules of the project.

    Args:
        path: Path of the test, relative to the folder at which imports begin.
        module: Path of the module without extension.
        stems: Paths of all modules of the project, without extension.
    """

    def __init__(self, tree: ast.Module, path: str, module: str, stems: frozenset[str]) -> None:
        self._own: dict[str, str] = {}
        """Local name -> the name in the module; empty for the module itself."""
        self._answers: set[str] = set()
        """Local names of what other modules provide, and of variables that hold something made by it."""
        nodes = list(ast.walk(tree))
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                for alias in node.names:
                    self._add_import(node, alias, path, module, stems)
        for _ in range(VARIABLE_ROUNDS):
            for node in nodes:
                if isinstance(node, ast.Assign) and self._uses_answer(node.value):
                    self._answers |= {name for target in node.targets for name in _list_targets(target)}

    def _add_import(
        self,
        node: ast.Import | ast.ImportFrom,
        alias: ast.alias,
        path: str,
        module: str,
        stems: frozenset[str],
    ) -> None:
        local = alias.asname or alias.name.partition(".")[0]
        single = ast.Import([alias])
        if isinstance(node, ast.ImportFrom):
            single = ast.ImportFrom(node.module, [alias], node.level)  # type: ignore[assignment]
        targets = imported_paths(ast.unparse(single), path)
        whole = max(targets, key=len, default="")
        if _is_module(whole, module):
            self._own[local] = ""
        elif any(_is_module(target, module) for target in targets):
            self._own[local] = alias.name
        elif not targets.isdisjoint(stems):
            self._answers.add(local)

    def find_supporting(self, node: ast.AST, data: frozenset[str]) -> Iterator[str]:
        """Yield the names of the module by which a node of the test decides what it expects.

        Args:
            data: The names of the module that stand for data.
        """
        if isinstance(node, ast.ClassDef) and _is_test_class(node):
            yield from filter(None, map(self._find_name, node.bases))
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and node.name.lower().startswith("test"):
            targets = (part.func if isinstance(part, ast.Call) else part for part in node.decorator_list)
            yield from filter(None, map(self._find_name, targets))
        elif isinstance(node, ast.Assert):
            yield from self._find_in_condition(node.test, data)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            name = self._find_name(node.value.func)
            if name and any(map(self._uses_answer, node.value.args)):  # `check(answer, 3)`
                yield name
            elif _is_assert_method(node.value) and len(node.value.args) > 1:
                yield from self._find_in_sides(node.value.args, data)

    def _find_in_condition(self, condition: ast.expr, data: frozenset[str]) -> Iterator[str]:
        if isinstance(condition, ast.UnaryOp) and isinstance(condition.op, ast.Not):
            yield from self._find_in_condition(condition.operand, data)
        elif isinstance(condition, ast.BoolOp):
            for part in condition.values:
                yield from self._find_in_condition(part, data)
        elif isinstance(condition, ast.Call):
            name = self._find_name(condition.func)
            if name and any(map(self._uses_answer, condition.args)):
                yield name
        elif isinstance(condition, ast.Compare):
            yield from self._find_in_sides([condition.left, *condition.comparators], data)

    def _find_in_sides(self, sides: Sequence[ast.expr], data: frozenset[str]) -> Iterator[str]:
        """Yield data that is compared with an answer, and functions that convert both sides to a common form."""
        if not any(map(self._uses_answer, sides)):
            return
        parts = [part for side in sides for part in ast.walk(side) if isinstance(part, ast.expr)]
        yield from (name for part in parts if (name := self._find_name(part)) in data)
        called = [self._find_name(side.func) if isinstance(side, ast.Call) else "" for side in sides[:2]]
        own = [
            name
            for name, side, other in zip(called, sides, sides[1::-1], strict=False)
            if name and (self._uses_answer(other) or called[0] == called[1])
        ]
        yield from own

    def _find_name(self, node: ast.expr) -> str:
        """Return the name in the module that an expression refers to; empty if it refers to something else."""
        if isinstance(node, ast.Name):
            return self._own.get(node.id, "")
        if isinstance(node, ast.Attribute):
            owner: ast.expr = node.value
            while isinstance(owner, ast.Attribute):
                owner = owner.value
            if isinstance(owner, ast.Name) and self._own.get(owner.id) == "":
                return node.attr
        return ""

    def _uses_answer(self, node: ast.AST) -> bool:
        return any(isinstance(part, ast.Name) and part.id in self._answers for part in ast.walk(node))


def _is_test_class(node: ast.ClassDef) -> bool:
    return any(isinstance(part, FUNCTIONS) and part.name.startswith("test") for part in node.body)


def _is_assert_method(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr.startswith("assert")


def _add_references(names: set[str], tree: ast.Module | None) -> set[str]:
    """Return top-level names of a module together with those that their definitions use."""
    if tree is None:
        return names
    parts: dict[str, set[str]] = {}
    for node in tree.body:
        used = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        for name in _list_defined(node):
            parts.setdefault(name, set()).update(used)
    found: set[str] = set()
    waiting = [*names]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += parts.get(name, ())
    return found


def _find_changed_names(before: str, after: str) -> set[str]:
    """Return the top-level names of a module whose definition differs."""
    old, new = parse_module(before), parse_module(after)
    if old is None or new is None:
        return set()
    olds, news = _list_definitions(old), _list_definitions(new)
    return {name for name in olds.keys() | news.keys() if olds.get(name) != news.get(name)}


def _list_definitions(tree: ast.Module) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for node in tree.body:
        for name in _list_defined(node):
            found.setdefault(name, []).append(ast.dump(node))
    return found


def _list_defined(node: ast.stmt) -> list[str]:
    return [node.name] if isinstance(node, (*FUNCTIONS, ast.ClassDef)) else _list_targets(node)


def _list_targets(node: ast.AST) -> list[str]:
    return [
        part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    ]


def _iter_module_values(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for name in _list_targets(node):
                yield name, node.value


def _is_module(imported: str, stem: str) -> bool:
    """Return whether an imported path means a module, whose project may have its code in a folder such as `src`."""
    return imported == stem or (bool(imported) and stem.endswith(f"/{imported}"))


def _get_stem(path: str) -> str:
    """Return the path of a module without extension, as imports name it."""
    return PurePosixPath(path).with_suffix("").as_posix().removesuffix("/__init__")
