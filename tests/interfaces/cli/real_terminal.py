"""Run a command on its own pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["Terminal", "restore_interrupts", "take_terminal", "wait_until"]


def restore_interrupts() -> None:
    """Make a child process react to SIGINT.

    A test suite that a script runs in the background ignores SIGINT, and its children inherit that.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)


def take_terminal() -> None:
    """Make stdin the controlling terminal of a child process, so that Ctrl-C reaches it."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    restore_interrupts()


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """Wait until a condition holds; fail when the process ends before."""
    while not condition():
        assert process.poll() is None, process.communicate()[1].decode()
        time.sleep(0.05)


class Terminal:
    """A command that runs on its own pseudo-terminal.

    Args:
        arguments: The arguments of `suture`.
        environ: The environment of the command.
        folder: The current folder of the command.
        columns: The width of the terminal.
        patience_s: How long to wait for a text or for the end of the command.
    """

    def __init__(
        self,
        arguments: list[str],
        environ: dict[str, str],
        folder: Path,
        *,
        columns: int = 100,
        patience_s: float = 90,
    ) -> None:
        self.screen = ""
        self._patience_s = patience_s
        self._search_start = 0  # where the next search for a text begins
        self._terminal_fd, command_fd = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "suture.interfaces.cli", *arguments],
            stdin=command_fd,
            stdout=command_fd,
            stderr=command_fd,
            env={"TERM": "xterm", **environ, "COLUMNS": str(columns), "LINES": "40"},
            cwd=folder,
            start_new_session=True,
            preexec_fn=take_terminal,
        )
        os.close(command_fd)

    def wait_for(self, text: str) -> None:
        """Read until the screen shows a text after the one that was waited for last."""
        deadline = time.monotonic() + self._patience_s
        while (position := self.screen.find(text, self._search_start)) < 0:
            assert time.monotonic() < deadline, self.screen
            self._read()
        self._search_start = position + len(text)

    def type(self, text: str) -> None:
        """Send input to the command."""
        os.write(self._terminal_fd, text.encode())

    def end(self) -> int:
        """Read until the command ends and return its exit code."""
        deadline = time.monotonic() + self._patience_s
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.screen
            self._read()
        while self._read():
            pass
        os.close(self._terminal_fd)
        return self.process.returncode

    def _read(self) -> bool:
        """Read available output and return whether there was any."""
        if select.select([self._terminal_fd], [], [], 0.2)[0]:
            try:
                self.screen += os.read(self._terminal_fd, 65536).decode("utf-8", "replace")
                return True
            except OSError:  # the other end is closed
                time.sleep(0.05)
        return False
