"""Detecting the test command of a project, and the language of a command."""

from __future__ import annotations

import json

import pytest

from suture.errors import UsageError
from suture.project.languages import (
    detect_command,
    detect_file_languages,
    detect_language,
    find_started_scripts,
)

CASE = b"import unittest\n\nclass TestA(unittest.TestCase):\n    def test_a(self): pass\n"
PLAIN = b"def test_a(): pass\n"
NPM = b'{"scripts": {"pretest": "node build.js", "test": "node check.js", "lint": "eslint"}}'
PYTEST = "python -m pytest -q"
GO = {"go.mod": b"module m\n", "a.go": b"", "a_test.go": b""}


@pytest.mark.parametrize(
    ("files", "has_pytest", "command"),
    [
        ({"test_a.py": PLAIN}, False, PYTEST),
        ({"test_a.py": CASE}, True, PYTEST),
        ({"test_a.py": CASE}, False, "python -m unittest discover"),
        ({"tests/test_a.py": CASE}, False, "python -m unittest discover -s tests"),
        (
            {"tests/test_a.py": CASE, "tests/__init__.py": b""},
            False,
            "python -m unittest discover -s tests -t .",
        ),
        ({"tests/test_a.py": CASE, "test_b.py": CASE}, False, "python -m unittest discover"),
        ({"test_a.py": CASE, "test_b.py": PLAIN}, False, PYTEST),
        ({"test_a.py": CASE, "test_b.py": b"import pytest\n"}, False, PYTEST),
        ({"test_a.py": CASE, "pytest.ini": b""}, False, PYTEST),
        ({"test_a.py": CASE, "pyproject.toml": b"[tool.pytest.ini_options]\n"}, False, PYTEST),
        ({"test_a.py": CASE, "pyproject.toml": b"[project]\n"}, False, "python -m unittest discover"),
        ({"tests.py": CASE}, True, f"{PYTEST} tests.py"),
        ({"tests.py": CASE}, False, "python -m unittest tests.py"),
        ({"tests.py": PLAIN, "b/test.py": CASE, "tests/help.py": b""}, False, f"{PYTEST} b/test.py tests.py"),
        ({"tests.py": CASE, "test_a.py": PLAIN}, True, PYTEST),
        ({"tests/help.py": b""}, True, PYTEST),
        ({"a.js": b"", "package.json": NPM}, True, "npm test"),
        (GO, True, "go test ./..."),
        ({"go.mod": b"module m\n", "a.go": b""}, True, None),
        (
            {"package.json": b'{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'},
            True,
            None,
        ),
        ({"package.json": b"[1"}, True, None),
        ({"package.json": b'{"scripts": []}'}, True, None),
        ({"a.py": b""}, True, None),
    ],
)
def test_the_test_command_of_a_project_is_detected(
    files: dict[str, bytes], has_pytest: bool, command: str | None
) -> None:
    tests = [name for name in files if name.endswith(".py") and "test" in name]
    detected = detect_command(files, tests, lambda: has_pytest)
    assert (detected and " ".join(detected.command)) == command
    assert detected is None or detected.why


@pytest.mark.parametrize(
    "files",
    [{**GO, "package.json": NPM}, {**GO, "test_a.py": PLAIN}, {"package.json": NPM, "pytest.ini": b""}],
)
def test_a_project_in_two_languages_needs_a_choice(files: dict[str, bytes]) -> None:
    with pytest.raises(UsageError, match="more than one language") as raised:
        detect_command(files, [name for name in files if name.endswith(".py")], lambda: True)
    assert "--test" in raised.value.remedy


@pytest.mark.parametrize(
    ("command", "language"),
    [
        ("npm test", "javascript"),
        ("npx jest lib", "javascript"),
        ("env CI=1 node --test", "javascript"),
        ("go test ./...", "go"),
        ("sh -c 'cd web && go test'", "go"),
        ("python3.12 -m pytest", "python"),
        ("/opt/x/bin/pytest -q", "python"),
        ("tox -e go", "python"),
        ("make test", None),
    ],
)
def test_a_command_reveals_its_language(command: str, language: str | None) -> None:
    assert detect_language(command.split()) == language
    assert detect_language([command]) == language


def test_started_scripts_include_pre_scripts_only_of_their_script() -> None:
    files = {"package.json": NPM}
    assert find_started_scripts(("npm", "test"), files) == ("node build.js", "node check.js")
    assert find_started_scripts(("npm", "run", "lint"), files)[-1] == "eslint"
    assert find_started_scripts(("node", "--test"), files) == ()


def test_started_scripts_include_scripts_started_by_scripts() -> None:
    scripts = {"test": "c8 --include index.js npm run unit", "unit": "tape test.js", "all": "npm test && x"}
    files = {"package.json": json.dumps({"scripts": scripts}).encode()}
    assert find_started_scripts(("npm", "run", "unit"), files) == ("tape test.js",)
    assert find_started_scripts(("npm", "run", "all"), files) == (scripts["test"], scripts["all"])
    assert find_started_scripts(("npm", "test"), files) == (scripts["test"],)


def test_languages_are_detected_by_file_names() -> None:
    assert detect_file_languages(["a.go", "b.mjs", "c.txt"]) == ("javascript", "go")
