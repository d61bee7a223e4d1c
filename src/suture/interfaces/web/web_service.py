"""The state that all routes share, and the conversion of a request into a job within the caller's limits."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from suture.core.ledger import RunFolder, find_run, new_run_id
from suture.core.settings import Settings
from suture.errors import SutureError, UsageError
from suture.interfaces.jobs import Job, JobJournal, JobKind, JobRegistry, LocalJobPool, QueueFull
from suture.interfaces.jobs.job import INSPECTION_KINDS, JobEnd
from suture.interfaces.jobs.project_archives import ProjectArchives
from suture.interfaces.jobs.project_sources import (
    archive_limits,
    find_allowed_folder,
    is_missing_folder,
    require_allowed_git_url,
)
from suture.interfaces.jobs.upload_cleanup import names_in_use, remove_unused_uploads
from suture.interfaces.web.problem_details import RequestRefused
from suture.interfaces.web.request_guard import AccessTokens, Caller
from suture.interfaces.web.rest_schemas import HealProjectRequest, RunChoices, WriteRequest
from suture.interfaces.web.tuning import CLEANUP_INTERVAL_S, MAX_KEY_CHARS
from suture.models import list_catalogue_models
from suture.storage.database import fetch_shared_run

log = logging.getLogger("suture.interfaces.web")
BUDGET_NAMES = ("attempts", "tokens", "money", "seconds")
"""Limits that a caller can lower; only money may have no limit of the server's own."""


IMPORT_RETRY_S = 0.2
"""Seconds until an import is tried again for which there was no free descriptor."""


def import_loop() -> None:
    """Import what most routes need of the loop: a server does it in its first second, while it answers the others.

    Every thread begins with the same module, for which Python lets the others wait. When two threads begin with
    different modules of one package, it gives up with a deadlock or a half imported module. While the process has no
    free descriptor, the import is tried again.
    """
    while True:
        try:
            import_module("suture.api")
            return
        except OSError as fault:
            if fault.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            time.sleep(IMPORT_RETRY_S)


@dataclass(frozen=True, kw_only=True)
class WebService:
    """The shared state of the server."""

    settings: Settings
    pool: JobRegistry
    tokens: AccessTokens
    archives: ProjectArchives
    needs_token: bool

    async def clean_up_uploads(self) -> None:
        """Remove uploads that are no longer needed, now and every hour."""
        home, days = self.settings.paths.home, self.settings.serve.keep_sent_days
        while True:
            try:
                await asyncio.to_thread(import_loop)
                await asyncio.to_thread(
                    remove_unused_uploads, home, days, names_in_use(self.pool.unfinished())
                )
            except Exception:  # otherwise the task would die unnoticed
                log.exception("the uploads cannot be cleaned up")
            await asyncio.sleep(CLEANUP_INTERVAL_S)

    async def wait_for_end(self, job: Job) -> JobEnd:
        """Return how a job ended; it is stopped if the client, who waits for its answer, disconnects."""
        try:
            return await self.pool.ended(job)
        except asyncio.CancelledError:
            self.pool.cancel(job)
            raise

    def job_folder(self, job: Job) -> RunFolder:
        """Return the folder of a job's run, which may not exist yet."""
        return RunFolder(self.settings.paths.home / "runs" / job.run)

    def find_start_fault(self, job: Job) -> JobEnd | None:
        """Return the end of a job whose process died before it wrote a line of its run; else `None`."""
        end = self.pool.end_of(job)
        died = end is not None and end.exit_code == SutureError.exit_code
        return end if died and not self.job_folder(job).ledger_path.is_file() else None

    def find_run_folder_or_404(self, run: str) -> RunFolder:
        """Return the folder of a run; for runs started here, even before it exists."""
        job = self.pool.find_last_job(run)
        if job is not None and self.pool.has_run_folder(job):
            return self.job_folder(job)
        try:
            fetch_shared_run(self.settings, run)
            return find_run(self.settings.paths.home, run)
        except UsageError as fault:
            if job is not None:  # the run was refused and has no ledger
                return self.job_folder(job)
            raise RequestRefused(404, f"there is no run {run!r:.80}", remedy="see GET /v1/runs") from fault

    def submit(
        self,
        caller: Caller,
        kind: JobKind,
        request: Mapping[str, Any],
        run_request: RunChoices | None = None,
        *,
        run: str = "",
        key: str = "",
    ) -> Job:
        """Queue a job within the caller's limits; identical requests with one key are executed once.

        A key may be used again if the job of the earlier request died before it began.

        Args:
            request: The job's arguments.
            run_request: The settings that the caller has chosen.
            run: The id of the run that the job is about; by default a new one.
            key: The idempotency key; empty if the caller sent none.
        """
        flags = self.requested_settings(run_request) if run_request is not None else {}
        payload = json.dumps([kind, request, flags, run], sort_keys=True)
        # JSON can contain half a surrogate pair, which UTF-8 cannot represent.
        digest = hashlib.sha256(payload.encode("utf-8", "backslashreplace")).hexdigest()
        if len(key) > MAX_KEY_CHARS:
            raise RequestRefused(400, f"an idempotency key has at most {MAX_KEY_CHARS} characters")
        earlier_job = self.pool.find_by_key(caller.name, key)
        if earlier_job is not None and self.find_start_fault(earlier_job) is None:
            return _require_same_request(earlier_job, digest)
        if run and kind not in INSPECTION_KINDS and self.pool.find_active_job(run) is not None:
            raise RequestRefused(409, f"run {run} is in progress", remedy="wait for its end, or cancel it")
        budget = self.settings.budget
        # Verifying and judging use no model.
        tokens = int(flags.get("budget.tokens", budget.tokens)) if kind not in INSPECTION_KINDS else 0
        seconds = float(flags.get("budget.seconds", budget.seconds))
        self._require_daily_share(caller, tokens, seconds)
        job_id = new_run_id()
        job = Job(
            id=job_id,
            run=run or job_id,
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
        return _require_same_request(self.pool.submit(job), digest)

    def job_request(self, run_request: WriteRequest | HealProjectRequest) -> dict[str, Any]:
        """Return the job arguments for a requested run."""
        if isinstance(run_request, WriteRequest):
            return run_request.model_dump(
                include={"task", "asserts", "entry_point", "language", "project", "ask"}
            )
        fields = run_request.model_dump(include={"test", "protect", "only", "since", "bug_report"})
        return {**fields, **self._project_source(run_request)}

    def _project_source(self, run_request: HealProjectRequest) -> dict[str, str]:
        sources = (run_request.path, run_request.archive, run_request.git)
        if sum(source is not None for source in sources) != 1:
            raise RequestRefused(
                400,
                "a repair needs exactly one project",
                remedy="use either `path`, `archive` or `git`",
                advice="Name the project's folder, an archive or a git repository.",
            )
        if run_request.git is not None:
            if run_request.since is not None:
                message = "`since` needs a history, but only the newest commit is cloned"
                raise RequestRefused(400, message, field="since")
            try:
                require_allowed_git_url(run_request.git, run_request.ref or "", self.settings.serve.git)
            except UsageError as fault:
                raise RequestRefused(403, fault.message, remedy=fault.remedy, field="git") from fault
            return {"git": run_request.git, "ref": run_request.ref or ""}
        if run_request.archive is not None:
            self.archives.find_folder(run_request.archive)  # checked now instead of when the job starts
            return {"archive": run_request.archive}
        return {"path": str(self.require_allowed_folder(str(run_request.path)))}

    def require_allowed_folder(self, path: str) -> Path:
        """Return a folder that callers may name, with symbolic links resolved.

        Raises:
            RequestRefused: It does not exist, or is below no allowed root. Callers with a token do not learn
                which folders exist elsewhere.
        """
        roots = self.settings.serve.roots
        folder = find_allowed_folder(path, roots)
        if folder is not None:
            return folder
        if is_missing_folder(path, roots if self.needs_token else ("/",)):
            raise RequestRefused(
                404,
                f"there is no folder {path!r:.200}",
                remedy="send the absolute path of a folder",
                advice="Check the path: it is the whole path of a folder, from / on.",
                field="path",
            )
        raise RequestRefused(
            403,
            f"{path!r:.200} is not a folder below an allowed root",
            remedy="upload an archive, or see serve.roots",
            advice=f"Choose a folder below {' or '.join(roots)}, or repair an archive of the project."
            if roots
            else "",
            field="path",
        )

    def requested_settings(self, run_request: RunChoices) -> dict[str, Any]:
        """Return the settings that a request chooses, never beyond the server's limits."""
        budget, flags = self.settings.budget, {}
        if run_request.recipe is not None:
            from suture.loop import list_recipes

            if run_request.recipe not in list_recipes():
                raise RequestRefused(
                    400, f"there is no recipe {run_request.recipe!r:.80}", remedy="see GET /v1/recipes"
                )
            flags["loop.recipe"] = run_request.recipe
        if run_request.model is not None:
            if run_request.model not in self.models:
                raise RequestRefused(
                    400, f"model {run_request.model!r:.80} is not offered", remedy="see GET /v1/models"
                )
            flags["model.name"] = run_request.model
            # Otherwise a model that the server sets for the role `coder` would be used.
            if run_request.model == "none":
                flags["models.coder"] = "none"
        if run_request.autonomy is not None:
            flags["loop.autonomy"] = run_request.autonomy
        for name in BUDGET_NAMES:
            requested, limit = getattr(run_request, name), getattr(budget, name)
            if requested is not None:
                flags[f"budget.{name}"] = requested if limit is None else min(requested, limit)
        return flags

    def fork_changes(self, run_request: RunChoices) -> dict[str, Any]:
        """Return the changes of a fork: the chosen settings, and a budget within the server's limits."""
        limits = {f"budget.{name}": getattr(self.settings.budget, name) for name in BUDGET_NAMES}
        given_limits = {name: limit for name, limit in limits.items() if limit is not None}
        return {**given_limits, **self.requested_settings(run_request)}

    @property
    def models(self) -> tuple[str, ...]:
        """The models that a caller can choose: the server's own, those it offers, and those on this machine."""
        settings = self.settings
        # `model.base_url` belongs to the server's own model.
        is_embedded_usable = settings.model.base_url is None and find_spec("xllamacpp") is not None
        cached_models = list_catalogue_models(settings.paths.cache) if is_embedded_usable else ()
        embedded = (f"local:{cached.entry.name}" for cached in cached_models if cached.path is not None)
        return tuple(dict.fromkeys((settings.model.name, "none", *settings.serve.models, *embedded)))

    def _require_daily_share(self, caller: Caller, tokens: int, seconds: float) -> None:
        """Refuse a request that could exceed the caller's daily share of tokens or seconds."""
        limits = self.settings.serve
        used_tokens, used_seconds = self.pool.usage_of(caller.name)
        shares = (
            ("tokens", used_tokens, tokens, limits.tokens_per_day),
            ("seconds", used_seconds, seconds, limits.seconds_per_day),
        )
        for unit, used, requested, daily_limit in shares:
            if daily_limit is not None and used + requested > daily_limit:
                raise QueueFull(
                    f"{caller.name} has {max(0, daily_limit - used):g} of {daily_limit:g} {unit} per day left, "
                    f"but requests up to {requested:g}",
                    # By judgement: the share grows again as the caller's jobs become older than a day.
                    retry_after_s=CLEANUP_INTERVAL_S,
                    remedy=f"request fewer {unit}, or retry later",
                )


def answer_of_job(end: JobEnd) -> Mapping[str, Any]:
    """Return the answer of an ended job; refuse the request if it has none."""
    if "ok" not in end.answer:
        message = end.error or "it was stopped before its end"
        raise RequestRefused(409, message, remedy=end.remedy, fault=end.fault)
    return end.answer


def _require_same_request(job: Job, digest: str) -> Job:
    """Return the job unless its idempotency key was used for a different request."""
    if job.digest != digest:
        raise RequestRefused(
            409,
            f"the idempotency key {job.key!r} was used for a different request",
            remedy="use a new key for a different request",
        )
    return job


def open_web_service(
    settings: Settings, flags: Mapping[str, object], *, needs_token: bool
) -> tuple[WebService, JobJournal]:
    """Open the shared state of a server; the caller must close the journal."""
    serve, home = settings.serve, settings.paths.home
    journal = JobJournal(home)
    shared_jobs, pool = None, None
    if serve.executor == "ray":
        # Imported on demand: it imports SQLAlchemy and Ray.
        from suture.interfaces.jobs.ray_backend.ray_job_pool import open_ray_job_pool

        shared_jobs, pool = open_ray_job_pool(settings, flags)
    service = WebService(
        settings=settings,
        pool=pool or LocalJobPool(journal, home, flags, at_once=serve.max_concurrent_runs, queue=serve.queue),
        tokens=AccessTokens(home),
        archives=ProjectArchives(home, archive_limits(settings), shared_jobs),
        needs_token=needs_token,
    )
    return service, journal
