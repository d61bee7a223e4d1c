"""The program of a job's process: one JSON line of orders on stdin, one file that says how it ended.

It ends when stdin does: the pipe breaks with the server, however that died, and a killed server's run is left
as a killed run is, to be gone on with. A process that the server forked may hold the pipe's other end still,
so the server itself is watched too.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

from suture.core.safe_files import write_atomically
from suture.errors import Cancelled, SutureError
from suture.interfaces.jobs.job import JobEnd, job_as_json, job_end_from_error, job_from_json

WATCH_EVERY_S = 0.5


def main() -> None:
    """Do the job, and write how it ended."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job has it ignored
    order = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    threading.Thread(target=_end_with, args=(order["parent"],), daemon=True).start()
    try:
        from suture.api import run_sync
        from suture.interfaces.jobs.job_execution import execute_job

        end = run_sync(execute_job(job_from_json(order["job"]), order["flags"]))
    except KeyboardInterrupt:
        end = job_end_from_error(Cancelled("cancelled"))
    except SutureError as fault:
        end = job_end_from_error(fault)
    except Exception as fault:  # the process's edge: its end says what was wrong
        end = JobEnd(exit_code=6, error=f"{type(fault).__name__}: {fault}", fault=type(fault).__name__)
    write_atomically(Path(order["end"]), json.dumps(job_as_json(end)).encode())
    sys.stdout.flush()
    os._exit(0)  # nothing is left to be closed, and threads that wait for a model's server may be


def _end_with_stdin() -> None:
    os.read(0, 1)
    os._exit(1)


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(WATCH_EVERY_S)
    os._exit(1)


if __name__ == "__main__":
    main()
