"""Write a verified change into the user's files, completely or not at all.

A file that has changed since the run started is never overwritten.
"""

from __future__ import annotations

import contextlib
import glob
import os
import secrets
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from suture.core.safe_files import read_regular_file
from suture.errors import StorageError, UsageError


def apply_changes(
    root: Path, before: Mapping[str, bytes], after: Mapping[str, bytes], *, label: str = "change"
) -> tuple[str, ...]:
    """Write the difference between two states into a folder, and return the changed files, sorted.

    Before the first file changes, every new content and a copy of every old content is on disk next to its
    target. Then each file is replaced in one step. If a step fails, the previous steps are reverted. A partial change
    and temporary files can remain only if the process is killed.

    Args:
        root: The project's folder.
        before: The project's files when the run started, path -> content.
        after: The desired files. A path that is missing here is deleted.
        label: Part of the names of temporary files, by which `remove_partial_files` finds them.

    Raises:
        UsageError: A file has changed since the snapshot, or is reached through a link.
        StorageError: A file could not be written; all previous steps were reverted.
        TreeNotReverted: A file could not be written, and a previous step could not be reverted.
    """
    paths = require_unchanged(root, before, after)
    change = _TreeChange(root=root, label=label)
    try:
        for path in paths:
            change.prepare(path, before.get(path), after.get(path))
        for path in paths:
            # Check again: writing the new contents takes a while, in which an editor may save a file.
            _require_unchanged(root, path, before.get(path))
            change.replace(path)
    except BaseException as fault:
        change.revert()
        if isinstance(fault, OSError):
            raise StorageError(
                f"the change could not be written under {str(root)!r}: {fault.strerror}; nothing was changed",
                remedy="check the disk's space and the folder's permissions",
            ) from fault
        raise
    finally:
        change.clean_up()
    return paths


def require_unchanged(root: Path, before: Mapping[str, bytes], after: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return the files that differ between two states, sorted, if the folder has them as they were before.

    Raises:
        UsageError: A file has changed, or is reached through a link.
    """
    paths = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    for path in paths:
        _require_unchanged(root, path, before.get(path))
    return tuple(paths)


def _require_unchanged(root: Path, path: str, expected: bytes | None) -> None:
    """Check that a file is inside the project, and that its content is the expected one; `None` if missing."""
    parts = PurePosixPath(path).parts
    if not parts or PurePosixPath(path).is_absolute() or ".." in parts or "\0" in path:
        raise UsageError(f"the path {path!r} is not inside the project")
    # Git runs files in there. On a file system that ignores case, `.GIT` is the same folder.
    if any(part.lower() == ".git" for part in parts):
        raise UsageError(f"the path {path!r} lies in a git repository's own folder; nothing was written")
    for count in range(1, len(parts) + 1):
        if root.joinpath(*parts[:count]).is_symlink():
            raise UsageError(f"{path!r} is reached through a link; nothing was written")
    target = root / path
    try:
        content = read_regular_file(target, len(expected or b""))  # one byte more is read of a longer file
        if content is None and target.lstat():
            raise UsageError(f"{path!r} is no regular file; nothing was written")
    except FileNotFoundError:
        content = None
    except OSError as fault:
        raise UsageError(f"{path!r} cannot be read: {fault.strerror}; nothing was written") from fault
    if content != expected:
        raise UsageError(
            f"{path!r} was changed since the run started; nothing was written",
            remedy="run again, or apply the saved diff by hand",
        )


def missing_folders(root: Path, paths: Iterable[str]) -> tuple[Path, ...]:
    """Return the folders that must be created to write some files, the outermost first.

    Args:
        root: The project's folder, which may be missing itself.
        paths: Files, relative to it.
    """
    parents = {parent for path in paths for parent in (root / path).parents}
    return tuple(sorted(folder for folder in parents if not os.path.lexists(folder)))


def remove_partial_files(root: Path, paths: Iterable[str], *, label: str) -> None:
    """Remove the temporary files that a killed `apply_changes` has left next to its files."""
    for folder in {(root / path).parent for path in paths}:
        for partial in folder.glob(f".suture-{glob.escape(label)}-*"):
            with contextlib.suppress(OSError):
                partial.unlink()


def remove_empty_folders(root: Path, folders: Sequence[str]) -> None:
    """Remove folders that were created for a change, unless they contain something else now.

    Args:
        root: The project's folder. Folders that are neither inside nor around it are not removed, nor are
            folders around the current folder of the process.
        folders: The folders, the outermost first.
    """
    for folder in map(Path, reversed(folders)):
        is_related = folder.is_relative_to(root) or root.is_relative_to(folder)
        with contextlib.suppress(OSError):  # not empty or gone, as the current folder may be
            if is_related and not Path.cwd().is_relative_to(folder):
                folder.rmdir()


class TreeNotReverted(StorageError):
    """A change failed half-way, and some files could not be reverted: the message names them."""


@dataclass(kw_only=True)
class _TreeChange:
    """Replaces files step by step, and can revert all steps.

    Attributes:
        label: Part of the names of temporary files.
        new_contents: Path -> temporary file with its new content.
        backups: Path -> temporary file with its old content.
        replaced: Paths whose replacement has started, in order.
        created_folders: Folders that were created, the outermost first.
    """

    root: Path
    label: str
    new_contents: dict[str, Path] = field(default_factory=dict)
    backups: dict[str, Path] = field(default_factory=dict)
    replaced: list[str] = field(default_factory=list)
    created_folders: list[Path] = field(default_factory=list)

    def prepare(self, path: str, old: bytes | None, new: bytes | None) -> None:
        target = self.root / path
        self._create_folders(target.parent)
        if old is not None:
            self.backups[path] = self._write_beside(target, old)
        if new is not None:
            self.new_contents[path] = self._write_beside(target, new)

    def _create_folders(self, folder: Path) -> None:
        missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
        for parent in reversed(missing):
            parent.mkdir()
            self.created_folders.append(parent)

    def _write_beside(self, target: Path, content: bytes) -> Path:
        partial = target.with_name(f".suture-{self.label}-{secrets.token_hex(6)}")
        # Not `tempfile`: a new file must get its mode from the user's umask.
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                _keep_mode_and_owner(target, partial)
        except BaseException:
            partial.unlink()
            raise
        return partial

    def replace(self, path: str) -> None:
        self.replaced.append(path)  # first, so that an interrupt in the middle reverts this file, too
        if path in self.new_contents:
            self.new_contents[path].replace(self.root / path)
            del self.new_contents[path]
        else:
            (self.root / path).unlink()

    def revert(self) -> None:
        failed: list[str] = []
        for path in reversed(self.replaced):
            try:
                if path in self.backups:
                    self.backups[path].replace(self.root / path)
                    del self.backups[path]
                else:
                    (self.root / path).unlink(missing_ok=True)
            except OSError:
                backup = self._keep_backup(path)
                failed.append(
                    f"{path!r} (its content is in {backup.name!r} beside it)" if backup else f"{path!r}"
                )
        self.clean_up()
        for folder in reversed(self.created_folders):
            with contextlib.suppress(OSError):  # not empty: something else already uses it
                folder.rmdir()
        if failed:
            raise TreeNotReverted(
                f"a change failed half-way, and could not be reverted in {', '.join(failed)}"
            )

    def _keep_backup(self, path: str) -> Path | None:
        """Save a backup from `clean_up` and `remove_partial_files`; return its new path, `None` if there is none."""
        backup = self.backups.pop(path, None)
        try:
            return backup and backup.rename(backup.with_name(f".suture-kept-{secrets.token_hex(6)}"))
        except OSError:  # the folder cannot be written any more
            return backup

    def clean_up(self) -> None:
        for partial in (*self.new_contents.values(), *self.backups.values()):
            with contextlib.suppress(OSError):
                partial.unlink()
        self.new_contents.clear()
        self.backups.clear()


def _keep_mode_and_owner(target: Path, partial: Path) -> None:
    status = target.stat()
    if (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
        with contextlib.suppress(PermissionError):  # only root may change the owner
            os.chown(partial, status.st_uid, status.st_gid)
    partial.chmod(stat.S_IMODE(status.st_mode))
