"""The wheel as a user gets it: its content, its command and the pytest plugin."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

from pages.man_page import man_page
from requirements import Require
from shipping.conftest import Installed
from suture.sandbox import Requirement

MAX_WHEEL_BYTES = 3_000_000
"""More than the compressed source (2.6 MB on 2026-11-27), and less than the source with a model or a data set."""
SHOP = "def total(prices):\n    return sum(prices) - 1\n"
TESTS = "from shop import total\n\n\ndef test_total():\n    assert total([2, 3]) == 5\n"
PLUGIN = ("-p", "suture.pytest_plugin")
WITHOUT_CERTIFICATION = {"SUTURE_CERTIFICATION_SECONDS": "0"}
LIST_MODULES = """
import json, sys

def pytest_sessionfinish():
    names = sorted(name for name in sys.modules if name.partition(".")[0] == "suture")
    open("loaded.json", "w").write(json.dumps(names))
"""

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]


@pytest.fixture
def sandbox(require: Require, sandbox_requirement: Requirement) -> None:
    """Skip the test if there is no sandbox."""
    require("bubblewrap", sandbox_requirement.ok, sandbox_requirement.detail)


def test_the_wheel_contains_the_package_and_the_manual_page(installed: Installed) -> None:
    names = zipfile.ZipFile(installed.wheel).namelist()
    tops = {name.partition("/")[0] for name in names}

    assert {top.partition("-")[0] for top in tops} == {"suture"}
    assert "suture/py.typed" in names
    assert any(name.endswith("data/share/man/man1/suture.1") for name in names)
    assert installed.wheel.stat().st_size < MAX_WHEEL_BYTES
    assert (installed.venv / "share/man/man1/suture.1").read_text() == man_page()


@pytest.mark.usefixtures("sandbox")
def test_the_wheel_heals_without_the_checkout(installed: Installed, tmp_path: Path) -> None:
    located = installed.run("python", "-c", "import suture; print(suture.__file__)", cwd=tmp_path)

    assert located.stdout.startswith(str(installed.venv)), located.stderr
    completed = installed.run("suture", "self-check", "--json", cwd=tmp_path)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    rows = {row["name"]: row for row in json.loads(completed.stdout)}
    assert rows["heal"]["ok"]
    assert list(tmp_path.iterdir()) == []


def test_the_self_check_reports_a_missing_sandbox(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "bwrap").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    completed = installed.run(
        "suture",
        "self-check",
        "--set",
        "sandbox.backend=docker",
        cwd=tmp_path,
        env={"DOCKER_HOST": f"unix://{tmp_path}/nothing.sock"},
    )

    assert completed.returncode == 3
    assert "MISSING" in completed.stdout
    assert "a broken program" not in completed.stdout


@pytest.fixture
def shop(tmp_path: Path, sandbox: None) -> Path:
    """A project with a failing test."""
    project = tmp_path / "shop"
    project.mkdir()
    (project / "shop.py").write_text(SHOP)
    (project / "test_shop.py").write_text(TESTS)
    return project


def test_a_failing_pytest_run_shows_the_repair(installed: Installed, shop: Path) -> None:
    completed = installed.run(
        "python", "-m", "pytest", "-q", *PLUGIN, "--heal", cwd=shop, env=WITHOUT_CERTIFICATION
    )
    assert completed.returncode == 1, completed.stdout + completed.stderr
    assert "-    return sum(prices) - 1" in completed.stdout
    assert "Healed" in completed.stdout
    assert (shop / "shop.py").read_text() == SHOP


def test_the_flag_may_be_in_the_projects_options(installed: Installed, shop: Path) -> None:
    """The user's run heals. Suture's runs of the same tests read the same options, but do not heal."""
    (shop / "pytest.ini").write_text("[pytest]\naddopts = -p suture.pytest_plugin --heal\n")
    completed = installed.run("python", "-m", "pytest", "-q", cwd=shop, env=WITHOUT_CERTIFICATION)
    assert completed.returncode == 1
    assert completed.stdout.count("-    return sum(prices) - 1") == 1, completed.stdout
    assert "Healed" in completed.stdout


@pytest.mark.parametrize("heal", [(), (*PLUGIN, "--heal")])
def test_a_passing_run_loads_only_the_plugin(
    installed: Installed, tmp_path: Path, heal: tuple[str, ...]
) -> None:
    (tmp_path / "conftest.py").write_text(LIST_MODULES)
    (tmp_path / "test_fine.py").write_text("def test_fine():\n    pass\n")
    completed = installed.run("python", "-m", "pytest", "-q", *heal, cwd=tmp_path)

    assert completed.returncode == 0, completed.stdout
    expected = ["suture", "suture.pytest_plugin"] if heal else []
    assert json.loads((tmp_path / "loaded.json").read_text()) == expected
    assert "heal" not in completed.stdout


def test_a_run_without_the_flag_does_not_heal(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "test_wrong.py").write_text("def test_wrong():\n    assert False\n")
    completed = installed.run("python", "-m", "pytest", "-q", cwd=tmp_path)
    assert completed.returncode == 1
    assert "suture" not in completed.stdout


def test_a_subfolder_of_a_project_is_not_healed(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    subfolder = tmp_path / "part"
    subfolder.mkdir()
    (subfolder / "test_wrong.py").write_text("def test_wrong():\n    assert False\n")
    completed = installed.run("python", "-m", "pytest", "-q", *PLUGIN, "--heal", cwd=subfolder)

    assert completed.returncode == 1
    assert f"--heal: start pytest in {str(tmp_path)!r}" in completed.stdout


@pytest.fixture(scope="module")
def installers(tmp_path_factory: pytest.TempPathFactory, require: Require) -> Path:
    """Install pipx and uv, and return the folder of their programs."""
    folder = tmp_path_factory.mktemp("installers")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    completed = subprocess.run([*pip, "pipx", "uv"], capture_output=True, text=True, check=False)
    require("package-index", completed.returncode == 0, completed.stderr.strip())
    return folder / "bin"


@pytest.mark.parametrize(
    ("command", "adds_extra"),
    [
        ("uvx --from WHEEL suture", ""),
        ("uv tool install --quiet WHEEL", "uv tool install 'suture[serve] @ file://"),
        ("pipx install --quiet WHEEL", "pipx install --force 'suture[serve] @ file://"),
    ],
)
def test_the_wheel_runs_with_uv_and_pipx(
    installed: Installed, installers: Path, tmp_path: Path, command: str, adds_extra: str
) -> None:
    """The commands of the tutorial, and the one with which such an installation gets an extra."""
    programs = tmp_path / "programs"
    folders = {
        "UV_TOOL_DIR": tmp_path / "uv",
        "UV_TOOL_BIN_DIR": programs,
        "PIPX_HOME": tmp_path / "pipx",
        "PIPX_BIN_DIR": programs,
        "HOME": tmp_path,
    }
    environ = {**os.environ, **{name: str(path) for name, path in folders.items()}}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)

    program, *words = command.replace("WHEEL", str(installed.wheel)).split()
    first = run(str(installers / program), *words, *([] if adds_extra else ["--version"]))
    assert first.returncode == 0, first.stderr
    if not adds_extra:
        assert first.stdout == f"suture {version('suture')}\n"
        return
    suture = programs / "suture"
    refused = run(str(suture), "serve")
    assert refused.returncode == 3
    remedy = refused.stderr.partition("try: ")[2]
    assert remedy.startswith(adds_extra)
    added = run(str(installers / program), *shlex.split(remedy)[1:])
    assert added.returncode == 0, added.stderr
    imported = run(str(suture.resolve().with_name("python")), "-c", "import uvicorn")
    assert imported.returncode == 0, imported.stderr
