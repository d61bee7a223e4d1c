"""What decides what a test command says is protected, however the command comes to it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from requirements import Require
from suture.api import heal
from suture.sandbox import BubblewrapSandbox
from suture.settings import PathSettings, ProofSettings, RepairSettings, Settings
from suture.tasks.building import heal_task
from suture.tasks.commands import files_deciding
from suture.workspace import is_protected

JS = ("src/a.js", "src/index.js", "checks/a.js", "checks/deep/b.js", "checks/index.js", "run.js", "setup.js")
PYTHON = ("app/__init__.py", "app/core.py", "app/testcore.py", "checks/check_it.py", "checks/__main__.py")


def deciding(command: tuple[str, ...], paths: tuple[str, ...], **scripts: str) -> set[str]:
    files = dict.fromkeys(paths, b"")
    files["package.json"] = json.dumps({"scripts": scripts}).encode()
    return {*files_deciding(command, files, Path("/nowhere"))}


@pytest.mark.parametrize(
    ("line", "decides"),
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
def test_what_a_runner_is_given_decides(line: str, decides: set[str]) -> None:
    assert deciding(("npm", "test"), JS, test=line) == decides
    assert deciding(("sh", "-c", line), JS) == decides


@pytest.mark.parametrize(
    "scripts",
    [
        {"test": "npm run unit", "unit": "node run.js"},
        {"test": "yarn all", "all": "run-s 'unit:*'", "unit:one": "node run.js"},
        {"test": "node --run unit", "unit": "npm test", "preunit": "node run.js"},
    ],
)
def test_a_script_that_a_script_starts_is_read(scripts: dict[str, str]) -> None:
    assert deciding(("npm", "test"), JS, build="node src/a.js", **scripts) == {"run.js"}


def test_where_tests_have_usual_names_the_rest_of_their_folder_is_the_code() -> None:
    assert deciding(("mocha", "src"), ("src/a.js", "src/a.spec.js")) == set()
    assert deciding(("mocha", "src/**/*.js"), ("src/a.js", "src/a.spec.js")) == set()
    assert deciding(("mocha", "src/**/*-check.js"), ("src/a.js", "src/a-check.js")) == {"src/a-check.js"}
    everything = ("python", "-m", "unittest", "discover", "-p", "*.py")
    assert deciding(everything, ("add.py", "test_add.py")) == set()
    assert deciding(("mocha", "."), JS) == set()


@pytest.mark.parametrize(
    ("line", "decides"),
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
def test_what_python_looks_for_decides(line: str, decides: set[str]) -> None:
    assert deciding(("sh", "-c", line), PYTHON) == decides


def test_a_shell_script_that_the_command_names_is_read_and_so_is_go_run() -> None:
    files = {"check.sh": b"set -e\nmocha checks\n", "checks/a.js": b"", "src/a.js": b""}
    assert {*files_deciding(("sh", "check.sh"), files, Path("/nowhere"))} == {"check.sh", "checks/a.js"}
    assert deciding(("go", "run", "./cmd/check"), ("cmd/check/main.go", "add.go")) == {"cmd/check/main.go"}


def test_tests_py_is_a_test() -> None:
    assert is_protected("shop/tests.py")
    assert not is_protected("shop/contests.py")


async def test_a_test_that_only_a_nested_script_names_is_not_mended(
    tmp_path: Path, sandbox: BubblewrapSandbox, require: Require
) -> None:
    """Its exit status is all that there is to the verdict: a change of the test would pass."""
    require("npm", shutil.which("npm") is not None, "it is not on PATH")
    project = tmp_path / "project"
    project.mkdir()
    scripts = {"test": "npm run --silent unit", "unit": "node check"}
    (project / "package.json").write_text(json.dumps({"scripts": scripts}))
    (project / "twice.js").write_text("exports.twice = (n) => process.env.NEVER + n;\n")
    (project / "check.js").write_text("if (require('./twice').twice(4) !== 9) process.exit(3);\n")
    task, _ = heal_task(project)
    assert is_protected("check.js", task.protected)
    settings = Settings.model_validate({"model": {"name": "none"}}).model_copy(
        update={
            "paths": PathSettings(home=tmp_path / "home", cache=tmp_path / "no-weights"),
            "proof": ProofSettings(seconds=0),
            "repair": RepairSettings(seconds=20),
        }
    )
    result = await heal(project, settings=settings, sandbox=sandbox)
    assert result.candidate is None or "check.js" not in result.candidate.files
