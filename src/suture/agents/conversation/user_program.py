"""Run the user's own program, such as another coding agent, on a copy of the project, and record what it changed."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from suture.agents import tuning
from suture.agents.calling.budgeted_call import BudgetedCall, CallContext, find_prior_decision, reserve
from suture.agents.conversation.agent_turn import find_recorded_step
from suture.agents.conversation.project_copy import run_in_project_copy, select_text_changes
from suture.agents.conversation.task_briefing import TaskBriefing
from suture.core.ledger.kinds import ProposerRan
from suture.core.records import Task
from suture.core.safe_files import read_regular_file
from suture.errors import UsageError
from suture.judge import Suite
from suture.project.workspace import is_protected
from suture.sandbox import LIBRARY
from suture.sandbox.unsafe_subprocess import UnsafeSubprocess
from suture.sandbox.working_copy.copy_run import CopyRun


@dataclass(frozen=True, kw_only=True)
class ProgramTurn:
    """What one turn of the user's program works with.

    Attributes:
        number: Number of the turn, from 1.
        files: The copy of the project when the turn begins: path -> content.
        briefing: The task; from the second turn on, also why the change is not accepted.
        diff: What earlier turns have changed, as a unified diff.
    """

    number: int
    files: Mapping[str, bytes]
    briefing: TaskBriefing
    diff: str
    suite: Suite
    calls: CallContext


async def run_user_program(turn: ProgramTurn) -> ProposerRan:
    """Run the user's program once on a copy of the project, and return what it did.

    The program does not run again if the ledger holds its result already.

    Raises:
        BudgetExceeded: No attempt or no time is left.
        UsageError: The program cannot be read.
        SandboxError: The sandbox failed.
    """
    calls = turn.calls
    call = BudgetedCall(
        key=f"proposer {turn.number}",
        description=f"proposer {turn.number}",
        role="proposer",
        move="gate",
        is_attempt=True,
    )
    reservation = reserve(call, calls, find_prior_decision(call, calls))
    recorded = find_recorded_step(
        ProposerRan,
        lambda ran: ran.turn == turn.number,
        lambda ran: (ran.output, ran.changes),
        calls,
    )
    if recorded is not None:
        recorded.adopt(calls)
        event = recorded.payload
    else:
        try:
            async with calls.budget.time_limit():
                run = await _run_program(turn)
        except BaseException:
            calls.budget.write_off(reservation, attempts=0, model_calls=0)
            raise
        event = _record_run(run, turn)
    calls.budget.settle(reservation)
    return event


async def _run_program(turn: ProgramTurn) -> CopyRun:
    settings = turn.calls.settings.proposer
    left_s = turn.calls.budget.remaining_s()
    timeout_s = (
        settings.seconds if left_s is None else min(settings.seconds, tuning.PROGRAM_TIME_SHARE * left_s)
    )
    command, briefing = settings.command or "", turn.briefing
    documents = {
        "task.md": briefing.render_markdown().encode(),
        "facts.json": briefing.render_json().encode(),
        "change.diff": turn.diff.encode("utf-8", "surrogateescape"),
    }
    test_names = "\n".join(briefing.failing).encode("utf-8", "replace")[: tuning.MAX_TEST_NAMES_BYTES]
    env = {
        "SUTURE_PROJECT": "{box}",
        "SUTURE_TASK": f"{{box}}/{LIBRARY}/task.md",
        "SUTURE_FACTS": f"{{box}}/{LIBRARY}/facts.json",
        "SUTURE_DIFF": f"{{box}}/{LIBRARY}/change.diff",
        "SUTURE_FAILING": test_names.decode("utf-8", "ignore"),
        "SUTURE_TEST_COMMAND": briefing.command,
        "SUTURE_TURN": str(turn.number),
    }
    # The user was warned about the host when they asked for it.
    host = UnsafeSubprocess(notice=lambda: None) if settings.outside else None
    try:
        if host is not None:
            line, env = _with_absolute_program(command), {**os.environ, **env}
        else:
            line, program = _command_in_sandbox(command)
            documents |= program
        return await run_in_project_copy(
            turn.suite,
            f'exec <"$SUTURE_TASK"; {line}',
            turn.files,
            timeout_s,
            env=env,
            library_files=documents,
            max_output_bytes=tuning.MAX_PROGRAM_OUTPUT_BYTES,
            host=host,
        )
    finally:
        if host is not None:
            await host.close()


def _find_program(command: str) -> tuple[str, Path | None]:
    """Return `(first word, file)` of a command; the file is `None` unless the word is the path of one."""
    try:
        words = shlex.split(command)
    except ValueError as fault:
        raise UsageError(f"the proposer {command!r} cannot be read: {fault}") from fault
    if not words:
        raise UsageError("the proposer's command is empty", remedy="name a program, or leave it out")
    path = Path(words[0]).expanduser() if "/" in words[0] else None
    return words[0], path if path is not None and path.is_file() else None


def _command_in_sandbox(command: str) -> tuple[str, dict[str, bytes]]:
    """Return `(command, program)` for the sandbox: the user's program, path -> content, is copied into it."""
    word, path = _find_program(command)
    if path is None or path.is_relative_to("/usr") or not command.startswith(word):
        return command, {}
    try:
        content = read_regular_file(path, tuning.MAX_PROGRAM_BYTES, follow=True)
    except OSError as fault:
        raise UsageError(f"the proposer {word!r} cannot be read: {os.strerror(fault.errno or 0)}") from fault
    if content is None or len(content) > tuning.MAX_PROGRAM_BYTES:
        raise UsageError(
            f"the proposer {word!r} is not a file of at most {tuning.MAX_PROGRAM_BYTES >> 20} MiB"
        )
    name = f"proposer/{path.name}"
    copied_program = f'"$SUTURE_PROJECT/{LIBRARY}/"{shlex.quote(name)}'
    # The sandbox makes a file with `#!` executable when it writes the copy. Any other program needs `chmod`.
    start = copied_program if content.startswith(b"#!") else f"chmod +x {copied_program} && {copied_program}"
    return start + command[len(word) :], {name: content}


def _with_absolute_program(command: str) -> str:
    """Return the command with its program as an absolute path, because it runs in the copy's folder."""
    word, path = _find_program(command)
    if path is None or not command.startswith(word):
        return command
    return shlex.quote(str(path.absolute())) + command[len(word) :]


def _record_run(run: CopyRun, turn: ProgramTurn) -> ProposerRan:
    """Record what the program did. Its changes of files that must not change are left out."""
    calls, task = turn.calls, turn.briefing.task
    texts, left_out = select_text_changes(run.changes, turn.files)
    deleted = [path for path in run.changes.deleted if path in turn.files]
    restored = [path for path in (*texts, *deleted) if not _may_change(path, task)]
    changes = {**texts, **dict.fromkeys(deleted)}
    changes = {path: text for path, text in changes.items() if path not in restored}
    event = ProposerRan(
        turn=turn.number,
        command=calls.settings.proposer.command or "",
        outside=calls.settings.proposer.outside,
        ending=run.ending,
        exit_code=run.exit_code,
        seconds=run.duration_s,
        printed_bytes=run.printed_bytes,
        output=calls.folder.save_json(run.output),
        changes=calls.folder.save_json(changes),
        changed=tuple(sorted(changes.keys() - deleted))[: tuning.MAX_PROGRAM_LISTED_PATHS],
        deleted=tuple(sorted(changes.keys() & deleted))[: tuning.MAX_PROGRAM_LISTED_PATHS],
        restored=tuple(sorted(restored))[: tuning.MAX_PROGRAM_LISTED_PATHS],
        excluded_files=left_out[: tuning.MAX_PROGRAM_LISTED_PATHS],
    )
    calls.ledger.append(event)
    return event


def _may_change(path: str, task: Task) -> bool:
    """Return whether the user allows a change of a file. `is_protected` only matches globs."""
    is_selected = not task.writable or is_protected(path, task.writable)
    return is_selected and not is_protected(path, task.user_protected)


def explain_no_change(run: ProposerRan, calls: CallContext) -> str:
    """Return why a turn of the program produced no change."""
    ending = {
        "exit": f"it ended with exit code {run.exit_code}",
        "timeout": f"it was stopped after {run.seconds:.0f} s",
        "memory": "it used too much memory",
    }.get(run.ending, "it was killed")
    output = str(calls.folder.load_json(run.output)).strip().splitlines()
    last_line = f": {output[-1][:200]}" if output else ""
    others = (*run.restored, *run.excluded_files)
    only = f", and changed only {', '.join(others[:5])}" if others else ""
    return f"the proposer changed nothing{only}; {ending}{last_line}"
