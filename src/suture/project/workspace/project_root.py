"""Find the folder above a project's folder whose files decide its tests, too.

Pytest loads the configuration and each conftest.py above a test, up to the repository's root; the packages of a
Go or npm workspace find one another through a file of its root.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from suture.core.safe_files import read_regular_file
from suture.project.languages.python import PYTEST_CONFIGURATION
from suture.project.tuning import MAX_FOLDER_DEPTH, MAX_RUNNER_CONFIG_BYTES

CONFTEST = "conftest.py"
WORKSPACE_FILES: Mapping[str, bytes] = {
    "go.work": b"",
    "pnpm-workspace.yaml": b"",
    "package.json": b'"workspaces"',
}
"""Files at the root of a workspace -> text that they must contain for that."""
MODULE_FILES = ("go.mod",)
"""Files that make all folders below part of one project, unless these have such a file of their own."""


def find_project_root(folder: Path) -> Path:
    """Return the topmost folder whose files decide the tests of a project; the project's own folder if none does.

    Only the folders of the same git repository are considered.

    Args:
        folder: The project's folder, absolute and without links.
    """
    parents = _list_repository_parents(folder)
    has_own_configuration = _holds_any(folder, PYTEST_CONFIGURATION)
    root = folder
    for parent in parents:
        is_decisive = (
            _read(parent / CONFTEST) is not None
            or (not has_own_configuration and _holds_any(parent, PYTEST_CONFIGURATION))
            or _holds_any(parent, WORKSPACE_FILES)
            or any(_read(parent / name) is not None and _read(folder / name) is None for name in MODULE_FILES)
        )
        root = parent if is_decisive else root
    return root


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
