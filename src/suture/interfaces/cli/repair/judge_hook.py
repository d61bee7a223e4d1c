"""Answer a coding agent's hook: tell the agent why its change is rejected, so that it goes on instead of ending.

Claude Code, Codex and Gemini CLI start a program with a JSON document on stdin and read a JSON document from stdout.
When the agent wants to end (`Stop`, `SubagentStop`, `AfterAgent`), `{"decision": "block", "reason": ...}` makes it go
on with the reason as its next instruction. After a call of a tool, the same answer is feedback in Claude Code and Codex
(`PostToolUse`). In Gemini CLI (`AfterTool`) it would hide what the tool has returned, so the reason is added there.

An agent may commit what it changes, also on the default branch. So the first call of a session, best at its start
(`SessionStart`), notes the tip of that branch, and the judgements of the session compare with it.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from suture.core.records import content_hash
from suture.core.records.judgement import Judgement
from suture.core.safe_files import write_file_atomically
from suture.errors import UsageError
from suture.interfaces.cli.terminal.error_reporting import report_error
from suture.project.workspace import open_repository
from suture.project.workspace.project_states import find_default_tip

MAX_HOOK_INPUT_CHARS = 4 * 2**20
MAX_BLOCKS = 3
"""How often an agent is told to go on after a message of its user. After that a person has to look. Claude Code itself
ends a turn after 8."""
MAX_REASONS = 10
"""Findings that the agent is told. Chosen by judgement; not measured."""
END_EVENTS = ("Stop", "SubagentStop", "AfterAgent")
"""Events at which an agent wants to end."""
TOOL_EVENTS = ("PostToolUse", "AfterTool")
"""Events after a call of a tool, while the agent is at work."""
START_EVENT = "SessionStart"
"""The event at the start of a session: nothing is to be judged yet."""
REFUSING_EXIT_CODE = 2
"""The exit code with which a hook refuses what the agent wants to do; its stderr is then the reason."""


@dataclass(frozen=True, kw_only=True)
class HookCall:
    """What an agent tells its hook.

    Attributes:
        folder: The agent's working folder; `None` if it names none.
        session: Identifies the agent's session; empty if it names none.
        event: Why the hook is called.
        goes_on: Whether a hook has made the agent go on before, since the user's last message.
    """

    folder: Path | None
    session: str
    event: str = "Stop"
    goes_on: bool = True


def read_hook_call(text: str) -> HookCall:
    """Read the document that an agent sends to its hook.

    Raises:
        UsageError: It is not a JSON object, or of an event that cannot be answered.
    """
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise UsageError(
            "stdin holds no JSON of a hook",
            remedy="--hook is for the hooks of coding agents (docs/agents.md)",
        ) from fault
    if not isinstance(values, dict):
        raise UsageError("stdin holds no JSON object of a hook")
    folder, event = values.get("cwd"), str(values.get("hook_event_name") or "Stop")
    if event not in (answered := (START_EVENT, *END_EVENTS, *TOOL_EVENTS)):
        raise UsageError(
            f"--hook does not answer the event {event!r}", remedy=f"use it for one of {', '.join(answered)}"
        )
    return HookCall(
        folder=Path(folder) if isinstance(folder, str) and folder else None,
        session=str(values.get("session_id") or ""),
        event=event,
        goes_on=values.get("stop_hook_active") is not False,
    )


def find_session_start(call: HookCall, project: Path, home: Path) -> str:
    """Return the tip of the default branch at the first call of a session; empty if it is not known or not needed.

    Args:
        home: Suture's folder, in which the commit is remembered.
    """
    if not call.session:
        return ""
    try:
        repository = open_repository(project)
        # The agent may work in any folder of the repository.
        memory = (
            home / "judge-hooks" / content_hash([call.session, START_EVENT, str(repository.git_dir)])[:16]
        )
        if memory.is_file():
            return memory.read_text("ascii", "replace")
        commit = find_default_tip(repository)
    except UsageError:  # no repository, or no commit in it
        return ""
    _remember(commit, memory)
    return commit


def answer_hook(judgement: Judgement, reasons: str, call: HookCall, home: Path) -> Mapping[str, Any]:
    """Return the answer to the agent, and remember it if it says something.

    Args:
        reasons: Why the change is rejected, for the agent, or the remarks on it, for the user.
        home: Suture's folder, in which the answers of the sessions are remembered.
    """
    memory = home / "judge-hooks" / content_hash([call.session, call.event])[:16]
    if judgement.outcome != "rejected":
        memory.unlink(missing_ok=True)
        has_remarks = judgement.outcome == "accepted_with_remarks" and call.event not in TOOL_EVENTS
        return _show_remarks(reasons, memory.with_suffix(".remarks")) if has_remarks else {}
    if call.event in TOOL_EVENTS:
        return _answer_tool_event(reasons, call.event, memory)
    blocks = _read_count(memory) if call.goes_on else 0
    if blocks >= MAX_BLOCKS:
        note = f"Suture still rejects the change, after {blocks} rejections. {reasons}"
        return {"systemMessage": note}
    _remember(str(blocks + 1), memory)
    return {"decision": "block", "reason": reasons}


def _show_remarks(remarks: str, memory: Path) -> Mapping[str, Any]:
    """Return the remarks for the user, unless they are those that the last call of this session showed."""
    digest = content_hash([remarks])
    if memory.is_file() and memory.read_text("ascii", "replace") == digest:
        return {}
    _remember(digest, memory)
    return {"systemMessage": remarks}


def _answer_tool_event(reasons: str, event: str, memory: Path) -> Mapping[str, Any]:
    """Return the reasons, unless they are those that the agent was told after its last call of a tool."""
    digest = content_hash([reasons])
    if memory.is_file() and memory.read_text("ascii", "replace") == digest:
        return {}
    _remember(digest, memory)
    if event == "AfterTool":
        return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": reasons}}
    return {"decision": "block", "reason": reasons}


def _remember(text: str, memory: Path) -> None:
    memory.parent.mkdir(parents=True, exist_ok=True)
    write_file_atomically(memory, text.encode())


def _read_count(memory: Path) -> int:
    try:
        return int(memory.read_text("ascii")[:4])
    except (OSError, ValueError):
        return 0


def spare_agent(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap `suture judge` so that no fault of a hook ends with the exit code that holds the agent up."""

    @functools.wraps(command)
    def guarded(**arguments: Any) -> None:
        try:
            command(**arguments)
        except UsageError as fault:
            if not arguments["hook"] or fault.exit_code != REFUSING_EXIT_CODE:
                raise
            report_error(fault, debug=False)
            raise typer.Exit(1) from fault

    return guarded
