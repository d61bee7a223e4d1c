"""A program of the user's as the agent: it has a copy of the project, and its change becomes a candidate."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from suture.agents.calling.budgeted_call import BudgetedCall, prior_decision, reserve
from suture.agents.conversation.project_copy import ProjectCopy, changed_texts
from suture.agents.conversation.recorded_steps import on_record
from suture.agents.conversation.task_briefing import Briefing
from suture.core.ledger import last_of
from suture.core.ledger.kinds import ProposerRan
from suture.core.records import Move
from suture.core.safe_files import read_plain
from suture.errors import MalformedReply, UsageError
from suture.judge import Suite
from suture.loop.context import RunContext
from suture.sandbox import LIBRARY
from suture.sandbox.unsafe_subprocess import UnsafeSubprocess
from suture.sandbox.working_copy.copy_run import CopyRun

SHARE = 0.8
"""Of the time that is left, for the proposer: the rest is for the verdict and its proof."""
MOST_PROGRAM_BYTES = 16 << 20
KEPT_BYTES = 64 << 10
"""Of what a proposer prints."""
MOST_TESTS_BYTES = 32 << 10
"""Of the failing tests' names, in one variable: the kernel takes 128 KiB of each."""
MOST_TOLD = 100
"""Paths that the ledger's event names."""


async def proposed(
    move: Move, files: Mapping[str, bytes], briefing: Briefing, suite: Suite, context: RunContext
) -> dict[str, str]:
    """Run the user's program once on a copy of the project, unless the record says what came of that.

    Args:
        move: The turn.
        files: The copy: path -> content.
        briefing: What it is told.
        suite: What decides afterwards; its command's Python is the copy's too.
        context: The run.

    Returns:
        What it changed: path -> text.

    Raises:
        BudgetExceeded: No attempt and no time is left.
        MalformedReply: It changed nothing that a candidate may hold.
        UsageError: The program cannot be read.
        SandboxError: The wall failed.
    """
    command = context.settings.proposer.command or ""
    act = BudgetedCall(
        name=f"proposer {move.index}",
        what=f"proposer {move.index + 1}",
        role="proposer",
        move="agent",
        attempt=True,
    )
    reservation = reserve(act, context, prior_decision(act, context))
    kept = on_record(
        ProposerRan, lambda ran: ran.turn == move.index + 1, lambda ran: (ran.output, ran.changes), context
    )
    if kept is not None:
        _, (_, changes) = kept
        texts = {str(p): str(text) for p, text in changes.items()} if isinstance(changes, dict) else {}
    else:
        try:
            async with context.budget.time_limit():
                ran = await _run(command, files, briefing, suite, context)
        except BaseException:
            context.budget.write_off(reservation, attempts=0, model_calls=0)
            raise
        texts = _written_down(ran, move, command, files, context)
    context.budget.settle(reservation)
    if not texts:
        raise MalformedReply(_why_nothing(context))
    return texts


async def _run(
    command: str, files: Mapping[str, bytes], briefing: Briefing, suite: Suite, context: RunContext
) -> CopyRun:
    settings = context.settings.proposer
    left_s = context.budget.remaining_s()
    seconds = settings.seconds if left_s is None else min(settings.seconds, SHARE * left_s)
    copy = ProjectCopy.of(suite)
    beside = {"task.md": briefing.as_words().encode(), "facts.json": briefing.as_json().encode()}
    env = {
        "SUTURE_PROJECT": "{box}",
        "SUTURE_TASK": f"{{box}}/{LIBRARY}/task.md",
        "SUTURE_FACTS": f"{{box}}/{LIBRARY}/facts.json",
        "SUTURE_FAILING": "\n".join(briefing.failing)
        .encode("utf-8", "replace")[:MOST_TESTS_BYTES]
        .decode("utf-8", "ignore"),
        "SUTURE_TEST_COMMAND": briefing.command,
    }
    if not settings.outside:
        line, own = _inside(command)
        return await copy.run(line, files, seconds, env=env, beside={**beside, **own}, keep_bytes=KEPT_BYTES)
    host = UnsafeSubprocess(notice=lambda: None)  # the user was warned when they asked for it
    try:
        return await copy.outside(host).run(
            _with_own_path(command),
            files,
            seconds,
            env={**os.environ, **env},
            beside=beside,
            keep_bytes=KEPT_BYTES,
        )
    finally:
        await host.close()


def _first_word(command: str) -> tuple[str, Path | None]:
    """The first word of a line, and the file of the user's that it names by a path; `None` where it is none.

    Raises:
        UsageError: The line is no line of a shell, or is empty.
    """
    try:
        words = shlex.split(command)
    except ValueError as fault:
        raise UsageError(f"the proposer {command!r} cannot be read: {fault}") from fault
    if not words:
        raise UsageError("the proposer's command is empty", remedy="name a program, or leave it out")
    path = Path(words[0]).expanduser() if "/" in words[0] else None
    return words[0], path if path is not None and path.is_file() else None


def _inside(command: str) -> tuple[str, dict[str, bytes]]:
    """The line as it is said behind the wall, and the user's program, which is not there else."""
    word, path = _first_word(command)
    if path is None or path.is_relative_to("/usr") or not command.startswith(word):
        return command, {}
    try:
        content = read_plain(path, MOST_PROGRAM_BYTES, follow=True)
    except OSError as fault:
        raise UsageError(f"the proposer {word!r} cannot be read: {os.strerror(fault.errno or 0)}") from fault
    if content is None or len(content) > MOST_PROGRAM_BYTES:
        raise UsageError(f"the proposer {word!r} is no file of at most {MOST_PROGRAM_BYTES >> 20} MiB")
    name = f"proposer/{path.name}"
    laid = f'"$SUTURE_PROJECT/{LIBRARY}/"{shlex.quote(name)}'
    start = laid if content.startswith(b"#!") else f"chmod +x {laid} && {laid}"
    return start + command[len(word) :], {name: content}


def _with_own_path(command: str) -> str:
    """The line with its program by its whole path: it runs in the copy's folder."""
    word, path = _first_word(command)
    whole = path is not None and command.startswith(word)
    return shlex.quote(str(path.absolute())) + command[len(word) :] if whole and path is not None else command


def _written_down(
    ran: CopyRun, move: Move, command: str, files: Mapping[str, bytes], context: RunContext
) -> dict[str, str]:
    texts, left_out = changed_texts(ran.changes, files)
    event = ProposerRan(
        turn=move.index + 1,
        command=command,
        outside=context.settings.proposer.outside,
        ended=ran.ended,
        code=ran.code,
        seconds=ran.seconds,
        printed_bytes=ran.printed_bytes,
        output=context.folder.put_json(ran.output),
        changes=context.folder.put_json(texts),
        changed=tuple(sorted(texts))[:MOST_TOLD],
        deleted=ran.changes.deleted[:MOST_TOLD],
        left_out=left_out[:MOST_TOLD],
    )
    context.ledger.append(event)
    return texts


def _why_nothing(context: RunContext) -> str:
    ran = last_of(context.ledger.events, ProposerRan)
    assert ran is not None  # it has just been written down
    how = {
        "exit": f"it ended with exit code {ran.code}",
        "timeout": f"its time was up after {ran.seconds:.0f} s",
        "memory": "it held too much memory",
    }.get(ran.ended, "it was ended")
    said = str(context.folder.get_json(ran.output)).strip().splitlines()
    last = f": {said[-1][:200]}" if said else ""
    only = f", and changed only {', '.join(ran.left_out[:5])}" if ran.left_out else ""
    return f"the proposer changed nothing{only}; {how}{last}"
