"""Rows of the jobs that several servers and their workers share; what a job is they need not know."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Row, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from suture.core.settings import Settings
from suture.storage.database.store import Store
from suture.storage.database.tables import jobs, sent_archives
from suture.storage.postgresql.shared_runs import shared_store

OVERLAP_S = 30.0
"""A row's time is of when its transaction began, and others may have read in between."""


@dataclass(frozen=True, kw_only=True)
class JobRow:
    """A job as the database holds it.

    Attributes:
        asked: What was asked for, as JSON text.
        stopped: Whether its caller wants no more of it.
        tries: How many workers have begun it.
        ended: How it ended, as JSON text; `None` where it has not.
        changed_s: When anything of it was changed last.
    """

    asked: str
    stopped: bool
    tries: int
    ended: str | None
    changed_s: float


class SharedJobs:
    """The jobs of one namespace. Safe to use from several threads."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def add(self, job: str, *, run: str, kind: str, caller: str, key: str, asked: str) -> JobRow | None:
        """Keep what was asked for.

        Args:
            job: Its id.
            run: The run that it makes, goes on with, or looks at.
            kind: What is to be done.
            caller: Who asked.
            key: Their name for the request.
            asked: All of it, as JSON text.

        Returns:
            What is kept, or was kept under the same key before; `None` where another job works on the run.
        """
        row = {
            "id": job,
            "namespace": self.store.namespace,
            "run_id": run,
            "kind": kind,
            "caller": caller,
            "request_key": key,
            "asked": asked,
            "changed_s": _now(),
        }
        before = (jobs.c.caller == caller) & (jobs.c.request_key == key) & (jobs.c.request_key != "")
        with self.store.writing() as connection:
            connection.execute(insert(jobs).values(row).on_conflict_do_nothing())
            mine = jobs.c.namespace == self.store.namespace
            found = connection.execute(select(jobs).where(mine, (jobs.c.id == job) | before)).first()
        return _as_row(found) if found is not None else None

    def changed(self, since_s: float, unfinished: Collection[str] = ()) -> list[JobRow]:
        """The jobs that have changed since then, those that have not ended, and some named ones.

        Args:
            since_s: By the database's clock; what is a little older is told once more.
            unfinished: Ids of jobs that are told in any case.
        """
        mine = jobs.c.namespace == self.store.namespace
        wanted = or_(
            jobs.c.changed_s >= since_s - OVERLAP_S, jobs.c.ended.is_(None), jobs.c.id.in_(unfinished)
        )
        with self.store.reading() as connection:
            found = connection.execute(select(jobs).where(mine, wanted).order_by(jobs.c.id)).all()
        return [_as_row(row) for row in found]

    def begin(self, job: str) -> JobRow | None:
        """Count one more worker of a job; `None` where it has ended, or is none."""
        changes = {"tries": jobs.c.tries + 1, "changed_s": _now()}
        with self.store.writing() as connection:
            change = update(jobs).where(jobs.c.id == job, jobs.c.ended.is_(None)).values(changes)
            found = connection.execute(change.returning(jobs)).first()
        return _as_row(found) if found is not None else None

    def end(self, job: str, ended: str, *, unless_begun: bool = False) -> bool:
        """Keep how a job ended, where that is not known yet; answers whether it was so.

        Args:
            job: Its id.
            ended: How, as JSON text.
            unless_begun: Leave it alone where a worker has begun it.
        """
        which = [jobs.c.id == job, jobs.c.ended.is_(None)]
        if unless_begun:
            which.append(jobs.c.tries == 0)
        with self.store.writing() as connection:
            change = update(jobs).where(*which).values(ended=ended, changed_s=_now())
            return connection.execute(change).rowcount == 1

    def ask_to_stop(self, job: str) -> None:
        """Note that its caller wants no more of it."""
        with self.store.writing() as connection:
            connection.execute(update(jobs).where(jobs.c.id == job).values(stopped=True, changed_s=_now()))

    def asked_to_stop(self, job: str) -> bool:
        """Whether its caller wants no more of it."""
        with self.store.reading() as connection:
            return bool(connection.execute(select(jobs.c.stopped).where(jobs.c.id == job)).scalar())

    def keep_archive(self, name: str, content: bytes) -> None:
        """Keep what a caller has sent; the same is kept once."""
        with self.store.writing() as connection:
            row = insert(sent_archives).values(name=name, content=content)
            connection.execute(row.on_conflict_do_nothing())

    def archive(self, name: str) -> bytes | None:
        """What was kept under this name."""
        with self.store.reading() as connection:
            found = connection.execute(select(sent_archives.c.content).where(sent_archives.c.name == name))
            content: bytes | None = found.scalar()
            return content

    def close(self) -> None:
        """Let go of the database."""
        self.store.close()


def _now() -> ColumnElement[Any]:
    return func.extract("epoch", func.now())


def _as_row(row: Row[tuple[object, ...]]) -> JobRow:
    values = row._mapping
    return JobRow(
        asked=values["asked"],
        stopped=values["stopped"],
        tries=values["tries"],
        ended=values["ended"],
        changed_s=values["changed_s"],
    )


def open_shared_jobs(settings: Settings) -> SharedJobs:
    """The jobs in the database of the settings.

    Raises:
        UsageError: `store.url` names no PostgreSQL.
        PrerequisiteError: Its tables are missing, or the driver is.
        StorageError: It cannot be reached.
    """
    return SharedJobs(shared_store(settings))
