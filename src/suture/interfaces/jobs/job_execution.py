"""What a job's process does: a call of the api, or going on with what an earlier process had begun."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from suture.api import (
    ReviewAnswer,
    fork_from_iteration,
    heal,
    load_recorded_run,
    pending_review,
    replay,
    resume,
    solve,
    verify,
)
from suture.api.options import HealOptions, WriteOptions
from suture.core.ledger import RunFolder, get_run_state, last_of, read_ledger, total_spend
from suture.core.ledger.kinds import RunFinished
from suture.core.records import Result
from suture.core.settings import Settings, load_settings
from suture.errors import StorageError, UsageError
from suture.interfaces.jobs.job import RUN_KINDS, Job, JobEnd
from suture.interfaces.jobs.project_sources import locate_project
from suture.interfaces.narrative.exit_codes import EXIT_CODES
from suture.storage.database.run_sharing import fetched, wait_until_released

LETTING_GO_S = 60.0
"""How long a process that was killed may take to let go of its run; its machine may have died with it."""


async def execute_job(job: Job, flags: Mapping[str, object]) -> JobEnd:
    """Do a job to its end; a run that is there already is gone on with and never done twice.

    Raises:
        SutureError: As the api's functions do.
    """
    settings = load_settings(Path.cwd(), flags).settings
    require_sandbox(settings)
    folder = RunFolder(settings.paths.home / "runs" / job.run)
    await _let_go(folder)
    await asyncio.to_thread(wait_until_released, settings, job.run, most_s=LETTING_GO_S)
    await asyncio.to_thread(fetched, settings, job.run)
    if job.kind == "verify":
        return await _verified(job, settings)
    if job.kind in RUN_KINDS and folder.path.exists():
        if folder.ledger_path.is_file() and read_ledger(folder.ledger_path).events:
            return await _gone_on(job, settings, folder)
        shutil.rmtree(folder.path)  # made, and nothing was written before its process died
    if job.kind == "resume":
        return await _gone_on(job, settings, folder)
    if job.kind in ("fork", "replay"):
        require_sandbox(load_recorded_run(str(job.request["of"]), settings).settings)
    if job.kind == "heal":
        return await _heal(job, settings, flags)
    start = {"write": _write, "fork": _fork, "replay": _replay}[job.kind]
    return await start(job, settings)


def require_sandbox(settings: Settings) -> None:
    """Refuse to run strangers' code without a wall, whoever had allowed it.

    Raises:
        UsageError: These settings do.
    """
    if settings.sandbox.backend == "unsafe-subprocess" or settings.sandbox.minimum_level == "none":
        raise UsageError(
            "code that others send is not run without a sandbox",
            remedy="leave sandbox.backend and sandbox.minimum_level as they are by default",
        )


async def _let_go(folder: RunFolder) -> None:
    """Wait until no other process writes the run: that of a server which was killed has a moment left."""
    until_s = time.monotonic() + LETTING_GO_S
    while folder.ledger_path.is_file() and time.monotonic() < until_s:
        if get_run_state(folder, read_ledger(folder.ledger_path)) != "running":
            return
        await asyncio.sleep(0.1)


async def _write(job: Job, settings: Settings) -> JobEnd:
    asked = job.request
    options = WriteOptions(
        asserts=str(asked.get("asserts") or ""),
        entry_point=asked.get("entry_point") or None,
        settings=settings,
        run_id=job.run,
    )
    return _end_of(await solve(str(asked["task"]), options))


async def _heal(job: Job, settings: Settings, flags: Mapping[str, object]) -> JobEnd:
    asked = job.request
    project = await asyncio.to_thread(locate_project, asked, settings, job.run)
    settings = load_settings(project, flags).settings
    require_sandbox(settings)
    options = HealOptions(
        test=asked.get("test") or None,
        protect=asked.get("protect") or (),
        only=asked.get("only") or (),
        since=asked.get("since") or None,
        bug_report=str(asked.get("bug_report") or ""),
        settings=settings,
        run_id=job.run,
    )
    return _end_of(await heal(project, options))


async def _fork(job: Job, settings: Settings) -> JobEnd:
    asked = job.request
    result = await fork_from_iteration(
        str(asked["of"]),
        int(asked["at"]),
        changes=asked.get("changes") or {},
        hint=str(asked.get("hint") or ""),
        candidate=asked.get("candidate") or {},
        settings=settings,
        run_id=job.run,
    )
    return _end_of(result)


async def _replay(job: Job, settings: Settings) -> JobEnd:
    done = await replay(str(job.request["of"]), settings=settings, run_id=job.run)
    answer = {
        "recorded": done.recorded,
        "replay": done.result.run_id,
        "same": done.same,
        "difference": vars(done.difference) if done.difference else None,
    }
    return replace(_end_of(done.result), answer=answer, exit_code=0 if done.same else 1)


async def _gone_on(job: Job, settings: Settings, folder: RunFolder) -> JobEnd:
    """Go on with a run, with the answer it waits for where that is what the job brings."""
    recorded = load_recorded_run(job.run, settings)
    require_sandbox(recorded.settings)
    finished = last_of(recorded.events, RunFinished)
    if recorded.ended and not recorded.may_go_on and finished is not None and job.kind != "resume":
        return _end_of(folder.get_record(Result, finished.result))  # its end alone was not noted
    said: Mapping[str, Any] = job.request.get("answer") or {}
    answer = None
    if said and pending_review(job.run, settings=settings) is not None:  # else an earlier process has used it
        answer = ReviewAnswer(**said)
    return _end_of(await resume(job.run, settings=settings, answer=answer))


async def _verified(job: Job, settings: Settings) -> JobEnd:
    findings = [asdict(finding) async for finding in verify(job.run, settings=settings)]
    ok = all(finding["ok"] for finding in findings)
    return JobEnd(exit_code=0 if ok else 1, answer={"ok": ok, "findings": findings})


def _end_of(result: Result) -> JobEnd:
    return JobEnd(exit_code=EXIT_CODES[result.outcome], answer={"outcome": result.outcome})


def run_spend(folder: RunFolder) -> tuple[int, float]:
    """Tokens and seconds that a run has used, as its ledger says; none where there is no run."""
    try:
        spend = total_spend(read_ledger(folder.ledger_path).events)
    except StorageError:
        return 0, 0.0
    return spend.tokens, spend.seconds
