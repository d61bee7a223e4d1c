"""One command in a copy of a project, behind a wall: what it said, how it ended, what it changed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any, Literal

from suture.sandbox.contract import LIBRARY, Mount, ProgramLimits, RunRequest, Sandbox
from suture.sandbox.working_copy.changes import FILE_BYTES, MOST_BYTES, MOST_FILES, Changes, read_changes

Ended = Literal["exit", "timeout", "unstarted", "memory", "killed"]
"""How a command ended: by itself, its time was up, it could not start, it held too much memory, or the wall
ended it for another reason."""
REPORT = f"{LIBRARY}/changes"
SPARE_S = 20.0
"""Seconds beside the command's own, in which the files before and after are read."""
OUR_LINE_BYTES = 4096


@dataclass(frozen=True, kw_only=True)
class CopyCommand:
    """A command, and the copy that it is run in.

    Attributes:
        argv: The program and its arguments.
        files: The copy: path -> content.
        seconds: The most wall-clock seconds.
        env: Variables; in their values `{box}` is the copy's folder.
        mounts: Runtimes to show read-only.
        limits: What it may use; the seconds of the limits are not asked.
        keep_bytes: The most that is kept of what it prints, head and tail each half.
        skip: Names of folders in which nothing is looked for.
    """

    argv: Sequence[str]
    files: Mapping[str, bytes]
    seconds: float
    env: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    limits: ProgramLimits = field(default_factory=ProgramLimits)
    keep_bytes: int = 16 << 10
    skip: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class CopyRun:
    """What came of a command.

    Attributes:
        ended: How it ended.
        code: Its exit code; that of a signal is negative. `None` where it is not known.
        seconds: Wall-clock seconds.
        output: What it printed, decoded; head and tail where it was cut.
        printed_bytes: How much it printed.
        changes: What it did to the files; nothing is known where the wall ended it.
    """

    ended: Ended
    code: int | None
    seconds: float
    output: str
    printed_bytes: int
    changes: Changes


async def run_in_copy(command: CopyCommand, sandbox: Sandbox) -> CopyRun:
    """Run a command in a copy of a project; all that it started has ended when this ends.

    Args:
        command: What is run, on which files, within which limits.
        sandbox: The wall.

    Raises:
        UsageError: The files do not fit behind the wall.
        SandboxError: The wall failed.
    """
    order = {
        "argv": list(command.argv),
        "env": dict(command.env),
        "seconds": command.seconds,
        "keep_bytes": command.keep_bytes,
        "skip": [LIBRARY, *command.skip],
        "report": REPORT,
        "file_bytes": FILE_BYTES,
        "most_bytes": MOST_BYTES,
        "most_files": MOST_FILES,
    }
    wall_s = command.seconds + SPARE_S
    limits = replace(
        command.limits,
        wall_s=wall_s,
        cpu_s=max(command.limits.cpu_s, wall_s),
        output_bytes=2 * command.keep_bytes + OUR_LINE_BYTES,
    )
    request = RunRequest(
        python=_program(),
        files={f"{LIBRARY}/.keep": b"", **command.files},
        stdin=json.dumps(order).encode("ascii"),
        mounts=command.mounts,
        limits=limits,
        collect=(REPORT,),
    )
    result = await sandbox.run(request)
    line, _, said = result.stdout.partition(b"\n")
    ending = _ending(line) if result.status == "ok" else None
    if ending is None:
        by_wall: dict[str, Ended] = {"memory": "memory", "timeout": "timeout"}
        return CopyRun(
            ended=by_wall.get(result.status, "killed"),
            code=result.exit_code,
            seconds=result.wall_s,
            output=(result.stdout + result.stderr).decode("utf-8", "replace"),
            printed_bytes=len(result.stdout) + len(result.stderr),
            changes=Changes(),
        )
    return CopyRun(
        **ending,
        output=said.decode("utf-8", "replace"),
        changes=read_changes(result.files.get(REPORT, b"")),
    )


def _ending(line: bytes) -> dict[str, Any] | None:
    """How the command ended, by the account of the side that ran it; `None` where that makes no sense."""
    try:
        report = json.loads(line)
        ended = report["ended"]
        known = {"exit": "exit", "timeout": "timeout", "unstarted": "unstarted"}
        return {
            "ended": known[ended],
            "code": int(report["code"]),
            "seconds": max(0.0, float(report["seconds"])),
            "printed_bytes": max(0, int(report["bytes"])),
        }
    except (ValueError, TypeError, KeyError, OverflowError):
        return None


@cache
def _program() -> str:
    source = resources.files("suture.sandbox.working_copy").joinpath("inside_copy.py").read_text("utf-8")
    return f"{source}\n\nmain()\n"
