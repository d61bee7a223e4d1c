"""Send a run's events to the client, and ask its user questions.

The client shows progress as text and as a plan, each candidate as a tool call, and questions as requests for
permission.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from acp.helpers import (
    plan_entry,
    start_tool_call,
    text_block,
    tool_content,
    tool_diff_content,
    update_agent_message_text,
    update_plan,
    update_tool_call,
)
from acp.interfaces import Client
from acp.schema import (
    AllowedOutcome,
    FileEditToolCallContent,
    PermissionOption,
    PlanEntry,
    PlanEntryStatus,
    ToolCallLocation,
    ToolCallStatus,
    ToolCallUpdate,
)

from suture.api import Review
from suture.core.ledger import Event, Payload, RunFolder, load_task
from suture.core.ledger.kinds import (
    CandidateChecked,
    CandidateProposed,
    CertificateWritten,
    MovesDecided,
    PlanMade,
    RunFinished,
    RunStarted,
)
from suture.core.records import Candidate, Task, Verdict
from suture.errors import StorageError
from suture.interfaces.editor.tuning import MAX_COUNTEREXAMPLES, MAX_DIFF_CHARS
from suture.interfaces.narrative.event_text import counterexample_lines
from suture.interfaces.narrative.plain_text import escape_markdown, format_share, sanitize_text
from suture.interfaces.narrative.review_text import render_review_question, review_as_text
from suture.interfaces.narrative.run_progress_text import ProgressNarrator
from suture.project.workspace import decode_text

Send = Callable[[Any], Awaitable[None]]
"""Sends an update of the session."""

PLAN_STAGES = {
    "heal": ("Run the tests on the unchanged code", "Find a change that makes them pass", "Certify it"),
    "write": ("Read the task and its checks", "Write code that passes them", "Certify it"),
}
"""Kind of a run -> the stages that the client shows as its plan. Their numbers count from 0."""
REVIEW_OPTIONS = (
    PermissionOption(option_id="approve", name="Yes", kind="allow_once"),
    PermissionOption(option_id="reject", name="No, try something else", kind="reject_once"),
    # A kind is only a hint for how the client shows an option. This one distinguishes it from the other refusal.
    PermissionOption(option_id="abort", name="Stop the run", kind="reject_always"),
)
REPAIR_CHOICE_OPTIONS = (
    PermissionOption(option_id="first", name="The first one", kind="allow_once"),
    PermissionOption(option_id="second", name="The second one", kind="allow_once"),
    PermissionOption(option_id="neither", name="Neither", kind="reject_once"),
    PermissionOption(option_id="unsure", name="I do not know", kind="reject_once"),
)
APPLY_OPTIONS = (
    PermissionOption(option_id="apply", name="Apply to my files", kind="allow_once"),
    PermissionOption(option_id="leave", name="Do not change my files", kind="reject_once"),
)


def candidate_diffs(
    candidate: Candidate, task: Task | None, root: Path
) -> tuple[list[FileEditToolCallContent], list[ToolCallLocation]]:
    """Return (the diffs of a candidate, the paths that they affect)."""
    original_files = task.files if task is not None else {}
    diffs, locations = [], []
    for path, text in sorted(candidate.files.items()):
        file = str(root / path)
        old = decode_text(original_files[path]) if path in original_files else None
        if max(len(text), len(old or "")) <= MAX_DIFF_CHARS:
            old_text = _without_surrogates(old) if old is not None else None
            diffs.append(tool_diff_content(file, _without_surrogates(text), old_text))
        locations.append(ToolCallLocation(path=file))
    return diffs, locations


def _without_surrogates(text: str) -> str:
    """Return text without lone surrogates, which the protocol's JSON cannot represent."""
    return text.encode("utf-8", "replace").decode()


class RunUpdates:
    """Sends the events of one run to the client."""

    def __init__(self, folder: RunFolder, root: Path, send: Send) -> None:
        self._folder, self._root, self._send = folder, root, send
        self._narrator = ProgressNarrator(suggest_commands=False)
        self._stages: tuple[str, ...] = ()
        self._subtasks: tuple[str, ...] = ()
        self._current_stage = 0
        self._call_ids: dict[str, str] = {}
        """Candidate -> id of its tool call."""
        self._diffs: dict[str, list[FileEditToolCallContent]] = {}
        """Id of a tool call -> the candidate's diffs."""

    async def send_event(self, event: Event) -> None:
        """Send an event: its text, the plan if it advances, and the candidate it is about."""
        for line in self._narrator.lines_for(event):
            await self._send(update_agent_message_text(escape_markdown(line) + "\n\n"))
        await self._update_plan(event.payload)
        match event.payload:
            case CandidateProposed() as proposed:
                await self._start_candidate_call(proposed, event.seq)
            case CandidateChecked() as checked if checked.candidate in self._call_ids:
                await self._finish_candidate_call(checked)

    async def _update_plan(self, payload: Payload) -> None:
        match payload:
            case RunStarted(kind=kind):
                self._stages = PLAN_STAGES[kind]
            case PlanMade(plan=plan):
                self._subtasks = tuple(subtask.goal for subtask in plan.subtasks)
            case MovesDecided(moves=moves):
                self._current_stage = 2 if any(move.kind == "stop" for move in moves) else 1
            case CertificateWritten() | RunFinished():
                self._current_stage = 3  # after the last stage, so that all of them are completed
            case _:
                return
        await self._send(update_plan(self._plan_entries()))

    def _plan_entries(self) -> list[PlanEntry]:
        entries = []
        for number, stage in enumerate(self._stages):
            status: PlanEntryStatus = (
                "completed"
                if number < self._current_stage
                else "in_progress"
                if number == self._current_stage
                else "pending"
            )
            entries.append(plan_entry(stage, priority="high", status=status))
            if number == 1:  # the planner's subtasks belong to this stage
                # Lengths of titles and goals are chosen by judgement.
                entries += [plan_entry(escape_markdown(goal, 300), status=status) for goal in self._subtasks]
        return entries

    async def _start_candidate_call(self, proposed: CandidateProposed, seq: int) -> None:
        if proposed.candidate in self._call_ids:
            return  # the same code was proposed before
        self._call_ids[proposed.candidate] = call_id = f"{self._folder.id}-{seq}"
        try:
            candidate = self._folder.load_record(Candidate, proposed.blob)
            diffs, locations = candidate_diffs(candidate, load_task_if_present(self._folder), self._root)
        except (StorageError, ValueError, KeyError, TypeError):
            # The call is shown even without diffs. The last three errors are a precaution against damaged records,
            # because more is computed from them here than where a verdict is loaded.
            diffs, locations = [], []
        self._diffs[call_id] = diffs
        title = f"Check {sanitize_text(proposed.label, 200) or 'a candidate'}"
        await self._send(
            start_tool_call(
                call_id, title, kind="execute", status="in_progress", content=diffs, locations=locations
            )
        )

    async def _finish_candidate_call(self, checked: CandidateChecked) -> None:
        total = checked.passed + checked.failed
        lines = [format_share(checked.passed, total, "pass")]
        try:
            verdict = self._folder.load_record(Verdict, checked.verdict)
        except StorageError:
            verdict = None
        for fact in (verdict.counterexamples if verdict else ())[:MAX_COUNTEREXAMPLES]:
            lines += counterexample_lines(fact)
        status: ToolCallStatus = "failed" if checked.failed or not total else "completed"
        call_id = self._call_ids[checked.candidate]
        text = tool_content(text_block(escape_markdown("\n".join(lines))))
        # An update's content replaces the previous content, so the diff is sent again.
        content = [*self._diffs.get(call_id, ()), text]
        await self._send(update_tool_call(call_id, status=status, content=content))


def load_task_if_present(folder: RunFolder) -> Task | None:
    """Return the task of a run, or `None` if its folder no longer has it."""
    try:
        return load_task(folder)
    except StorageError:
        return None


async def request_answer(client: Client, session: str, review: Review, root: Path) -> str:
    """Ask the user a run's question; return their choice, or an empty string without one."""
    diffs = candidate_diffs(review.candidate, review.task, root)[0] if review.candidate is not None else []
    update = update_tool_call(
        f"{review.run_id}-{review.key[:16]}",
        title=escape_markdown(render_review_question(review), 200),
        kind="edit" if diffs else "other",
        status="pending",
        content=[tool_content(text_block(escape_markdown(review_as_text(review)))), *diffs],
    )
    options = REPAIR_CHOICE_OPTIONS if review.difference is not None else REVIEW_OPTIONS
    return await _request_choice(client, session, update, options)


async def request_acceptance(
    client: Client, session: str, folder: RunFolder, change: Candidate, root: Path
) -> bool:
    """Ask whether a verified change should be applied to the user's files."""
    diffs, locations = candidate_diffs(change, load_task_if_present(folder), root)
    update = update_tool_call(
        f"{folder.id}-change",
        title="Apply the verified change",
        kind="edit",
        status="pending",
        content=diffs,
        locations=locations,
    )
    return await _request_choice(client, session, update, APPLY_OPTIONS) == "apply"


async def _request_choice(
    client: Client, session: str, update: ToolCallUpdate, options: tuple[PermissionOption, ...]
) -> str:
    """Return the id of the option that the user chose, or an empty string without one."""
    # The helper returns the form for a session update, with one more field than a permission request allows.
    call = ToolCallUpdate(**update.model_dump(exclude={"session_update"}))
    outcome = (await client.request_permission(session, call, list(options))).outcome
    chosen_id = outcome.option_id if isinstance(outcome, AllowedOutcome) else ""
    return chosen_id if any(option.option_id == chosen_id for option in options) else ""
