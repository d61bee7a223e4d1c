"""Answer one prompt: start or resume a run, ask the run's questions, and offer its change at the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from acp.helpers import update_agent_message_text, update_tool_call
from acp.interfaces import Client

from suture.api import apply, pending_review, undo
from suture.core.ledger import Event, RunFolder, get_run_state, last_payload, load_result, read_ledger
from suture.core.ledger.kinds import RunStarted
from suture.core.records import Result
from suture.core.safe_files import read_regular_file
from suture.core.settings import Settings
from suture.errors import UsageError
from suture.interfaces.editor.acp.client_updates import RunUpdates, request_acceptance, request_answer
from suture.interfaces.editor.acp.session_store import Session, SessionStore
from suture.interfaces.editor.tuning import MAX_FILE_BYTES
from suture.interfaces.jobs import JobKind
from suture.interfaces.jobs.job_process import run_standalone_job
from suture.interfaces.narrative.plain_text import escape_markdown
from suture.interfaces.narrative.run_progress_text import render_short_result
from suture.models import NO_MODEL
from suture.project.workspace import decode_text

COMMANDS = {
    "heal": "Repair the project until its tests pass; add a hint if you like",
    "write": "Write new Python code; describe it with examples",
    "resume": "Continue a run that was stopped or waits for you",
    "apply": "Ask again whether to apply the last change to your files",
    "undo": "Revert the last applied change",
    "verify": "Verify the last change again, without a model",
}


@dataclass(frozen=True, kw_only=True)
class PromptTurn:
    """The context in which a prompt is answered.

    Attributes:
        flags: The settings from the command line.
        test: The projects' test command; by default it is detected.
        can_read_files: Whether the client can return the text of unsaved files.
    """

    settings: Settings
    flags: Mapping[str, object]
    test: str | None
    sessions: SessionStore
    session: Session
    client: Client
    can_read_files: bool

    async def say(self, text: str) -> None:
        """Send text to the user; the caller escapes untrusted text."""
        await self.send(update_agent_message_text(text + "\n\n"))

    async def send(self, update: Any) -> None:
        """Send an update of the session."""
        await self.client.session_update(self.session.id, update)

    async def answer(self, text: str) -> None:
        """Execute what a prompt asks for."""
        name, _, argument = text.strip().partition(" ")
        if not name.startswith("/"):
            return await self._answer_free_text(text)
        match name.removeprefix("/"):
            case "heal":
                await self._heal(argument)
            case "write":
                await self._finish_run(await self._run_job("write", {"task": argument}))
            case "resume":
                await self._finish_run(await self._run_job("resume", {}, self._last_run()))
            case "apply":
                await self._offer_change(self._last_run())
            case "undo":
                undo(self._last_run().id, settings=self.settings)
                await self.say("Reverted.")
            case "verify":
                await self._verify(self._last_run())
            case _:
                commands = ", ".join(f"/{command}" for command in COMMANDS)
                raise UsageError(f"there is no command {name!r:.80}", remedy=f"one of: {commands}")
        return None

    async def replay_history(self) -> None:
        """Send everything that happened in the session, from the ledgers of its runs."""
        for folder in self.sessions.load_runs(self.session):
            ledger = read_ledger(folder.ledger_path)
            updates = self._run_updates(folder)
            for event in ledger.events:
                await updates.send_event(event)
            if (result := load_result(folder)) is not None:
                await self._say_result(folder, result)
            elif get_run_state(folder, ledger) != "running":
                await self.say(f"Run {folder.id} has not ended: /resume continues it.")

    async def _answer_free_text(self, text: str) -> None:
        """Handle free text: a hint for a waiting run, or a description of the problem."""
        runs = self.sessions.load_runs(self.session)
        review = pending_review(runs[-1].path) if runs else None
        # A hint cannot answer which of two repairs is right.
        if review is None or review.difference is not None or not text.strip():
            return await self._heal(text)
        answer = {"choice": "redirect", "hint": text}
        return await self._finish_run(await self._run_job("resume", {"answer": answer}, runs[-1]))

    async def _heal(self, bug_report: str) -> None:
        if bug_report.strip() and self.settings.model.name == NO_MODEL:
            await self.say("No model is configured, so your text is ignored: only small edits are tried.")
            bug_report = ""
        request = {"path": str(self.session.cwd), "test": self.test, "bug_report": bug_report}
        await self._finish_run(await self._run_job("heal", request))

    async def _run_job(
        self, kind: JobKind, request: Mapping[str, Any], earlier_run: RunFolder | None = None
    ) -> RunFolder:
        """Run a job to its end; return the folder of its run, which is a new one without an earlier run."""
        updates: RunUpdates | None = None

        async def forward_event(event: Event) -> None:
            nonlocal updates
            if updates is None:
                folder = earlier_run or RunFolder(self.settings.paths.home / "runs" / event.run)
                self.sessions.add_run(self.session, folder.id)
                updates = self._run_updates(folder)
            await updates.send_event(event)

        folder, _ = await run_standalone_job(
            self.settings.paths.home,
            kind,
            request,
            forward_event,
            run=earlier_run.id if earlier_run is not None else "",
            flags=self.flags,
            job_flags={"loop.autonomy": self.session.mode},
        )
        return folder

    def _run_updates(self, folder: RunFolder) -> RunUpdates:
        return RunUpdates(folder, self.session.cwd, self.send)

    async def _finish_run(self, folder: RunFolder) -> None:
        """Ask the run's questions until it ends; then show the result and offer its change."""
        is_approved = False
        while (review := pending_review(folder.path)) is not None:
            choice = await request_answer(self.client, self.session.id, review, self.session.cwd)
            if not choice:
                return await self.say(
                    "The run waits for your answer. Write a hint for the model, or /resume."
                )
            is_approved = review.stage == "delivery" and choice == "approve"
            folder = await self._run_job("resume", {"answer": {"choice": choice}}, folder)
        if (result := load_result(folder)) is not None:
            await self._say_result(folder, result)
            if result.outcome == "healed":
                await self._offer_change(folder, is_approved=is_approved)
        return None

    async def _say_result(self, folder: RunFolder, result: Result) -> None:
        paragraphs = render_short_result(result, folder, suggest_commands=False)
        await self.say("\n\n".join(map(escape_markdown, paragraphs)))

    async def _offer_change(self, folder: RunFolder, *, is_approved: bool = False) -> None:
        """Ask whether to apply a verified change to the user's files, and apply it."""
        result = load_result(folder)
        if result is None or result.outcome != "healed" or result.candidate is None:
            raise UsageError(f"run {folder.id} has no verified change")
        root = self.session.cwd
        if not is_approved and not await request_acceptance(
            self.client, self.session.id, folder, result.candidate, root
        ):
            return await self.say("Your files were not changed. /apply asks again.")
        await self._require_saved(result.candidate.files)
        started = last_payload(read_ledger(folder.ledger_path).events, RunStarted)
        is_new_code = started is not None and started.kind == "write"
        await apply(folder.path, into=root if is_new_code else None, settings=self.settings)
        if not is_approved:
            await self.send(update_tool_call(f"{folder.id}-change", status="completed"))
        return await self.say("Applied to your files. /undo reverts it.")

    async def _require_saved(self, files: Mapping[str, str]) -> None:
        """Check that the editor has no unsaved changes in the files to write."""
        for path in files if self.can_read_files else ():
            file = self.session.cwd / path
            content = read_regular_file(file, MAX_FILE_BYTES)
            if content is None:
                continue
            document = await self.client.read_text_file(self.session.id, str(file))
            if document.content.replace("\r\n", "\n") != decode_text(content):
                raise UsageError(f"{path!r} has unsaved changes", remedy="save it, then /apply")

    async def _verify(self, folder: RunFolder) -> None:
        async def ignore_event(_: Event) -> None:
            return None

        home = self.settings.paths.home
        _, end = await run_standalone_job(home, "verify", {}, ignore_event, run=folder.id, flags=self.flags)
        for finding in end.answer["findings"]:
            sign = "verified" if finding["ok"] else "FALSE"
            await self.say(f"{sign}: {finding['name']}: {escape_markdown(finding['detail'], 500)}")

    def _last_run(self) -> RunFolder:
        runs = self.sessions.load_runs(self.session)
        if not runs:
            raise UsageError("this session has no run yet", remedy="describe the problem, or use /write")
        return runs[-1]
