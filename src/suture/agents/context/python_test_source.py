"""Find the source of a failing pytest test: the test, its class, fixtures, helpers and the imports that they use."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from suture.project.python_source.parsing import first_line, parse_module
from suture.project.python_source.statement_edits import bound_names, split_lines

Function = ast.FunctionDef | ast.AsyncFunctionDef
SETUP_METHODS = ("setUp", "setup_method", "setUpClass", "setup_class", "asyncSetUp", "setup")
MAX_HELPER_LINES = 40
"""Maximum lines of a helper, fixture or constant of a test; a longer one is not shown. Chosen by judgement; not
measured."""
MAX_HELPER_DEPTH = 3
"""Depth to which helpers that other helpers call are followed. Chosen by judgement; not measured."""
MAX_TEST_LINES = 60
MAX_TEST_CHARS = 2000
"""Maximum characters of a test that is shown whole; of a longer one, only the failing statement and what it needs are
shown. Chosen by judgement; not measured."""
MAX_TRACED_ASSIGNMENTS = 12
"""Assignments that are followed back from the failing statement."""
MAX_PARAMETERS_CHARS = 45
"""Characters of the beginning of a left-out list of parameters that the note about it quotes."""
MAX_DECORATOR_CHARS = 300
"""Maximum characters of a list of parameters; a longer one is left out, and the failing case is named with its
values."""


@dataclass
class TestSource:
    """The source of a failing test.

    Attributes:
        lines: Path -> numbers of the lines to show, from 1.
        used: Names that the test and its helpers use.
        attributes: Attributes that they read or call.
        calls: Names that are called in the failing statement and in the assignments that it needs, or anywhere in the
            test if that statement is not known.
        imports: Name -> (module, attribute) that the test's file imports; the attribute may be empty.
        notes: What is left out, in words.
    """

    __test__ = False

    lines: dict[str, set[int]] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    assigned: set[str] = field(default_factory=set)
    calls: set[str] = field(default_factory=set)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add_lines(self, path: str, first: int, last: int) -> None:
        """Show the lines from `first` to `last`."""
        self.lines.setdefault(path, set()).update(range(first, last + 1))


def find_python_test(test_id: str, texts: Mapping[str, str], failing_line: int | None) -> TestSource | None:
    """Return the source of a test; `None` if it is not found, as for an example in a docstring.

    Args:
        test_id: Id as pytest writes it: `PATH::CLASS::NAME[CASE]`.
        texts: Path -> text of the project's Python files.
        failing_line: Line of the test's file in which it failed.
    """
    path, _, names = test_id.partition("::")
    chain = names.partition("[")[0].split("::")
    if path not in texts or not names:
        return None
    return _TestReader(texts).read(path, chain, failing_line)


@dataclass(frozen=True)
class _Module:
    """A parsed test file: its lines, and its top-level definitions by name."""

    path: str
    tree: ast.Module
    lines: list[str]

    def find(self, name: str, before: int | None = None) -> ast.stmt | None:
        """Return the last top-level statement that binds a name, before a line if one is given."""
        return next(
            (
                node
                for node in reversed(self.tree.body)
                if name in bound_names(node) and (before is None or node.lineno < before)
            ),
            None,
        )


class _TestReader:
    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._modules: dict[str, _Module | None] = {}
        self._shown: set[tuple[str, int]] = set()
        self._bases: list[ast.ClassDef] = []
        self.source = TestSource()

    def read(self, path: str, chain: Sequence[str], failing_line: int | None) -> TestSource | None:
        module = self._module(path)
        if module is None:
            return None
        found = self._find_function(module, chain)
        if found is None:
            return None
        module, owners, function = found
        for node in module.tree.body:
            self.source.imports |= _imported_names(node, module.path)
        self._show_function(module, owners, function, failing_line)
        self._show_imports()
        return self.source

    def _module(self, path: str) -> _Module | None:
        if path not in self._modules:
            text = self._texts.get(path)
            tree = parse_module(text) if text is not None else None
            lines = split_lines(text) if text is not None else []
            self._modules[path] = _Module(path, tree, lines) if tree is not None else None
        return self._modules[path]

    def _find_function(
        self, module: _Module, chain: Sequence[str]
    ) -> tuple[_Module, list[ast.ClassDef], Function] | None:
        """Return the function of a test with the classes around it; a test may be inherited."""
        owners: list[ast.ClassDef] = []
        body: Sequence[ast.stmt] = module.tree.body
        for name in chain[:-1]:
            owner = next(
                (n for n in _statements(body) if isinstance(n, ast.ClassDef) and n.name == name), None
            )
            if owner is None:
                return None
            owners.append(owner)
            body = owner.body
        if owners:
            found = self._find_in_class(module, owners[-1], chain[-1])
            return (found[0], [*owners[:-1], *found[1]], found[2]) if found is not None else None
        for node in _statements(body):
            if isinstance(node, Function) and node.name == chain[-1]:
                return module, [], node
        return None

    def _find_in_class(
        self, module: _Module, owner: ast.ClassDef, name: str
    ) -> tuple[_Module, list[ast.ClassDef], Function] | None:
        """Return a method of a class or of one of its bases, which may be in other files."""
        for node in _statements(owner.body):
            if isinstance(node, Function) and node.name == name:
                return module, [owner], node
        if owner in self._bases:
            return None
        self._bases.append(owner)
        found = (self._find_in_base(module, base, name) for base in owner.bases)
        return next((result for result in found if result is not None), None)

    def _find_in_base(
        self, module: _Module, base: ast.expr, name: str
    ) -> tuple[_Module, list[ast.ClassDef], Function] | None:
        owner, _, base_name = ast.unparse(base).rpartition(".")
        node = module.find(owner or base_name, before=base.lineno)
        if owner and isinstance(node, ast.Import | ast.ImportFrom):
            target, attribute = _imported_names(node, module.path).get(owner, (owner, ""))
            path = find_module_path(".".join(filter(None, (target, attribute))), self._texts)
            other = self._module(path or "")
            return self._find_function(other, (base_name, name)) if other is not None else None
        if isinstance(node, ast.ClassDef):
            return self._find_in_class(module, node, name)
        if isinstance(node, ast.ImportFrom):
            target, attribute = _imported_names(node, module.path).get(base_name, ("", ""))
            other = self._module(find_module_path(target, self._texts) or "")
            return self._find_function(other, (attribute, name)) if other is not None else None
        return None

    def _show_function(
        self, module: _Module, owners: Sequence[ast.ClassDef], function: Function, failing_line: int | None
    ) -> None:
        for owner in owners:
            self._show_header(module, owner)
        for decorator in function.decorator_list:
            self._show_decorator(module, decorator)
        statement = _find_statement(function, failing_line)
        needed = _find_needed(function, statement)
        self.source.calls = {name for node in needed or [function] for name in _called_names(node)}
        shown = self._show_body(module, function, statement, needed)
        self._shown.add((module.path, function.lineno))
        self._follow(module, owners, function, shown, depth=0)
        for name in SETUP_METHODS if owners else ():
            self._show_method(module, owners, name, depth=0)

    def _show_body(
        self, module: _Module, function: Function, statement: ast.stmt | None, needed: Sequence[ast.stmt]
    ) -> Sequence[ast.AST]:
        """Show the body of a test, and return the parts that are shown; of a long test what the failure needs."""
        first, last = function.lineno, function.end_lineno or function.lineno
        size = sum(map(len, module.lines[first - 1 : last]))
        if statement is None or (last - first < MAX_TEST_LINES and size <= MAX_TEST_CHARS):
            self.source.add_lines(module.path, first, last)
            return [function]
        self.source.add_lines(module.path, first, max(first, first_line(function.body[0]) - 1))
        shown = [node for node in function.body if _is_part_needed(node, statement, needed)]
        for node in shown:
            self.source.add_lines(module.path, first_line(node), node.end_lineno or node.lineno)
        hidden = last - first - sum((node.end_lineno or 0) - first_line(node) + 1 for node in shown)
        if hidden > 0:
            self.source.notes.append(
                f"{hidden} more lines of `{function.name}` are not shown: ask for them with read_file"
            )
        return [function.args, *shown]

    def _show_header(self, module: _Module, owner: ast.ClassDef) -> None:
        self.source.add_lines(module.path, first_line(owner), max(owner.lineno, owner.body[0].lineno - 1))
        if first_line(owner.body[0]) <= owner.lineno:
            return
        # A docstring is not part of the header, and neither are decorators of the first method.
        self.source.lines[module.path] -= set(range(first_line(owner.body[0]), owner.body[0].lineno))

    def _show_decorator(self, module: _Module, decorator: ast.expr) -> None:
        first, last = decorator.lineno, decorator.end_lineno or decorator.lineno
        size = sum(map(len, module.lines[first - 1 : last]))
        if "parametrize" in ast.unparse(decorator)[:60] and size > MAX_DECORATOR_CHARS:
            name = ast.unparse(decorator)[:MAX_PARAMETERS_CHARS]
            self.source.notes.append(f"the cases of `@{name}...` are not shown; the failing one is below")
            return
        self.source.add_lines(module.path, first, last)
        self.source.used |= set(_used_names(decorator))

    def _follow(
        self,
        module: _Module,
        owners: Sequence[ast.ClassDef],
        function: Function,
        shown: Sequence[ast.AST],
        depth: int,
    ) -> None:
        """Show the fixtures, helpers and constants that the shown parts of a function use."""
        names = {name for part in shown for name in _used_names(part)}
        self.source.used |= names
        self.source.attributes |= {
            node.attr for part in shown for node in ast.walk(part) if isinstance(node, ast.Attribute)
        }
        self.source.assigned |= {
            node.attr
            for part in shown
            for node in ast.walk(part)
            if isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and not (isinstance(node.value, ast.Name) and node.value.id == "self")
        }
        if depth >= MAX_HELPER_DEPTH:
            return
        arguments = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
        arguments += [argument.arg for argument in function.args.kwonlyargs]
        for name in (*arguments, *_named_fixtures(function)):
            self._show_fixture(module, owners, name, depth)
        for name in sorted(names):
            self._show_helper(module, name, depth)
        for name in sorted({name for part in shown for name in _own_attributes(part)}):
            self._show_method(module, owners, name, depth)

    def _show_fixture(self, module: _Module, owners: Sequence[ast.ClassDef], name: str, depth: int) -> None:
        folders = [str(folder) for folder in PurePosixPath(module.path).parents]
        conftests = ["conftest.py" if folder == "." else f"{folder}/conftest.py" for folder in folders]
        for owner in owners:
            fixture = _find_fixture(owner.body, name)
            if fixture is not None:
                self._show_definition(module, fixture, depth, owners)
                return
        for path in (module.path, *conftests):
            other = self._module(path)
            fixture = _find_fixture(other.tree.body, name) if other is not None else None
            if other is not None and fixture is not None:
                self._show_definition(other, fixture, depth)
                return

    def _show_helper(self, module: _Module, name: str, depth: int) -> None:
        node = module.find(name)
        if isinstance(node, ast.ImportFrom):
            target, attribute = _imported_names(node, module.path)[name]
            path = find_module_path(target, self._texts)
            other = self._module(path) if path is not None and _is_test_helper(path) else None
            if other is not None and attribute and depth < MAX_HELPER_DEPTH:
                self._show_helper(other, attribute, depth + 1)
        elif isinstance(node, Function | ast.ClassDef | ast.Assign | ast.AnnAssign):
            self._show_definition(module, node, depth)

    def _show_method(self, module: _Module, owners: Sequence[ast.ClassDef], name: str, depth: int) -> None:
        for owner in owners:
            for node in owner.body:
                if name in bound_names(node) and not isinstance(node, ast.ClassDef):
                    self._show_definition(module, node, depth, owners)

    def _show_definition(
        self, module: _Module, node: ast.stmt, depth: int, owners: Sequence[ast.ClassDef] = ()
    ) -> None:
        first, last = first_line(node), node.end_lineno or node.lineno
        if (module.path, node.lineno) in self._shown:
            return
        self._shown.add((module.path, node.lineno))
        if last - first >= MAX_HELPER_LINES:
            name = next(iter(bound_names(node)), "")
            self.source.notes.append(f"{last - first + 1} lines of `{name}` in {module.path} are not shown")
            return
        self.source.add_lines(module.path, first, last)
        if isinstance(node, Function):
            self._follow(module, owners, node, [node], depth + 1)
        else:
            self.source.used |= set(_used_names(node))

    def _show_imports(self) -> None:
        """Show the imports of names that occur in what is shown."""
        for path in list(self.source.lines):
            shown = self._module(path)
            for node in shown.tree.body if shown is not None else ():
                if isinstance(node, ast.Import | ast.ImportFrom) and bound_names(node) & self.source.used:
                    self._show_import(path, node)

    def _show_import(self, path: str, node: ast.Import | ast.ImportFrom) -> None:
        """Show an import; of a long one in parentheses, only the lines of names that are used."""
        self.source.add_lines(path, node.lineno, node.end_lineno or node.lineno)
        used_lines = {
            alias.lineno for alias in node.names if (alias.asname or alias.name) in self.source.used
        }
        unused_lines = {alias.lineno for alias in node.names} - used_lines
        self.source.lines[path] -= unused_lines - {node.lineno, node.end_lineno}


def find_module_path(module: str, paths: Mapping[str, object]) -> str | None:
    """Return the file of a module, whichever folder is on the import path; the shortest one fits best."""
    stem = module.replace(".", "/")
    if not stem:
        return None
    endings = (f"{stem}.py", f"{stem}/__init__.py")
    matches = [path for path in paths for ending in endings if path == ending or path.endswith(f"/{ending}")]
    return min(matches, key=len, default=None)


def _is_test_helper(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return any(part in ("test", "tests", "testing") or part.startswith("test_") for part in parts)


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements, also those inside an `if` or `try`, the last definition of a name first."""
    for node in reversed(body):
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            yield from _statements(node.body)
            yield from _statements(getattr(node, "orelse", []))


def _imported_names(node: ast.stmt, path: str) -> dict[str, tuple[str, str]]:
    """Return name -> (module, attribute) of an import statement; relative modules as absolute ones."""
    if isinstance(node, ast.Import):
        return {(alias.asname or alias.name).partition(".")[0]: (alias.name, "") for alias in node.names}
    if not isinstance(node, ast.ImportFrom):
        return {}
    folders = PurePosixPath(path).parts[: -node.level] if node.level else ()
    module = ".".join((*folders, *filter(None, [node.module])))
    return {alias.asname or alias.name: (module, alias.name) for alias in node.names}


def _find_fixture(body: Sequence[ast.stmt], name: str) -> Function | None:
    for node in body:
        if isinstance(node, Function):
            marks = [ast.unparse(decorator) for decorator in node.decorator_list]
            fixtures = [mark for mark in marks if "fixture" in mark]
            if fixtures and (node.name == name or any(f"name={name!r}" in mark for mark in fixtures)):
                return node
    return None


def _named_fixtures(function: Function) -> list[str]:
    """Return the fixtures that a `usefixtures` mark names."""
    return [
        argument.value
        for decorator in function.decorator_list
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("usefixtures")
        for argument in decorator.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]


def _own_attributes(part: ast.AST) -> set[str]:
    """Return the attributes of `self` and `cls` that a part of a method uses."""
    return {
        node.attr
        for node in ast.walk(part)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in ("self", "cls")
    }


def _find_statement(function: Function, line: int | None) -> ast.stmt | None:
    """Return the innermost statement at a line; a `with` whole, because its body is what should have raised."""
    if line is None:
        return None
    around = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.stmt)
        and node is not function
        and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return max(around, key=lambda node: (node.lineno, -(node.end_lineno or 0)), default=None)


def _find_needed(function: Function, statement: ast.stmt | None) -> list[ast.stmt]:
    """Return a statement, and the assignments before it that its names come from."""
    if statement is None:
        return []
    needed, names = [statement], set(_used_names(statement))
    earlier = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.lineno < statement.lineno
    ]
    for node in sorted(earlier, key=lambda node: -node.lineno):
        bound = bound_names(node) & names
        if bound and len(needed) <= MAX_TRACED_ASSIGNMENTS:
            needed.append(node)
            names = (names - bound) | set(_used_names(node))
    return needed


def _is_part_needed(part: ast.stmt, statement: ast.stmt, needed: Sequence[ast.stmt]) -> bool:
    """Whether a part of a test's body holds what the failing statement needs, or sets something up for it."""
    last = part.end_lineno or part.lineno
    if any(part.lineno <= node.lineno <= last for node in needed):
        return True
    is_check = isinstance(part, ast.Assert) or (
        isinstance(part, ast.Expr) and "assert" in ast.unparse(part)[:30].lower()
    )
    return part.lineno < statement.lineno and not is_check and last - part.lineno < MAX_HELPER_LINES


def _used_names(node: ast.AST) -> Iterator[str]:
    return (part.id for part in ast.walk(node) if isinstance(part, ast.Name))


def _called_names(node: ast.AST) -> Iterator[str]:
    """Yield the names of called functions, of methods without their object."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            if isinstance(part.func, ast.Attribute):
                yield part.func.attr
            elif isinstance(part.func, ast.Name):
                yield part.func.id
