"""Environments beside a project and in a tool's own folder are found, and only real ones are used."""

from __future__ import annotations

import base64
import hashlib
import os
import sys
import venv
from pathlib import Path

import pytest

from suture.core.settings import load_settings
from suture.errors import PrerequisiteError, UsageError
from suture.sandbox import discover_interpreter, get_own_interpreter
from suture.sandbox.runtimes.environments import find_environments, find_missing_packages, required_packages

PYPROJECT = """[project]
name = "shop"
dependencies = ["Typing_Extensions>=4", "old; python_version < '3'", "here @ file:///x", "attrs"]
[project.optional-dependencies]
test = ["pytest"]
docs = ["sphinx"]
[dependency-groups]
dev = ["pytest-cov", {include-group = "test"}]
[tool.poetry.dependencies]
python = "^3.11"
requests = "*"
[tool.poetry.group.dev.dependencies]
freezegun = "*"
"""


def make(folder: Path, *packages: str) -> Path:
    venv.create(folder, with_pip=False, symlinks=True)
    for name in packages:
        site = next((folder / "lib").glob("python3*/site-packages"))
        (site / f"{name}-1.0.dist-info").mkdir()
    return folder


def project_at(root: Path, requirements: str = "attrs\npytest\n") -> Path:
    root.mkdir()
    (root / "requirements.txt").write_text(requirements)
    return root


def sha(root: Path) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(os.fsencode(root.resolve())).digest()).decode()[:8]


def md5(root: Path) -> str:
    digest = hashlib.new("md5", os.fsencode(root.resolve()), usedforsecurity=False).digest()
    return base64.urlsafe_b64encode(digest).decode()[:8]


@pytest.mark.parametrize("name", ["venv", "env", ".tox/py311", ".nox/tests-3-11", ".conda"])
def test_one_beside_the_project_is_found(tmp_path: Path, name: str) -> None:
    project = project_at(tmp_path / "p")
    found = make(project / name, "attrs", "pytest")
    taken = discover_interpreter(project, {"PATH": str(tmp_path)})
    assert (taken.prefix, taken.origin) == (str(found), f"the project's {name}")
    assert taken.project == str(project)  # less of it is shown, as its files may have chosen it


@pytest.mark.parametrize("link", ["envs", "envs/py311", ".tox", ".tox/py311", "venv"])
def test_a_folder_of_environments_that_is_a_link_leads_nowhere(tmp_path: Path, link: str) -> None:
    project = project_at(tmp_path / "p")
    place = make(tmp_path / "elsewhere" / "py311", "attrs", "pytest")
    (project / link).parent.mkdir(exist_ok=True)
    (project / link).symlink_to(place if "/" in link or link == "venv" else place.parent)
    assert not list(find_environments(project, {}))
    assert Path(discover_interpreter(project, {"PATH": str(tmp_path)}).prefix) != place
    (project / link).unlink()
    found = make(
        project / ("venv" if link == "venv" else f"{link.partition('/')[0]}/py311"), "attrs", "pytest"
    )
    assert discover_interpreter(project, {"PATH": str(tmp_path)}).prefix == str(found)


@pytest.mark.parametrize(
    ("tool", "place"),
    [
        ("poetry", ".cache/pypoetry/virtualenvs/shop-{sha}-py3.11"),
        ("hatch", ".local/share/hatch/env/virtual/shop/{sha}/shop"),
        ("pdm", ".local/share/pdm/venvs/p-{md5}-3.11"),
    ],
)
def test_one_that_a_tool_keeps_for_this_project_is_found(tmp_path: Path, tool: str, place: str) -> None:
    project = project_at(tmp_path / "p")
    other = project_at(tmp_path / "other")
    home = tmp_path / "home"
    found = make(home / place.format(sha=sha(project), md5=md5(project)), "attrs", "pytest")
    environ = {"PATH": str(tmp_path), "HOME": str(home)}
    taken = discover_interpreter(project, environ)
    assert (taken.prefix, taken.origin) == (str(found), f"{tool}'s environment of the project")
    assert taken.project == str(project)
    assert discover_interpreter(other, environ).prefix != str(found)  # its name is another project's path


def test_condas_is_found_by_the_name_that_the_project_gives_it(tmp_path: Path) -> None:
    project, home = project_at(tmp_path / "p"), tmp_path / "home"
    (project / "environment.yml").write_text("name: shop\ndependencies:\n  - python\n")
    found = make(tmp_path / "conda" / "envs" / "shop", "attrs", "pytest")
    environ = {"PATH": str(tmp_path), "HOME": str(home)}
    assert discover_interpreter(project, environ).prefix != str(found)
    (home / ".conda").mkdir(parents=True)
    (home / ".conda" / "environments.txt").write_text(f"{tmp_path}/conda\n{found}\n")
    assert discover_interpreter(project, environ).prefix == str(found)


def test_the_one_that_has_what_the_project_asks_for_comes_first(tmp_path: Path) -> None:
    project = project_at(tmp_path / "p", "attrs\npytest\nrich\n")
    active = make(tmp_path / "active")
    beside = make(project / "venv", "attrs", "pytest")
    environ = {"PATH": str(tmp_path), "VIRTUAL_ENV": str(active)}
    some = discover_interpreter(project, environ)
    assert (some.prefix, some.origin) == (str(beside), "the project's venv, which lacks rich")
    make(active, "attrs", "pytest", "rich")
    assert discover_interpreter(project, environ).prefix == str(active)
    make(project / ".venv")  # what the project's own environment lacks, no other one makes up for
    own = discover_interpreter(project, environ)
    assert own.origin == "the project's .venv, which lacks attrs, pytest, rich"


def test_a_folder_that_only_looks_like_one_is_passed_over(tmp_path: Path) -> None:
    project = project_at(tmp_path / "p")
    trap = project / "venv"
    (trap / "bin").mkdir(parents=True)
    (trap / "lib" / "python3.11" / "site-packages" / "attrs-1.0.dist-info").mkdir(parents=True)
    (trap / "pyvenv.cfg").write_text(f"home = {tmp_path}\n")
    (trap / "bin" / "python").write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    (trap / "bin" / "python").chmod(0o755)
    away = make(tmp_path / "away", "attrs", "pytest")
    (project / "env").symlink_to(away)
    assert discover_interpreter(project, {"PATH": str(tmp_path)}).prefix == sys.prefix
    assert not (tmp_path / "sprung").exists()


def test_the_named_interpreter_is_used_and_no_other(tmp_path: Path) -> None:
    project = project_at(tmp_path / "p")
    make(project / ".venv")
    named = make(tmp_path / "named")
    for path in (named, named / "bin" / "python"):
        taken = discover_interpreter(project, {}, path)
        assert (taken.prefix, taken.project) == (str(named), "")
    plain = discover_interpreter(project, {}, Path(get_own_interpreter().executable))
    assert not plain.is_virtual
    with pytest.raises(PrerequisiteError, match="is not a working Python"):
        discover_interpreter(project, {}, tmp_path / "nothing")


def test_a_project_does_not_name_it(tmp_path: Path) -> None:
    (tmp_path / "suture.toml").write_text('[sandbox]\npython = "/opt/x"\n')
    with pytest.raises(UsageError, match=r"sandbox\.python .*no say"):
        load_settings(tmp_path)


def test_required_packages_are_read_from_requirement_files(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    (tmp_path / "requirements.txt").write_text(
        "-r other.txt\n# nothing\nPyYAML==6 # yes\ngit+https://x/y\n./local\n"
    )
    asked = {"attrs", "freezegun", "pytest", "pytest-cov", "pyyaml", "requests", "typing-extensions"}
    assert required_packages(tmp_path) == asked
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "typing_extensions-4.0.dist-info").mkdir()
    (tmp_path / "site" / "PyYAML-6.0-py3.11.egg-info").touch()
    assert find_missing_packages(asked, [str(tmp_path / "site"), "/no/such"]) == tuple(
        sorted(asked - {"pyyaml", "typing-extensions"})
    )


@pytest.mark.parametrize(
    "text", ["[project\n", "[" * 5000, 'project = "x"\n', "[project]\ndependencies = 3\n"]
)
def test_papers_that_say_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    assert required_packages(tmp_path) == frozenset()
