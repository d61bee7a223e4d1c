"""One prompt to its answer: what it asks for, the run, the questions on the way, the change at the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from acp.helpers import update_agent_message_text, update_tool_call
from acp.interfaces import Client

from suture.api import apply, pending_review, undo
from suture.core.ledger import Event, RunFolder, get_run_state, last_of, load_result, read_ledger
from suture.core.ledger.kinds import RunStarted
from suture.core.records import Result
from suture.core.safe_files import read_plain
from suture.core.settings import Settings
from suture.errors import UsageError
from suture.interfaces.editor.acp.client_updates import RunUpdates, request_acceptance, request_answer
from suture.interfaces.editor.acp.session_store import Session, Sessions
from suture.interfaces.jobs import JobKind
from suture.interfaces.jobs.job_process import run_standalone_job
from suture.interfaces.narrative.plain_text import escape_markdown
from suture.interfaces.narrative.run_progress_text import render_short_result
from suture.models import NO_MODEL
from suture.project.workspace import text_of

COMMANDS = {
    "heal": "Repair the project until its tests pass; what you add is a hint",
    "write": "Write new Python code; say what, with examples",
    "resume": "Go on with a run that was stopped, or that waits for you",
    "apply": "Be asked again whether the last change goes into your files",
    "undo": "Take the last applied change back",
    "verify": "Prove the last change anew, without a model",
}
MOST_FILE_BYTES = 16 * 2**20


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What a prompt is answered with.

    Attributes:
        settings: The agent's own.
        flags: Those of them that were said on the command line.
        test: The test command of the projects; what their files show where not given.
        sessions: Where the session is kept.
        session: The conversation.
        client: Whom to tell and to ask.
        reads: Whether the client says what its unsaved files hold.
    """

    settings: Settings
    flags: Mapping[str, object]
    test: str | None
    sessions: Sessions
    session: Session
    client: Client
    reads: bool

    async def say(self, text: str) -> None:
        """Tell the user something; what may be others' text is made plain by the caller."""
        await self.send(update_agent_message_text(text + "\n\n"))

    async def send(self, update: Any) -> None:
        """Send an update of the session."""
        await self.client.session_update(self.session.id, update)

    async def answer(self, text: str) -> None:
        """Do what a prompt asks for.

        Raises:
            SutureError: It cannot be done.
        """
        name, _, rest = text.strip().partition(" ")
        if not name.startswith("/"):
            return await self._go(text)
        match name.removeprefix("/"):
            case "heal":
                await self._heal(rest)
            case "write":
                await self._run("write", {"task": rest})
            case "resume":
                await self._settle(await self._done("resume", {}, self._last()))
            case "apply":
                await self._hand_over(self._last())
            case "undo":
                undo(self._last().id, settings=self.settings)
                await self.say("Taken back.")
            case "verify":
                await self._verify(self._last())
            case _:
                known = ", ".join(f"/{command}" for command in COMMANDS)
                raise UsageError(f"there is no command {name!r:.80}", remedy=f"one of: {known}")
        return None

    async def tell_again(self) -> None:
        """Tell all that happened in the session, from its runs' ledgers."""
        for folder in self.sessions.runs_of(self.session):
            reading = read_ledger(folder.ledger_path)
            telling = self._telling(folder)
            for event in reading.events:
                await telling.tell(event)
            if (result := load_result(folder)) is not None:
                await self._tell_end(folder, result)
            elif get_run_state(folder, reading) != "running":
                await self.say(f"Run {folder.id} has not ended: /resume goes on with it.")

    async def _go(self, text: str) -> None:
        """Free text: a hint to a run that waits for an answer, or what is known of the fault."""
        runs = self.sessions.runs_of(self.session)
        asked = pending_review(runs[-1].path) if runs else None
        if asked is None or asked.difference is not None or not text.strip():
            return await self._heal(text)
        answer = {"choice": "redirect", "hint": text}
        return await self._settle(await self._done("resume", {"answer": answer}, runs[-1]))

    async def _heal(self, words: str) -> None:
        if words.strip() and self.settings.model.name == NO_MODEL:
            await self.say("No model is set, so nobody reads your words: small edits are tried.")
            words = ""
        await self._run("heal", {"path": str(self.session.cwd), "test": self.test, "words": words})

    async def _run(self, kind: JobKind, request: Mapping[str, Any]) -> None:
        await self._settle(await self._done(kind, request))

    async def _done(
        self, kind: JobKind, request: Mapping[str, Any], of: RunFolder | None = None
    ) -> RunFolder:
        telling: list[RunUpdates] = []

        async def tell(event: Event) -> None:
            if not telling:
                folder = of or RunFolder(self.settings.paths.home / "runs" / event.run)
                self.sessions.add_run(self.session, folder.id)
                telling.append(self._telling(folder))
            await telling[0].tell(event)

        folder, _ = await run_standalone_job(
            self.settings.paths.home,
            kind,
            request,
            tell,
            run=of.id if of is not None else "",
            flags=self.flags,
            chosen={"loop.autonomy": self.session.mode},
        )
        return folder

    def _telling(self, folder: RunFolder) -> RunUpdates:
        return RunUpdates(folder, self.session.cwd, self.send)

    async def _settle(self, folder: RunFolder) -> None:
        """Ask what the run asks until it ends; then tell its end, and offer its change."""
        approved = False
        while (asked := pending_review(folder.path)) is not None:
            choice = await request_answer(self.client, self.session.id, asked, self.session.cwd)
            if not choice:
                return await self.say(
                    "The run waits for your answer. Write what the model should be told, or /resume."
                )
            approved = asked.stage == "hand_over" and choice == "approve"
            folder = await self._done("resume", {"answer": {"choice": choice}}, folder)
        if (result := load_result(folder)) is not None:
            await self._tell_end(folder, result)
            if result.outcome == "healed":
                await self._hand_over(folder, accepted=approved)
        return None

    async def _tell_end(self, folder: RunFolder, result: Result) -> None:
        await self.say("\n\n".join(map(escape_markdown, render_short_result(result, folder, typed=False))))

    async def _hand_over(self, folder: RunFolder, *, accepted: bool = False) -> None:
        """Ask whether a verified change goes into the user's files, and write it."""
        result = load_result(folder)
        if result is None or result.outcome != "healed" or result.candidate is None:
            raise UsageError(f"run {folder.id} has healed nothing")
        root = self.session.cwd
        if not accepted and not await request_acceptance(
            self.client, self.session.id, folder, result.candidate, root
        ):
            return await self.say("Your files are as they were. /apply asks again.")
        await self._require_saved(result.candidate.files)
        started = last_of(read_ledger(folder.ledger_path).events, RunStarted)
        new = started is not None and started.kind == "write"
        await apply(folder.path, into=root if new else None, settings=self.settings)
        if not accepted:
            await self.send(update_tool_call(f"{folder.id}-change", status="completed"))
        return await self.say("Written into your files. /undo takes it back.")

    async def _require_saved(self, files: Mapping[str, str]) -> None:
        """Refuse to write under an editor's hands.

        Raises:
            UsageError: The editor holds another text of a file than the disk.
        """
        for path in files if self.reads else ():
            place = self.session.cwd / path
            content = read_plain(place, MOST_FILE_BYTES)
            if content is None:
                continue
            held = await self.client.read_text_file(self.session.id, str(place))
            if held.content.replace("\r\n", "\n") != text_of(content):
                raise UsageError(f"{path!r} has changes that are not saved", remedy="save it, then /apply")

    async def _verify(self, folder: RunFolder) -> None:
        async def nobody(_: Event) -> None:
            return None

        home = self.settings.paths.home
        _, end = await run_standalone_job(home, "verify", {}, nobody, run=folder.id, flags=self.flags)
        for finding in end.answer["findings"]:
            sign = "holds" if finding["ok"] else "DOES NOT HOLD"
            await self.say(f"{sign}: {finding['name']}: {escape_markdown(finding['detail'], 500)}")

    def _last(self) -> RunFolder:
        runs = self.sessions.runs_of(self.session)
        if not runs:
            raise UsageError(
                "this session has no run yet", remedy="say what to heal, or /write what is wanted"
            )
        return runs[-1]
