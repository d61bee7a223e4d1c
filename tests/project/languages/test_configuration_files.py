"""The files that the configuration of linters and type checkers names decide what these report."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from project_files import write_files
from suture.loop.intake.heal_task import build_heal_task
from suture.project.test_commands import find_deciding_tool_files
from suture.project.workspace import is_protected

HOOK = "repos:\n- repo: local\n  hooks:\n  - id: x\n    name: x\n    language: system\n    entry: "


@pytest.mark.parametrize(
    ("command", "configuration", "text", "deciding"),
    [
        ("tsc --noEmit", "tsconfig.json", '{"extends": "./config/base.json"}', {"config/base.json"}),
        ("tsc --noEmit", "web/tsconfig.json", '{"extends": ["../config/base"]}', {"config/base.json"}),
        ("eslint .", "eslint.config.js", "import rules from './lint/rules.js';", {"lint/rules.js", "lint/own.js"}),
        ("eslint .", ".eslintrc.cjs", "const r = require('./lint/rules')", {"lint/rules.js", "lint/own.js"}),
        ("eslint .", ".eslintrc.yml", "extends:\n  - ./lint/own.js\nrules: {}\n", {"lint/own.js"}),
        ("eslint --rulesdir lint src", "package.json", "{}", {"lint/rules.js", "lint/own.js"}),
        ("mypy src", "mypy.ini", "[mypy]\nplugins =\n  mypy_plugin.py,\n  x\nfiles = src/a.py\n", {"mypy_plugin.py"}),
        ("mypy src", "pyproject.toml", "[tool.mypy]\nplugins = ['mypy_plugin:load']\n", {"mypy_plugin.py"}),
        ("flake8", ".flake8", "[flake8:local-plugins]\nextension =\n  X = tools.check:Run\n", {"tools/check.py"}),
        ("ruff check --config config/own.toml src/a.py", "setup.cfg", "", {"config/own.toml"}),
        ("pre-commit run -a", ".pre-commit-config.yaml", f"{HOOK}python tools/check.py\n", {"tools/check.py"}),
        ("pre-commit run", ".pre-commit-config.yaml", HOOK + "sh\n    args: [tools/check.py]\n", {"tools/check.py"}),
        ("pre-commit run", ".pre-commit-config.yaml", f"{HOOK}ruff check src/a.py\n", set()),
        ("pre-commit run", ".pre-commit-config.yaml", "repos: [\n", set()),
        ("ruff check src/a.py", ".pre-commit-config.yaml", f"{HOOK}python tools/check.py\n", set()),
        ("mypy src/a.py", "pyproject.toml", "[project.scripts]\na = 'src.a:main'\n", set()),
    ],
)  # fmt: skip
def test_the_files_that_a_configuration_names_decide(
    command: str, configuration: str, text: str, deciding: set[str]
) -> None:
    paths = (
        "config/base.json",
        "config/own.toml",
        "mypy_plugin.py",
        "tools/check.py",
        "lint/own.js",
        "src/a.py",
    )
    files = {**dict.fromkeys(paths, b""), "lint/rules.js": b"require('./own')", configuration: text.encode()}
    assert {*find_deciding_tool_files((shlex.split(command),), files, Path("/nowhere"))} == deciding


def test_no_candidate_may_write_the_program_of_a_local_hook(tmp_path: Path) -> None:
    files = {
        ".pre-commit-config.yaml": f"{HOOK}python tools/check.py\n",
        "tools/check.py": "",
        "a.py": "x = 1\n",
    }
    task, _ = build_heal_task(write_files(tmp_path, files), test="pre-commit run --all-files")
    assert [path for path in ("tools/check.py", "a.py") if is_protected(path, task.protected)] == [
        "tools/check.py"
    ]


def test_tests_beside_a_linter_of_another_language_decide_about_their_own(tmp_path: Path) -> None:
    files = {
        "a.py": "x = 1\n",
        "test_a.py": "def test(): pass\n",
        "go.mod": "module m\n",
        "m.go": "package m\n",
    }
    task, _ = build_heal_task(write_files(tmp_path, files), test="go vet ./... && pytest")
    assert (task.language, task.tools) == ("python", ())
    assert task.test_command == ("sh", "-c", "go vet ./... && pytest")
