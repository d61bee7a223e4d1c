"""The runs of the language server: at most one per folder, stopped by the user or by a newer run."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from suture.core.ledger import Event, RunFolder, new_run_id
from suture.core.ledger.kinds import TriageFinished
from suture.core.settings import Settings
from suture.errors import StorageError
from suture.interfaces.editor.lsp.run_findings import RunFindings, read_findings
from suture.interfaces.editor.tuning import MAX_PROGRESS_CHARS
from suture.interfaces.jobs.job_process import run_standalone_job
from suture.interfaces.narrative.event_text import render_event
from suture.interfaces.narrative.plain_text import sanitize_text
from suture.models import NO_MODEL

SEARCH_ONLY_SETTINGS: Mapping[str, object] = {"model.name": NO_MODEL, "models.coder": NO_MODEL}


@dataclass(frozen=True, kw_only=True)
class LanguageServerOptions:
    """The options of the server.

    Attributes:
        flags: The settings from the command line.
        test: The projects' test command; by default it is detected.
        seconds: The time limit of a run after a file is saved.
    """

    settings: Settings
    flags: Mapping[str, object]
    test: str | None
    seconds: float


class BackgroundRuns:
    """Runs a folder's tests and searches for a repair.

    Args:
        publish: Called with the failing tests as soon as they are known, because the search for a repair
            takes up to a minute.

    Attributes:
        test: The projects' test command. An editor may name another one when it connects.
    """

    def __init__(
        self, server: LanguageServer, options: LanguageServerOptions, publish: Callable[[RunFindings], None]
    ) -> None:
        self._server, self._options, self._publish = server, options, publish
        self._tasks: dict[Path, asyncio.Task[RunFindings]] = {}
        self.test = options.test

    async def run(self, root: Path, *, asks_model: bool) -> RunFindings:
        """Run the tests of a folder and search for a repair, after stopping an older run of the folder.

        Args:
            asks_model: Whether to also use the configured model, with the whole budget.

        Raises:
            SutureError: The run failed.
            CancelledError: The run was stopped.
        """
        while (older_task := self._tasks.get(root)) is not None and not older_task.done():
            await self.stop(root)  # another waiting caller may have started a run meanwhile
        task = asyncio.create_task(self._run_job(root, asks_model=asks_model))
        self._tasks[root] = task
        try:
            return await task
        finally:
            if self._tasks.get(root) is task:
                del self._tasks[root]

    async def stop(self, root: Path) -> None:
        """Stop a folder's run, and wait until it is recorded."""
        task = self._tasks.get(root)
        if task is not None:
            if not task.cancelling():
                task.cancel()
            await asyncio.wait([task])

    async def close(self) -> None:
        """Stop all runs."""
        for root in list(self._tasks):
            await self.stop(root)

    async def _run_job(self, root: Path, *, asks_model: bool) -> RunFindings:
        settings = self._options.settings
        # The job's own flags take precedence over those of the command line. A language server cannot ask the
        # user during a run.
        job_flags: dict[str, object] = {"loop.autonomy": "full_auto"}
        if not asks_model:
            seconds = min(self._options.seconds, settings.budget.seconds)
            job_flags |= {**SEARCH_ONLY_SETTINGS, "budget.seconds": seconds}
        run = new_run_id()
        title = "Healing" if asks_model else "Running tests"
        async with _EditorProgress(self._server, f"Suture: {title} in {root.name}") as progress:

            async def report(event: Event) -> None:
                if (line := render_event(event)) is not None:
                    progress.report(line)
                if isinstance(event.payload, TriageFinished):
                    with suppress(StorageError):  # the findings at the end of the run report it
                        self._publish(read_findings(RunFolder(settings.paths.home / "runs" / run), root))

            cancel_task = asyncio.create_task(progress.wait_for_cancel())
            job_task = asyncio.create_task(
                run_standalone_job(
                    settings.paths.home,
                    "heal",
                    {"path": str(root), "test": self.test},
                    report,
                    run=run,
                    flags=self._options.flags,
                    job_flags=job_flags,
                )
            )
            try:
                await asyncio.wait([cancel_task, job_task], return_when=asyncio.FIRST_COMPLETED)
            finally:
                cancel_task.cancel()
                if not job_task.done():
                    job_task.cancel()
                    await asyncio.wait([job_task])
            folder, _ = job_task.result()
            return read_findings(folder, root)


class _EditorProgress:
    """A progress bar in the editor, if it supports one; the user can cancel the work there."""

    def __init__(self, server: LanguageServer, title: str) -> None:
        self._server, self._title = server, title
        self._token = str(uuid.uuid4())
        self._is_visible = False

    async def __aenter__(self) -> _EditorProgress:
        window = self._server.client_capabilities.window
        if window is not None and window.work_done_progress:
            with suppress(Exception):  # a client that refuses gets no bar, but its run continues
                await self._server.work_done_progress.create_async(self._token)
                begin = types.WorkDoneProgressBegin(
                    title=sanitize_text(self._title, MAX_PROGRESS_CHARS), cancellable=True
                )
                self._server.work_done_progress.begin(self._token, begin)
                self._is_visible = True
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._is_visible:
            self._server.work_done_progress.end(self._token, types.WorkDoneProgressEnd())

    def report(self, line: str) -> None:
        """Show a line of progress."""
        if self._is_visible:
            report = types.WorkDoneProgressReport(message=sanitize_text(line, MAX_PROGRESS_CHARS))
            self._server.work_done_progress.report(self._token, report)

    async def wait_for_cancel(self) -> None:
        """Wait until the user cancels the work."""
        if not self._is_visible:
            await asyncio.get_running_loop().create_future()
        with suppress(asyncio.CancelledError):  # pygls cancels the token's future when the user cancels
            await asyncio.wrap_future(self._server.work_done_progress.tokens[self._token])
