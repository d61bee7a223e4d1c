"""The runs of the server: one at a time for a folder, told as progress, stopped by hand or a newer one."""

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
from suture.interfaces.jobs.job_process import run_standalone_job
from suture.interfaces.narrative.event_text import render_event
from suture.interfaces.narrative.plain_text import sanitize_text
from suture.models import NO_MODEL

MOST_CHARS = 200
BY_SEARCH: Mapping[str, object] = {"model.name": NO_MODEL, "models.coder": NO_MODEL}


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """What the server works with.

    Attributes:
        settings: Its own.
        flags: Those of them that were said on the command line.
        test: The test command of the projects; what their files show where not given.
        seconds: How long the run may take that follows a saved file.
    """

    settings: Settings
    flags: Mapping[str, object]
    test: str | None
    seconds: float


class BackgroundRuns:
    """Runs a folder's tests and looks for what mends them.

    Args:
        server: Whom to tell progress.
        work: What to work with.
        show: Called with what fails, as soon as that is known: the search for a repair takes up to a minute.
    """

    def __init__(
        self, server: LanguageServer, work: ServerOptions, show: Callable[[RunFindings], None]
    ) -> None:
        self._server, self._work, self._show = server, work, show
        self._going: dict[Path, asyncio.Task[RunFindings]] = {}
        self.test = work.test

    async def run(self, root: Path, *, asks_model: bool) -> RunFindings:
        """Run the tests of a folder and look for a repair; an older run of it is stopped first.

        Args:
            root: The folder.
            asks_model: Whether the model of the settings is asked, too, within their whole budget.

        Raises:
            SutureError: The run could not be made.
            CancelledError: It was stopped.
        """
        while (older := self._going.get(root)) is not None and not older.done():
            await self.stop(root)  # of two that wait here, one began a run meanwhile
        task = asyncio.create_task(self._done(root, asks_model=asks_model))
        self._going[root] = task
        try:
            return await task
        finally:
            if self._going.get(root) is task:
                del self._going[root]

    async def stop(self, root: Path) -> None:
        """Stop a folder's run, and wait until it is written down."""
        task = self._going.get(root)
        if task is not None:
            if not task.cancelling():
                task.cancel()
            await asyncio.wait([task])

    async def close(self) -> None:
        """Stop all runs."""
        for root in list(self._going):
            await self.stop(root)

    async def _done(self, root: Path, *, asks_model: bool) -> RunFindings:
        settings = self._work.settings
        chosen: dict[str, object] = {
            "loop.autonomy": "full_auto"
        }  # an editor has no place for such questions
        if not asks_model:
            chosen |= {**BY_SEARCH, "budget.seconds": min(self._work.seconds, settings.budget.seconds)}
        run = new_run_id()
        title = "Healing" if asks_model else "Running tests"
        async with _Progress(self._server, f"Suture: {title} in {root.name}") as progress:

            async def report(event: Event) -> None:
                if (line := render_event(event)) is not None:
                    progress.report(line)
                if isinstance(event.payload, TriageFinished):
                    with suppress(StorageError):  # the end tells it, or is told
                        self._show(read_findings(RunFolder(settings.paths.home / "runs" / run), root))

            watching = asyncio.create_task(progress.taken_back())
            doing = asyncio.create_task(
                run_standalone_job(
                    settings.paths.home,
                    "heal",
                    {"path": str(root), "test": self.test},
                    report,
                    run=run,
                    flags=self._work.flags,
                    chosen=chosen,
                )
            )
            try:
                await asyncio.wait([watching, doing], return_when=asyncio.FIRST_COMPLETED)
            finally:
                watching.cancel()
                if not doing.done():
                    doing.cancel()
                    await asyncio.wait([doing])
            folder, _ = doing.result()
            return read_findings(folder, root)


class _Progress:
    """A bar in the editor, where it has such; the user may take the work back there."""

    def __init__(self, server: LanguageServer, title: str) -> None:
        self._server, self._title = server, title
        self._token = str(uuid.uuid4())
        self._shown = False

    async def __aenter__(self) -> _Progress:
        window = self._server.client_capabilities.window
        if window is not None and window.work_done_progress:
            with suppress(Exception):  # a client that refuses gets no bar, and its run all the same
                await self._server.work_done_progress.create_async(self._token)
                begin = types.WorkDoneProgressBegin(
                    title=sanitize_text(self._title, MOST_CHARS), cancellable=True
                )
                self._server.work_done_progress.begin(self._token, begin)
                self._shown = True
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._shown:
            self._server.work_done_progress.end(self._token, types.WorkDoneProgressEnd())

    def report(self, line: str) -> None:
        """Show what goes on."""
        if self._shown:
            report = types.WorkDoneProgressReport(message=sanitize_text(line, MOST_CHARS))
            self._server.work_done_progress.report(self._token, report)

    async def taken_back(self) -> None:
        """Wait until the user takes it back."""
        if not self._shown:
            await asyncio.get_running_loop().create_future()
        with suppress(asyncio.CancelledError):
            await asyncio.wrap_future(self._server.work_done_progress.tokens[self._token])
