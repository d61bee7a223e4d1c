"""Writing and reading the files of small projects."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = ["read_tree", "write_files"]


def write_files(folder: Path, files: Mapping[str, str]) -> Path:
    """Write the files below the folder, with their parent folders, and return the folder."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def read_tree(folder: Path) -> dict[str, bytes]:
    """Return the content of every file below the folder, by relative path."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
