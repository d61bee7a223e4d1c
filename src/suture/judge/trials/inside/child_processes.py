"""Forks of a process that report over a pipe, and the project's files around them."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""Suture's folder in the project's folder; it holds these files as a package."""
ROOT = os.path.dirname(OWN_FOLDER)
HEADER_BYTES = 4
"""Bytes of a message's length, as in the sandbox's channel."""
SOURCE_TIMESTAMP_S = 946_684_800
"""The time stamp that the report plugin gives source files, so that Python accepts the bytecode it kept."""
READ_BYTES = 1 << 16
MAX_WATCHED_FOLDERS = 500
"""Folders of a project that are checked for leftover files."""


class HostChannel:
    """JSON messages over two file descriptors that code under test does not get."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd, self._write_fd = read_fd, write_fd

    def read(self) -> dict[str, Any] | None:
        """Return the next value; `None` at the end."""
        size = self._read_exactly(HEADER_BYTES)
        body = self._read_exactly(int.from_bytes(size, "big")) if size is not None else None
        if body is None:
            return None
        value: dict[str, Any] = json.loads(body)
        return value

    def write(self, value: Any) -> None:
        """Write a value."""
        self.write_raw(json.dumps(value).encode("ascii"))

    def write_raw(self, body: bytes) -> None:
        """Write a message that has one JSON value per line."""
        write_all(self._write_fd, len(body).to_bytes(HEADER_BYTES, "big") + body)

    def close(self) -> None:
        """Close both descriptors, which may be one."""
        for fd in {self._read_fd, self._write_fd}:
            with suppress(OSError):
                os.close(fd)

    def _read_exactly(self, size: int) -> bytes | None:
        parts = []
        while size:
            part = os.read(self._read_fd, min(size, 1 << 20))
            if not part:
                return None
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


class Forks:
    """Makes child processes, and closes in them what code under test must not have.

    Args:
        connections: Connections that each child closes.
    """

    def __init__(self, *connections: HostChannel) -> None:
        self.connections = list(connections)

    def run(
        self,
        act: Callable[[Callable[[bytes], None]], None],
        silence_s: float,
        *,
        end_s: float | None = None,
        on_output: Callable[[bytes], None] | None = None,
        propagates: Any = (),
    ) -> tuple[bytes, bool]:
        """Run a function in a child, and read what it writes.

        Args:
            act: The function; it receives a function that writes to the parent.
            silence_s: Wall-clock seconds without output after which the child is killed.
            end_s: Time on the monotonic clock at which the child is killed in any case.
            propagates: An exception class; if the function raises it, it leaves this call in the child.

        Returns:
            (output, finished): what it wrote, and whether the child ran to its end.
        """
        read_fd, write_fd = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(read_fd)
                os.setsid()
                for connection in self.connections:
                    connection.close()
                act(lambda output: write_all(write_fd, output))
                os._exit(0)
            except propagates:
                raise
            except BaseException:
                os._exit(1)
        os.close(write_fd)
        output = self._read_output(read_fd, silence_s, end_s, on_output)
        os.close(read_fd)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        with suppress(ProcessLookupError, PermissionError):  # the child may not lead its group yet
            os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        return output, os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0

    @staticmethod
    def _read_output(
        read_fd: int, silence_s: float, end_s: float | None, on_output: Callable[[bytes], None] | None
    ) -> bytes:
        output = b""
        while True:
            left_s = silence_s if end_s is None else min(silence_s, end_s - monotonic_s())
            if not select.select([read_fd], [], [], max(0.0, left_s))[0]:
                return output
            part = os.read(read_fd, READ_BYTES)
            if not part:
                return output
            if on_output is None:
                output += part
            else:
                on_output(part)


def monotonic_s() -> float:
    """Return the monotonic clock, even if a test has replaced the functions of `time`."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def write_all(fd: int, output: bytes) -> None:
    """Write all bytes to a descriptor."""
    while output:
        output = output[os.write(fd, output) :]


def backdate(sources: list[str]) -> bool:
    """Give source files the time stamp that their bytecode expects, and return whether there are any."""
    for path in sources:
        with suppress(OSError):
            os.utime(os.path.join(ROOT, path), (SOURCE_TIMESTAMP_S, SOURCE_TIMESTAMP_S))
    return bool(sources)


def limit_cpu(seconds: float, on_limit: Callable[[Any, Any], None] | None = None) -> None:
    """End this process, or call a function, after some seconds of its CPU time."""
    signal.signal(signal.SIGPROF, on_limit or signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)


class ProjectFiles:
    """The project's files that candidates change."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = texts
        self._times: dict[str, tuple[int, int]] = {}

    def write(self, path: str, text: str, number: int) -> None:
        """Write a candidate's file over the project's own.

        Python accepts bytecode whose source has the same size and the same second, so each candidate gets its own
        second.
        """
        file = os.path.join(ROOT, path)
        self.remember_time(path)
        _write_text(file, text)
        os.utime(file, (1_000_000_000 + number, 1_000_000_000 + number))

    def remember_time(self, path: str) -> None:
        """Remember the time stamp of the project's own file, before a candidate's file is written over it."""
        if path not in self._times:
            status = os.stat(os.path.join(ROOT, path))
            self._times[path] = (status.st_atime_ns, status.st_mtime_ns)

    def restore(self, path: str) -> None:
        """Write the project's own file again."""
        file = os.path.join(ROOT, path)
        _write_text(file, self.texts[path])
        if path in self._times:
            os.utime(file, ns=self._times[path])

    def apply_edits(self, command: dict[str, Any]) -> str:
        """Return the source of a candidate's file."""
        raw = self.texts[command["path"]].encode("utf-8", "surrogatepass")
        for start, end, text in sorted(command["edits"], key=lambda e: (e[0], e[1]), reverse=True):
            raw = raw[:start] + text.encode("utf-8", "surrogatepass") + raw[end:]
        return raw.decode("utf-8", "surrogatepass")


def _write_text(path: str, text: str) -> None:
    with open(path, "wb") as file:
        file.write(text.encode("utf-8", "surrogatepass"))


class LeftoverFiles:
    """Finds files that tests leave in the project's folder, because a failing test may not reach its
    clean-up.

    Names that begin with a dot belong to programs, such as caches, and stay.
    """

    def __init__(self) -> None:
        # Folder -> (modification time, names in it, paths of its subfolders).
        self._listings: dict[str, tuple[int, frozenset[str], list[str]]] = {}

    def list_files(self) -> dict[str, frozenset[str]]:
        """Return folder -> names in it. A folder is read again only if its time stamp has changed."""
        names_by_folder: dict[str, frozenset[str]] = {}
        waiting = [ROOT]
        while waiting and len(names_by_folder) < MAX_WATCHED_FOLDERS:
            folder = waiting.pop()
            with suppress(OSError):
                modified_ns = os.stat(folder).st_mtime_ns
                if folder not in self._listings or self._listings[folder][0] != modified_ns:
                    self._listings[folder] = modified_ns, *_list_folder(folder)
                _, names_by_folder[folder], subfolders = self._listings[folder]
                waiting += subfolders
        return names_by_folder

    def find_new(self, before: dict[str, frozenset[str]]) -> list[str]:
        """Return the paths that were not listed before."""
        return [
            os.path.join(folder, name)
            for folder, names in self.list_files().items()
            for name in names - before.get(folder, names)
        ]


def _list_folder(folder: str) -> tuple[frozenset[str], list[str]]:
    """Return (names in a folder, paths of its subfolders), without those that tests do not write."""
    entries = [entry for entry in os.scandir(folder) if not entry.name.startswith((".", "__pycache__"))]
    subfolders = [
        entry.path
        for entry in entries
        if entry.is_dir(follow_symlinks=False)
        and entry.path != OWN_FOLDER
        and not entry.path.endswith("node_modules")
    ]
    return frozenset(entry.name for entry in entries), subfolders


def remove_paths(paths: list[str]) -> None:
    """Remove files and folders as far as possible."""
    for path in paths:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                os.unlink(path)
