"""A project's code as it is now, as bytes. Reading follows no link and opens nothing but regular files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from suture.errors import UsageError
from suture.workspace.ignored import IgnoreRules, never_code

__all__ = ["Snapshot", "take_snapshot"]

MAX_BYTES = 64 * 2**20
MAX_FILES = 5000


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


def take_snapshot(root: Path, *, max_bytes: int = MAX_BYTES, max_files: int = MAX_FILES) -> Snapshot:
    """Read a project.

    Args:
        root: A folder, or one file, which is then the whole project.
        max_bytes: The most that is read in all.
        max_files: The most files.

    Raises:
        UsageError: There is nothing at `root`, it cannot be read, or it is too large.
    """
    try:
        top = root.resolve(strict=True)
    except (OSError, RuntimeError) as fault:  # RuntimeError: a loop of links
        raise UsageError(f"there is nothing at {str(root)!r}") from fault
    reader = _Reader(top=top, max_bytes=max_bytes, max_files=max_files)
    try:
        if top.is_dir():
            reader.read_folder()
        elif top.is_file():
            reader.top = top.parent
            reader.read_file(top)
        else:
            raise UsageError(f"{str(root)!r} is neither a folder nor a regular file")
    except OSError as fault:
        raise UsageError(f"{str(root)!r} cannot be read: {os.strerror(fault.errno or 0)}") from fault
    return Snapshot(root=reader.top, files=dict(sorted(reader.files.items())), skipped=tuple(reader.skipped))


@dataclass(kw_only=True)
class _Reader:
    top: Path
    max_bytes: int
    max_files: int
    files: dict[str, bytes] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    links: list[Path] = field(default_factory=list)
    size_bytes: int = 0

    def read_folder(self) -> None:
        for path in self._walk(self.top, IgnoreRules(self.top)):
            self.read_file(path)
        for link in self.links:
            self._read_link(link)

    def _walk(self, folder: Path, rules: IgnoreRules) -> Iterator[Path]:
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except PermissionError:
            if folder == self.top:
                raise
            self._skip(folder, "cannot be read")
            return
        for entry in entries:
            path = Path(entry.path)
            is_folder = entry.is_dir(follow_symlinks=False)
            reason = _unspeakable(entry.name) or never_code(path)
            if reason is None and rules.ignores(path, is_folder=is_folder):
                reason = "in .gitignore"
            if reason is not None:
                self._skip(path, reason)
            elif entry.is_symlink():
                self.links.append(path)
            elif is_folder:
                rules.enter(path)
                yield from self._walk(path, rules)
            else:
                yield path

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
            self._keep(path, file.read(self.max_bytes + 1))

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
        remedy = "name a smaller folder, or list what is not code in .gitignore"
        if len(self.files) >= self.max_files:
            raise UsageError(f"{str(self.top)!r} holds more than {self.max_files} files", remedy=remedy)
        if self.size_bytes + more_bytes > self.max_bytes:
            raise UsageError(
                f"{str(self.top)!r} holds more than {self.max_bytes / 2**20:g} MiB"
                f" (reached at {path.relative_to(self.top).as_posix()!r})",
                remedy=remedy,
            )

    def _skip(self, path: Path, reason: str) -> None:
        shown = path.relative_to(self.top).as_posix().encode("utf-8", "backslashreplace").decode()
        self.skipped.append(f"{shown} ({reason})")


def _unspeakable(name: str) -> str | None:
    """Why a name cannot stand in a diff, a prompt or a ledger."""
    if not name.isprintable():  # control characters, and bytes that are not UTF-8
        return "its name is not printable text"
    return None
