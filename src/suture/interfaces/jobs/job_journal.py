"""The journal of jobs: a folder with one file for each request, each stop request and each end of a job."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from suture.core.file_locks import lock_file
from suture.core.ledger.run_folder import PRIVATE_FOLDER_MODE
from suture.core.safe_files import read_regular_file, write_file_atomically
from suture.errors import StorageError, UsageError, describe_fault
from suture.interfaces.jobs.job import Job, JobEnd, job_as_json, job_end_from_json, job_from_json
from suture.interfaces.jobs.tuning import MAX_JOB_FILE_BYTES

log = logging.getLogger("suture.interfaces.jobs")


class JobJournal:
    """The journal of one home; only one process at a time may have it open.

    Args:
        home: The state folder, as the setting `paths.home`.

    Raises:
        UsageError: Another server has it open.
        StorageError: The folder cannot be created.
    """

    def __init__(self, home: Path) -> None:
        self.folder = home / "jobs"
        self.empty_folder = self.folder / "here"
        """An empty working folder for jobs without a project."""
        try:
            home.mkdir(mode=PRIVATE_FOLDER_MODE, parents=True, exist_ok=True)
            self.folder.mkdir(mode=PRIVATE_FOLDER_MODE, exist_ok=True)
            self.empty_folder.mkdir(mode=PRIVATE_FOLDER_MODE, exist_ok=True)
            self._lock = os.open(self.folder / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as fault:
            raise StorageError(
                f"the folder of jobs {str(self.folder)!r} cannot be created: {fault.strerror}",
                remedy="set SUTURE_HOME to a folder that you can write",
            ) from fault
        try:
            lock_file(self._lock)
        except OSError as fault:
            os.close(self._lock)
            raise UsageError(
                f"another server uses {str(home)!r}", remedy="stop it, or set SUTURE_HOME to another folder"
            ) from fault

    def close(self) -> None:
        """Release the lock."""
        os.close(self._lock)

    def write(self, job: Job) -> None:
        """Store a job; from then on it is executed, even after a crash."""
        self._write_json(f"{job.id}.json", job_as_json(job))

    def end_path(self, job: Job) -> Path:
        """Return the file for the end of a job."""
        return self.folder / f"{job.id}.end.json"

    def log_path(self, job: Job) -> Path:
        """Return the file for the stdout and stderr of a job's process."""
        return self.folder / f"{job.id}.log"

    def write_end(self, job: Job, end: JobEnd) -> None:
        """Store how a job ended."""
        self._write_json(self.end_path(job).name, job_as_json(end))

    def load_end(self, job: Job) -> JobEnd | None:
        """Return how a job ended, or `None` if it has to be executed.

        It also has to be executed if its server cancelled it, without a request of the caller, at shutdown.
        """
        try:
            plain = self._read_json(self.end_path(job))
            end = None if plain is None else job_end_from_json(plain)
        except StorageError as fault:
            log.warning("%s; the job is executed again", fault.message)
            end = None
        if end is None:
            return None
        return None if end.cancelled and not self.is_stop_requested(job) else end

    def request_stop(self, job: Job) -> None:
        """Record that the caller wants the job to stop."""
        self._write_json(f"{job.id}.stop", {})

    def is_stop_requested(self, job: Job) -> bool:
        """Return whether the caller wants the job to stop."""
        return (self.folder / f"{job.id}.stop").exists()

    def jobs(self) -> Iterator[Job]:
        """Yield all jobs, oldest first. A damaged file is named in the log and stays where it is."""
        for path in sorted(self.folder.glob("*.json")):
            if path.name.endswith(".end.json"):
                continue
            try:
                yield job_from_json(self._read_json(path))
            except StorageError as fault:
                log.warning("a job is skipped: %s", fault)

    def remove_end(self, job: Job) -> None:
        """Remove an end that does not count, before the job is executed again."""
        with suppress(FileNotFoundError):
            self.end_path(job).unlink()

    def _write_json(self, name: str, plain: object) -> None:
        write_file_atomically(self.folder / name, json.dumps(plain).encode())

    def _read_json(self, path: Path) -> object:
        try:
            content = read_regular_file(path, MAX_JOB_FILE_BYTES)
            return None if content is None else json.loads(content)
        except (OSError, ValueError, RecursionError) as fault:
            raise StorageError(
                f"the job's file {str(path)!r} cannot be read: {describe_fault(fault)}",
                remedy="move the file away",
            ) from fault
