"""Limits and intervals of jobs. Where no reason is given, they were chosen by judgement and not measured."""

STOP_TIMEOUT_S = 30.0
"""How long a process may take to stop cleanly before it is killed."""
MAX_END_BYTES = 64 * 2**20
"""Size of the file in which a process reports its end; verification findings are part of it."""
MAX_LOG_BYTES = 2**20
"""How much of a dead process's output is read, from its start."""
MAX_LOG_TAIL_BYTES = 2000
"""How much of a dead process's output is searched for its last line."""
REPLY_INTERVAL_S = 0.3
"""Seconds between two writes of what a model has written so far; a person is reading."""
MAX_REPLY_TAIL_CHARS = 4000
"""How much of a reply is shown while it is written, from its end: more than a page has space for."""
LEDGER_POLL_S = 0.1
"""Seconds between two reads of the run's ledger; a person is watching."""
FINAL_EVENTS_TIMEOUT_S = 5.0
"""How long forwarding the last events may take after the run has ended."""
PARENT_POLL_S = 0.5
"""Seconds between two checks that the parent process is still alive."""
RELEASE_TIMEOUT_S = 60.0
"""How long to wait until a killed process releases its run; its machine may have died with it."""
RETRY_AFTER_S = 5
"""Seconds after which a refused caller should retry."""
MAX_JOB_FILE_BYTES = 16 * 2**20
"""Size of a job's file: a request has a few kilobytes, files in an answer to a review some more."""
MIN_UPLOAD_AGE_S = 3600.0
"""Minimum age of a removed folder, whatever the setting says: it may be in use right now."""
SHARED_JOBS_POLL_S = 0.25
"""Seconds between two reads of the shared jobs."""
CLUSTER_CHECK_S = 5.0
"""Seconds between two checks that Ray still has the jobs it was given."""
MAX_LOST_WORKERS = 3
"""How often Ray may lose the worker of a job before the job is abandoned."""
STABLE_AFTER_S = 120.0
"""A job that Ray has kept for this many seconds starts with a fresh loss count."""
MAX_WORKER_STARTS = 5
"""How often a job is started again after its worker was lost; the job itself may kill its workers."""
STOP_POLL_S = 1.0
"""Seconds between two checks whether the caller wants a job to stop."""
DATABASE_TIMEOUT_S = 300.0
"""How long to retry writing a job's end while the database is unavailable. After that the worker fails, and
Ray's next worker continues from the run's own end."""
