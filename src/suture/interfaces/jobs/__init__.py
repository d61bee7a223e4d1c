"""Runs that somebody else asked for: each in a process of its own, some at once, the others in a queue.

Front doors that serve many callers hand a `Job` to a `LocalJobPool`, or start a `JobProcess` themselves. What was
asked is on disk before it is queued, so that a server which was killed knows what is left to do; what came of
it is the run's ledger, as always. A `RayPool` keeps jobs in PostgreSQL and has a Ray cluster do them. This
room starts runs through the api alone and judges nothing.
"""

from suture.interfaces.jobs.job import Job, JobEnd, JobFailed, JobKind
from suture.interfaces.jobs.job_journal import JobJournal
from suture.interfaces.jobs.job_registry import JobRegistry, QueueFull, RunBusy
from suture.interfaces.jobs.local_job_pool import LocalJobPool

__all__ = [
    "Job",
    "JobEnd",
    "JobFailed",
    "JobJournal",
    "JobKind",
    "JobRegistry",
    "LocalJobPool",
    "QueueFull",
    "RunBusy",
]
