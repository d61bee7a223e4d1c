"""Locks of uv, Poetry, PDM, Yarn and pnpm, updated by the real programs from a local index."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from requirements import Require
from sandbox.packages.local_index import (
    PYTHON,
    Index,
    build_source_archive,
    build_wheel,
    publish_npm_package,
    publish_wheel,
)
from suture.core.records import Language
from suture.errors import PrerequisiteError
from suture.project.languages import Interpreter
from suture.sandbox import discover_interpreter, discover_programs
from suture.sandbox.packages import AddedPackages, InstalledPackages, PackagesRefused
from suture.sandbox.packages.additions.adder import AddedSet
from suture.sandbox.packages.additions.lock_update import require_unchanged_packages
from suture.sandbox.packages.additions.python_adder import PythonAdder
from suture.sandbox.packages.client import PORT
from suture.sandbox.packages.installer import WorkFolder
from suture.sandbox.packages.npm_installer import node_client

pytestmark = pytest.mark.usefixtures("sandbox")
PYPROJECT = (
    '[project]\nname = "shop"\nversion = "1.0"\nrequires-python = ">=3.11"\ndependencies = ["old>=1"]\n'
)
PACKAGE_JSON = '{\n  "name": "shop",\n  "dependencies": {\n    "old": "^1.0.0"\n  }\n}\n'
LOCK_COMMANDS = {
    "uv.lock": ["uv", "lock"],
    "poetry.lock": ["poetry", "lock"],
    "pdm.lock": ["pdm", "lock", "--update-reuse"],
    "yarn.lock": ["yarn", "install"],
    "pnpm-lock.yaml": ["pnpm", "install", "--lockfile-only"],
}
PYTHON_LOCKS = [
    "uv.lock",
    *(pytest.param(lock, marks=pytest.mark.heavy) for lock in ("poetry.lock", "pdm.lock")),
]


@pytest.fixture
def project(index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that requires `old`, with settings that lead every package manager to the local index."""
    folder = tmp_path / "shop"
    folder.mkdir()
    simple = f"{index.url}/simple/"
    poetry_source = f'[[tool.poetry.source]]\nname = "ours"\nurl = "{simple}"\n'
    pdm_source = f'[[tool.pdm.source]]\nname = "pypi"\nurl = "{simple}"\nverify_ssl = false\n'
    (folder / "pyproject.toml").write_text(f"{PYPROJECT}\n{poetry_source}\n{pdm_source}")
    (folder / "package.json").write_text(PACKAGE_JSON)
    (folder / ".yarnrc.yml").write_text(
        f"npmRegistryServer: {index.url}/npm\nunsafeHttpWhitelist: ['127.0.0.1']\nnpmMinimalAgeGate: 0\n"
    )
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("UV_DEFAULT_INDEX", simple)
    monkeypatch.setenv("PDM_USE_VENV", "0")  # otherwise PDM makes an environment in the project
    monkeypatch.setenv(
        "pnpm_config_registry", f"{index.url}/npm/"
    )  # pnpm 11 and later; pnpm 10 takes that of npm
    monkeypatch.setenv("pnpm_config_minimum_release_age", "0")
    for name in ("UV_CACHE_DIR", "POETRY_CACHE_DIR", "PDM_CACHE_DIR", "YARN_CACHE_FOLDER", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "cache" / name))
    publish_wheel(index, "old", build_wheel("old"))
    publish_npm_package(index, "old", "")
    return folder


def lock_project(project: Path, lock: str, require: Require) -> dict[str, bytes]:
    """Lock a project with the program that owns the lock, and return the project's files."""
    program, *arguments = LOCK_COMMANDS[lock]
    is_on_path = shutil.which(program) is not None
    if program == "uv":
        require("uv", is_on_path, "it is not on PATH")
    else:
        require("lock-programs", is_on_path, f"{program} is not on PATH")
    completed = subprocess.run([program, *arguments], cwd=project, check=False, capture_output=True)
    assert completed.returncode == 0, (completed.stdout + completed.stderr).decode()
    shutil.rmtree(project / "node_modules", ignore_errors=True)
    return {path.name: path.read_bytes() for path in project.iterdir() if path.is_file()}


def add_packages(base: dict[str, bytes], cache: Path, language: Language = "python") -> AddedPackages:
    """Return the packages that a candidate adds to a project."""
    return AddedPackages(language=language, base=base, cache=cache)


def require_package(base: Mapping[str, bytes], name: str) -> dict[str, bytes]:
    """Return a project's files with one more package in its manifest."""
    manifest = base["pyproject.toml"].decode().replace('"old>=1"', f'"old>=1", "{name}"')
    return {**base, "pyproject.toml": manifest.encode()}


async def install(packages: AddedPackages, name: str, interpreter: Interpreter) -> InstalledPackages:
    """Return what is installed for a candidate that requires one more package."""
    installed = await packages.install_for(require_package(packages.base, name), interpreter)
    assert installed is not None
    return installed


@pytest.fixture
def interpreter() -> Interpreter:
    """The interpreter of the running environment."""
    return discover_interpreter(None, {"VIRTUAL_ENV": sys.prefix})


@pytest.mark.parametrize("lock", PYTHON_LOCKS)
async def test_a_python_lock_gains_the_new_package(
    lock: str, index: Index, project: Path, tmp_path: Path, interpreter: Interpreter, require: Require
) -> None:
    base = lock_project(project, lock, require)
    publish_wheel(index, "old", build_wheel("old", version="1.1"), "1.1")
    publish_wheel(index, "alpha", build_wheel("alpha", "beta"))
    publish_wheel(index, "beta", build_wheel("beta"))
    packages = add_packages(base, tmp_path)

    installed = await install(packages, "alpha", interpreter)

    notes = packages.follow_up_notes(installed.files)
    assert installed.files.keys() == {"pyproject.toml", lock}, notes
    assert "update" not in notes[0]
    for line in base[lock].decode().splitlines():  # the first version of `old` is still locked
        assert " hash =" not in line or line in installed.files[lock]
    for path, text in installed.files.items():
        (project / path).write_text(text)
    lock_project(project, lock, require)
    assert (project / lock).read_text() == installed.files[lock]  # the program itself changes nothing more
    with_lock = {**base, **{path: text.encode() for path, text in installed.files.items()}}
    assert packages.allows_file(lock, with_lock, interpreter)
    assert not packages.allows_file(lock, {**with_lock, lock: with_lock[lock] + b"\n"}, interpreter)


@pytest.mark.parametrize("lock", PYTHON_LOCKS)
async def test_no_source_archive_is_built(
    lock: str, index: Index, project: Path, tmp_path: Path, interpreter: Interpreter, require: Require
) -> None:
    base = lock_project(project, lock, require)
    publish_wheel(index, "evil", build_wheel("evil", version="0.9"), "0.9")
    index.pages["/simple/evil/"] += b'<a href="/files/evil-1.0.tar.gz">evil-1.0.tar.gz</a>'
    # From the sandbox, a build reaches nothing but the index.
    index.pages["/files/evil-1.0.tar.gz"] = build_source_archive(
        f"import urllib.request\nurllib.request.urlopen('{index.url}/built')\n"
    )
    packages = add_packages(base, tmp_path)

    installed = await install(packages, "evil", interpreter)

    assert installed.names == ("evil==0.9",)
    assert "/built" not in index.requested_paths
    if lock not in installed.files:
        assert (
            f"update {lock} with `{' '.join(LOCK_COMMANDS[lock])}`"
            in packages.follow_up_notes(installed.files)[0]
        )


async def test_a_lock_stays_if_another_package_would_change(
    index: Index,
    project: Path,
    tmp_path: Path,
    interpreter: Interpreter,
    require: Require,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    base = lock_project(project, "uv.lock", require)
    publish_wheel(index, "old", build_wheel("old", version="2.0"), "2.0")
    publish_wheel(index, "alpha", build_wheel("alpha", "old>=2"))
    packages = add_packages(base, tmp_path)

    installed = await install(packages, "alpha", interpreter)

    assert "uv.lock" not in installed.files
    note = packages.follow_up_notes(installed.files)[0]
    assert "update uv.lock with `uv lock` (other packages than the new ones would change)" in note
    # The reason for another candidate is not mixed up with it.
    publish_wheel(index, "beta", build_wheel("beta"))
    monkeypatch.setenv("PATH", str(tmp_path))
    other = await install(packages, "beta", interpreter)
    assert "(uv is not on PATH)" in packages.follow_up_notes(other.files)[0]
    assert packages.follow_up_notes(installed.files) == (note,)


async def test_a_lock_stays_if_it_would_lock_another_version_than_the_tests_run_with(
    index: Index, project: Path, tmp_path: Path, interpreter: Interpreter, require: Require
) -> None:
    base = lock_project(project, "uv.lock", require)
    for version in ("1.0", "2.0"):
        publish_wheel(index, "alpha", build_wheel("alpha", version=version), version)
    (tmp_path / "env" / "alpha-1.0.dist-info").mkdir(parents=True)
    with_alpha = replace(interpreter, site_packages=(*interpreter.site_packages, str(tmp_path / "env")))
    packages = add_packages(base, tmp_path)

    installed = await install(packages, "alpha", with_alpha)

    assert installed.names == ()
    assert installed.files.keys() == {"pyproject.toml"}
    assert "it would not lock alpha==1.0" in packages.follow_up_notes(installed.files)[0]


async def test_locks_are_updated_only_in_the_sandbox(
    index: Index, project: Path, tmp_path: Path, interpreter: Interpreter, require: Require
) -> None:
    base = lock_project(project, "uv.lock", require)
    publish_wheel(index, "alpha", build_wheel("alpha"))
    packages = replace(add_packages(base, tmp_path), sandboxed=False)

    installed = await install(packages, "alpha", interpreter)

    assert installed.files.keys() == {"pyproject.toml"}
    assert "safety.fetch_packages" in packages.follow_up_notes(installed.files)[0]


async def test_a_folder_that_cannot_be_created_is_a_failure_of_the_lock_alone(
    tmp_path: Path, require: Require, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    require("uv", shutil.which("uv") is not None, "it is not on PATH")
    added = AddedSet(files={"pyproject.toml": PYPROJECT}, names=("alpha==1.0",))
    work_folder = WorkFolder(folder=tmp_path / "missing", python=PYTHON)

    base = {"pyproject.toml": PYPROJECT.encode(), "uv.lock": b""}
    updates = await PythonAdder().update_locks(base, added, work_folder)

    assert updates.files == {}
    assert "with `uv lock` (No such file or directory)" in updates.failures["uv.lock"]


@pytest.mark.parametrize(
    ("lock", "versions"),
    [
        ('a@^1.0.0:\n  version "1.0.0"\n  resolved "https://x/a.tgz#%s"\n', ("1" * 40, "2" * 40)),
        ('name = "a"\nversion = "1.0"\nsource = { git = "https://x/a#%s" }\n', ("1" * 40, "2" * 40)),
        (
            'name = "a"\nversion = "1.0"\n\n[package.source]\nresolved_reference = "%s"\n',
            ("1" * 40, "2" * 40),
        ),
        ('name = "a"\nversion = "1.0"\nref = "main"\nrevision = "%s"\n', ("1" * 40, "2" * 40)),
        ('name = "a"\nversion = "%s"\n', ("1.0", "2.0")),
    ],
)
def test_a_lock_without_hashes_of_files_must_keep_its_packages(lock: str, versions: tuple[str, str]) -> None:
    before, after = (f"[[package]]\n{lock % version}" for version in versions)

    require_unchanged_packages(before, f'{before}\n[[package]]\nname = "b"\n', {})
    with pytest.raises(PackagesRefused, match="other packages than the new ones would change"):
        require_unchanged_packages(before, after, {})


def test_a_lock_with_nothing_to_compare_is_refused() -> None:
    require_unchanged_packages("# yarn lockfile v1\n", "", {})
    with pytest.raises(PackagesRefused, match="does not say by what"):
        require_unchanged_packages('a@file:a:\n  version "1.0.0"\n', "", {})


def test_only_a_package_manager_s_own_folder_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, require: Require
) -> None:
    require("node", shutil.which("node") is not None, "it is not on PATH")
    script = tmp_path / "home" / "bin" / "yarn.js"
    script.parent.mkdir(parents=True)
    manifest = tmp_path / "home" / "package.json"

    for text in (None, '{"name": "corepack"}'):
        if text is not None:
            manifest.write_text(text)
        with pytest.raises(PrerequisiteError, match="not a plain yarn"):
            node_client("yarn", script)
    manifest.write_text('{"name": "yarn"}')
    assert str(manifest.parent) in {mount.source for mount in node_client("yarn", script).mounts}
    monkeypatch.setenv("HOME", str(manifest.parent))
    with pytest.raises(PrerequisiteError, match="not a plain yarn"):
        node_client("yarn", script)


async def test_a_missing_program_is_named(
    index: Index,
    project: Path,
    tmp_path: Path,
    interpreter: Interpreter,
    require: Require,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    base = lock_project(project, "uv.lock", require)
    publish_wheel(index, "alpha", build_wheel("alpha"))
    packages = add_packages(base, tmp_path)
    files = require_package(base, "alpha")
    with monkeypatch.context() as without_programs:
        without_programs.setenv("PATH", str(tmp_path))
        installed = await packages.install_for(files, interpreter)

    assert installed is not None
    assert installed.names == ("alpha==1.0",)
    note = packages.follow_up_notes(installed.files)[0]
    assert "update uv.lock with `uv lock`" in note
    assert "not on PATH" in note

    # The failure is not stored: the lock is updated once the program is there.
    installed = await add_packages(base, tmp_path).install_for(files, interpreter)
    assert installed is not None
    assert installed.files.keys() == {"pyproject.toml", "uv.lock"}
    # The updated lock is stored.
    offline = replace(add_packages(base, tmp_path), may_fetch=False)
    assert await offline.install_for(files, interpreter) == installed


@pytest.mark.heavy
@pytest.mark.parametrize("lock", ["yarn.lock", "pnpm-lock.yaml"])
async def test_a_node_lock_gains_the_new_package_without_its_scripts(
    lock: str, index: Index, project: Path, tmp_path: Path, require: Require
) -> None:
    require("npm", shutil.which("npm") is not None, "it is not on PATH")
    base = lock_project(project, lock, require)
    # From the sandbox, a script reaches nothing but the index, through the proxy.
    request = f"{{host: '127.0.0.1', port: {PORT}, path: '{index.url}/started'}}"
    script = f"node -e \"require('http').get({request})\""
    publish_npm_package(index, "old", "", "1.1.0")
    publish_npm_package(index, "alpha", "", postinstall=script, beta="^1.0.0")
    publish_npm_package(index, "beta", "")
    # Yarn 2 and later open a tunnel to the index although it speaks plain HTTP, so its host is allowed by name.
    hosts = (index.url.removeprefix("http://"),)
    packages = replace(add_packages(base, tmp_path, "javascript"), hosts=hosts)
    manifest = PACKAGE_JSON.replace('"old"', '"alpha": "^1.0.0",\n    "old"')
    interpreter = discover_programs(None, os.environ, "javascript")

    installed = await packages.install_for({**base, "package.json": manifest.encode()}, interpreter)

    assert installed is not None
    notes = packages.follow_up_notes(installed.files)
    assert installed.files.keys() == {"package.json", lock}, notes
    assert "update" not in notes[0]
    assert "beta@" in installed.files[lock]
    assert "1.1.0" not in installed.files[lock]
    assert "/started" not in index.requested_paths
