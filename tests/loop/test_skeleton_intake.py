"""A skeleton is added only if the user's test can pass with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from suture.core.records import Language, ProjectKind
from suture.loop.intake.project_skeleton import add_skeleton
from suture.loop.intake.project_task import ProjectRequest, add_install_section, build_project_task
from suture.project.languages import LANGUAGES

PYTHON_TEST = "{}\n\n\ndef test_f():\n    assert True\n"


def has_skeleton(kind: ProjectKind, language: Language, test: Path) -> bool:
    task = build_project_task("It is called todo.", ProjectRequest(kind=kind, language=language, test=test))
    extended = add_skeleton(task)
    assert extended.project is not None
    return bool(extended.project.skeleton_file)


@pytest.mark.parametrize(
    ("kind", "imports", "expected"),
    [
        ("library", "from todo import f", True),
        ("library", "from todo.core import f", False),
        ("library", "from lib.core import f", False),
        ("cli_tool", "import json\nimport pytest\nfrom todo.commands import add", True),
        ("cli_tool", "from todo import commands, store", True),
        ("cli_tool", "import todo.__main__\nfrom todo.store import load", True),
        ("cli_tool", "import todo", True),
        ("cli_tool", "import todo.core", False),
        ("cli_tool", "from todo import add", False),
        ("cli_tool", "from todo.store import Database", False),
    ],
)
def test_a_python_test_imports_only_what_the_skeleton_has(
    kind: ProjectKind, imports: str, expected: bool, tmp_path: Path
) -> None:
    test = tmp_path / "test_given.py"
    test.write_text(PYTHON_TEST.format(imports))

    assert has_skeleton(kind, "python", test) is expected


@pytest.mark.parametrize(("module", "expected"), [("commands", True), ("index.js", True), ("core", False)])
def test_a_javascript_test_imports_only_what_the_skeleton_has(
    module: str, expected: bool, tmp_path: Path
) -> None:
    test = tmp_path / "given.test.js"
    test.write_text(f'const {"{ f }"} = require("../src/{module}");\nrequire("node:test")("f", () => f());\n')

    assert has_skeleton("cli_tool", "javascript", test) is expected


def test_go_runs_the_tests_of_all_files() -> None:
    task = build_project_task("It is called todo.", ProjectRequest(kind="cli_tool", language="go"))
    extended = add_skeleton(task)

    assert extended.test_command == ("go", "test", "./...")
    assert "todo_test.go" in extended.files


@pytest.mark.parametrize(
    ("kind", "source", "expected"),
    [
        ("library", "package todo\n\nfunc TestAdd(t *testing.T) {}\n", True),
        ("library", "package shop\n", False),
        ("library", "package todo_test\n", False),
        ("library", "package todo\n\nfunc TestThereIsAFunctionOrType(t *testing.T) {}\n", False),
        ("library", "package todo\n\nfunc parser() {}\n", False),  # a file of the skeleton imports go/parser
        (
            "cli_tool",
            'package main\n\nimport "testing"\n\nfunc init() {}\n\nvar x = run(nil, nil, nil)\n',
            True,
        ),
        ("cli_tool", "package main\n\nvar (\n\tx    int\n\tsave = 1\n)\n", False),
        ("cli_tool", 'package main\n\nimport save "testing"\n', False),
        ("cli_tool", "package main\n\ntype Command struct{}\n", False),
    ],
)
def test_a_go_test_compiles_beside_the_skeleton(
    kind: ProjectKind, source: str, expected: bool, tmp_path: Path
) -> None:
    test = tmp_path / "given_test.go"
    test.write_text(source)

    assert has_skeleton(kind, "go", test) is expected


def test_a_go_test_of_the_same_name_replaces_that_of_the_skeleton(tmp_path: Path) -> None:
    test = tmp_path / "todo_test.go"
    test.write_text("package main\n\nfunc TestThereIsACommand(t *testing.T) {}\n")

    assert has_skeleton("cli_tool", "go", test)


@pytest.mark.parametrize("name", ["type", "documentation", "sync_test", "sync_windows", "sync_linux_arm64"])
def test_a_go_project_gets_no_name_that_the_compiler_refuses_or_skips(name: str, tmp_path: Path) -> None:
    task = build_project_task("Sort.", ProjectRequest(kind="library", language="go", folder=tmp_path / name))
    python_task = build_project_task("Sort.", ProjectRequest(kind="library", folder=tmp_path / name))

    assert task.module == "library.go"
    assert name in python_task.module


@pytest.mark.parametrize(
    ("kind", "language", "steps"),
    [
        (
            "web_app",
            "python",
            [
                "python -m pip install -r requirements.txt",
                "PORT=8000 python -m todo",
                "python -m pip install pytest",
                "python -m pytest -q",
            ],
        ),
        ("library", "python", ["python -m pip install pytest", "python -m pytest -q"]),
        ("web_app", "typescript", ["npm install", "PORT=8000 npx tsx src/index.ts", "npm test"]),
        ("web_app", "javascript", ["PORT=8000 node src/index.js", "node --test"]),
    ],
)
def test_the_readme_says_how_to_install_what_the_project_needs(
    kind: ProjectKind, language: Language, steps: list[str]
) -> None:
    statement = "A REST API. It is called todo."
    task = add_skeleton(build_project_task(statement, ProjectRequest(kind=kind, language=language)))
    readme = task.files["README.md"].decode()
    assert [line.strip() for line in readme.splitlines() if line.startswith("    ")] == steps
    # A package that the model asks for later adds no second section.
    with_section = add_install_section(readme, LANGUAGES[language].layout)
    assert add_install_section(with_section, LANGUAGES[language].layout) == with_section
    assert with_section.count("## Install") == 1
