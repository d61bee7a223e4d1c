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
from pathlib import Path

__all__ = ["Terminal"]


def own_terminal() -> None:
    """Ctrl-C reaches only whoever the terminal controls; a suite in the background would ignore it."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Terminal:
    """A command on a terminal of its own: what it shows, and what is typed."""

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
        self._waited = 0  # how much of the screen has been waited for
        self._here, there = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "suture.interfaces.cli", *arguments],
            stdin=there,
            stdout=there,
            stderr=there,
            env={"TERM": "xterm", **environ, "COLUMNS": str(columns), "LINES": "40"},
            cwd=folder,
            start_new_session=True,
            preexec_fn=own_terminal,
        )
        os.close(there)

    def wait_for(self, text: str) -> None:
        """Read until the screen has shown a text behind what was waited for before."""
        until = time.monotonic() + self._patience_s
        while (found := self.screen.find(text, self._waited)) < 0:
            assert time.monotonic() < until, self.screen
            self._read()
        self._waited = found + len(text)

    def type(self, text: str) -> None:
        os.write(self._here, text.encode())

    def end(self) -> int:
        until = time.monotonic() + self._patience_s
        while self.process.poll() is None:
            assert time.monotonic() < until, self.screen
            self._read()
        while self._read():
            pass
        os.close(self._here)
        return self.process.returncode

    def _read(self) -> bool:
        """Whether there was something to read."""
        if select.select([self._here], [], [], 0.2)[0]:
            try:
                self.screen += os.read(self._here, 65536).decode("utf-8", "replace")
                return True
            except OSError:  # the other end is closed
                time.sleep(0.05)
        return False
