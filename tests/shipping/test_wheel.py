"""What a user gets: the wheel, its command, and the plugin for pytest."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from pages.man_page import man_page
from requirements import Require
from shipping.conftest import Installed
from suture.sandbox import Requirement

LARGEST_WHEEL_BYTES = 2_000_000
SHOP = "def total(prices):\n    return sum(prices) - 1\n"
TESTS = "from shop import total\n\n\ndef test_total():\n    assert total([2, 3]) == 5\n"
PLUGIN = ("-p", "suture.pytest_plugin")
QUICK = {"SUTURE_CERTIFICATION_SECONDS": "0"}
LOADED = """
import json, sys

def pytest_sessionfinish():
    names = sorted(name for name in sys.modules if name.partition(".")[0] == "suture")
    open("loaded.json", "w").write(json.dumps(names))
"""

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]


@pytest.fixture
def sandbox(require: Require, sandbox_requirement: Requirement) -> None:
    """Skip where there is no sandbox."""
    require("bubblewrap", sandbox_requirement.ok, sandbox_requirement.detail)


def test_the_wheel_holds_the_package_and_its_page_and_is_small(installed: Installed) -> None:
    names = zipfile.ZipFile(installed.wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {top.partition("-")[0] for top in tops} == {"suture"}
    assert "suture/py.typed" in names
    assert any(name.endswith("data/share/man/man1/suture.1") for name in names)
    assert installed.wheel.stat().st_size < LARGEST_WHEEL_BYTES
    assert (installed.venv / "share/man/man1/suture.1").read_text() == man_page()


@pytest.mark.usefixtures("sandbox")
def test_the_wheel_heals_and_the_checkout_is_not_needed(installed: Installed, tmp_path: Path) -> None:
    where = installed.run("python", "-c", "import suture; print(suture.__file__)", cwd=tmp_path)
    assert where.stdout.startswith(str(installed.venv)), where.stderr
    done = installed.run("suture", "self-check", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {row["name"]: row for row in json.loads(done.stdout)}
    assert rows["heal"]["ok"]
    assert list(tmp_path.iterdir()) == []


def test_a_check_that_fails_says_so(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "bwrap").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    done = installed.run(
        *("suture", "self-check", "--set", "sandbox.backend=docker"),
        cwd=tmp_path,
        env={"DOCKER_HOST": f"unix://{tmp_path}/nothing.sock"},
    )
    assert done.returncode == 3
    assert "MISSING" in done.stdout
    assert "a broken program" not in done.stdout


@pytest.fixture
def shop(tmp_path: Path, sandbox: None) -> Path:
    """A project whose test fails."""
    project = tmp_path / "shop"
    project.mkdir()
    (project / "shop.py").write_text(SHOP)
    (project / "test_shop.py").write_text(TESTS)
    return project


def test_a_failing_run_is_followed_by_what_a_heal_would_change(installed: Installed, shop: Path) -> None:
    done = installed.run("python", "-m", "pytest", "-q", *PLUGIN, "--heal", cwd=shop, env=QUICK)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "-    return sum(prices) - 1" in done.stdout
    assert "Healed" in done.stdout
    assert (shop / "shop.py").read_text() == SHOP


def test_a_project_may_have_the_flag_in_its_options(installed: Installed, shop: Path) -> None:
    """Its own run heals; Suture's runs of the same tests, which read the same options, do not."""
    (shop / "pytest.ini").write_text("[pytest]\naddopts = -p suture.pytest_plugin --heal\n")
    done = installed.run("python", "-m", "pytest", "-q", cwd=shop, env=QUICK)
    assert done.returncode == 1
    assert done.stdout.count("-    return sum(prices) - 1") == 1, done.stdout
    assert "Healed" in done.stdout


@pytest.mark.parametrize("heal", [(), (*PLUGIN, "--heal")])
def test_it_costs_nothing_where_nothing_is_to_be_healed(
    installed: Installed, tmp_path: Path, heal: tuple[str, ...]
) -> None:
    (tmp_path / "conftest.py").write_text(LOADED)
    (tmp_path / "test_fine.py").write_text("def test_fine():\n    pass\n")
    done = installed.run("python", "-m", "pytest", "-q", *heal, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    wanted = ["suture", "suture.pytest_plugin"] if heal else []
    assert json.loads((tmp_path / "loaded.json").read_text()) == wanted
    assert "heal" not in done.stdout


def test_no_flag_and_no_heal(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "test_wrong.py").write_text("def test_wrong():\n    assert False\n")
    done = installed.run("python", "-m", "pytest", "-q", cwd=tmp_path)
    assert done.returncode == 1
    assert "suture" not in done.stdout


def test_a_part_of_a_project_is_not_healed_alone(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    part = tmp_path / "part"
    part.mkdir()
    (part / "test_wrong.py").write_text("def test_wrong():\n    assert False\n")
    done = installed.run("python", "-m", "pytest", "-q", *PLUGIN, "--heal", cwd=part)
    assert done.returncode == 1
    assert f"--heal: start pytest in {str(tmp_path)!r}" in done.stdout
