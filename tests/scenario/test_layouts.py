"""Projects laid out in many ways: the same tests fail in the sandbox as for the user (see docs/layouts.md)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from project_files import write_files
from requirements import Require
from suture.core.records import Candidate
from suture.core.settings import SandboxSettings
from suture.judge import check_candidate, prepare_suite
from suture.loop.intake.heal_task import build_heal_task
from suture.sandbox import Sandbox, discover_programs

pytestmark = [pytest.mark.timeout(300), pytest.mark.heavy]
CODE = "def half(n):\n    return n / 3\n"
TEST = (
    "from {module} import half\n\n\ndef test_half():\n    assert half(6) == 3\n\n\n"
    "def test_zero():\n    assert half(0) == 0\n"
)
PLAIN = TEST.format(module="parts")
UNITTEST = (
    "import unittest\nfrom parts import half\n\n\nclass HalfTest(unittest.TestCase):\n    def test_half(self):\n"
    "        self.assertEqual(half(6), 3)\n\n    def test_zero(self):\n        self.assertEqual(half(0), 0)\n"
)
SCALED = "import os\n\n\ndef half(n):\n    return n * int(os.environ['SCALE']) / 3\n"
JS_TEST = (
    "const test = require('node:test');\nconst assert = require('node:assert');\n"
    "const {{ half }} = require('{path}');\n"
    "test('half', () => assert.strictEqual(half(6), 3));\ntest('zero', () => assert.strictEqual(half(0), 0));\n"
)
JS_CODE = "exports.half = (n) => n / 3;\n"
GO_CODE = "package parts\n\nfunc Half(n int) int {\n\treturn n / 3\n}\n"
GO_TEST = (
    'package parts\n\nimport "testing"\n\n'
    'func TestHalf(t *testing.T) {\n\tif Half(6) != 3 {\n\t\tt.Fatal("half")\n\t}\n}\n\n'
    'func TestZero(t *testing.T) {\n\tif Half(0) != 0 {\n\t\tt.Fatal("zero")\n\t}\n}\n'
)
BASE = {"parts.py": CODE, "test_parts.py": PLAIN}


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A project with one failing and one passing test.

    Attributes:
        files: Path -> text.
        fails: Ids of the tests that fail for the user.
        command: The user's test command; empty to let Suture find it.
        folder: The folder that the user is in.
        links: Path of a link -> its target.
        tool: A program that the test needs.
    """

    files: Mapping[str, str]
    fails: tuple[str, ...] = ("test_parts.py::test_half",)
    command: str = ""
    folder: str = ""
    links: Mapping[str, str] = field(default_factory=dict)
    tool: str = ""


LAYOUTS = {
    "make": Layout(files={**BASE, "Makefile": "test:\n\t@echo go\n\tpython -m pytest -q\n"}, command="make test"),
    "make with a variable": Layout(
        files={**BASE, "parts.py": SCALED, "Makefile": "test:\n\tSCALE=1 python -m pytest -q\n"}, command="make test"
    ),
    "just": Layout(files={**BASE, "justfile": "check:\n    pytest -q\n"}, command="just check"),
    "tox": Layout(
        files={**BASE, "tox.ini": "[testenv]\ndeps = pytest\ncommands = pytest {posargs}\n"}, command="tox -e py"
    ),
    "tox in pyproject": Layout(
        files={**BASE, "pyproject.toml": '[tool.tox.env_run_base]\ncommands = [["pytest", "-q"]]\n'}, command="tox"
    ),
    "nox": Layout(
        files={
            **BASE,
            "noxfile.py": "import nox\n\n@nox.session\ndef tests(session):\n    session.run('pytest', '-q')\n",
        },
        command="nox",
    ),
    "shell script": Layout(
        files={f"app/{path}": text for path, text in BASE.items()} | {"ci/run": "set -e\ncd app\nexec pytest \"$@\"\n"},
        command="sh ci/run",
        fails=("app/test_parts.py::test_half",),
    ),
    "variable before the command": Layout(
        files={**BASE, "parts.py": SCALED}, command="SCALE=1 python -m pytest -q"
    ),
    "poetry": Layout(files=BASE, command="poetry run pytest -q"),
    "coverage": Layout(files=BASE, command="coverage run --branch -m pytest -q"),
    "poe": Layout(
        files={**BASE, "pyproject.toml": '[tool.poe.tasks]\ntest = "pytest -q"\n'}, command="poe test"
    ),
    "conftest above": Layout(
        files={
            ".git/HEAD": "",
            "pytest.ini": "[pytest]\n",
            "conftest.py": "import pytest\n\n@pytest.fixture\ndef six():\n    return 6\n",
            "app/parts.py": CODE,
            "app/test_parts.py": "from parts import half\n\ndef test_half(six):\n    assert half(six) == 3\n",
        },
        folder="app",
        fails=("app/test_parts.py::test_half",),
    ),
    "configuration above": Layout(
        files={
            ".git/HEAD": "",
            "pyproject.toml": '[tool.pytest.ini_options]\npython_files = ["check_*.py"]\n',
            "libs/app/parts.py": CODE,
            "libs/app/check_parts.py": PLAIN,
        },
        folder="libs/app",
        command="python -m pytest -q",
        fails=("libs/app/check_parts.py::test_half",),
    ),
    "sibling folders": Layout(
        files={
            ".git/HEAD": "",
            "pytest.ini": "[pytest]\n",
            "conftest.py": "import pathlib, sys\n\nsys.path.insert(0, str(pathlib.Path(__file__).parent / 'lib'))\n",
            "lib/parts.py": CODE,
            "app/test_parts.py": PLAIN,
            "app/more.py": "one = 1\n",
        },
        folder="app",
        fails=("app/test_parts.py::test_half",),
    ),
    "data beside the tests of a folder": Layout(
        files={
            ".git/HEAD": "",
            "pytest.ini": "[pytest]\n",
            "app/parts.py": CODE,
            "app/input.txt": "6",
            "app/test_parts.py": "from parts import half\n\ndef test_half():\n"
            "    assert half(int(open('input.txt').read())) == 3\n",
        },
        folder="app",
        fails=("app/test_parts.py::test_half",),
    ),
    "link to a folder": Layout(
        files={"code/parts.py": CODE, "tests/test_parts.py": PLAIN, "pytest.ini": "[pytest]\npythonpath = lib\n"},
        links={"lib": "code"},
        fails=("tests/test_parts.py::test_half",),
    ),
    "link to a file": Layout(
        files={"code/parts.py": CODE, "test_parts.py": PLAIN}, links={"parts.py": "code/parts.py"}
    ),
    "src": Layout(
        files={
            "src/app/__init__.py": "",
            "src/app/parts.py": CODE,
            "tests/test_parts.py": TEST.format(module="app.parts"),
            "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["src"]\n',
        },
        fails=("tests/test_parts.py::test_half",),
    ),
    "tests inside the package": Layout(
        files={
            "app/__init__.py": "",
            "app/parts.py": CODE,
            "app/tests/__init__.py": "",
            "app/tests/test_parts.py": TEST.format(module="..parts"),
        },
        fails=("app/tests/test_parts.py::test_half",),
    ),
    "namespace package": Layout(
        files={"org/app/parts.py": CODE, "test_parts.py": TEST.format(module="org.app.parts")}
    ),
    "importlib mode": Layout(
        files={
            "parts.py": CODE,
            "a/test_parts.py": PLAIN,
            "b/test_parts.py": "def test_other():\n    pass\n",
            "pytest.ini": "[pytest]\naddopts = --import-mode=importlib\npythonpath = .\n",
        },
        fails=("a/test_parts.py::test_half",),
    ),
    "tests.py": Layout(files={"parts.py": CODE, "tests.py": PLAIN}, fails=("tests.py::test_half",)),
    "code and tests in one file": Layout(files={"test_parts.py": CODE + PLAIN.partition("\n")[2]}),
    "doctest": Layout(
        files={"parts.py": 'def half(n):\n    """\n    >>> half(6)\n    3.0\n    """\n    return n / 3\n'},
        command="pytest --doctest-modules",
        fails=("parts.py::parts.half",),
    ),
    "unittest": Layout(
        files={"parts.py": CODE, "test_parts.py": UNITTEST},
        command="python -m unittest -v",
        fails=("python -m unittest -v",),
    ),
    "make that also checks style": Layout(
        files={**BASE, "Makefile": "all: style test\nstyle:\n\tpython style.py\ntest:\n\tpython -m pytest -q\n",
               "style.py": "print('fine')\n"},
        command="make all",
        fails=("make all",),
    ),
    "node": Layout(
        files={
            "package.json": '{"scripts": {"test": "node --test"}}',
            "parts.js": JS_CODE,
            "parts.test.js": JS_TEST.format(path="./parts"),
        },
        fails=("parts.test.js::half",),
        tool="npm",
    ),
    "make that runs node": Layout(
        files={"Makefile": "t:\n\tnode --test\n", "parts.js": JS_CODE, "parts.test.js": JS_TEST.format(path="./parts")},
        command="make t",
        fails=("parts.test.js::half",),
        tool="node",
    ),
    "package of an npm workspace": Layout(
        files={
            ".git/HEAD": "",
            "package.json": '{"workspaces": ["libs/*"]}',
            "libs/one/package.json": '{"name": "one", "main": "parts.js"}',
            "libs/one/parts.js": JS_CODE,
            "libs/two/package.json": '{"name": "two", "scripts": {"test": "node --test"}}',
            "libs/two/other.js": "exports.one = 1;\n",
            "libs/two/parts.test.js": JS_TEST.format(path="../one/parts"),
        },
        folder="libs/two",
        command="node --test",
        fails=("libs/two/parts.test.js::half",),
        tool="node",
    ),
    "package of an npm workspace by name": Layout(
        files={
            "package.json": '{"workspaces": ["libs/*"]}',
            "libs/one/package.json": '{"name": "@all/one", "main": "parts.js"}',
            "libs/one/parts.js": JS_CODE,
            "libs/two/package.json": '{"name": "two", "scripts": {"test": "node --test"}}',
            "libs/two/parts.test.js": JS_TEST.format(path="@all/one"),
        },
        command="npm test --workspace two",
        fails=("libs/two/parts.test.js::half",),
        tool="npm",
    ),
    "go": Layout(
        files={"go.mod": "module parts\n\ngo 1.20\n", "parts.go": GO_CODE, "parts_test.go": GO_TEST},
        fails=(".::TestHalf",),
        tool="go",
    ),
    "folder of a go module": Layout(
        files={
            ".git/HEAD": "",
            "go.mod": "module all\n\ngo 1.20\n",
            "parts/parts.go": GO_CODE,
            "parts/parts_test.go": GO_TEST,
        },
        folder="parts",
        fails=("parts::TestHalf",),
        tool="go",
    ),
    "go workspace": Layout(
        files={
            ".git/HEAD": "",
            "go.work": "go 1.20\n\nuse (\n\t./one\n\t./two\n)\n",
            "one/go.mod": "module example.org/one\n\ngo 1.20\n",
            "one/one.go": "package one\n\nfunc Third(n int) int {\n\treturn n / 3\n}\n",
            "two/go.mod": "module example.org/two\n\ngo 1.20\n",
            "two/parts.go": 'package parts\n\nimport "example.org/one"\n\n'
            "func Half(n int) int {\n\treturn one.Third(n)\n}\n",
            "two/parts_test.go": GO_TEST,
        },
        folder="two",
        fails=("two::TestHalf",),
        tool="go",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYOUTS)
async def test_the_same_tests_fail_as_for_the_user(
    name: str, tmp_path: Path, sandbox: Sandbox, require: Require
) -> None:
    layout = LAYOUTS[name]
    if layout.tool:
        require(layout.tool, shutil.which(layout.tool) is not None, "it is not installed")
    write_files(tmp_path, layout.files)
    for link, target in layout.links.items():
        (tmp_path / link).symlink_to(target)
    task, snapshot = build_heal_task(tmp_path / layout.folder, test=layout.command or None)
    programs = discover_programs(snapshot.root, os.environ, task.language)
    suite = await prepare_suite(task, sandbox, SandboxSettings(), programs, run=True)
    base = await check_candidate(Candidate(files={}, origin="user"), suite)
    assert base.failed == set(layout.fails)
