"""Find the folder above a project's folder whose files decide its tests, too.

Pytest loads the nearest configuration above a test, and each conftest.py up to it; the packages of a Go or npm
workspace find one another through a file of its root.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path

from suture.core.safe_files import read_regular_file
from suture.project.languages.python import PYTEST_CONFIGURATION
from suture.project.tuning import MAX_FOLDER_DEPTH, MAX_RUNNER_CONFIG_BYTES

CONFTEST = "conftest.py"
SETUP = "setup.py"
WORKSPACE_FILES: Mapping[str, bytes] = {
    "go.work": b"",
    "pnpm-workspace.yaml": b"",
    "package.json": b'"workspaces"',
}
"""Files at the root of a workspace -> text that they must contain for that."""
MODULE_FILES = ("go.mod",)
"""Files that make all folders below part of one project, unless these have such a file of their own."""

FOREIGN_MANIFESTS = ("go.mod", "package.json")
"""Files of a folder whose tests pytest does not run."""


def find_project_root(folder: Path) -> Path:
    """Return the topmost folder whose files decide the tests of a project; the project's own folder if none does.

    Only the folders of the same git repository are considered.

    Args:
        folder: The project's folder, absolute and without links.
    """
    parents = _list_repository_parents(folder)
    deciding = [parent for parent in parents if _holds_workspace(parent, folder)]
    deciding += _find_pytest_root(folder, parents)
    return min(deciding, key=lambda parent: len(parent.parts), default=folder)


def _holds_workspace(parent: Path, folder: Path) -> bool:
    is_module = any(
        _read(parent / name) is not None and _read(folder / name) is None for name in MODULE_FILES
    )
    return is_module or _holds_any(parent, WORKSPACE_FILES)


def _find_pytest_root(folder: Path, parents: list[Path]) -> list[Path]:
    """Return the nearest folder with pytest's configuration; pytest loads nothing from above it.

    Without any configuration, pytest loads each conftest.py up to the nearest `setup.py`.
    """
    is_foreign = any(_read(folder / name) is not None for name in FOREIGN_MANIFESTS)
    if is_foreign or _holds_any(folder, PYTEST_CONFIGURATION):
        return []
    configured = [parent for parent in parents if _holds_any(parent, PYTEST_CONFIGURATION)]
    if configured or _read(folder / SETUP) is not None:
        return configured[:1]
    below = list(takewhile(lambda parent: _read(parent / SETUP) is None, parents))
    loaded = parents[: len(below) + 1] if len(below) < len(parents) else []
    return loaded[-1:] if any(_read(parent / CONFTEST) is not None for parent in loaded) else []


def _list_repository_parents(folder: Path) -> list[Path]:
    """Return the folders above one, up to the root of its git repository; none if it is in no repository."""
    parents: list[Path] = []
    for parent in (folder, *folder.parents[:MAX_FOLDER_DEPTH]):
        parents.append(parent)
        if (parent / ".git").exists():
            return parents[1:]
    return []


def _holds_any(folder: Path, markers: Mapping[str, bytes]) -> bool:
    for name, marker in markers.items():
        content = _read(folder / name)
        if content is not None and marker in content:
            return True
    return False


def _read(path: Path) -> bytes | None:
    """Return the beginning of a regular file; `None` if there is none."""
    try:
        return read_regular_file(path, MAX_RUNNER_CONFIG_BYTES)
    except OSError:
        return None
