"""The folder above a project that decides its tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from project_files import write_files
from suture.project.workspace.history import find_project_root

CONFIGURED = "[pytest]\n"
CASES = {
    "nothing above": ({"a/b/x.py": ""}, "a/b"),
    "the nearest configuration": (
        {"pytest.ini": CONFIGURED, "a/pytest.ini": CONFIGURED, "a/b/x.py": ""},
        "a",
    ),
    "a configuration of its own": (
        {"pytest.ini": CONFIGURED, "conftest.py": "", "a/b/pytest.ini": CONFIGURED},
        "a/b",
    ),
    "a conftest without configuration": ({"conftest.py": "", "a/b/x.py": ""}, "a/b"),
    "a conftest below setup.py": ({"setup.py": "", "a/conftest.py": "", "a/b/x.py": ""}, ""),
    "setup.py alone": ({"setup.py": "", "a/b/x.py": ""}, "a/b"),
    "a project of Node.js": ({"pytest.ini": CONFIGURED, "a/b/package.json": "{}"}, "a/b"),
    "a workspace above the configuration": (
        {"pnpm-workspace.yaml": "", "a/pytest.ini": CONFIGURED, "a/b/x.py": ""},
        "",
    ),
    "a module of Go": ({"go.mod": "module a\n", "a/b/x.go": ""}, ""),
}


@pytest.mark.parametrize("name", CASES)
def test_the_deciding_folder_is_found(name: str, tmp_path: Path) -> None:
    files, root = CASES[name]
    write_files(tmp_path, {".git/HEAD": "", **files})
    assert find_project_root(tmp_path / "a/b") == tmp_path / root


def test_folders_outside_of_a_repository_have_nothing_above_them(tmp_path: Path) -> None:
    write_files(tmp_path, {"pytest.ini": CONFIGURED, "a/b/x.py": ""})
    assert find_project_root(tmp_path / "a/b") == tmp_path / "a/b"
