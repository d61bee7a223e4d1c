"""Files that decide the result of a test command are protected, however the command reaches them."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pytest

from requirements import Require
from suture.api import HealOptions, heal
from suture.core.settings import CertificationSettings, PathSettings, RepairSettings, Settings
from suture.errors import UsageError
from suture.loop.intake.heal_task import build_heal_task
from suture.project.test_commands import find_deciding_files, split_command
from suture.project.workspace import is_protected
from suture.sandbox import BubblewrapSandbox

JS = ("src/a.js", "src/index.js", "checks/a.js", "checks/deep/b.js", "checks/index.js", "run.js", "setup.js")
PYTHON = ("app/__init__.py", "app/core.py", "app/testcore.py", "checks/check_it.py", "checks/__main__.py")


def find_deciding(command: tuple[str, ...], paths: tuple[str, ...], **scripts: str) -> set[str]:
    files = dict.fromkeys(paths, b"")
    files["package.json"] = json.dumps({"scripts": scripts}).encode()
    return {*find_deciding_files(command, files, Path("/nowhere"))}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("mocha checks", {"checks/a.js", "checks/deep/b.js", "checks/index.js"}),
        ("nyc mocha './checks/*.js'", {"checks/a.js", "checks/index.js"}),
        ("eslint src && tape 'checks/{a,none}.js'", {"checks/a.js"}),
        ("mocha --require ./setup checks/a", {"setup.js", "checks/a.js"}),
        ("node run", {"run.js"}),
        ("node -r ./setup ./checks --fast src", {"setup.js", "checks/index.js"}),
        ("node --test checks/", {"checks/a.js", "checks/deep/b.js", "checks/index.js"}),
        ("jest a", set()),
        ("eslint src", set()),
    ],
)
def test_files_named_to_a_runner_decide(line: str, expected: set[str]) -> None:
    assert find_deciding(("npm", "test"), JS, test=line) == expected
    assert find_deciding(("sh", "-c", line), JS) == expected


@pytest.mark.parametrize(
    "scripts",
    [
        {"test": "npm run unit", "unit": "node run.js"},
        {"test": "yarn all", "all": "run-s 'unit:*'", "unit:one": "node run.js"},
        {"test": "node --run unit", "unit": "npm test", "preunit": "node run.js"},
    ],
)
def test_nested_package_scripts_are_read(scripts: dict[str, str]) -> None:
    assert find_deciding(("npm", "test"), JS, build="node src/a.js", **scripts) == {"run.js"}


@pytest.mark.parametrize(
    ("command", "script"),
    [
        ("npm test -w packages/a", ""),
        ("npm --prefix packages/a run unit", ""),
        ("npm test", "turbo run unit"),
        ("npm test", "cd packages/a && npm run unit"),
        ("sh -c 'cd packages/a; yarn unit'", ""),
    ],
)
def test_scripts_of_nested_packages_are_read(command: str, script: str) -> None:
    package_scripts = {"test": "npm run unit", "unit": "node check", "build": "node b"}
    files = {
        "package.json": json.dumps({"workspaces": ["packages/*"], "scripts": {"test": script}}).encode(),
        "packages/a/package.json": json.dumps({"scripts": package_scripts}).encode(),
        **dict.fromkeys(("packages/a/check.js", "packages/a/b.js", "check.js", "packages/a/index.js"), b""),
        "node_modules/x/package.json": b'{"scripts": {"test": "node index"}}',
        "node_modules/x/index.js": b"",
    }
    found = find_deciding_files(tuple(shlex.split(command)), files, Path("/nowhere"))

    assert {*found} - {"package.json"} == {"packages/a/check.js"}


@pytest.mark.parametrize(
    ("command", "script", "expected"),
    [
        ("npm --prefix packages/a test", "", "a"),
        ("npm test", "npm --prefix=./packages/a/ run unit", "a"),
        ("npm test", "yarn --cwd packages/a unit && pnpm -C packages/b test", "ab"),
        ("npm test", "npm --prefix packages/a test && ./more.sh", "ab"),
        ("npm test", "npm --prefix packages/a test && npm test --workspaces", "ab"),
        ("npm test", "npm --prefix packages/a test && yarn workspaces run test", "ab"),
        ("npm test", "npm --prefix $WHERE test", "ab"),
        ("npm test", "node all.js", "ab"),
    ],
)
def test_only_the_named_package_is_read(command: str, script: str, expected: str) -> None:
    package_scripts = json.dumps({"scripts": {"test": "npm run unit", "unit": "node check"}}).encode()
    files = {"package.json": json.dumps({"scripts": {"test": script} if script else {}}).encode()}
    for name in "ab":
        files |= {f"packages/{name}/package.json": package_scripts, f"packages/{name}/check.js": b""}
    found = find_deciding_files(tuple(command.split()), files, Path("/nowhere"))
    assert {*found} - {"package.json"} == {f"packages/{name}/check.js" for name in expected}


def test_other_files_beside_usually_named_tests_do_not_decide() -> None:
    assert find_deciding(("mocha", "src"), ("src/a.js", "src/a.spec.js")) == set()
    assert find_deciding(("mocha", "src/**/*.js"), ("src/a.js", "src/a.spec.js")) == set()
    assert find_deciding(("mocha", "src/**/*-check.js"), ("src/a.js", "src/a-check.js")) == {"src/a-check.js"}
    discover_all = ("python", "-m", "unittest", "discover", "-p", "*.py")
    assert find_deciding(discover_all, ("add.py", "test_add.py")) == set()
    assert find_deciding(("mocha", "."), JS) == set()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("python -m unittest", {"app/testcore.py"}),
        ("python -m unittest discover -v", {"app/testcore.py"}),
        (
            "python -m unittest discover -s checks -p 'check_*.py'",
            {"checks/check_it.py", "checks/__main__.py"},
        ),
        ("python -m unittest discover checks", {"checks/check_it.py", "checks/__main__.py"}),
        ("python checks", {"checks/__main__.py"}),
        ("pytest -p checks.check_it app", {"checks/check_it.py"}),
        ("pytest app", set()),
    ],
)
def test_files_that_python_runners_discover_decide(line: str, expected: set[str]) -> None:
    assert find_deciding(("sh", "-c", line), PYTHON) == expected


def test_shell_scripts_and_go_run_are_read() -> None:
    files = {"check.sh": b"set -e\nmocha checks\n", "checks/a.js": b"", "src/a.js": b""}
    assert {*find_deciding_files(("sh", "check.sh"), files, Path("/nowhere"))} == {"check.sh", "checks/a.js"}
    assert find_deciding(("go", "run", "./cmd/check"), ("cmd/check/main.go", "add.go")) == {
        "cmd/check/main.go"
    }


MAKEFILE = b"""
PY ?= python3
CHECKS := checks/run.py
.PHONY: test
all: test
test: unit lint ; sh checks/last.sh
unit: $(CHECKS)
\t@$(PY) \\
\t  $< --fast
lint:
\t-$(MAKE) deep
run:
\t$(PY) app.py
include rules.mk
"""
JUSTFILE = b"""
py := 'python'
test level='1': unit
    {{py}} checks/last.py
unit:
    {{ py }} checks/run.py
run:
    python app.py
"""


@pytest.mark.parametrize(
    ("command", "task_file", "text", "expected"),
    [
        ("make test", "Makefile", MAKEFILE, {"checks/run.py", "checks/last.sh", "checks/deep.py"}),
        ("make", "GNUmakefile", MAKEFILE, {"checks/run.py", "checks/last.sh", "checks/deep.py"}),
        (
            "make -C checks deep",
            "checks/Makefile",
            MAKEFILE.replace(b"rules", b"../rules"),
            {"checks/deep.py"},
        ),
        ("env CI=1 make PY=python unit", "makefile", MAKEFILE, {"checks/run.py"}),
        ("sh -c 'cd . && make unit'", "Makefile", MAKEFILE, {"checks/run.py"}),
        ("just test 2", "justfile", JUSTFILE, {"checks/run.py", "checks/last.py"}),
        ("tox -e py", "tox.ini", b"[testenv]\ncommands =\n  python checks/run.py\n", {"checks/run.py"}),
        ("nox", "noxfile.py", b"def t(s):\n  s.run('python', 'checks/run.py')\n", {"checks/run.py"}),
        (
            "poe unit",
            "pyproject.toml",
            b"[tool.poe.tasks]\nunit = 'python -m checks.run'\n",
            {"checks/run.py"},
        ),
        ("tox", "pyproject.toml", b"[tool.ruff.lint.per-file-ignores]\n'app.py' = ['E']\n", set()),
        ("make test", "Makefile", b"test: test\nA = $(B)\nB = $(A)\n\t$(A)\n", set()),
    ],
)
def test_files_run_by_task_targets_decide(
    command: str, task_file: str, text: bytes, expected: set[str]
) -> None:
    files = dict.fromkeys(("app.py", "checks/run.py", "checks/deep.py", "checks/last.py"), b"")
    deep = b"checks/deep.py" if task_file != "checks/Makefile" else b"deep.py"
    files |= {"checks/last.sh": b"", "rules.mk": b"deep: ; python " + deep, task_file: text}
    found = {*find_deciding_files(tuple(shlex.split(command)), files, Path("/nowhere"))} - {task_file}
    assert found == expected
    assert is_protected(task_file)


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        (
            "pyproject.toml",
            b"[tool.pytest.ini_options]\naddopts = ['-q', '-p', 'tools.plug']\n",
            {"tools/plug.py"},
        ),
        ("pytest.ini", b"[pytest]\naddopts =\n  -q\n  -ptools.plug\ntestpaths = tools\n", {"tools/plug.py"}),
        ("tox.ini", b"[pytest]\naddopts = -q\n[testenv]\ncommands = mkdir -p tools.plug\n", set()),
        (
            "conftest.py",
            b"pytest_plugins = [\n  'tools.plug',\n  'tools.more',\n]\n",
            {"tools/plug.py", "src/tools/more.py"},
        ),
        ("sub/test_a.py", b"pytest_plugins: str = 'tools.plug'\n", {"tools/plug.py"}),
        ("app.py", b"pytest_plugins = 'tools.plug'\n", set()),
    ],
)
def test_pytest_plugins_named_by_configuration_or_tests_decide(
    path: str, text: bytes, expected: set[str]
) -> None:
    files = {**dict.fromkeys(("tools/plug.py", "src/tools/more.py", "tools/code.py"), b""), path: text}
    assert {*find_deciding_files(("pytest",), files, Path("/nowhere"))} == expected
    # The code of a project that is itself a pytest plugin can be repaired.
    files["setup.cfg"] = b"[options.entry_points]\npytest11 = p = tools.plug\n"
    assert {*find_deciding_files(("pytest",), files, Path("/nowhere"))} == set()


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        (
            "jest.config.js",
            "module.exports = { setupFiles: ['<rootDir>/tools/setup.js'] }",
            {"tools/setup.js"},
        ),
        (
            "vitest.config.ts",
            "test: { globals: true, setupFiles: './tools/setup',\n alias: './src/a' }",
            {"tools/setup.js"},
        ),
        ("web/jest.config.js", "globalSetup: require.resolve('../tools/setup')", {"tools/setup.js"}),
        (".mocharc.yml", "require:\n  - ./tools/setup\nspec: checks\n", {"tools/setup.js", "checks/a.js"}),
        (
            ".mocharc.json",
            '{"spec": ["checks/*.js"], "file": "./tools/setup.js"}',
            {"tools/setup.js", "checks/a.js"},
        ),
        (
            "package.json",
            '{"main": "./src/a.js", "jest": {"testEnvironment": "./tools/setup", "preset": "src"}}',
            {"tools/setup.js"},
        ),
        (
            "jest.config.js",
            "moduleNameMapper: { '^a$': '<rootDir>/src/a.js' }, collectCoverageFrom: ['src/**']",
            set(),
        ),
    ],
)
def test_files_loaded_by_runner_configuration_decide(path: str, text: str, expected: set[str]) -> None:
    files = {**dict.fromkeys(("src/a.js", "tools/setup.js", "checks/a.js"), b""), path: text.encode()}
    assert {*find_deciding_files(("npx", "mocha"), files, Path("/nowhere"))} - {path} == expected
    assert is_protected(path)


def test_a_file_named_tests_py_is_protected() -> None:
    assert is_protected("shop/tests.py")
    assert not is_protected("shop/contests.py")


@pytest.mark.heavy
async def test_a_test_named_only_by_a_nested_script_is_not_changed(
    tmp_path: Path, sandbox: BubblewrapSandbox, require: Require
) -> None:
    """The exit status alone is the verdict, so a change of the test would pass."""
    require("npm", shutil.which("npm") is not None, "it is not on PATH")
    project = tmp_path / "project"
    project.mkdir()
    scripts = {"test": "npm run --silent unit", "unit": "node check"}
    (project / "package.json").write_text(json.dumps({"scripts": scripts}))
    (project / "twice.js").write_text("exports.twice = (n) => process.env.NEVER + n;\n")
    (project / "check.js").write_text("if (require('./twice').twice(4) !== 9) process.exit(3);\n")
    task, _ = build_heal_task(project)

    assert is_protected("check.js", task.protected)
    settings = Settings.model_validate({"model": {"name": "none"}}).model_copy(
        update={
            "paths": PathSettings(home=tmp_path / "home", cache=tmp_path / "no-weights"),
            "certification": CertificationSettings(seconds=0),
            "repair": RepairSettings(seconds=20),
        }
    )
    result = await heal(project, HealOptions(settings=settings, sandbox=sandbox))
    assert result.candidate is None or "check.js" not in result.candidate.files


def test_modules_of_rust_that_only_tests_compile_decide() -> None:
    files = dict.fromkeys(("src/fixtures.rs", "src/shop/data/mod.rs", "src/cart.rs", "src/util.rs"), b"")
    files["src/lib.rs"] = b"mod cart;\nmod util;\n#[cfg(test)]\nmod fixtures;\n"
    files["src/shop.rs"] = b"#[cfg(any(test, fuzzing))] pub(crate) mod data;\n"
    deciding = find_deciding_files(("cargo", "test"), files, Path("/nowhere"))
    assert sorted(deciding) == ["src/fixtures.rs", "src/shop/data/mod.rs"]


@pytest.mark.parametrize("line", ["&& pytest", "pytest &&", "ruff check . && && pytest", "pytest && "])
def test_a_command_that_is_missing_beside_and_is_refused(line: str) -> None:
    with pytest.raises(UsageError, match="lacks a command"):
        split_command(line)


def test_commands_joined_by_and_need_a_shell_and_a_quoted_and_does_not() -> None:
    assert split_command("ruff check . && pytest") == ("sh", "-c", "ruff check . && pytest")
    assert split_command("pytest -k 'a && b'") == ("pytest", "-k", "a && b")
