"""Find the projects below the allowed folders, so that a person can choose one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from suture.interfaces.web.rest_schemas import ProjectChoices
from suture.interfaces.web.tuning import MAX_FOLDERS, MAX_PROJECT_DEPTH, MAX_SCANNED_FOLDERS
from suture.project.workspace import is_test_file

MANIFESTS = frozenset(
    (
        "pyproject.toml", "setup.py", "setup.cfg", "pytest.ini", "tox.ini", "package.json", "go.mod", "Cargo.toml",
        "pom.xml", "build.gradle", "build.gradle.kts", "CMakeLists.txt", "Makefile",
    )
)  # fmt: skip
"""Files that only the folder of a project has."""
TEST_FOLDERS = frozenset(("test", "tests", "spec", "__tests__"))
"""Folders of tests, which make the folder around them a project."""
IGNORED_FOLDERS = frozenset(
    ("node_modules", "venv", "env", "vendor", "target", "build", "dist", "site-packages")
)
"""Folders of packages and builds, whose projects are not the user's own."""


def list_projects(root_names: Sequence[str], git_prefixes: Sequence[str]) -> ProjectChoices:
    """Return the allowed folders and the projects in them: first a root that is a project, then those below it."""
    roots = [Path(name).expanduser() for name in root_names]
    projects = dict.fromkeys(str(project) for root in roots for project in _find_projects(root))
    return ProjectChoices(
        roots=list(map(str, roots)), folders=list(projects)[:MAX_FOLDERS], git=list(git_prefixes)
    )


def _find_projects(root: Path) -> Iterator[Path]:
    """Yield a folder if it is a project, and else the projects below it, the nearest first."""
    level = [root]
    scanned_count = 0
    for _ in range(MAX_PROJECT_DEPTH + 1):
        next_level: list[Path] = []
        for folder in level:
            scanned_count += 1
            if scanned_count > MAX_SCANNED_FOLDERS:
                return
            files, folders = _list_entries(folder)
            if MANIFESTS & set(files) or TEST_FOLDERS & set(folders) or any(map(is_test_file, files)):
                yield folder  # what is below it is part of it
            else:
                next_level += [folder / name for name in folders]
        level = next_level


def _list_entries(folder: Path) -> tuple[list[str], list[str]]:
    """Return the names of the files and of the folders in a folder, sorted; neither hidden ones nor links."""
    try:
        with os.scandir(folder) as entries:
            shown = sorted(
                (entry for entry in entries if not entry.name.startswith(".")), key=lambda e: e.name
            )
    except OSError:
        return [], []  # missing or unreadable, so it cannot be healed either
    files = [entry.name for entry in shown if entry.is_file(follow_symlinks=False)]
    folders = [entry.name for entry in shown if entry.is_dir(follow_symlinks=False)]
    return files, [name for name in folders if name not in IGNORED_FOLDERS]
