"""Read the runs that are not in the database yet in a process of its own, so that no query has to wait for them."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading

from suture.core.file_locks import is_locked, lock_file
from suture.core.settings import Settings
from suture.errors import SutureError

log = logging.getLogger("suture.interfaces.jobs")
LOCK = "indexing.lock"
"""A file beside the folder of runs, which the process locks as long as it works."""


def start_indexing(settings: Settings) -> None:
    """Start the process, unless one is at work for the same folder of state."""
    try:
        if is_locked(settings.paths.home / LOCK):
            return
    except FileNotFoundError:
        pass
    try:
        process = subprocess.Popen(
            [
                sys.executable,
                "-P",  # modules in the current folder must not shadow others
                "-m",
                "suture.interfaces.jobs.index_process",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=settings.paths.home,
            start_new_session=True,  # it goes on when the terminal is closed
        )
        assert process.stdin is not None
        with process.stdin as pipe:
            pipe.write(settings.model_dump_json(include={"paths", "store"}).encode())
    except OSError as fault:  # the answer says that runs may be missing, and the next query tries again
        log.warning("no process reads the remaining runs: %s", fault.strerror)
        return
    threading.Thread(target=process.wait, daemon=True).start()


def main() -> int:
    """Read the runs; return the exit code."""
    settings = Settings.model_validate_json(sys.stdin.buffer.read())
    with (settings.paths.home / LOCK).open("ab") as lock:
        try:
            lock_file(lock)
        except BlockingIOError:
            return 0
        from suture.storage.database.current_index import open_current_index

        try:
            with open_current_index(settings, reads_all=True):
                return 0
        except SutureError as fault:  # the next query meets it, too, and reports it
            return fault.exit_code


if __name__ == "__main__":
    sys.exit(main())
