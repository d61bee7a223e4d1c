"""Distinguishing the candidate's code from the project's other code and from installed code, by file names."""

from __future__ import annotations

import builtins
import os
import sys
from os import stat
from typing import Any

ENCODING = sys.getfilesystemencoding()
BUFFERS = (bytearray, memoryview) if sys.version_info < (3, 12) else ()
"""Other types of paths, which newer Pythons refuse."""
# The functions below use this copy, even if code changes the builtins. Type checkers expect a module.
__builtins__ = dict(vars(builtins))  # type: ignore[assignment]


class Origins:
    """Where code comes from.

    A file name can be made up by code that calls `compile` or changes a code object. The audit hook reports both.

    Args:
        root: The project's folder.
        unchanged: The project's files that are as they were before the candidate, relative to the root.
        plugin_folder: The folder of Suture's own files.
    """

    def __init__(self, root: str, unchanged: list[str], plugin_folder: str) -> None:
        self._root = root + os.sep
        self._unchanged = frozenset(unchanged)
        library = os.path.dirname(os.__file__)
        folders = [sys.prefix, sys.base_prefix, sys.exec_prefix, library, plugin_folder]
        folders += [path for path in sys.path if path and path != root and not self._holds_project(path)]
        self._installed = tuple(make_absolute(folder, root) + os.sep for folder in folders)
        self.harmless_files = set()  # type: set[str]
        """Files that are known not to be the candidate's."""
        self._known_candidates = set()  # type: set[str]

    def _holds_project(self, folder: str) -> bool:
        return folder.startswith(self._root) and "site-packages" not in folder

    def is_candidate(self, file: str) -> bool:
        """Return whether code comes from a file that the candidate wrote, or from an unknown file."""
        if file not in self.harmless_files and file not in self._known_candidates:
            (self._known_candidates if self._look_up(file) else self.harmless_files).add(file)
        return file in self._known_candidates

    def holds(self, path: str) -> bool:
        """Whether an absolute path is in the project's folder, and not in Suture's own or installed code."""
        return path.startswith(self._root) and not path.startswith(self._installed)

    def is_project(self, file: str) -> bool:
        """Whether a file is the project's, changed or not."""
        return self.is_candidate(file) or self.get_path(file) in self._unchanged

    def _look_up(self, file: str) -> bool:
        if file.startswith("<"):  # compiled from a string, which the audit hook reports where it matters
            return False
        path = make_absolute(file, self._root)
        if path.startswith(self._installed):
            return False
        return self.get_path(path) not in self._unchanged

    def get_path(self, file: str) -> str:
        """Return a path relative to the project's folder; the same path if it is outside of the folder."""
        path = make_absolute(file, self._root)
        return path[len(self._root) :] if path.startswith(self._root) else path


def make_absolute(path: str, folder: str) -> str:
    """Return an absolute path without `.` and `..`; the functions of `os.path` could be replaced."""
    parts = []  # type: list[str]
    for part in (path if path.startswith(os.sep) else f"{folder}/{path}").split(os.sep):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return os.sep + os.sep.join(parts)


def decode_path(path: Any) -> str:
    """Return the path of an audit event as it is used; empty for a file descriptor.

    Code under test may have made its class, so none of that class's methods may run.
    """
    if issubclass(type(path), BUFFERS):
        path = memoryview(path).tobytes()
    if issubclass(type(path), bytes):  # `isinstance` would ask the object for its class
        return bytes.decode(path, ENCODING, "surrogateescape")
    return str.__str__(path) if issubclass(type(path), str) else ""


def identify_file(path: str) -> tuple[int, ...]:
    """Return device and number of a file; empty if there is none."""
    try:
        facts = stat(path)
    except (OSError, ValueError):
        return ()
    return facts.st_dev, facts.st_ino


def get_file(frame: Any) -> str:
    """Return the file of a frame's code."""
    return str(frame.f_code.co_filename)


def get_library_name(frame: Any) -> str:
    """Return the name of the file of a frame's code, with its folder if it is a package: `logging/__init__.py`.

    Code that was compiled from a string has a name such as `<string>`; the import system's own code counts as a file.
    """
    file = get_file(frame)
    folder, _, name = file.rpartition("/")
    if file.startswith("<frozen"):
        return file.strip("<>")
    return f"{folder.rpartition('/')[2]}/{name}" if name == "__init__.py" else name
