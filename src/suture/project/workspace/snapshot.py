"""Read a project's files into memory, as the snapshot that a run works on.

Nothing but regular files is opened, and no link is followed.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from suture.core.records import ExclusionReason
from suture.errors import PrerequisiteError, StorageError, UsageError
from suture.project import tuning
from suture.project.workspace.globs import Globs, parse_globs
from suture.project.workspace.history import find_project_root
from suture.project.workspace.ignored_files import IgnoredModules, IgnoreRules, non_code_reason
from suture.project.workspace.protected import is_test_file
from suture.project.workspace.repository import open_repository
from suture.project.workspace.secret_detection import has_secret_name, is_private_key, unchanged_since_commit

MAX_NAMED_FOLDERS = 3
"""Folders that the error about a project's size names."""
TOO_LARGE_REMEDY = "name a smaller folder, or list what is not code in .gitignore"


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The files of a project at one moment.

    Attributes:
        root: The folder that all paths are relative to, absolute.
        files: POSIX path -> content.
        skipped: Path of a file or folder that is not in `files` -> why it is not.
        secrets: Paths that were skipped because they may hold secrets. The path of a folder ends with a slash.
            Not to be confused with the argument of `take_snapshot`, which holds the allowed ones.
        built_files: Paths in `files` that git ignores and the project imports, because its build wrote them.
        excluded_files: Path -> why it is not in `files`, for those skipped files that a user may miss: modules
            that git ignores, and files whose names cannot be printed. Such a name is escaped as in Python.
        folder: The folder below `root` that the user works on, if files above it decide its tests; empty for
            all of `root`.
        links: Path of a link to a folder of the project -> that folder. Its files are only in `files` by their
            paths in the folder.
    """

    root: Path
    files: Mapping[str, bytes]
    skipped: Mapping[str, ExclusionReason] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    built_files: tuple[str, ...] = ()
    excluded_files: Mapping[str, ExclusionReason] = field(default_factory=dict)
    folder: str = ""
    links: Mapping[str, str] = field(default_factory=dict)


def take_snapshot_with_parents(path: Path, *, secrets: Sequence[str] = ()) -> Snapshot:
    """Read a project's files, and those of the folders above it that decide its tests.

    If all of that is too large for a project, only the project itself is read. Arguments and errors are as for
    `take_snapshot`.
    """
    try:
        folder = path.resolve(strict=True)
        root = find_project_root(folder) if folder.is_dir() else folder
    except (OSError, RuntimeError):
        root = folder = path  # `take_snapshot` explains what is wrong
    if root != folder:
        with suppress(UsageError):
            return replace(take_snapshot(root, secrets=secrets), folder=folder.relative_to(root).as_posix())
    return take_snapshot(path, secrets=secrets)


def take_snapshot(
    root: Path,
    *,
    secrets: Sequence[str] = (),
    max_bytes: int = tuning.MAX_PROJECT_BYTES,
) -> Snapshot:
    """Read a project's files into memory.

    Args:
        root: A folder, or one file, which is then the whole project.
        secrets: Globs of files that are read although they look like secrets. They must come from the user,
            never from the project's own files.
        max_bytes: Max total size of the files.

    Raises:
        UsageError: There is nothing at `root`, it cannot be read, or it is too large.
    """
    try:
        top = root.resolve(strict=True)
    except (OSError, RuntimeError) as fault:  # RuntimeError: a loop of links
        raise UsageError(f"there is nothing at {str(root)!r}", remedy="name the project's folder") from fault
    allowed = parse_globs(secrets, "the globs of secrets")
    reader = _ProjectReader(top=top, allowed=allowed, max_bytes=max_bytes)
    try:
        if top.is_dir():
            reader.read_folder()
        elif top.is_file():
            reader.top, reader.requested_file = top.parent, top
            reader.read_file(top)
        else:
            raise UsageError(f"{str(root)!r} is neither a folder nor a regular file")
    except OSError as fault:
        raise UsageError(f"{str(root)!r} cannot be read: {os.strerror(fault.errno or 0)}") from fault
    excluded = {**reader.modules.excluded, **reader.unprintable}
    return Snapshot(
        root=reader.top,
        files=dict(sorted(reader.files.items())),
        skipped=reader.skipped,
        secrets=tuple(sorted(reader.secrets)),
        built_files=tuple(sorted(reader.modules.taken)),
        excluded_files=dict(sorted(excluded.items())[: tuning.MAX_EXCLUDED_FILES]),
        links=dict(sorted(reader.folder_links.items())),
    )


@dataclass(kw_only=True)
class _ProjectReader:
    """Reads a project's files one after the other, and decides which belong to the snapshot."""

    top: Path
    """The project's folder."""
    allowed: Globs
    """Globs of files that the user allows although they look like secrets."""
    max_bytes: int
    files: dict[str, bytes] = field(default_factory=dict)
    skipped: dict[str, ExclusionReason] = field(default_factory=dict)
    secrets: list[str] = field(default_factory=list)
    fixtures: dict[str, bytes] = field(default_factory=dict)
    """Files among the tests that look like secrets. They are added if they are committed unchanged."""
    unprintable: dict[str, ExclusionReason] = field(default_factory=dict)
    links: list[Path] = field(default_factory=list)
    """Links, which are resolved when all files are known."""
    folder_links: dict[str, str] = field(default_factory=dict)
    entries: int = 0
    """Number of names that were listed."""
    requested_file: Path | None = None
    """The single file that the user asked for, which is read even if it looks like a secret."""
    size_bytes: int = 0

    def __post_init__(self) -> None:
        self.modules = IgnoredModules(top=self.top, allowed=self.allowed)

    def read_folder(self) -> None:
        """Read everything: files, what git tracks, committed fixtures, ignored modules, and finally links."""
        paths = list(self._walk(self.top, IgnoreRules(self.top)))
        self._require_size(paths)
        for path in paths:
            self.read_file(path)
        self._read_tracked()
        self._add_committed_fixtures()
        self.modules.select(self.files, self.max_bytes - self.size_bytes)
        for name, content in self.modules.taken.items():
            self._add(self.top / name, content)
            self._unskip_ignored(name)
        for link in self.links:
            self._read_link(link)

    def _walk(self, folder: Path, rules: IgnoreRules) -> Iterator[Path]:
        """Yield the files of a folder that may be code, and note everything else that is in it."""
        try:
            entries = self._list_folder(folder)
        except (PermissionError, FileNotFoundError, NotADirectoryError) as fault:
            if folder == self.top:
                raise
            if isinstance(fault, PermissionError):
                self._skip(folder, "unreadable")
            # Otherwise the folder was removed or replaced since it was listed, so the project has no such folder.
            return
        for entry in entries:
            path = Path(entry.path)
            is_folder = entry.is_dir(follow_symlinks=False)
            is_file = entry.is_file(follow_symlinks=False)
            reason = (
                "unprintable_name" if not entry.name.isprintable() else non_code_reason(path, is_file=is_file)
            )
            if reason == "unprintable_name" and len(self.unprintable) < tuning.MAX_EXCLUDED_FILES:
                # `repr` escapes what cannot be printed; the slice takes off its quotes.
                self.unprintable[repr(path.relative_to(self.top).as_posix())[1:-1]] = reason
            if reason is None and rules.ignores(path, is_folder=is_folder):
                reason = "ignored"
                if not entry.is_symlink():  # a link may lead out of the project
                    self.modules.add(path, is_folder=is_folder)
            if reason is not None:
                self._skip(path, reason)
            elif entry.is_symlink():
                self.links.append(path)
            elif self._is_secret(path, is_folder=is_folder) and (is_folder or not self._is_test_file(path)):
                self._skip_secret(path, "/" if is_folder else "")
            elif is_folder:
                rules.enter(path)
                yield from self._walk(path, rules)
            else:
                yield path

    def _read_tracked(self) -> None:
        """Read files that git tracks although `.gitignore` names them, as after `git add --force`."""
        ignored = {name for name, reason in self.skipped.items() if reason == "ignored"}
        for name in list_tracked_files(self.top) if ignored else ():
            path = self.top / name
            folders = [f for f in path.parents if f.is_relative_to(self.top) and f != self.top]
            folder_names = [folder.relative_to(self.top).as_posix() for folder in folders]
            if ignored.isdisjoint([name, *folder_names]):
                continue
            is_in_excluded_folder = any(
                non_code_reason(folder) or self._is_secret(folder, is_folder=True) for folder in folders
            )
            # The index belongs to the project: there may now be a link in place of the file that it names.
            is_regular = path.is_file() and path.resolve() == path
            if is_regular and not is_in_excluded_folder and not non_code_reason(path) and name.isprintable():
                self.modules.remove(path)
                self._unskip_ignored(name)
                self.read_file(path)

    def _list_folder(self, folder: Path) -> list[os.DirEntry[str]]:
        """Return the entries of a folder, sorted by name.

        A project may have millions of entries, and folders at any depth, so both are limited.
        """
        with os.scandir(folder) as scan:
            entries = list(islice(scan, tuning.MAX_PROJECT_ENTRIES - self.entries + 1))
        self.entries += len(entries)
        depth = len(folder.parts) - len(self.top.parts)
        if self.entries > tuning.MAX_PROJECT_ENTRIES or depth > tuning.MAX_FOLDER_DEPTH:
            name = folder.relative_to(self.top).as_posix()[:80]
            raise UsageError(
                f"{str(self.top)!r} holds more than {tuning.MAX_PROJECT_ENTRIES} files and folders, or more than"
                f" {tuning.MAX_FOLDER_DEPTH} folders in one another (reached in {name!r})",
                remedy=TOO_LARGE_REMEDY,
            )
        return sorted(entries, key=lambda entry: entry.name)

    def read_file(self, path: Path) -> None:
        """Read one regular file. Anything else is skipped, even if it was changed or removed since it was listed."""
        try:
            # O_NONBLOCK: opening a pipe must not wait for its other end.
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            try:
                is_regular = stat.S_ISREG(path.lstat().st_mode)
            except (FileNotFoundError, NotADirectoryError):
                if path == self.requested_file:
                    raise
                return  # removed since it was listed
            self._skip(path, "unreadable" if is_regular else "not_a_regular_file")
            return
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                self._skip(path, "not_a_regular_file")
                return
            self._require_space(path, status.st_size)
            content = file.read(status.st_size + 1)
            if (
                len(content) > status.st_size
            ):  # it has grown since; only then is memory allocated for the limit
                content += file.read(self.max_bytes)
            self._add_unless_secret(path, content)

    def _add_unless_secret(self, path: Path, content: bytes) -> None:
        name = self._name(path)
        is_secret = self._is_secret(path, is_folder=False) or is_private_key(content)
        if path == self.requested_file or not is_secret or self.allowed.covers(name):
            self._add(path, content)
        elif self._is_test_file(path):
            # It is in memory until `_add_committed_fixtures`, so its size counts although it may be skipped then.
            self._require_space(path, len(content))
            self.size_bytes += len(content)
            self.fixtures[name] = content
        else:
            self._skip_secret(path)

    def _is_secret(self, path: Path, *, is_folder: bool) -> bool:
        """Return whether the name of a file or folder looks like a secret that the user has not allowed."""
        name = self._name(path)
        if not has_secret_name(name, is_folder=is_folder):
            return False
        # `covers` takes the path for a file. Only `verdict` can match a glob such as `keys/` with the folder itself.
        return not (self.allowed.verdict(name, is_folder=is_folder) or self.allowed.covers(name))

    def _is_test_file(self, path: Path) -> bool:
        return is_test_file(self._name(path))

    def _name(self, path: Path) -> str:
        """Return the path of a file or folder in the project relative to it.

        `Path.relative_to` takes ten times as long.
        """
        return str(path)[len(str(self.top).rstrip("/")) + 1 :]

    def _skip_secret(self, path: Path, end: str = "") -> None:
        self._skip(path, "may_hold_secrets")
        self.secrets.append(path.relative_to(self.top).as_posix() + end)

    def _add_committed_fixtures(self) -> None:
        """Add test files that look like secrets but are committed unchanged, and so published."""
        committed = unchanged_since_commit(self.top, self.fixtures) if self.fixtures else frozenset()
        for name, content in self.fixtures.items():
            self.size_bytes -= len(content)  # `_add` counts it again
            if name in committed:
                self._add(self.top / name, content)
            else:
                self._skip_secret(self.top / name)

    def _read_link(self, link: Path) -> None:
        """Add a link that leads to a file of the snapshot, or to a folder with such files."""
        # A link to a file of the snapshot is a second name for it. Other links are not followed.
        try:
            name = link.resolve(strict=True).relative_to(self.top).as_posix()
        except (OSError, RuntimeError, ValueError):
            self._skip(link, "unusable_link")
            return
        is_above = link.is_relative_to(self.top / name)  # such a folder has no end
        if name in self.files:
            self._add(link, self.files[name])
        elif not is_above and any(path.startswith(f"{name}/") for path in self.files):
            self.folder_links[link.relative_to(self.top).as_posix()] = name
        else:
            self._skip(link, "link_to_no_file")

    def _add(self, path: Path, content: bytes) -> None:
        self._require_space(path, len(content))
        self.size_bytes += len(content)
        self.files[self._name(path)] = content

    def _require_space(self, path: Path, more_bytes: int) -> None:
        """Check that one more file with `more_bytes` bytes is within the limit."""
        if self.size_bytes + more_bytes > self.max_bytes:
            raise UsageError(
                f"{str(self.top)!r} holds more than {self.max_bytes / 2**20:g} MiB"
                f" (reached at {path.relative_to(self.top).as_posix()!r})",
                remedy=TOO_LARGE_REMEDY,
            )

    def _require_size(self, paths: Sequence[Path]) -> None:
        """Check that the files that can be read are within the limit of bytes; the error names the largest folders."""
        sizes: Counter[str] = Counter()
        for path in paths:
            with suppress(OSError):
                status = path.lstat()
                if stat.S_ISREG(status.st_mode) and os.access(path, os.R_OK):
                    folder, _, name = self._name(path).rpartition("/")
                    sizes["/".join(folder.split("/")[:2]) or name] += status.st_size
        if sizes.total() > self.max_bytes:
            largest = [
                f"{name!r} ({size / 2**20:.1f})" for name, size in sizes.most_common(MAX_NAMED_FOLDERS)
            ]
            raise UsageError(
                f"{str(self.top)!r} holds {sizes.total() / 2**20:.1f} MiB, more than {self.max_bytes / 2**20:g} MiB;"
                f" most of it is in {', '.join(largest)}",
                remedy=TOO_LARGE_REMEDY,
            )

    def _skip(self, path: Path, reason: ExclusionReason) -> None:
        name = path.relative_to(self.top).as_posix().encode("utf-8", "backslashreplace").decode()
        self.skipped[name] = reason

    def _unskip_ignored(self, name: str) -> None:
        if self.skipped.get(name) == "ignored":
            del self.skipped[name]


def list_tracked_files(root: Path) -> list[str]:
    """Return the files that git tracks in a folder; empty if it is in no usable repository."""
    try:
        return open_repository(root).list_tracked()
    except (PrerequisiteError, StorageError, UsageError):
        return []
