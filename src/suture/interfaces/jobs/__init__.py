"""Runs for other callers: each job runs in its own process, a few at once, the others in a queue.

Interfaces that serve many callers submit a `Job` to a `LocalJobPool`, or start a `JobProcess` themselves. A
request is on disk before it is queued, so a server that was killed knows what remains to be done; the result
is the run's ledger, as always. `ray_backend` keeps jobs in PostgreSQL and runs them on a Ray cluster. This
package starts runs only through the api and judges nothing.
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
