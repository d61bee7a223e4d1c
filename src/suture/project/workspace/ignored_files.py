"""Decide which paths of a project are not its code, and which ignored files it needs anyway.

Environments, caches and files in `.gitignore` are not code. But some ignored files are written when the
project is built, and without them nothing can be imported: a version module, generated messages, a compiled
extension of an editable install. An ignored file is therefore taken if an import in the project names it, or
if it is built from a file next to it that is not code (`messages.mo` from `messages.po`). A file whose name or content
suggests that it is ignored because of its secrets is never taken.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from posixpath import splitext

from suture.core.records import ExclusionReason
from suture.core.safe_files import read_regular_file
from suture.errors import UsageError
from suture.project.languages import detect_file_languages
from suture.project.tuning import (
    MAX_FOLDER_DEPTH,
    MAX_IGNORE_FILE_BYTES,
    MAX_IGNORED_ENTRIES,
    MAX_MATCH_STEPS,
)
from suture.project.workspace.globs import Globs, parse_globs
from suture.project.workspace.secret_detection import (
    assigns_secret,
    has_secret_name,
    is_private_name,
    may_hold_secret,
)

NON_CODE_NAMES: Mapping[str, ExclusionReason] = {
    **dict.fromkeys((".git", ".hg", ".svn"), "version_control"),
    **dict.fromkeys((".venv", "venv", "node_modules", ".tox", ".nox", ".eggs"), "installed_packages"),
    **dict.fromkeys(("__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"), "cache"),
    **dict.fromkeys((".hypothesis", ".ipynb_checkpoints"), "cache"),
    ".suture": "suture_files",
}
"""Name of a file or folder that is never code -> why."""

MODULE = re.compile(r"(?P<name>[^\W\d]\w*)(?P<ending>\.py|(?:\.cpython-3\w*|\.abi3)?[-\w]*\.so)")
"""The file name of a module that an import can find. A compiled module may have a build tag before its suffix."""
IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<source>[.\w]+)[ \t]+import[ \t]*(?P<names>\([^)]{0,4000}\)|[^\n]{0,4000})"
    r"|import[ \t]+(?P<modules>[^\n]{0,4000}))",
    re.MULTILINE,
)
"""Matches an import statement, up to its names. The bounds limit the time that a hostile file can cost."""
IMPORT_BY_NAME = re.compile(
    r"(?:import_module|__import__|importorskip)\([ \t\n]{0,80}[fr]?[\"'](?P<name>[.\w]{1,200})"
)
"""Matches a function that imports what a literal names."""
WORD = re.compile(r"[^\W\d]\w*")
PRIVATE_KEY = b"PRIVATE KEY-----"
"""End of the first line of a key in PEM format, of any kind."""

EXCLUSION_TEXTS: Mapping[ExclusionReason, str] = {
    "version_control": "version control",
    "installed_packages": "installed packages",
    "cache": "cache",
    "suture_files": "Suture's own",
    "unprintable_name": "its name is not printable text",
    "unreadable": "cannot be read",
    "not_a_regular_file": "not a regular file",
    "may_hold_secrets": "may hold secrets",
    "unusable_link": "a link that leaves the project or leads nowhere",
    "link_to_no_file": "a link to something that is not a file of the project",
    "ignored": "in .gitignore",
    "ignored_not_imported": "it is in .gitignore, and no import names it",
    "ignored_too_large": "it is in .gitignore, and too large",
    "ignored_may_hold_secrets": "it is in .gitignore, and may hold secrets",
}


def render_exclusion(reason: ExclusionReason) -> str:
    """Return why a file is excluded, in a few words."""
    return EXCLUSION_TEXTS[reason]


def non_code_reason(path: Path, *, is_file: bool = False) -> ExclusionReason | None:
    """Return why a file or folder is never part of a project's code, or `None` if it may be.

    Args:
        is_file: Whether it is known to be a regular file, and so no environment.
    """
    reason = NON_CODE_NAMES.get(path.name)
    if reason is None and path.suffix in (".pyc", ".pyo"):
        return "cache"
    with contextlib.suppress(PermissionError):  # listing the folder will report it
        if reason is None and not is_file and (path / "pyvenv.cfg").is_file():
            return "installed_packages"
    return reason


class IgnoreRules:
    """The `.gitignore` files that apply to a folder: those below it and, in a repository, those above it.

    A folder that the user names is never ignored itself: rules above it that would ignore it do not count.

    Args:
        root: An absolute folder.
    """

    def __init__(self, root: Path) -> None:
        self._rules: list[tuple[str, Globs]] = []
        """(a folder with a slash at its end, the rules of its file)"""
        self._steps_left = MAX_MATCH_STEPS
        top = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), root)
        self._read(top, top / ".git" / "info" / "exclude")
        folders = [root, *root.parents]
        for folder in reversed(folders[: folders.index(top) + 1]):
            if folder != top and self.ignores(folder, is_folder=True):
                self._rules.clear()
            self.enter(folder)

    def enter(self, folder: Path) -> None:
        """Read the `.gitignore` of a folder. This must happen before anything in the folder is checked."""
        self._read(folder, folder / ".gitignore")

    def _read(self, folder: Path, file: Path) -> None:
        """Add the rules of one file, which apply to a folder. There need not be such a file."""
        with contextlib.suppress(PermissionError):  # git ignores unreadable rules, too
            content = read_regular_file(file, MAX_IGNORE_FILE_BYTES)
            if content is None:
                return
            if len(content) > MAX_IGNORE_FILE_BYTES:
                raise UsageError(
                    f"{str(file)!r} holds more than {MAX_IGNORE_FILE_BYTES // 2**20} MiB of patterns",
                    remedy="make it shorter, or name a smaller folder",
                )
            lines = content.decode("utf-8-sig", "surrogateescape").replace("\r\n", "\n").split("\n")
            rules = parse_globs(lines, repr(str(file)))
            if rules.patterns:
                self._rules.append((str(folder).rstrip("/") + "/", rules))

    def ignores(self, path: Path, *, is_folder: bool) -> bool:
        """Return whether a path is ignored, by the deepest rule that matches it.

        Raises:
            UsageError: There are too many or too long rules for that many paths.
        """
        name = str(path)
        for folder, rules in reversed(self._rules):
            if not name.startswith(folder):
                continue
            rules.steps_left = self._steps_left  # all rules share one limit
            try:
                verdict = rules.verdict(name[len(folder) :], is_folder=is_folder)
            finally:
                self._steps_left = rules.steps_left
            if verdict is not None:
                return verdict
        return False


def module_name(file: str) -> str:
    """Return the name by which an import finds a file; empty if the file is not a module."""
    match = MODULE.fullmatch(file)
    return match["name"] if match else ""


def looks_private(path: str, content: bytes) -> bool:
    """Return whether a file may be ignored by git because it holds a secret of the user.

    Args:
        path: Path relative to the project. The names of its folders count, too.
        content: Content of the file. In compiled files, only complete keys are recognised.
    """
    if any(is_private_name(part) for part in path.rpartition(".")[0].split("/")):
        return True
    # The name of code says nothing: `secrets.py` may be a module about secrets.
    if path.endswith(".py"):
        return may_hold_secret(content)
    if module_name(path.rpartition("/")[2]) or b"\0" in content:
        return PRIVATE_KEY in content
    return has_secret_name(path, is_folder=False) or may_hold_secret(content) or assigns_secret(content)


def imported_names(text: str) -> frozenset[str]:
    """Return every word in the imports of a file: packages, modules, and names imported from them."""
    words: set[str] = set()
    for match in IMPORT.finditer(text):
        for part in match.group("source", "names", "modules"):
            words.update(WORD.findall(part or ""))
    for match in IMPORT_BY_NAME.finditer(text):
        words.update(WORD.findall(match["name"]))
    return frozenset(words)


@dataclass(kw_only=True)
class IgnoredModules:
    """Collects the ignored files of a project, and selects those that an import or a build needs.

    Attributes:
        allowed: Globs of files that the user allows although they look like secrets.
        modules: Path of an ignored module -> the names that an import must contain to load it, such as
            `("shop", "version")`.
        others: Ignored files that are not modules, in folders that are not ignored.
        taken: Selected files, path -> content.
        excluded: Path of a file that was not selected -> why not.
    """

    top: Path
    allowed: Globs
    modules: dict[Path, tuple[str, ...]] = field(default_factory=dict)
    others: list[Path] = field(default_factory=list)
    taken: dict[str, bytes] = field(default_factory=dict)
    excluded: dict[str, ExclusionReason] = field(default_factory=dict)

    def add(self, path: Path, *, is_folder: bool) -> None:
        """Add an ignored file, or the modules in an ignored folder."""
        if is_folder and path.name.isidentifier():  # others cannot be packages
            self.modules.update(_modules_below(path))
        elif not is_folder and module_name(path.name):
            name = module_name(path.name)
            self.modules[path] = (path.parent.name if name == "__init__" else name,)
        elif not is_folder and len(self.others) < MAX_IGNORED_ENTRIES:
            self.others.append(path)

    def remove(self, path: Path) -> None:
        """Forget a file that belongs to the project for another reason."""
        self.modules.pop(path, None)
        self.others = [other for other in self.others if other != path]

    def select(self, files: Mapping[str, bytes], left_bytes: int) -> None:
        """Select the files that were built from the project's files, and the modules that imports name.

        Args:
            left_bytes: Max total size of the selected files.
        """
        sources = {splitext(name)[0] for name in files if self.others and not detect_file_languages((name,))}
        for path in self.others:
            if splitext(self._relative_name(path))[0] in sources:
                left_bytes -= len(self._take(path, left_bytes) or b"")
        if not self.modules:
            return
        imported: set[str] = set()
        for name, content in files.items():
            if name.endswith(".py"):
                imported |= imported_names(content.decode("utf-8", "replace"))
        remaining = dict(self.modules)
        # Repeat until nothing changes, because a module that is taken may import another ignored one.
        while matches := [path for path, names in remaining.items() if imported.issuperset(names)]:
            for path in matches:
                del remaining[path]
                module = self._take(path, left_bytes)
                if module is not None:
                    left_bytes -= len(module)
                    source = module.decode("utf-8", "replace") if path.suffix == ".py" else ""
                    imported |= imported_names(source)
        for path in remaining:
            self.excluded[self._relative_name(path)] = "ignored_not_imported"

    def _take(self, path: Path, left_bytes: int) -> bytes | None:
        """Read and take a file; return its content, or `None` if it stays excluded."""
        name = self._relative_name(path)
        reason: ExclusionReason
        try:
            content = read_regular_file(path, max(left_bytes, 0))
        except OSError:
            reason = "unreadable"
        else:
            if content is None:
                reason = "not_a_regular_file"
            elif len(content) > left_bytes:
                reason = "ignored_too_large"
            elif looks_private(name, content) and not self.allowed.covers(name):
                reason = "ignored_may_hold_secrets"
            else:
                self.taken[name] = content
                return content
        self.excluded[name] = reason
        return None

    def _relative_name(self, path: Path) -> str:
        return path.relative_to(self.top).as_posix()


def _modules_below(folder: Path) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Yield (path, names that an import must contain to load it) of each module in an ignored folder."""
    entries_left = MAX_IGNORED_ENTRIES
    for parent, folders, files in os.walk(folder):
        # Changing the list in place is how `os.walk` is told which folders to enter.
        folders[:] = sorted(name for name in folders if name.isidentifier() and not name.startswith("__"))
        entries_left -= len(folders) + len(files)
        if entries_left < 0:
            return
        package = (folder.name, *Path(parent).relative_to(folder).parts)
        if len(package) >= MAX_FOLDER_DEPTH:
            folders.clear()  # `os.walk` recurses into each of them
        for file in sorted(files):
            name = module_name(file)
            if name:
                yield Path(parent, file), package if name == "__init__" else (*package, name)
