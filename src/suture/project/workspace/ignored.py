"""Which paths of a project are not its code: what `.gitignore` says, environments, caches."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from suture.core.safe_files import read_plain
from suture.errors import UsageError
from suture.project.workspace.globs import MOST_STEPS, Globs, parse_globs

NEVER_CODE: Mapping[str, str] = {
    **dict.fromkeys((".git", ".hg", ".svn"), "version control"),
    **dict.fromkeys((".venv", "venv", "node_modules", ".tox", ".nox", ".eggs"), "installed packages"),
    **dict.fromkeys(
        ("__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".ipynb_checkpoints"),
        "cache",
    ),
    ".suture": "Suture's own",
}

MOST_BYTES = 2**20
"""The most of one `.gitignore` that is read."""


def never_code(path: Path) -> str | None:
    """Why this file or folder is never part of a project's code; `None` where it may be."""
    reason = NEVER_CODE.get(path.name)
    if reason is None and path.suffix in (".pyc", ".pyo"):
        return "cache"
    with contextlib.suppress(PermissionError):  # a closed folder: the walk will say so
        if reason is None and (path / "pyvenv.cfg").is_file():
            return "installed packages"
    return reason


class IgnoreRules:
    """The `.gitignore` files that hold for a folder: those below it and, in a repository, those above it.

    A folder that the user named is never ignored itself: rules above that would ignore it are left out.

    Args:
        root: An absolute folder.
    """

    def __init__(self, root: Path) -> None:
        self._rules: list[tuple[Path, Globs]] = []
        self._steps_left = MOST_STEPS
        top = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), root)
        self._read(top, top / ".git" / "info" / "exclude")
        between = [root, *root.parents]
        for folder in reversed(between[: between.index(top) + 1]):
            if folder != top and self.ignores(folder, is_folder=True):
                self._rules.clear()
            self.enter(folder)

    def enter(self, folder: Path) -> None:
        """Read the `.gitignore` of a folder, before anything in it is asked about."""
        self._read(folder, folder / ".gitignore")

    def _read(self, folder: Path, file: Path) -> None:
        with contextlib.suppress(PermissionError):  # rules that nobody can read, git does not obey either
            content = read_plain(file, MOST_BYTES)
            if content is None:
                return
            if len(content) > MOST_BYTES:
                raise UsageError(
                    f"{str(file)!r} holds more than {MOST_BYTES // 2**20} MiB of patterns",
                    remedy="make it shorter, or name a smaller folder",
                )
            lines = content.decode("utf-8-sig", "surrogateescape").replace("\r\n", "\n").split("\n")
            rules = parse_globs(lines, repr(str(file)))
            if rules.patterns:
                self._rules.append((folder, rules))

    def ignores(self, path: Path, *, is_folder: bool) -> bool:
        """Whether the deepest rule that has an opinion on this path says that it is ignored.

        Raises:
            UsageError: The rules are too many or too long for that many paths.
        """
        for folder, rules in reversed(self._rules):
            if not path.is_relative_to(folder):
                continue
            rules.steps_left = self._steps_left  # all files of rules together have one limit
            try:
                verdict = rules.verdict(path.relative_to(folder).as_posix(), is_folder=is_folder)
            finally:
                self._steps_left = rules.steps_left
            if verdict is not None:
                return verdict
        return False
