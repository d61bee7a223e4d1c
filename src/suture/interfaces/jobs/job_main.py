"""The program of a job's process: one JSON line of instructions on stdin, one file for the job's end.

The process exits when stdin closes. The pipe breaks when the server dies, for whatever reason, and the run is
left like a killed run, to be resumed. A process that the server forked can still hold the pipe's other end,
so the server's process id is watched too.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

from suture.core.safe_files import write_file_atomically
from suture.core.tuning import MAX_UNCOLLECTED_OBJECTS
from suture.errors import Cancelled
from suture.interfaces.jobs.job import job_as_json, job_end_from_error, job_from_json
from suture.interfaces.jobs.tuning import PARENT_POLL_S


def main() -> None:
    """Execute the job and write how it ended."""
    gc.set_threshold(MAX_UNCOLLECTED_OBJECTS)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background jobs of a shell
    instructions = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_exit_with_stdin, daemon=True).start()
    threading.Thread(target=_exit_with_parent, args=(instructions["parent"],), daemon=True).start()
    try:
        from suture.api import run_sync
        from suture.interfaces.jobs.job_execution import execute_job

        end = run_sync(
            execute_job(job_from_json(instructions["job"]), instructions["flags"], instructions["started_s"])
        )
    except KeyboardInterrupt:
        end = job_end_from_error(Cancelled("cancelled"))
    except Exception as fault:  # the outermost level: the job's end reports the error
        end = job_end_from_error(fault)
    write_file_atomically(Path(instructions["end"]), json.dumps(job_as_json(end)).encode())
    sys.stdout.flush()
    os._exit(0)  # nothing is left to close, and threads may still be waiting for a model server


def _exit_with_stdin() -> None:
    os.read(0, 1)
    os._exit(1)


def _exit_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PARENT_POLL_S)
    os._exit(1)


if __name__ == "__main__":
    main()
