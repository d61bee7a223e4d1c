"""Rows of the jobs that several servers and workers share. What a job means is the caller's concern."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import ColumnElement, Row, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from suture.core.settings import Settings
from suture.storage.database.store import Store
from suture.storage.database.tables import jobs, uploaded_archives
from suture.storage.postgresql.shared_runs import open_shared_store
from suture.storage.tuning import JOB_OVERLAP_S


@dataclass(frozen=True, kw_only=True)
class JobRow:
    """A job as the database holds it.

    Attributes:
        request: The whole request, as JSON text, with the ids of the job and of its run.
        attempts: How many workers have started it.
        ending: How it ended, as JSON text; `None` if it has not.
        changed_s: When the row was last changed.
    """

    request: str
    stop_requested: bool
    attempts: int
    ending: str | None
    changed_s: float


class SharedJobs:
    """The jobs of one namespace. Safe to use from several threads."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def add(self, job: str, *, run: str, kind: str, caller: str, key: str, request: str) -> JobRow | None:
        """Store a request; return its row, or the earlier one with the same caller and key.

        The result is `None` if another job works on the run: the unique index `uq_jobs_active_run` then rejects
        the row, and no row with this id is found.

        Args:
            run: The run that it creates, continues or inspects.
            caller: Who made the request.
            key: The caller's idempotency key for the request; empty for none.
            request: The whole request, as JSON text.
        """
        row = {
            "id": job,
            "namespace": self.store.namespace,
            "run_id": run,
            "kind": kind,
            "caller": caller,
            "request_key": key,
            "request": request,
            "changed_s": _now(),
        }
        same_key = (jobs.c.caller == caller) & (jobs.c.request_key == key) & (jobs.c.request_key != "")
        with self.store.write_transaction() as connection:
            connection.execute(insert(jobs).values(row).on_conflict_do_nothing())
            in_namespace = jobs.c.namespace == self.store.namespace
            query = select(jobs).where(in_namespace, (jobs.c.id == job) | same_key)
            stored = connection.execute(query).first()
        return _parse_row(stored) if stored is not None else None

    def list_changed(self, since_s: float, unfinished: Collection[str] = ()) -> list[JobRow]:
        """Return the jobs that changed since `since_s`, those that have not ended, and those in `unfinished`.

        Args:
            since_s: A time of the database's clock. Slightly older changes are returned again.
            unfinished: Ids of jobs that the caller still takes for unfinished, so that it also learns of an
                ending that it has missed.
        """
        in_namespace = jobs.c.namespace == self.store.namespace
        is_requested = or_(
            jobs.c.changed_s >= since_s - JOB_OVERLAP_S, jobs.c.ending.is_(None), jobs.c.id.in_(unfinished)
        )
        query = select(jobs).where(in_namespace, is_requested).order_by(jobs.c.id)
        with self.store.read_transaction() as connection:
            return [_parse_row(row) for row in connection.execute(query).all()]

    def find_caller(self, job: str) -> str:
        """Return who requested a job; empty if there is no such job."""
        query = select(jobs.c.caller).where(jobs.c.namespace == self.store.namespace, jobs.c.id == job)
        with self.store.read_transaction() as connection:
            caller = connection.execute(query).scalar()
        return str(caller or "")

    def begin(self, job: str) -> JobRow | None:
        """Count one more worker of a job; return `None` if the job has ended or does not exist."""
        changes = {"attempts": jobs.c.attempts + 1, "changed_s": _now()}
        with self.store.write_transaction() as connection:
            change = update(jobs).where(jobs.c.id == job, jobs.c.ending.is_(None)).values(changes)
            row = connection.execute(change.returning(jobs)).first()
        return _parse_row(row) if row is not None else None

    def end(self, job: str, ending: str, *, unless_started: bool = False) -> bool:
        """Store how a job ended, as JSON text, if that is not known yet; return whether it was stored.

        With `unless_started` nothing is stored if a worker has started the job.
        """
        conditions = [jobs.c.id == job, jobs.c.ending.is_(None)]
        if unless_started:
            conditions.append(jobs.c.attempts == 0)
        with self.store.write_transaction() as connection:
            change = update(jobs).where(*conditions).values(ending=ending, changed_s=_now())
            return connection.execute(change).rowcount == 1

    def request_stop(self, job: str) -> None:
        """Record that the caller wants the job to stop."""
        with self.store.write_transaction() as connection:
            connection.execute(
                update(jobs).where(jobs.c.id == job).values(stop_requested=True, changed_s=_now())
            )

    def is_stop_requested(self, job: str) -> bool:
        """Return whether the caller wants the job to stop."""
        with self.store.read_transaction() as connection:
            return bool(connection.execute(select(jobs.c.stop_requested).where(jobs.c.id == job)).scalar())

    def store_archive(self, name: str, content: bytes) -> None:
        """Store an uploaded archive under its name; it is stored once."""
        with self.store.write_transaction() as connection:
            row = insert(uploaded_archives).values(name=name, content=content)
            connection.execute(row.on_conflict_do_nothing())

    def load_archive(self, name: str) -> bytes | None:
        """Return the archive with this name, or `None`."""
        query = select(uploaded_archives.c.content).where(uploaded_archives.c.name == name)
        with self.store.read_transaction() as connection:
            content: bytes | None = connection.execute(query).scalar()
            return content

    def close(self) -> None:
        """Close the database."""
        self.store.close()


def _now() -> ColumnElement[Any]:
    return func.extract("epoch", func.now())


def _parse_row(row: Row[tuple[object, ...]]) -> JobRow:
    return JobRow(**{field.name: row._mapping[field.name] for field in fields(JobRow)})


def open_shared_jobs(settings: Settings) -> SharedJobs:
    """Open the jobs in the configured database; raises as `open_shared_store`."""
    return SharedJobs(open_shared_store(settings))
