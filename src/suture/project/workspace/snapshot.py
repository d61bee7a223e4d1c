"""A project's code as it is now, as bytes. Reading follows no link and opens nothing but regular files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from suture.errors import PrerequisiteError, StorageError, UsageError
from suture.project.workspace.globs import Globs, parse_globs
from suture.project.workspace.ignored_files import IgnoredModules, IgnoreRules, non_code_reason
from suture.project.workspace.protected import is_test_file
from suture.project.workspace.repository import open_repository
from suture.project.workspace.secret_detection import has_secret_name, is_private_key, unchanged_since_commit

MAX_BYTES = 64 * 2**20
"""Of a project's files together: each run keeps them in memory, and sends them behind the wall."""
MAX_FILES = 5000
"""Of them; whose project is larger names a part of it."""
MAX_ENTRIES = 100_000
"""Of names that are looked at, whether they are part of the project or not."""
MAX_DEPTH = 64
REMEDY = "name a smaller folder, or list what is not code in .gitignore"
MOST_LEFT_OUT = 500
"""Names of files that were left out, for the ledger."""
IGNORED = "in .gitignore"
UNPRINTABLE_NAME = "its name is not printable text"
"""It cannot stand in a diff, a prompt or a ledger."""
IGNORED_END = f" ({IGNORED})"


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """What a project looked like.

    Attributes:
        root: The folder that paths are relative to, absolute.
        files: POSIX path relative to `root` -> content.
        skipped: What was left out, as `path (reason)`; a folder stands for all that is in it.
    """

    root: Path
    files: Mapping[str, bytes]
    skipped: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    """Those of them that were left out because they may hold secrets; a folder ends with a slash."""
    built_files: tuple[str, ...] = ()
    """Those of `files` that git ignores and the project imports: they were written when it was built."""
    excluded_files: Mapping[str, str] = field(default_factory=dict)
    """Files of modules that git ignores, and what has a name that cannot be written down -> why it is not
    among `files`. Such a name is as Python would print it."""


def take_snapshot(
    root: Path, *, secrets: Sequence[str] = (), max_bytes: int = MAX_BYTES, max_files: int = MAX_FILES
) -> Snapshot:
    """Read a project's files into memory.

    Args:
        root: A folder, or one file, which is then the whole project.
        secrets: Globs of files that are let in although they look like secrets. The user's word, and never
            that of the project's own files.
        max_bytes: The most that is read in all.
        max_files: The most files that a project may have.

    Raises:
        UsageError: There is nothing at `root`, it cannot be read, or it is too large.
    """
    try:
        top = root.resolve(strict=True)
    except (OSError, RuntimeError) as fault:  # RuntimeError: a loop of links
        raise UsageError(f"there is nothing at {str(root)!r}") from fault
    allowed = parse_globs(secrets, "the globs of secrets")
    reader = _Reader(top=top, allowed=allowed, max_bytes=max_bytes, max_files=max_files)
    try:
        if top.is_dir():
            reader.read_folder()
        elif top.is_file():
            reader.top, reader.named = top.parent, top
            reader.read_file(top)
        else:
            raise UsageError(f"{str(root)!r} is neither a folder nor a regular file")
    except OSError as fault:
        raise UsageError(f"{str(root)!r} cannot be read: {os.strerror(fault.errno or 0)}") from fault
    return Snapshot(
        root=reader.top,
        files=dict(sorted(reader.files.items())),
        skipped=tuple(reader.skipped),
        secrets=tuple(sorted(reader.secrets)),
        built_files=tuple(sorted(reader.modules.taken)),
        excluded_files=dict(
            sorted({**reader.modules.left_out, **reader.unspeakable}.items())[:MOST_LEFT_OUT]
        ),
    )


@dataclass(kw_only=True)
class _Reader:
    top: Path
    allowed: Globs
    max_bytes: int
    max_files: int
    files: dict[str, bytes] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)
    fixtures: dict[str, bytes] = field(default_factory=dict)
    """Files that look like secrets and lie among the tests."""
    unspeakable: dict[str, str] = field(default_factory=dict)
    links: list[Path] = field(default_factory=list)
    entries: int = 0
    named: Path | None = None
    """The one file that the user asked for."""
    size_bytes: int = 0

    def __post_init__(self) -> None:
        self.modules = IgnoredModules(top=self.top, allowed=self.allowed)

    def read_folder(self) -> None:
        for path in self._walk(self.top, IgnoreRules(self.top)):
            self.read_file(path)
        self._read_tracked()
        self._let_fixtures_in()
        self.modules.take(self.files, self.max_bytes - self.size_bytes, self.max_files - len(self.files))
        for name, content in self.modules.taken.items():
            self._keep(self.top / name, content)
        taken = {f"{name} ({IGNORED})" for name in self.modules.taken}
        self.skipped = [entry for entry in self.skipped if entry not in taken]
        for link in self.links:
            self._read_link(link)

    def _walk(self, folder: Path, rules: IgnoreRules) -> Iterator[Path]:
        try:
            entries = self._listed(folder)
        except PermissionError:
            if folder == self.top:
                raise
            self._skip(folder, "cannot be read")
            return
        for entry in entries:
            path = Path(entry.path)
            is_folder = entry.is_dir(follow_symlinks=False)
            reason = _unspeakable(entry.name) or non_code_reason(path)
            if reason == UNPRINTABLE_NAME and len(self.unspeakable) < MOST_LEFT_OUT:
                self.unspeakable[repr(path.relative_to(self.top).as_posix())[1:-1]] = reason
            if reason is None and rules.ignores(path, is_folder=is_folder):
                reason = IGNORED
                if not entry.is_symlink():
                    self.modules.note(path, is_folder=is_folder)
            if reason is not None:
                self._skip(path, reason)
            elif entry.is_symlink():
                self.links.append(path)
            elif is_folder and self._is_secret(path, is_folder=True):
                self._leave_secret(path, "/")
            elif is_folder:
                rules.enter(path)
                yield from self._walk(path, rules)
            else:
                yield path

    def _read_tracked(self) -> None:
        """What git ignores and tracks all the same, as by `git add --force`: to git, it is not ignored."""
        ignored = {entry.removesuffix(IGNORED_END) for entry in self.skipped if entry.endswith(IGNORED_END)}
        for name in tracked_files(self.top) if ignored else ():
            path = self.top / name
            above = [part for part in path.parents if part.is_relative_to(self.top) and part != self.top]
            if ignored.isdisjoint([name, *(part.relative_to(self.top).as_posix() for part in above)]):
                continue
            closed = any(non_code_reason(part) or self._is_secret(part, is_folder=True) for part in above)
            # The index is text of the project's: what lies there now may be a link, and lead out of it.
            plain = path.is_file() and path.resolve() == path
            if plain and not closed and not non_code_reason(path) and not _unspeakable(name):
                self.modules.forget(path)
                self.skipped = [entry for entry in self.skipped if entry != f"{name} ({IGNORED})"]
                self.read_file(path)

    def _listed(self, folder: Path) -> list[os.DirEntry[str]]:
        """What a folder holds, sorted. There can be millions of names, and folders at any depth."""
        with os.scandir(folder) as scan:
            entries = list(islice(scan, MAX_ENTRIES - self.entries + 1))
        self.entries += len(entries)
        depth = len(folder.parts) - len(self.top.parts)
        if self.entries > MAX_ENTRIES or depth > MAX_DEPTH:
            shown = folder.relative_to(self.top).as_posix()[:80]
            raise UsageError(
                f"{str(self.top)!r} holds more than {MAX_ENTRIES} files and folders, or more than {MAX_DEPTH}"
                f" folders in one another (reached in {shown!r})",
                remedy=REMEDY,
            )
        return sorted(entries, key=lambda entry: entry.name)

    def read_file(self, path: Path) -> None:
        """Read one regular file; anything else is skipped, also when it changed since it was listed."""
        try:
            # O_NONBLOCK: opening a pipe must not wait for its other end.
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            is_plain = stat.S_ISREG(path.lstat().st_mode)
            self._skip(path, "cannot be read" if is_plain else "not a regular file")
            return
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                self._skip(path, "not a regular file")
                return
            self._require_room(path, status.st_size)
            self._sort_in(path, file.read(self.max_bytes + 1))

    def _sort_in(self, path: Path, content: bytes) -> None:
        name = path.relative_to(self.top).as_posix()
        secret = self._is_secret(path, is_folder=False) or is_private_key(content)
        if path == self.named or not secret or self.allowed.covers(name):
            self._keep(path, content)
        elif is_test_file(name):
            self.fixtures[name] = content
        else:
            self._leave_secret(path)

    def _is_secret(self, path: Path, *, is_folder: bool) -> bool:
        name = path.relative_to(self.top).as_posix()
        allowed = self.allowed.verdict(name, is_folder=is_folder) or self.allowed.covers(name)
        return has_secret_name(name, is_folder=is_folder) and not allowed

    def _leave_secret(self, path: Path, end: str = "") -> None:
        self._skip(path, "may hold secrets")
        self.secrets.append(path.relative_to(self.top).as_posix() + end)

    def _let_fixtures_in(self) -> None:
        """What a repository gives to everybody is no secret of the user's, where it lies among the tests."""
        known = unchanged_since_commit(self.top, self.fixtures) if self.fixtures else frozenset()
        for name, content in self.fixtures.items():
            if name in known:
                self._keep(self.top / name, content)
            else:
                self._leave_secret(self.top / name)

    def _read_link(self, link: Path) -> None:
        # A link to a file that is part of the snapshot is a second name for it; any other is not followed.
        try:
            name = link.resolve(strict=True).relative_to(self.top).as_posix()
        except (OSError, RuntimeError, ValueError):
            self._skip(link, "a link that leaves the project or leads nowhere")
            return
        if name in self.files:
            self._keep(link, self.files[name])
        else:
            self._skip(link, "a link to something that is not a file of the project")

    def _keep(self, path: Path, content: bytes) -> None:
        self._require_room(path, len(content))
        self.size_bytes += len(content)
        self.files[path.relative_to(self.top).as_posix()] = content

    def _require_room(self, path: Path, more_bytes: int) -> None:
        if len(self.files) >= self.max_files:
            raise UsageError(f"{str(self.top)!r} holds more than {self.max_files} files", remedy=REMEDY)
        if self.size_bytes + more_bytes > self.max_bytes:
            raise UsageError(
                f"{str(self.top)!r} holds more than {self.max_bytes / 2**20:g} MiB"
                f" (reached at {path.relative_to(self.top).as_posix()!r})",
                remedy=REMEDY,
            )

    def _skip(self, path: Path, reason: str) -> None:
        shown = path.relative_to(self.top).as_posix().encode("utf-8", "backslashreplace").decode()
        self.skipped.append(f"{shown} ({reason})")


def tracked_files(root: Path) -> list[str]:
    """What git tracks in a folder; nothing where that lies in no repository that can be read."""
    try:
        return open_repository(root).tracked()
    except (PrerequisiteError, StorageError, UsageError):
        return []


def _unspeakable(name: str) -> str | None:
    """Why a name cannot stand in a diff, a prompt or a ledger."""
    if not name.isprintable():  # control characters, and bytes that are not UTF-8
        return UNPRINTABLE_NAME
    return None
