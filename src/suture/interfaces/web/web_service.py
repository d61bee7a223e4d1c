"""What all routes share: settings, the pool, tokens and archives; and what a request for a run becomes."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suture.api.past_runs import find_run_folder
from suture.core.ledger import RunFolder, new_run_id
from suture.core.settings import Settings
from suture.errors import UsageError
from suture.interfaces.jobs import Job, JobJournal, JobKind, JobRegistry, LocalJobPool, QueueFull
from suture.interfaces.jobs.project_archives import ProjectArchives
from suture.interfaces.jobs.project_sources import archive_limits, require_allowed_git_url
from suture.interfaces.jobs.upload_cleanup import names_in_use, remove_unused_uploads
from suture.interfaces.web.access_tokens import AccessTokens, Caller
from suture.interfaces.web.problem_details import RequestRefused
from suture.interfaces.web.rest_schemas import HealProjectRequest, RunRequest, WriteRequest
from suture.loop import list_recipes

log = logging.getLogger("suture.interfaces.web")
MOST_KEY_CHARS = 200
A_WHILE_S = 3600.0
"""Seconds between two clearings of what callers have sent, and until a caller's day may have room again."""
BUDGETS = ("attempts", "tokens", "money", "seconds")
"""What a caller may limit further; only money may have no limit of the server's own."""


@dataclass(frozen=True, kw_only=True)
class WebService:
    """What the server works with.

    Attributes:
        settings: The server's own.
        pool: Does the jobs.
        tokens: Of its callers.
        archives: What they have sent.
        needs_token: Whether nobody is served without a token, wherever they ask from.
    """

    settings: Settings
    pool: JobRegistry
    tokens: AccessTokens
    archives: ProjectArchives
    needs_token: bool

    async def sweep(self) -> None:
        """Remove what callers have sent and nobody needs any more, now and every hour."""
        home, days = self.settings.paths.home, self.settings.serve.keep_sent_days
        while True:
            try:
                await asyncio.to_thread(
                    remove_unused_uploads, home, days, names_in_use(self.pool.unfinished())
                )
            except Exception:  # else nothing would be removed any more, and nobody would notice
                log.exception("what callers have sent cannot be looked through")
            await asyncio.sleep(A_WHILE_S)

    def folder_of_job(self, job: Job) -> RunFolder:
        """The folder of a job's run, which may not be there yet."""
        return RunFolder(self.settings.paths.home / "runs" / job.run)

    def folder(self, run: str) -> RunFolder:
        """The folder of a run; of one that was asked for here, also before it is there.

        Raises:
            Refused: There is no such run.
        """
        job = self.pool.last_payload(run)
        if job is not None and self.pool.has_run_folder(job):
            return self.folder_of_job(job)
        try:
            return find_run_folder(run, self.settings)
        except UsageError as fault:
            if job is not None:  # it was refused, and has no ledger anywhere
                return self.folder_of_job(job)
            raise RequestRefused(
                404, f"there is no run called {run!r:.80}", remedy="see GET /v1/runs"
            ) from fault

    def submit(
        self,
        caller: Caller,
        kind: JobKind,
        request: Mapping[str, Any],
        asked: RunRequest | None = None,
        *,
        run: str = "",
        key: str = "",
    ) -> Job:
        """Queue a piece of work, within what the caller may use; the same one twice is done once.

        Args:
            caller: Who asks.
            kind: What is to be done.
            request: Its arguments.
            asked: What they chose of the settings.
            run: The run that it is about; a new one where not given.
            key: Their name for the request.

        Raises:
            Refused: They may not choose that, or have used the name for something else.
            QueueFull: Nothing more is taken now.
        """
        flags = self.flags_of(asked) if asked is not None else {}
        said = json.dumps([kind, request, flags, run], sort_keys=True)
        digest = hashlib.sha256(said.encode("utf-8", "backslashreplace")).hexdigest()
        if len(key) > MOST_KEY_CHARS:
            raise RequestRefused(400, f"an idempotency key has at most {MOST_KEY_CHARS} characters")
        before = self.pool.find_by_key(caller.name, key)
        if before is not None:
            return _the_same(before, digest)
        if run and kind != "verify" and self.pool.find_active_job(run) is not None:
            raise RequestRefused(
                409, f"run {run} is being worked on", remedy="wait for its end, or cancel it"
            )
        budget = self.settings.budget
        tokens = int(flags.get("budget.tokens", budget.tokens)) if kind != "verify" else 0
        seconds = float(flags.get("budget.seconds", budget.seconds))
        self._require_share(caller, tokens, seconds)
        new = new_run_id()
        job = Job(
            id=new,
            run=run or new,
            kind=kind,
            request=request,
            flags=flags,
            caller=caller.name,
            created_s=time.time(),
            tokens=tokens,
            seconds=seconds,
            key=key,
            digest=digest,
        )
        return _the_same(self.pool.submit(job), digest)

    def request_of(self, asked: WriteRequest | HealProjectRequest) -> dict[str, Any]:
        """The arguments of a run that is asked for.

        Raises:
            Refused: The project is none that callers may name.
            UsageError: There is no such archive.
        """
        if isinstance(asked, WriteRequest):
            return {"task": asked.task, "asserts": asked.asserts, "entry_point": asked.entry_point}
        given = asked.model_dump(include={"test", "protect", "only", "since", "words"})
        return {**given, **self._project(asked)}

    def _project(self, asked: HealProjectRequest) -> dict[str, str]:
        if sum(one is not None for one in (asked.path, asked.archive, asked.git)) != 1:
            raise RequestRefused(
                400, "a repair needs one project", remedy="give either `path`, `archive` or `git`"
            )
        if asked.git is not None:
            if asked.since is not None:
                raise RequestRefused(400, "`since` needs a history, and only the newest commit is fetched")
            try:
                require_allowed_git_url(asked.git, asked.ref or "", self.settings.serve.git)
            except UsageError as fault:
                raise RequestRefused(403, fault.message, remedy=fault.remedy) from fault
            return {"git": asked.git, "ref": asked.ref or ""}
        if asked.archive is not None:
            self.archives.find_folder(asked.archive)  # refused here, and not when its turn has come
            return {"archive": asked.archive}
        return {"path": str(self.allowed(str(asked.path)))}

    def allowed(self, path: str) -> Path:
        """A folder that callers may name, without links on the way to it.

        Raises:
            Refused: It lies below none of the allowed roots. Whether it is there is not told.
        """
        refused = RequestRefused(
            403,
            f"{path!r:.200} is no folder below an allowed root",
            remedy="send an archive, or see serve.roots",
        )
        try:
            real = Path(path).resolve(strict=True)
            roots = [Path(root).expanduser().resolve() for root in self.settings.serve.roots]
        except (OSError, ValueError, RuntimeError) as fault:
            raise refused from fault
        inside = any(real.is_relative_to(root) for root in roots)
        if not Path(path).is_absolute() or not inside or not real.is_dir():
            raise refused
        return real

    def flags_of(self, asked: RunRequest) -> dict[str, Any]:
        """The settings that a request chooses; never more than the server's own allow.

        Raises:
            Refused: They are none that callers may choose.
        """
        budget, flags = self.settings.budget, {}
        if asked.recipe is not None:
            if asked.recipe not in list_recipes():
                raise RequestRefused(
                    400, f"there is no recipe {asked.recipe!r:.80}", remedy="see GET /v1/recipes"
                )
            flags["loop.recipe"] = asked.recipe
        if asked.model is not None:
            if asked.model not in self.models:
                raise RequestRefused(
                    400, f"model {asked.model!r:.80} is not offered", remedy="see GET /v1/models"
                )
            flags["model.name"] = asked.model
            if asked.model == "none":
                flags["models.coder"] = "none"
        if asked.autonomy is not None:
            flags["loop.autonomy"] = asked.autonomy
        for name in BUDGETS:
            wanted, most = getattr(asked, name), getattr(budget, name)
            if wanted is not None:
                flags[f"budget.{name}"] = wanted if most is None else min(wanted, most)
        return flags

    def changes_of(self, asked: RunRequest) -> dict[str, Any]:
        """What a fork changes: what was chosen, and a budget within the server's own.

        Raises:
            Refused: That is none that callers may choose.
        """
        own = self.settings.budget
        most = {f"budget.{name}": getattr(own, name) for name in BUDGETS if getattr(own, name) is not None}
        return {**most, **self.flags_of(asked)}

    @property
    def models(self) -> tuple[str, ...]:
        """What a caller may name as the model."""
        return tuple(dict.fromkeys((self.settings.model.name, "none", *self.settings.serve.models)))

    def _require_share(self, caller: Caller, tokens: int, seconds: float) -> None:
        """Refuse more than a caller's share of a day.

        Raises:
            QueueFull: What is asked for might go past it.
        """
        limits = self.settings.serve
        used_tokens, used_seconds = self.pool.usage_of(caller.name)
        shares = (
            ("tokens", used_tokens, tokens, limits.tokens_per_day),
            ("seconds", used_seconds, seconds, limits.seconds_per_day),
        )
        for what, used, wanted, most in shares:
            if most is not None and used + wanted > most:
                raise QueueFull(
                    f"{caller.name} has {max(0, most - used):g} of {most:g} {what} a day left, "
                    f"and asks for up to {wanted:g}",
                    retry_after_s=A_WHILE_S,
                    remedy=f"ask for fewer {what}, or later",
                )


def _the_same(job: Job, digest: str) -> Job:
    if job.digest != digest:
        remedy = "take another key for another request"
        raise RequestRefused(
            409, f"the idempotency key {job.key!r} was used for something else", remedy=remedy
        )
    return job


def open_web_service(
    settings: Settings, flags: Mapping[str, object], *, needs_token: bool
) -> tuple[WebService, JobJournal]:
    """What a server works with; the journal is to be closed at its end.

    Args:
        settings: The server's own.
        flags: Its own settings that were said on the command line, for the processes of its jobs.
        needs_token: As in `WebService`.

    Raises:
        UsageError: Another server works with the same home, or `ray` has no PostgreSQL to keep jobs in.
        PrerequisiteError: Ray or the database's tables are missing, or the cluster does not answer.
        StorageError: The home cannot be written, or the database does not answer.
    """
    serve, home = settings.serve, settings.paths.home
    journal = JobJournal(home)
    shared, pool = None, None
    if serve.executor == "ray":
        from suture.interfaces.jobs.ray_backend.ray_job_pool import (
            open_ray_job_pool,  # SQLAlchemy and Ray: for those who share
        )

        shared, pool = open_ray_job_pool(settings, flags)
    service = WebService(
        settings=settings,
        pool=pool or LocalJobPool(journal, home, flags, at_once=serve.max_concurrent_runs, queue=serve.queue),
        tokens=AccessTokens(home),
        archives=ProjectArchives(home, archive_limits(settings), shared),
        needs_token=needs_token,
    )
    return service, journal
