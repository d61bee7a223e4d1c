"""Faults at chosen system calls: an error, or the end of the process."""

from __future__ import annotations

import errno
import io
import os
import random
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

CALLS = (
    (os, "open"), (os, "write"), (os, "pwrite"), (os, "ftruncate"), (os, "fsync"), (os, "replace"),
    (os, "rename"), (os, "unlink"), (os, "mkdir"), (os, "rmdir"), (os, "pread"), (os, "listdir"),
    (os, "scandir"), (os, "fchmod"), (os, "link"), (os, "pipe"), (io, "open"),
)  # fmt: skip
"""Where Python code asks the kernel for files. `io.open` is what `Path.open` and `os.fdopen` call."""
FILE_METHODS = ("read", "write", "flush", "truncate")
ERRORS = (errno.ENOSPC, errno.EMFILE, errno.EIO, errno.EINTR)


def choose_error(step: int, seed: int) -> int:
    """Return the error of a step; as many seeds as there are errors give each step each of them."""
    return ERRORS[(random.Random(step).randrange(len(ERRORS)) + seed) % len(ERRORS)]


@contextmanager
def fault_at(step: int, act: Callable[[], None], match: str = "") -> Iterator[list[int]]:
    """Call `act` before the system call number `step`, from 0; yield a list whose length is the number of calls.

    The methods of files count as calls, and so does closing a file that was written.

    Args:
        match: Only calls count whose first argument contains this text.
    """
    made: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        for module, name in CALLS:
            # Without the disk's flush: it takes most of the time, and neither a fault nor a kill needs it.
            original = _skip if name == "fsync" else getattr(module, name)
            patch.setattr(module, name, _counting(original, made, step, act, match))
        yield made


def _counting(original: Any, made: list[int], step: int, act: Callable[[], None], match: str) -> Any:
    def count() -> None:
        made.append(step)
        if len(made) == step + 1:
            act()

    def call(*arguments: Any, **options: Any) -> Any:
        subject = str(arguments[:1])
        if (
            match not in subject or sys.prefix in subject
        ):  # the files of the interpreter's packages are not of interest
            return original(*arguments, **options)
        count()
        result = original(*arguments, **options)
        return CountingFile(result, count) if original is _OPEN else result

    return call


class CountingFile:
    """A file whose methods are counted before they are called."""

    def __init__(self, file: Any, count: Callable[[], None]) -> None:
        self._file, self._count, self._is_written = file, count, False

    def __getattr__(self, name: str) -> Any:
        if name in FILE_METHODS:
            self._count()
            self._is_written |= name == "write"
        return getattr(self._file, name)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._file)

    def __enter__(self) -> CountingFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, which is closed even if the kernel reports an error, as it may if the file was written."""
        was_closed = self._file.closed
        self._file.close()
        if self._is_written and not was_closed:
            self._count()


_OPEN = io.open


def _skip(*_: object) -> None:
    return None


def raise_error(number: int) -> Callable[[], None]:
    """Return a function that raises the `OSError` of an errno."""

    def act() -> None:
        raise OSError(number, os.strerror(number))

    return act


def kill_process() -> None:
    """End this process as `kill -9` does."""
    os.kill(os.getpid(), signal.SIGKILL)


def run_killed(step: int, work: Callable[[], object]) -> bool:
    """Run something in a forked process that is killed at a system call; return whether it came that far."""

    def be_killed() -> None:
        with fault_at(step, kill_process):
            work()

    _, status = os.waitpid(start_fork(be_killed), 0)
    return os.WIFSIGNALED(status)


def start_fork(work: Callable[[], object]) -> int:
    """Run something in a forked process, and return its id."""
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # since Python 3.12, where the test runner has threads
        child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return child


def count_steps(work: Callable[[], object]) -> int:
    """Return the number of system calls of some work."""
    with fault_at(-1, lambda: None) as made:
        work()
    return len(made)


__all__ = [
    "ERRORS",
    "choose_error",
    "count_steps",
    "fault_at",
    "kill_process",
    "raise_error",
    "run_killed",
    "start_fork",
]
