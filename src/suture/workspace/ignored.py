"""Which paths of a project are not its code: what `.gitignore` says, environments, caches, secrets."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from fnmatch import fnmatch
from pathlib import Path

from pathspec import GitIgnoreSpec

__all__ = ["IgnoreRules", "never_code"]

NEVER_CODE: Mapping[str, str] = {
    **dict.fromkeys((".git", ".hg", ".svn"), "version control"),
    **dict.fromkeys((".venv", "venv", "node_modules", ".tox", ".nox", ".eggs"), "installed packages"),
    **dict.fromkeys(
        ("__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".ipynb_checkpoints"),
        "cache",
    ),
    ".suture": "Suture's own",
}

SECRETS = (
    *(".env", ".env.*", ".envrc", ".netrc", ".npmrc", ".pypirc", ".pgpass", ".htpasswd", ".aws", ".ssh"),
    *("*.pem", "*.key", "*.p12", "*.pfx", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*"),
    *("secrets.*", "credentials.json", "credentials.ini", "credentials.yml", "credentials.yaml"),
)
"""A snapshot ends up in the run folder and behind the wall; secrets belong in neither."""
NO_SECRETS = ("*.example", "*.sample", "*.template", "*.dist", "*.py", "*.pub")


def never_code(path: Path) -> str | None:
    """Why this file or folder is never part of a project's code; `None` where it may be."""
    reason = NEVER_CODE.get(path.name)
    if reason is None and _named(path, SECRETS) and not _named(path, NO_SECRETS):
        return "may hold secrets"
    if reason is None and path.suffix in (".pyc", ".pyo"):
        return "cache"
    with contextlib.suppress(PermissionError):  # a closed folder: the walk will say so
        if reason is None and (path / "pyvenv.cfg").is_file():
            return "installed packages"
    return reason


def _named(path: Path, globs: Iterable[str]) -> bool:
    return any(fnmatch(path.name, glob) for glob in globs)


class IgnoreRules:
    """The `.gitignore` files that hold for a folder: those below it and, in a repository, those above it.

    A folder that the user named is never ignored itself: rules above that would ignore it are left out.

    Args:
        root: An absolute folder.
    """

    def __init__(self, root: Path) -> None:
        self._specs: list[tuple[Path, GitIgnoreSpec]] = []
        top = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), root)
        self._read(top, top / ".git" / "info" / "exclude")
        between = [root, *root.parents]
        for folder in reversed(between[: between.index(top) + 1]):
            if folder != top and self.ignores(folder, is_folder=True):
                self._specs.clear()
            self.enter(folder)

    def enter(self, folder: Path) -> None:
        """Read the `.gitignore` of a folder, before anything in it is asked about."""
        self._read(folder, folder / ".gitignore")

    def _read(self, folder: Path, file: Path) -> None:
        with contextlib.suppress(PermissionError):  # rules that nobody can read, git does not obey either
            if file.is_file() and not file.is_symlink():
                lines = file.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
                self._specs.append((folder, GitIgnoreSpec.from_lines(lines, backend="simple")))

    def ignores(self, path: Path, *, is_folder: bool) -> bool:
        """Whether the deepest rule that has an opinion on this path says that it is ignored."""
        for folder, spec in reversed(self._specs):
            if not path.is_relative_to(folder):
                continue
            name = path.relative_to(folder).as_posix() + ("/" if is_folder else "")
            verdict = spec.check_file(name).include
            if verdict is not None:
                return verdict
        return False
