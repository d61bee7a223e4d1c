"""What a project's interpreter can import from outside of the project."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from judge.conftest import PYTHON
from suture.judge.runners.installed_modules import list_importable_modules, list_node_packages
from suture.project.languages import Toolchain

INSTALLED = (
    "single.py", "fast.cpython-38-x86_64-linux-gnu.so", "package/__init__.py", "package/inner.py",
    "space/part/__init__.py", "space/module.py", "data/readme.txt", "some-1.0.dist-info/top_level.txt",
)  # fmt: skip


def write(folder: Path, *paths: str) -> Path:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("")
    return folder


def test_every_kind_of_installed_module_is_listed(tmp_path: Path) -> None:
    site = write(tmp_path / "site-packages", *INSTALLED)
    names = list_importable_modules(replace(PYTHON, site_packages=(str(site),)))

    assert {"single", "fast", "package", "space", "space.part", "space.module", "json", "sys"} <= names
    assert not {"inner", "package.inner", "part", "data", "some"} & names


def test_the_standard_library_is_that_of_the_interpreter(tmp_path: Path) -> None:
    base = write(tmp_path, "lib/python3.8/asynchat.py", "lib/python3.8/lib-dynload/_other.so")
    names = list_importable_modules(
        replace(PYTHON, site_packages=(), base_prefix=str(base), version="3.8.1", prefix=str(base))
    )
    assert {"asynchat", "_other", "sys"} <= names
    assert "tomllib" not in names
    assert "tomllib" in list_importable_modules(None) == sys.stdlib_module_names


def test_of_the_reported_folders_only_those_of_the_installation_are_listed(tmp_path: Path) -> None:
    site = write(tmp_path / "venv" / "lib", "inside.py")
    elsewhere = write(tmp_path / "home", "secret_name.py")
    interpreter = replace(PYTHON, site_packages=(), prefix=str(tmp_path / "venv"))
    names = list_importable_modules(interpreter, (str(site), str(elsewhere), "/\0/site-packages", "src"))
    assert "inside" in names
    assert "secret_name" not in names


def test_what_pytests_plugins_import_if_it_exists_is_listed(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    plugin, other = site / "pytest_many-1.0.dist-info", site / "other-1.0.dist-info"
    write(plugin, "METADATA", "entry_points.txt")
    write(other, "METADATA")
    (plugin / "entry_points.txt").write_text("[pytest11]\nmany = many\n")
    (plugin / "METADATA").write_text(
        "Name: pytest-many\nRequires-Dist: set-title; extra == 'title'\n"
        "Requires-Dist: mock; extra == 'testing'\n\nRequires-Dist: quoted\n"
    )
    (other / "METADATA").write_text("Name: other\nRequires-Dist: tables; extra == 'hdf5'\n")

    names = list_importable_modules(replace(PYTHON, site_packages=(str(site),)))
    assert "set_title" in names
    assert not {"mock", "quoted", "tables"} & names


def test_installed_node_packages_are_listed_with_their_scopes(tmp_path: Path) -> None:
    folder = write(tmp_path / "node_modules", "lodash/index.js", "@scope/tools/index.js")
    toolchain = Toolchain(language="javascript", program="node", shown={str(folder): "/node_modules"})
    assert {"lodash", "@scope/tools"} <= list_node_packages(toolchain)
    assert list_node_packages(None) == frozenset()
