"""Which paths of a project are not its code: what `.gitignore` says, environments, caches."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from posixpath import splitext

from suture.core.safe_files import read_regular_file
from suture.errors import UsageError
from suture.project.languages import detect_file_languages
from suture.project.workspace.globs import MOST_STEPS, Globs, parse_globs
from suture.project.workspace.secret_detection import (
    assigns_secret,
    has_secret_name,
    is_private_name,
    may_hold_secret,
)

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


def non_code_reason(path: Path) -> str | None:
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
            content = read_regular_file(file, MOST_BYTES)
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


MODULE = re.compile(r"(?P<name>[^\W\d]\w*)(?P<ending>\.py|(?:\.cpython-3\w*|\.abi3)?[-\w]*\.so)")
"""The name of a file that an import may find; a build tag may stand before the ending of a compiled one."""
IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<source>[.\w]+)[ \t]+import[ \t]*(?P<names>\([^)]{0,4000}\)|[^\n]{0,4000})"
    r"|import[ \t]+(?P<modules>[^\n]{0,4000}))",
    re.MULTILINE,
)
BY_NAME = re.compile(
    r"(?:import_module|__import__|importorskip)\([ \t\n]{0,80}[fr]?[\"'](?P<name>[.\w]{1,200})"
)
WORD = re.compile(r"[^\W\d]\w*")
PRIVATE_KEY = b"PRIVATE KEY-----"
MOST_ENTRIES = 2000
"""Names that are looked at in one ignored folder: it may as well hold data."""
MAX_DEPTH = 64


def module_name(file: str) -> str:
    """The name by which an import finds a file of this name; empty where none does."""
    match = MODULE.fullmatch(file)
    return match["name"] if match else ""


def looks_private(path: str, content: bytes) -> bool:
    """Whether a file that git ignores may be ignored for what only its user may know.

    Args:
        path: Relative to the project: a folder may tell by its name too.
        content: What it holds; of a compiled one only whole keys are looked for.
    """
    if any(is_private_name(part) for part in path.rpartition(".")[0].split("/")):
        return True
    if path.endswith(".py"):
        return may_hold_secret(content)
    if module_name(path.rpartition("/")[2]) or b"\0" in content:
        return PRIVATE_KEY in content
    return has_secret_name(path, is_folder=False) or may_hold_secret(content) or assigns_secret(content)


def imported_names(text: str) -> frozenset[str]:
    """Every word that stands in an import: packages, modules, and what is taken from them."""
    words: set[str] = set()
    for match in IMPORT.finditer(text):
        for part in match.group("source", "names", "modules"):
            words.update(WORD.findall(part or ""))
    for match in BY_NAME.finditer(text):
        words.update(WORD.findall(match["name"]))
    return frozenset(words)


@dataclass(kw_only=True)
class IgnoredModules:
    """What git ignores in a project, and an import or a build may need; and what became of it.

    Attributes:
        top: The project's folder.
        allowed: Files that the user lets in although they look like secrets.
        known: Their files -> the names that an import must tell to get there.
        others: Ignored files that are no modules, in folders that are not ignored.
        taken: Those that belong to the project after all, by their path in it.
        left_out: The others, by their path -> why.
    """

    top: Path
    allowed: Globs
    known: dict[Path, tuple[str, ...]] = field(default_factory=dict)
    others: list[Path] = field(default_factory=list)
    taken: dict[str, bytes] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def note(self, path: Path, *, is_folder: bool) -> None:
        """Note what an import could find in an ignored file or folder."""
        if is_folder and path.name.isidentifier():
            self.known.update(_modules_below(path))
        elif not is_folder and module_name(path.name):
            name = module_name(path.name)
            self.known[path] = (path.parent.name if name == "__init__" else name,)
        elif not is_folder and len(self.others) < MOST_ENTRIES:
            self.others.append(path)

    def forget(self, path: Path) -> None:
        """Another rule lets this one in."""
        self.known.pop(path, None)
        self.others = [other for other in self.others if other != path]

    def take(self, files: Mapping[str, bytes], room_bytes: int, room_files: int) -> None:
        """Take what a build made of the project's files, and what it imports, each after what names it.

        Args:
            files: The project without them.
            room_bytes: The most that they may hold together.
            room_files: The most files that may still be taken.
        """
        sources = {splitext(name)[0] for name in files if self.others and not detect_file_languages((name,))}
        for path in self.others:
            if splitext(self._name(path))[0] in sources:
                made = self._read(path, room_bytes, room_files)
                room_bytes, room_files = room_bytes - len(made or b""), room_files - (made is not None)
        if not self.known:
            return
        named: set[str] = set()
        for name, content in files.items():
            if name.endswith(".py"):
                named |= imported_names(content.decode("utf-8", "replace"))
        waiting = dict(self.known)
        while found := [path for path, names in waiting.items() if named.issuperset(names)]:
            for path in found:
                del waiting[path]
                taken = self._read(path, room_bytes, room_files)
                if taken is not None:
                    room_bytes, room_files = room_bytes - len(taken), room_files - 1
                    source = taken.decode("utf-8", "replace") if path.suffix == ".py" else ""
                    named |= imported_names(source)  # one such module may import another one
        self.left_out.update(
            (self._name(path), "it is in .gitignore, and no import names it") for path in waiting
        )

    def _read(self, path: Path, room_bytes: int, room_files: int) -> bytes | None:
        """One of them; nothing where it stays out."""
        name = self._name(path)
        try:
            content = read_regular_file(path, max(room_bytes, 0))
        except OSError as fault:
            why = f"it cannot be read: {os.strerror(fault.errno or 0)}"
        else:
            if content is None:
                why = "it is not a regular file"
            elif len(content) > room_bytes or not room_files:
                why = "it is in .gitignore, and too large"
            elif looks_private(name, content) and not self.allowed.covers(name):
                why = "it is in .gitignore, and may hold secrets"
            else:
                self.taken[name] = content
                return content
        self.left_out[name] = why
        return None

    def _name(self, path: Path) -> str:
        return path.relative_to(self.top).as_posix()


def _modules_below(folder: Path) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """The files of modules in an ignored folder, each with the names by which an import would get to it."""
    left = MOST_ENTRIES
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name.isidentifier() and not name.startswith("__"))
        left -= len(folders) + len(files)
        if left < 0:
            return
        within = (folder.name, *Path(place).relative_to(folder).parts)
        if len(within) >= MAX_DEPTH:
            folders.clear()  # `os.walk` calls itself for each
        for file in sorted(files):
            name = module_name(file)
            if name:
                yield Path(place, file), within if name == "__init__" else (*within, name)
