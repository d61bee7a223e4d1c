"""The folder of jobs: what was asked, what is to be stopped, and how each ended; one file for each."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from suture.core.safe_files import read_plain, write_atomically
from suture.errors import StorageError, UsageError
from suture.interfaces.jobs.job import Job, JobEnd, job_as_json, job_end_from_json, job_from_json

PRIVATE = 0o700
"""The mode of a folder that nobody else may look into."""
MOST_BYTES = 16 * 2**20
"""Of a job's file: a request has a few kilobytes, files given to a review some more."""


class JobJournal:
    """All jobs of one home; one process at a time may write there.

    Args:
        home: The folder of state, as the setting `paths.home`.

    Raises:
        UsageError: Another server has it open.
        StorageError: The folder cannot be made.
    """

    def __init__(self, home: Path) -> None:
        self.folder = home / "jobs"
        self.here = self.folder / "here"
        """An empty folder, in which work starts that is about no project."""
        try:
            home.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
            self.folder.mkdir(mode=PRIVATE, exist_ok=True)
            self.here.mkdir(mode=PRIVATE, exist_ok=True)
            self._lock = os.open(self.folder / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as fault:
            raise StorageError(
                f"the folder of jobs {str(self.folder)!r} cannot be made: {fault.strerror}",
                remedy="set SUTURE_HOME to a folder that you can write",
            ) from fault
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as fault:
            os.close(self._lock)
            raise UsageError(
                f"another server works with {str(home)!r}",
                remedy="stop it, or set SUTURE_HOME to another folder",
            ) from fault

    def close(self) -> None:
        """Let another process have it."""
        os.close(self._lock)

    def write(self, job: Job) -> None:
        """Keep what was asked; from then on it is done, also after a crash."""
        self._put(f"{job.id}.json", job_as_json(job))

    def end_path(self, job: Job) -> Path:
        """Where the end of a job is written, by whoever sees it."""
        return self.folder / f"{job.id}.end.json"

    def log_path(self, job: Job) -> Path:
        """Where its process's stray words go."""
        return self.folder / f"{job.id}.log"

    def write_end(self, job: Job, end: JobEnd) -> JobEnd:
        """Keep how a job ended; answers what is kept."""
        end = replace(end, ended_s=end.ended_s or time.time())
        self._put(self.end_path(job).name, job_as_json(end))
        return end

    def end_of(self, job: Job) -> JobEnd | None:
        """How it ended; `None` where it has not, or its server stopped it to go on with it later."""
        plain = self._get(self.end_path(job))
        end = job_end_from_json(plain) if plain is not None else None
        return None if end is not None and end.cancelled and not self.asked_to_stop(job) else end

    def ask_to_stop(self, job: Job) -> None:
        """Note that its caller wants no more of it."""
        self._put(f"{job.id}.stop", {})

    def asked_to_stop(self, job: Job) -> bool:
        """Whether its caller wants no more of it."""
        return (self.folder / f"{job.id}.stop").exists()

    def jobs(self) -> Iterator[Job]:
        """All of them, oldest first.

        Raises:
            StorageError: A file is damaged.
        """
        for path in sorted(self.folder.glob("*.json")):
            if not path.name.endswith(".end.json"):
                yield job_from_json(self._get(path))

    def forget(self, job: Job) -> None:
        """Remove an end that was none."""
        with suppress(FileNotFoundError):
            self.end_path(job).unlink()

    def _put(self, name: str, plain: object) -> None:
        write_atomically(self.folder / name, json.dumps(plain).encode())

    def _get(self, path: Path) -> object:
        try:
            content = read_plain(path, MOST_BYTES)
            return None if content is None else json.loads(content)
        except (OSError, ValueError, RecursionError) as fault:
            raise StorageError(
                f"the job's file {str(path)!r} cannot be read: {fault}", remedy="move it away"
            ) from fault
