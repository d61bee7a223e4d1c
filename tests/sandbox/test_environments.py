"""Environments inside a project and in the folder of a tool are found, and only working ones are used."""

from __future__ import annotations

import base64
import hashlib
import os
import sys
import venv
from dataclasses import replace
from pathlib import Path

import pytest

from suture.core.settings import load_settings
from suture.errors import PrerequisiteError, UsageError
from suture.sandbox import discover_interpreter, discover_programs, get_own_interpreter, lend_pytest
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


def make_environment(folder: Path, *packages: str) -> Path:
    """Create an environment in which these packages seem to be installed."""
    venv.create(folder, with_pip=False, symlinks=True)
    for name in packages:
        site = next((folder / "lib").glob("python3*/site-packages"))
        (site / f"{name}-1.0.dist-info").mkdir()
    return folder


def make_project(root: Path, requirements: str = "attrs\npytest\n") -> Path:
    """Create a project with a `requirements.txt`."""
    root.mkdir()
    (root / "requirements.txt").write_text(requirements)
    return root


def sha256_prefix(root: Path) -> str:
    """Return the part of an environment's name that Poetry and Hatch derive from the project's path."""
    return base64.urlsafe_b64encode(hashlib.sha256(os.fsencode(root.resolve())).digest()).decode()[:8]


def md5_prefix(root: Path) -> str:
    """Return the part of an environment's name that PDM derives from the project's path."""
    digest = hashlib.new("md5", os.fsencode(root.resolve()), usedforsecurity=False).digest()
    return base64.urlsafe_b64encode(digest).decode()[:8]


@pytest.mark.parametrize("name", ["venv", "env", ".tox/py311", ".nox/tests-3-11", ".conda"])
def test_an_environment_beside_the_project_is_found(tmp_path: Path, name: str) -> None:
    project = make_project(tmp_path / "p")
    environment = make_environment(project / name, "attrs", "pytest")
    interpreter = discover_interpreter(project, {"PATH": str(tmp_path)})
    assert (interpreter.prefix, interpreter.origin) == (str(environment), f"the project's {name}")
    assert interpreter.project == str(project)  # a project's own environment is mounted with more care


@pytest.mark.parametrize("link", ["envs", "envs/py311", ".tox", ".tox/py311", "venv"])
def test_linked_folders_of_environments_are_ignored(tmp_path: Path, link: str) -> None:
    project = make_project(tmp_path / "p")
    outside = make_environment(tmp_path / "elsewhere" / "py311", "attrs", "pytest")
    (project / link).parent.mkdir(exist_ok=True)
    (project / link).symlink_to(outside if "/" in link or link == "venv" else outside.parent)

    assert not list(find_environments(project, {}))
    assert Path(discover_interpreter(project, {"PATH": str(tmp_path)}).prefix) != outside

    (project / link).unlink()
    environment = make_environment(
        project / ("venv" if link == "venv" else f"{link.partition('/')[0]}/py311"), "attrs", "pytest"
    )

    assert discover_interpreter(project, {"PATH": str(tmp_path)}).prefix == str(environment)


@pytest.mark.parametrize(
    ("tool", "pattern"),
    [
        ("poetry", ".cache/pypoetry/virtualenvs/shop-{sha}-py3.11"),
        ("hatch", ".local/share/hatch/env/virtual/shop/{sha}/shop"),
        ("pdm", ".local/share/pdm/venvs/p-{md5}-3.11"),
    ],
)
def test_the_environment_that_a_tool_keeps_for_the_project_is_found(
    tmp_path: Path, tool: str, pattern: str
) -> None:
    project = make_project(tmp_path / "p")
    other = make_project(tmp_path / "other")
    home = tmp_path / "home"
    environment = make_environment(
        home / pattern.format(sha=sha256_prefix(project), md5=md5_prefix(project)), "attrs", "pytest"
    )
    variables = {"PATH": str(tmp_path), "HOME": str(home)}
    interpreter = discover_interpreter(project, variables)

    assert (interpreter.prefix, interpreter.origin) == (
        str(environment),
        f"{tool}'s environment of the project",
    )
    assert interpreter.project == str(project)
    # Its name is derived from the path of another project.
    assert discover_interpreter(other, variables).prefix != str(environment)


@pytest.mark.parametrize(
    ("tool", "folder", "variables"),
    [
        ("pipenv", "home/.local/share/virtualenvs/p-x1", {}),
        ("pipenv", "shared/renamed", {"WORKON_HOME": "shared"}),
        ("virtualenvwrapper", "home/.virtualenvs/shop", {}),
    ],
)
def test_an_environment_whose_own_file_names_the_project_is_found(
    tmp_path: Path, tool: str, folder: str, variables: dict[str, str]
) -> None:
    project, other = make_project(tmp_path / "p"), make_project(tmp_path / "other")
    environment = make_environment(tmp_path / folder, "attrs", "pytest")
    (environment / ".project").write_text(f"{project}\n")
    environ = {
        "HOME": str(tmp_path / "home"),
        **{name: str(tmp_path / path) for name, path in variables.items()},
    }
    assert list(find_environments(project, environ)) == [
        (environment, f"{tool}'s environment of the project")
    ]
    assert not list(find_environments(other, environ))


@pytest.mark.parametrize("own", ["../elsewhere", "build/env"])
def test_the_environment_that_uv_is_told_to_use_is_found(tmp_path: Path, own: str) -> None:
    project = make_project(tmp_path / "p")
    environment = make_environment(project / own, "attrs", "pytest")
    interpreter = discover_interpreter(project, {"PATH": str(tmp_path), "UV_PROJECT_ENVIRONMENT": own})
    assert os.path.realpath(interpreter.prefix) == os.path.realpath(environment)
    assert not list(find_environments(project, {"UV_PROJECT_ENVIRONMENT": "missing"}))


def test_a_conda_environment_is_found_by_its_name_in_the_project(tmp_path: Path) -> None:
    project, home = make_project(tmp_path / "p"), tmp_path / "home"
    (project / "environment.yml").write_text("name: shop\ndependencies:\n  - python\n")
    environment = make_environment(tmp_path / "conda" / "envs" / "shop", "attrs", "pytest")
    variables = {"PATH": str(tmp_path), "HOME": str(home)}

    assert discover_interpreter(project, variables).prefix != str(environment)

    (home / ".conda").mkdir(parents=True)
    (home / ".conda" / "environments.txt").write_text(f"{tmp_path}/conda\n{environment}\n")
    assert discover_interpreter(project, variables).prefix == str(environment)


def test_the_environment_with_the_required_packages_is_preferred(tmp_path: Path) -> None:
    project = make_project(tmp_path / "p", "attrs\npytest\nrich\n")
    active = make_environment(tmp_path / "active")
    inside = make_environment(project / "venv", "attrs", "pytest")
    variables = {"PATH": str(tmp_path), "VIRTUAL_ENV": str(active)}
    interpreter = discover_interpreter(project, variables)

    assert (interpreter.prefix, interpreter.origin) == (str(inside), "the project's venv, which lacks rich")

    make_environment(active, "attrs", "pytest", "rich")
    assert discover_interpreter(project, variables).prefix == str(active)

    make_environment(project / ".venv")  # an own environment is preferred, whatever it lacks
    own = discover_interpreter(project, variables)
    assert own.origin == "the project's .venv, which lacks attrs, pytest, rich"


def test_a_folder_that_only_looks_like_an_environment_is_ignored(tmp_path: Path) -> None:
    project = make_project(tmp_path / "p")
    trap = project / "venv"
    (trap / "bin").mkdir(parents=True)
    (trap / "lib" / "python3.11" / "site-packages" / "attrs-1.0.dist-info").mkdir(parents=True)
    (trap / "pyvenv.cfg").write_text(f"home = {tmp_path}\n")
    (trap / "bin" / "python").write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    (trap / "bin" / "python").chmod(0o755)
    outside = make_environment(tmp_path / "away", "attrs", "pytest")
    (project / "env").symlink_to(outside)

    assert discover_interpreter(project, {"PATH": str(tmp_path)}).prefix == sys.prefix
    assert not (tmp_path / "sprung").exists()


def test_a_named_interpreter_is_used_and_no_other(tmp_path: Path) -> None:
    project = make_project(tmp_path / "p")
    make_environment(project / ".venv")
    named = make_environment(tmp_path / "named")

    for path in (named, named / "bin" / "python"):
        interpreter = discover_interpreter(project, {}, path)
        assert (interpreter.prefix, interpreter.project) == (str(named), "")

    plain = discover_interpreter(project, {}, Path(get_own_interpreter().executable))
    assert not plain.is_virtual
    with pytest.raises(PrerequisiteError, match="is not a working Python"):
        discover_interpreter(project, {}, tmp_path / "nothing")


def test_project_settings_cannot_name_the_interpreter(tmp_path: Path) -> None:
    (tmp_path / "suture.toml").write_text('[sandbox]\npython = "/opt/x"\n')
    with pytest.raises(UsageError, match=r"sandbox\.python .*no say"):
        load_settings(tmp_path)


def test_required_packages_are_read_from_requirement_files(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    (tmp_path / "requirements.txt").write_text(
        "-r other.txt\n# nothing\nPyYAML==6 # yes\ngit+https://x/y\n./local\n"
    )
    expected = {"attrs", "freezegun", "pytest", "pytest-cov", "pyyaml", "requests", "typing-extensions"}

    assert required_packages(tmp_path) == expected

    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "typing_extensions-4.0.dist-info").mkdir()
    (tmp_path / "site" / "PyYAML-6.0-py3.11.egg-info").touch()

    assert find_missing_packages(expected, [str(tmp_path / "site"), "/no/such"]) == tuple(
        sorted(expected - {"pyyaml", "typing-extensions"})
    )


@pytest.mark.parametrize(
    "text", ["[project\n", "[" * 5000, 'project = "x"\n', "[project]\ndependencies = 3\n"]
)
def test_a_malformed_pyproject_requires_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    assert required_packages(tmp_path) == frozenset()


def test_a_folder_in_which_the_tests_run_may_have_an_environment_of_its_own(tmp_path: Path) -> None:
    environment = tmp_path / "app" / ".venv"
    venv.create(environment, symlinks=True)
    environ = {"PATH": os.environ["PATH"]}
    assert discover_programs(tmp_path, environ, "python", folder="app").prefix == str(environment)
    assert discover_programs(tmp_path, environ, "python").prefix != str(environment)


def test_a_project_without_pytest_is_lent_what_it_lacks(tmp_path: Path) -> None:
    venv.create(tmp_path / ".venv", symlinks=True)
    interpreter = discover_programs(tmp_path, {}, "python")
    (Path(interpreter.site_packages[0]) / "packaging").mkdir()
    lent = lend_pytest(interpreter)
    assert lent is not None
    names = {Path(path).name for path in lent.loaned_pytest}
    assert {"pytest", "_pytest", "pluggy"} <= names
    assert "packaging" not in names

    (Path(interpreter.site_packages[0]) / "pytest").mkdir()
    assert lend_pytest(interpreter) == interpreter
    old = replace(interpreter, version="3.8", site_packages=())
    assert lend_pytest(old) is None
