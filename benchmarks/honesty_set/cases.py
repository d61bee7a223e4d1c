"""The small projects with one bug each, and what a cheat can know of them: the examples in their tests."""

from __future__ import annotations

import ast
import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

PROJECTS = Path(__file__).parent / "projects"

__all__ = ["PROJECTS", "BuggyProject", "Example", "load_buggy_projects", "make_stub"]


@dataclass(frozen=True, kw_only=True)
class Example:
    """One call in a test, as source text.

    Attributes:
        arguments: The arguments between the parentheses.
        expected: The expected result.
    """

    arguments: str
    expected: str


@dataclass(frozen=True, kw_only=True)
class BuggyProject:
    """A project in which one function has a bug.

    Attributes:
        project: Name of the project.
        path: Path of the file with the bug.
        function: Name of the function with the bug.
        files: Path -> text of all files, with the bug.
        reference: Text of the file without the bug.
    """

    project: str
    path: str
    function: str
    files: Mapping[str, str]
    reference: str

    @property
    def source(self) -> str:
        """The text of the file with the bug."""
        return self.files[self.path]

    @property
    def module(self) -> str:
        """The dotted name under which the tests import the file."""
        return self.path.removeprefix("src/").removesuffix(".py").replace("/", ".")

    @cached_property
    def test_path(self) -> str:
        """Path of the file with the function's test; the first one if no test is named after the function."""
        paths = [path for path in self.files if Path(path).name.startswith("test_")]
        return max(paths, key=lambda path: f"def test_{self.function}(" in self.files[path])

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Names of the function's parameters."""
        return tuple(argument.arg for argument in self.find_function().args.args)

    def find_function(self) -> ast.FunctionDef:
        """Return the function with the bug."""
        for node in ast.parse(self.source).body:
            if isinstance(node, ast.FunctionDef) and node.name == self.function:
                return node
        raise AssertionError(f"{self.path} has no {self.function}")

    @cached_property
    def examples(self) -> tuple[Example, ...]:
        """The calls of the function in the tests whose results are literal, and the cases in `cases.json`."""
        found = [*_find_examples(ast.parse(self.files[self.test_path]), self.function)]
        for case in json.loads(self.files.get("cases.json", "{}")).get(self.function, ()):
            found.append(
                Example(arguments=", ".join(map(repr, case["arguments"])), expected=repr(case["expected"]))
            )
        return tuple(found)


def make_stub(case: BuggyProject) -> BuggyProject:
    """Return the project with nothing but the head of the function with the bug."""
    rows, function = case.source.split("\n"), case.find_function()
    rows[function.body[0].lineno - 1 : function.end_lineno] = ["    raise NotImplementedError"]
    return replace(case, files={**case.files, case.path: "\n".join(rows)})


def _find_examples(tree: ast.AST, function: str) -> Iterator[Example]:
    for node in ast.walk(tree):
        sides: tuple[ast.expr, ast.expr] | None = None
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq):
            sides = (node.left, node.comparators[0])
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("self.assertEqual", "math.isclose"):
            sides = (node.args[0], node.args[1])
        if sides is None or not isinstance(call := sides[0], ast.Call):
            continue
        if isinstance(call.func, ast.Name) and call.func.id == function:
            expected = sides[1]
            if isinstance(expected, ast.Call) and ast.unparse(expected.func) == "pytest.approx":
                expected = expected.args[0]
            try:
                ast.literal_eval(expected)
                for argument in call.args:
                    ast.literal_eval(argument)
            except ValueError:
                continue
            yield Example(arguments=", ".join(map(ast.unparse, call.args)), expected=ast.unparse(expected))


def load_buggy_projects() -> list[BuggyProject]:
    """Return one project for each bug in `bugs.toml`."""
    loaded = []
    for project, bugs in tomllib.loads((PROJECTS / "bugs.toml").read_text("utf-8")).items():
        folder = PROJECTS / project
        texts = {
            path.relative_to(folder).as_posix(): path.read_text("utf-8")
            for path in sorted(folder.rglob("*"))
            if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
        }
        for place, (right, wrong) in bugs.items():
            path, function = place.split("::")
            if texts[path].count(right) != 1:
                raise AssertionError(f"{project}/{place}: {right!r} must occur once")
            files = {**texts, path: texts[path].replace(right, wrong)}
            loaded.append(
                BuggyProject(
                    project=project, path=path, function=function, files=files, reference=texts[path]
                )
            )
    return loaded
