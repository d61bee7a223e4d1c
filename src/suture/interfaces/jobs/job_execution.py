"""Execute a job in its process: call the api, or resume the run that an earlier process has started."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from suture.api import (
    JudgeOptions,
    ReviewAnswer,
    apply_rival,
    fork_from_iteration,
    heal,
    judge,
    load_recorded_run,
    pending_review,
    replay,
    resume,
    solve,
    verify,
)
from suture.api.options import HealOptions, WriteOptions
from suture.core.ledger import RunFolder, get_run_state, last_payload, read_ledger
from suture.core.ledger.kinds import RunFinished
from suture.core.records import Result
from suture.core.settings import Settings, load_settings
from suture.core.temporary_folders import temporary_folder
from suture.errors import BudgetExceeded
from suture.interfaces.jobs.job import REPLY_FILE, RUN_KINDS, SEARCH_FILE, Job, JobEnd
from suture.interfaces.jobs.judge_steps import make_step_writer
from suture.interfaces.jobs.project_sources import locate_project, require_sandbox
from suture.interfaces.jobs.tuning import MAX_REPLY_TAIL_CHARS, RELEASE_TIMEOUT_S, REPLY_INTERVAL_S
from suture.interfaces.narrative.exit_codes import EXIT_CODES, JUDGEMENT_EXIT_CODES
from suture.interfaces.narrative.judgement_text import judgement_as_json
from suture.interfaces.narrative.search_text import describe_best_edit
from suture.models import listen_to_replies
from suture.search import SearchProgress, listen_to_search
from suture.storage.database.run_sharing import fetch_shared_run, wait_until_released


async def execute_job(job: Job, flags: Mapping[str, object], started_s: float) -> JobEnd:
    """Execute a job to its end; a run that exists already is resumed and never started twice.

    Args:
        job: What to do.
        flags: Settings by dotted key.
        started_s: When the job's process was started, in seconds since the epoch. The time of a run counts from then,
            as somebody who watches it sees it, without the time in which its project is cloned.
    """
    settings = load_settings(Path.cwd(), flags).settings
    require_sandbox(settings)
    if job.kind == "judge":  # there is no run that another process could hold
        return await _execute_judge(job, settings, flags)
    folder = RunFolder(settings.paths.home / "runs" / job.run)
    # First another process of this machine, then another machine must release the run; then its newest events are
    # copied here. Without shared runs, the last two do nothing.
    await _wait_for_release(folder)
    await asyncio.to_thread(wait_until_released, settings, job.run, timeout_s=RELEASE_TIMEOUT_S)
    await asyncio.to_thread(fetch_shared_run, settings, job.run)
    with listen_to_replies(ReplyFile(folder).show), listen_to_search(SearchFile(folder).show):
        return await _execute_in_folder(job, settings, flags, folder, started_s)


async def _execute_in_folder(
    job: Job, settings: Settings, flags: Mapping[str, object], folder: RunFolder, started_s: float
) -> JobEnd:
    if job.kind == "verify":
        return await _execute_verify(job, settings)
    if job.kind in RUN_KINDS and folder.path.exists():
        if folder.ledger_path.is_file() and read_ledger(folder.ledger_path).events:
            return await _resume_run(job, settings, folder)
        shutil.rmtree(folder.path)  # its process died before it wrote anything
    if job.kind == "resume":
        return await _resume_run(job, settings, folder)
    if job.kind in ("fork", "replay", "rival"):  # they take over the settings of the run `of`
        require_sandbox(load_recorded_run(str(job.request["of"]), settings).settings)
    if job.kind == "heal":
        return await _execute_heal(job, settings, flags, started_s)
    if job.kind == "write":
        return await _execute_write(job, settings, started_s)
    start = {"fork": _execute_fork, "replay": _execute_replay, "rival": _execute_rival}[job.kind]
    return await start(job, settings)


class ReplyFile:
    """Writes the end of the reply that a model is writing to `REPLY_FILE`."""

    def __init__(self, folder: RunFolder) -> None:
        self.path = folder.path / REPLY_FILE
        self._number = -1
        self._written_s = 0.0

    def show(self, number: int, text: str | None) -> None:
        """Follow one reply at a time, as a listener of `listen_to_replies`."""
        if text is None:
            if number == self._number:
                self._number = -1
                self.path.unlink(missing_ok=True)
        elif self._number in (-1, number) and time.monotonic() - self._written_s > REPLY_INTERVAL_S:
            self._number, self._written_s = number, time.monotonic()
            with suppress(OSError):  # a full disk stops the run itself, with a better message
                self.path.write_text(text[-MAX_REPLY_TAIL_CHARS:], "utf-8", "replace")


class SearchFile:
    """Writes how far a search is to `SEARCH_FILE`."""

    def __init__(self, folder: RunFolder) -> None:
        self.path = folder.path / SEARCH_FILE
        self._written_s = 0.0

    def show(self, progress: SearchProgress) -> None:
        """Follow a search, as a listener of `listen_to_search`."""
        if time.monotonic() - self._written_s > REPLY_INTERVAL_S:
            self._written_s = time.monotonic()
            with suppress(OSError):  # as for replies
                text = describe_best_edit(progress) if progress.best else ""
                self.path.write_text(json.dumps({"tried": progress.tried, "best": text}))


async def _wait_for_release(folder: RunFolder) -> None:
    """Wait until no other process writes the run, such as the dying process of a killed server."""
    deadline_s = time.monotonic() + RELEASE_TIMEOUT_S
    while folder.ledger_path.is_file() and time.monotonic() < deadline_s:
        if get_run_state(folder, read_ledger(folder.ledger_path)) != "running":
            return
        await asyncio.sleep(0.1)  # by judgement: a person may be waiting


async def _execute_write(job: Job, settings: Settings, started_s: float) -> JobEnd:
    request = job.request
    options = WriteOptions(
        asserts=str(request.get("asserts") or ""),
        entry_point=request.get("entry_point") or None,
        language=request.get("language") or None,
        project=request.get("project") or None,
        ask=bool(request.get("ask")),
        settings=settings,
        run_id=job.run,
        requested_at_s=started_s,
    )
    return _job_end(await solve(str(request["task"]), options))


async def _execute_heal(
    job: Job, settings: Settings, flags: Mapping[str, object], started_s: float
) -> JobEnd:
    request, before_s = job.request, time.time()
    project = await asyncio.to_thread(locate_project, request, settings, job.run)
    started_s += time.time() - before_s  # a clone may take minutes, which the run's budget does not pay for
    settings = load_settings(project, flags).settings  # with those of the project, so they are checked again
    require_sandbox(settings)
    options = HealOptions(
        test=request.get("test") or None,
        protect=request.get("protect") or (),
        only=request.get("only") or (),
        since=request.get("since") or None,
        bug_report=str(request.get("bug_report") or ""),
        settings=settings,
        run_id=job.run,
        requested_at_s=started_s,
        reads_parents=False,
    )
    return _job_end(await heal(project, options))


async def _execute_fork(job: Job, settings: Settings) -> JobEnd:
    request = job.request
    result = await fork_from_iteration(
        str(request["of"]),
        request["at"],
        changes=request.get("changes") or {},
        hint=str(request.get("hint") or ""),
        candidate=request.get("candidate") or {},
        settings=settings,
        run_id=job.run,
    )
    return _job_end(result)


async def _execute_rival(job: Job, settings: Settings) -> JobEnd:
    request = job.request
    result = await apply_rival(str(request["of"]), int(request["number"]), settings=settings, run_id=job.run)
    return _job_end(result)


async def _execute_replay(job: Job, settings: Settings) -> JobEnd:
    replayed = await replay(str(job.request["of"]), settings=settings, run_id=job.run)
    answer = {
        "recorded": replayed.recorded,
        "replay": replayed.result.run_id,
        "same": replayed.same,
        "difference": vars(replayed.difference) if replayed.difference else None,
    }
    return replace(_job_end(replayed.result), answer=answer, exit_code=0 if replayed.same else 1)


async def _resume_run(job: Job, settings: Settings, folder: RunFolder) -> JobEnd:
    """Resume a run; if the job contains the answer that the run waits for, pass it on."""
    recorded = load_recorded_run(job.run, settings)
    require_sandbox(recorded.settings)
    finished = last_payload(recorded.events, RunFinished)
    if recorded.ended and not recorded.can_resume_after_end and finished is not None and job.kind != "resume":
        # Only the job's end had not been recorded.
        return _job_end(folder.load_record(Result, finished.result))
    answer_values: Mapping[str, Any] = job.request.get("answer") or {}
    answer = None
    # Without a pending review, an earlier process has used the answer already.
    if answer_values and pending_review(job.run, settings=settings) is not None:
        answer = ReviewAnswer(**answer_values)
    applies = job.kind == "rival"
    return _job_end(await resume(job.run, settings=settings, apply=applies, answer=answer))


async def _execute_verify(job: Job, settings: Settings) -> JobEnd:
    findings = [asdict(finding) async for finding in verify(job.run, settings=settings)]
    ok = all(finding["ok"] for finding in findings)
    return JobEnd(exit_code=0 if ok else 1, answer={"ok": ok, "findings": findings})


async def _execute_judge(job: Job, settings: Settings, flags: Mapping[str, object]) -> JobEnd:
    """Judge a change within `budget.seconds`."""
    request, started_s = job.request, time.monotonic()
    project = await asyncio.to_thread(locate_project, request, settings, job.run)
    settings = load_settings(project, flags).settings  # with those of the project, so they are checked again
    require_sandbox(settings)
    with temporary_folder("suture-judge-") as folder:
        certificate = folder / "certificate.json" if request.get("certificate") else None
        answer, exit_code = await _judge_in_time(project, request, settings, certificate)
    return JobEnd(exit_code=exit_code, answer=answer, seconds=time.monotonic() - started_s)


async def _judge_in_time(
    project: Path, request: Mapping[str, Any], settings: Settings, certificate: Path | None
) -> tuple[dict[str, Any], int]:
    """Return the exit code, and a judgement as JSON values with its certificate's content if there is a file for it.

    Raises:
        BudgetExceeded: It was not done after `budget.seconds`.
    """
    options = JudgeOptions(
        base=request.get("base") or None,
        patch=request.get("patch"),
        staged=bool(request.get("staged")),
        test=request.get("test") or None,
        protect=request.get("protect") or (),
        reads_parents=False,
        settings=settings,
        on_step=make_step_writer(str(request.get("steps") or "")),
        certificate=certificate,
    )
    limit_s = settings.budget.seconds
    try:
        async with asyncio.timeout(limit_s) as limit:
            judgement = await judge(project, options)
    except TimeoutError as fault:
        if not limit.expired():
            raise
        message = f"the judgement was not done after {limit_s:g} s"
        raise BudgetExceeded("seconds", limit_s, limit_s, message=message) from fault
    answer = judgement_as_json(judgement)
    if certificate is not None:
        answer["certificate"] = await asyncio.to_thread(certificate.read_text, "ascii")
    return answer, JUDGEMENT_EXIT_CODES[judgement.outcome]


def _job_end(result: Result) -> JobEnd:
    return JobEnd(exit_code=EXIT_CODES[result.outcome], answer={"outcome": result.outcome})
