"""Run the user's own program in place of the model: it changes a copy, and its change is a candidate."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from suture.agents import tuning
from suture.agents.calling.budgeted_call import BudgetedCall, find_prior_decision, reserve
from suture.agents.calling.call_context import CallContext
from suture.agents.conversation.agent_turn import AgentTurn, find_recorded_step
from suture.agents.conversation.project_copy import run_in_project_copy, select_text_changes
from suture.core.ledger.kinds import ProposerRan
from suture.core.safe_files import read_regular_file
from suture.errors import MalformedReply, UsageError
from suture.sandbox import LIBRARY
from suture.sandbox.unsafe_subprocess import UnsafeSubprocess
from suture.sandbox.working_copy.copy_run import CopyRun


async def run_user_program(turn: AgentTurn) -> dict[str, str]:
    """Run the user's program once on a copy of the project, and return the files that it changed.

    The program does not run again if the ledger holds its result already.

    Raises:
        BudgetExceeded: No attempt or no time is left.
        MalformedReply: The program changed nothing that a candidate may hold.
        UsageError: The program cannot be read.
        SandboxError: The sandbox failed.
    """
    calls = turn.calls
    call = BudgetedCall(
        key=f"proposer {turn.move.index}",
        description=f"proposer {turn.number}",
        role="proposer",
        move="agent",
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
        event, changes = recorded.payload, recorded.blobs[recorded.payload.changes]
        texts = {str(p): str(text) for p, text in changes.items()} if isinstance(changes, dict) else {}
    else:
        try:
            async with calls.budget.time_limit():
                run = await _run_program(turn)
        except BaseException:
            calls.budget.write_off(reservation, attempts=0, model_calls=0)
            raise
        event, texts = _record_run(run, turn)
    calls.budget.settle(reservation)
    if not texts:
        raise MalformedReply(_explain_no_change(event, calls))
    return texts


async def _run_program(turn: AgentTurn) -> CopyRun:
    settings = turn.calls.settings.proposer
    left_s = turn.calls.budget.remaining_s()
    timeout_s = (
        settings.seconds if left_s is None else min(settings.seconds, tuning.PROGRAM_TIME_SHARE * left_s)
    )
    command, briefing = settings.command or "", turn.briefing
    documents = {
        "task.md": briefing.render_markdown().encode(),
        "facts.json": briefing.render_json().encode(),
    }
    test_names = "\n".join(briefing.failing).encode("utf-8", "replace")[: tuning.MAX_TEST_NAMES_BYTES]
    env = {
        "SUTURE_PROJECT": "{box}",
        "SUTURE_TASK": f"{{box}}/{LIBRARY}/task.md",
        "SUTURE_FACTS": f"{{box}}/{LIBRARY}/facts.json",
        "SUTURE_FAILING": test_names.decode("utf-8", "ignore"),
        "SUTURE_TEST_COMMAND": briefing.command,
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
            line,
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


def _record_run(run: CopyRun, turn: AgentTurn) -> tuple[ProposerRan, dict[str, str]]:
    """Record what the program did, and return `(event, changed files)`."""
    texts, left_out = select_text_changes(run.changes, turn.files)
    calls = turn.calls
    event = ProposerRan(
        turn=turn.number,
        command=calls.settings.proposer.command or "",
        outside=calls.settings.proposer.outside,
        ending=run.ending,
        exit_code=run.exit_code,
        seconds=run.duration_s,
        printed_bytes=run.printed_bytes,
        output=calls.folder.save_json(run.output),
        changes=calls.folder.save_json(texts),
        changed=tuple(sorted(texts))[: tuning.MAX_PROGRAM_LISTED_PATHS],
        deleted=run.changes.deleted[: tuning.MAX_PROGRAM_LISTED_PATHS],
        excluded_files=left_out[: tuning.MAX_PROGRAM_LISTED_PATHS],
    )
    calls.ledger.append(event)
    return event, texts


def _explain_no_change(run: ProposerRan, calls: CallContext) -> str:
    ending = {
        "exit": f"it ended with exit code {run.exit_code}",
        "timeout": f"it was stopped after {run.seconds:.0f} s",
        "memory": "it used too much memory",
    }.get(run.ending, "it was killed")
    output = str(calls.folder.load_json(run.output)).strip().splitlines()
    last_line = f": {output[-1][:200]}" if output else ""
    only = f", and changed only {', '.join(run.excluded_files[:5])}" if run.excluded_files else ""
    return f"the proposer changed nothing{only}; {ending}{last_line}"
