"""Forks of one process, each with a limit of its own, that say over a pipe what they saw."""

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

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""Our own folder beside the project, in which these files lie as a package."""
ROOT = os.path.dirname(HERE)
HEADER_BYTES = 4
"""As `suture.sandbox.execution.base_sandbox` has it."""
WRITTEN_S = 946_684_800
"""When each source was written, as `suture.judge.runners.report_plugin` has it."""
PART_BYTES = 1 << 16
MOST_FOLDERS = 500
"""Of a project, that are looked at for what was left in them."""


class Line:
    """JSON values in frames, over two descriptors that no code under test is given.

    Args:
        take: Where frames are read.
        give: Where they are written.
    """

    def __init__(self, take: int, give: int) -> None:
        self._take, self._give = take, give

    def read(self) -> dict[str, Any] | None:
        """The next value; `None` at the end."""
        size = self._exactly(HEADER_BYTES)
        body = self._exactly(int.from_bytes(size, "big")) if size is not None else None
        if body is None:
            return None
        value: dict[str, Any] = json.loads(body)
        return value

    def write(self, value: Any) -> None:
        """Write one value."""
        self.write_raw(json.dumps(value).encode("ascii"))

    def write_raw(self, body: bytes) -> None:
        """Write a frame: JSON values, one a line."""
        write_all(self._give, len(body).to_bytes(HEADER_BYTES, "big") + body)

    def close(self) -> None:
        """Let go of both ends."""
        for handle in {self._take, self._give}:
            with suppress(OSError):
                os.close(handle)

    def _exactly(self, size: int) -> bytes | None:
        parts = []
        while size:
            part = os.read(self._take, min(size, 1 << 20))
            if not part:
                return None
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


class Forks:
    """Makes children, and takes from them what code under test must not have.

    Args:
        lines: What each child closes.
    """

    def __init__(self, *lines: Line) -> None:
        self.lines = list(lines)

    def run(
        self,
        act: Callable[[Callable[[bytes], None]], None],
        quiet_s: float,
        *,
        end_s: float | None = None,
        heard: Callable[[bytes], None] | None = None,
        through: Any = (),
    ) -> tuple[bytes, bool]:
        """Run a function in a child, and read what it writes.

        Args:
            act: Gets a function that writes.
            quiet_s: Wall-clock seconds of silence after which the child is killed.
            end_s: Of the monotonic clock: when the child is killed whatever it says.
            heard: Gets what is written as it comes.
            through: An exception of the function's that leaves this call, in the child.

        Returns:
            What it wrote, and whether it came to its end.
        """
        ours, theirs = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(ours)
                os.setsid()
                for line in self.lines:
                    line.close()
                act(lambda words: write_all(theirs, words))
                os._exit(0)
            except through:
                raise
            except BaseException:
                os._exit(1)
        os.close(theirs)
        words = self._listen(ours, quiet_s, end_s, heard)
        os.close(ours)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        with suppress(ProcessLookupError, PermissionError):  # it may be too young to lead a group
            os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        return words, os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0

    @staticmethod
    def _listen(
        ours: int, quiet_s: float, end_s: float | None, heard: Callable[[bytes], None] | None
    ) -> bytes:
        words = b""
        while True:
            left_s = quiet_s if end_s is None else min(quiet_s, end_s - now_s())
            if not select.select([ours], [], [], max(0.0, left_s))[0]:
                return words
            part = os.read(ours, PART_BYTES)
            if not part:
                return words
            if heard is None:
                words += part
            else:
                heard(part)


def now_s() -> float:
    """Seconds of the monotonic clock, also where a test has put its own in the place of those of `time`."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def write_all(handle: int, words: bytes) -> None:
    """Write to a descriptor until everything is written."""
    while words:
        words = words[os.write(handle, words) :]


def date(sources: list[str]) -> bool:
    """Give sources the age that they had when they were compiled; whether there is anything compiled."""
    for path in sources:
        with suppress(OSError):
            os.utime(os.path.join(ROOT, path), (WRITTEN_S, WRITTEN_S))
    return bool(sources)


def limit_cpu(seconds: float, then: Callable[[Any, Any], None] | None = None) -> None:
    """End this process, or call a function, after so many seconds of its own CPU time from now."""
    signal.signal(signal.SIGPROF, then or signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)


class Files:
    """The project's files that candidates change.

    Args:
        texts: Path -> text.
    """

    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = texts
        self._times: dict[str, tuple[int, int]] = {}

    def change(self, path: str, text: str, number: int) -> None:
        """Write a candidate's file where the project has its own.

        Python believes compiled code whose source has the same size and the same second: each candidate is
        of a second of its own.
        """
        place = os.path.join(ROOT, path)
        if path not in self._times:
            status = os.stat(place)
            self._times[path] = (status.st_atime_ns, status.st_mtime_ns)
        self._write(place, text)
        os.utime(place, (1_000_000_000 + number, 1_000_000_000 + number))

    def restore(self, path: str) -> None:
        """The project's own file again."""
        place = os.path.join(ROOT, path)
        self._write(place, self.texts[path])
        if path in self._times:
            os.utime(place, ns=self._times[path])

    def changed(self, mutant: dict[str, Any]) -> str:
        """A candidate's text."""
        raw = self.texts[mutant["path"]].encode("utf-8", "surrogatepass")
        for start, end, text in sorted(mutant["edits"], key=lambda e: (e[0], e[1]), reverse=True):
            raw = raw[:start] + text.encode("utf-8", "surrogatepass") + raw[end:]
        return raw.decode("utf-8", "surrogatepass")

    @staticmethod
    def _write(place: str, text: str) -> None:
        with open(place, "wb") as file:
            file.write(text.encode("utf-8", "surrogatepass"))


class Leftovers:
    """What tests leave in the project's folder: a failing one may not come to where it takes it away again.

    What begins with a dot is a program's, such as a cache, and stays.
    """

    def __init__(self) -> None:
        self._listed: dict[str, tuple[int, frozenset[str], list[str]]] = {}

    def look(self) -> dict[str, frozenset[str]]:
        """Folder -> what is in it; a folder is read again only where it was written to."""
        found: dict[str, frozenset[str]] = {}
        waiting = [ROOT]
        while waiting and len(found) < MOST_FOLDERS:
            folder = waiting.pop()
            with suppress(OSError):
                written = os.stat(folder).st_mtime_ns
                if folder not in self._listed or self._listed[folder][0] != written:
                    entries = [
                        one for one in os.scandir(folder) if not one.name.startswith((".", "__pycache__"))
                    ]
                    inner = [one.path for one in entries if one.is_dir(follow_symlinks=False)]
                    below = [path for path in inner if path != HERE and not path.endswith("node_modules")]
                    self._listed[folder] = written, frozenset(one.name for one in entries), below
                _, found[folder], below = self._listed[folder]
                waiting += below
        return found

    def since(self, before: dict[str, frozenset[str]]) -> list[str]:
        """What was not there before."""
        return [
            os.path.join(folder, name)
            for folder, names in self.look().items()
            for name in names - before.get(folder, names)
        ]


def take_away(paths: list[str]) -> None:
    """Remove files and folders, as far as that can be done."""
    for path in paths:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                os.unlink(path)
