"""Screen candidates: run quick tests on several of them in one fork, to drop those that fix nothing.

A fork costs several times as much as a quick test. But a candidate may leave something in the process that changes the
outcome of the next one, so a screening only drops candidates:

- A candidate with which a test passes is tried again in a fork of its own.
- The tests must fail in the same way and run the same lines when they are repeated on the unchanged code. A test that
  finds the result of its first run in a cache does not.
- After every few candidates the unchanged code must fail as before. If it does not, or if something is left in the
  process, the candidates since the last such check are tried in forks of their own.
- The candidates run a second time in reverse order in other forks, and one that fails differently there is tried in a
  fork of its own: the unchanged code may fail before it reaches what a candidate left, such as an entry of a registry.
- A candidate that ends the process counts only as the first one in its fork.
"""

from __future__ import annotations

import os
import re
import threading
from typing import Any

from .child_processes import LeftoverFiles

CHECK_INTERVAL = 8
"""Candidates between two runs of the unchanged code. They run again if the next one ends the process."""
END_OF_CANDIDATE = b"\n.\n"
CHECK_BEGINS, CHECK_PASSED = b"?", b"!"
ADDRESS = re.compile(r"\b0x[0-9a-f]+")


class ProcessState:
    """What tests may leave in a process, besides the state of its objects.

    Args:
        leftovers: Finds the files that tests leave in the project's folder.
    """

    def __init__(self, leftovers: LeftoverFiles) -> None:
        self._leftovers = leftovers
        self._files = leftovers.list_files()
        self._before = self._describe()

    def has_changed(self) -> bool:
        """Return whether there are other threads, processes, files, variables or another folder than before."""
        try:
            is_changed = self._describe() != self._before or _has_child_process()
            return is_changed or bool(self._leftovers.find_new(self._files))
        except OSError:  # such as for a working directory that is gone
            return True

    @staticmethod
    def _describe() -> tuple[Any, ...]:
        # pytest itself sets a variable to the name of the test.
        variables = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
        return threading.active_count(), os.getcwd(), variables


def _has_child_process() -> bool:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


def get_failure_key(outcomes: dict[str, Any]) -> str:
    """Return a key for how tests fail, which is equal for equal failures; addresses of objects do not count."""
    return ADDRESS.sub("0x", repr(outcomes))


class ScreenedOutput:
    """What one fork of a screening wrote, for a number of candidates.

    Attributes:
        parts: The outcomes of each candidate that ran to its end, and the incomplete ones of the next candidate.
        ended_count: Number of candidates that ran to their end.
        confirmed_count: Number of candidates up to the last run in which the unchanged code failed as before.
        ended_in_check: Whether the process ended in a check of what the candidates had changed.
    """

    def __init__(self, output: bytes) -> None:
        parts = output.split(END_OF_CANDIDATE)
        passed = CHECK_BEGINS + CHECK_PASSED
        self.confirmed_count = max((n for n, part in enumerate(parts) if part.startswith(passed)), default=0)
        self.ended_count = len(parts) - 1
        self.ended_in_check = parts[-1] == CHECK_BEGINS
        self.parts = [part[len(passed) :] if part.startswith(passed) else part for part in parts]
