"""Faults at chosen system calls: an error, or the end of the process."""

from __future__ import annotations

import errno
import io
import os
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

CALLS = (
    (os, "open"), (os, "write"), (os, "pwrite"), (os, "ftruncate"), (os, "fsync"), (os, "replace"),
    (os, "rename"), (os, "unlink"), (os, "mkdir"), (os, "rmdir"), (os, "pread"), (io, "open"),
)  # fmt: skip
"""Where Python code asks the kernel for files. `io.open` is what `Path.open` calls."""
ERRORS = (errno.ENOSPC, errno.EMFILE, errno.EIO, errno.EINTR)


@contextmanager
def fault_at(step: int, act: Callable[[], None], match: str = "") -> Iterator[list[int]]:
    """Call `act` before the system call number `step`, from 0; yield a list whose length is the number of calls.

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
    def call(*arguments: Any, **options: Any) -> Any:
        if not match or match in str(arguments[0]):
            made.append(step)
            if len(made) == step + 1:
                act()
        return original(*arguments, **options)

    return call


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


__all__ = ["ERRORS", "count_steps", "fault_at", "kill_process", "raise_error", "run_killed", "start_fork"]
