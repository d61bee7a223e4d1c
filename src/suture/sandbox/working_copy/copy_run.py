"""What a command changed in a copy of a project, read from an account that nobody has to believe."""
# FIXME doc of sandbox/working_copy/copy_run: """One command in a copy of a project, behind a wall: what it said, how it ended, what it changed."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any, Literal

from suture.sandbox.contract import LIBRARY, Mount, ProgramLimits, RunRequest, Sandbox
from suture.sandbox.tuning import (
    COPY_OVERHEAD_S,
    COPY_REPORT_BYTES,
    MAX_CHANGED_BYTES,
    MAX_CHANGED_FILE_BYTES,
    MAX_CHANGED_FILES,
    MAX_CHANGED_PATH_CHARS,
)


@dataclass(frozen=True, kw_only=True)
class FileChanges:
    """What a command did to a copy.

    Attributes:
        changed: Files that are new or differ, path -> content.
        deleted: Paths of files that are gone.
        left_out: Paths of changed files that were not brought back: too large, too many, or with a name that
            cannot stand in a diff.
    """

    changed: Mapping[str, bytes] = field(default_factory=dict)
    deleted: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def read_changes(account: bytes) -> FileChanges:
    """Read the account of a command's changes; what makes no sense in it is no change.

    Args:
        account: As `inside_copy.changes` writes it, or anything at all.
    """
    try:
        report: Any = json.loads(account)
        listed = [(str(path), str(content)) for path, content in report["changed"][:MAX_CHANGED_FILES]]
        gone = [str(path) for path in report["deleted"]]
        left_out = [str(path) for path in report["left_out"]]
        contents = {path: base64.b64decode(content, validate=True) for path, content in listed}
    except (ValueError, TypeError, KeyError, RecursionError):
        return FileChanges()
    changed: dict[str, bytes] = {}
    room = MAX_CHANGED_BYTES
    for path, content in contents.items():
        if is_speakable(path) and len(content) <= min(MAX_CHANGED_FILE_BYTES, room):
            changed[path] = content
            room -= len(content)
        else:
            left_out.append(path)
    shown = tuple(
        ascii(path)[1:-1] for path in left_out[:MAX_CHANGED_FILES] if len(path) <= MAX_CHANGED_PATH_CHARS
    )
    return FileChanges(
        changed=changed, deleted=tuple(filter(is_speakable, gone[:MAX_CHANGED_FILES])), left_out=shown
    )


def is_speakable(path: str) -> bool:
    """Whether a path stays in its folder and can stand in a diff, a prompt and a ledger."""
    parts = path.split("/")
    return path.isprintable() and len(path) <= MAX_CHANGED_PATH_CHARS and not {"", ".", ".."} & set(parts)


CopyEnding = Literal["exit", "timeout", "unstarted", "memory", "killed"]
"""How a command ended: by itself, its time was up, it could not start, it held too much memory, or the wall
ended it for another reason."""
REPORT = f"{LIBRARY}/changes"


@dataclass(frozen=True, kw_only=True)
class CopyCommand:
    """A command, and the copy that it is run in.

    Attributes:
        argv: The program and its arguments.
        files: The copy: path -> content.
        timeout_s: The most wall-clock seconds.
        env: Variables; in their values `{box}` is the copy's folder.
        mounts: Runtimes to show read-only.
        limits: What it may use; the seconds of the limits are not asked.
        max_output_bytes: The most that is kept of what it prints, head and tail each half.
        skip_dirs: Names of folders in which nothing is looked for.
    """

    argv: Sequence[str]
    files: Mapping[str, bytes]
    timeout_s: float
    env: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    limits: ProgramLimits = field(default_factory=ProgramLimits)
    max_output_bytes: int = 16 << 10
    skip_dirs: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class CopyRun:
    """What came of a command.

    Attributes:
        ending: How it ended.
        exit_code: Its exit code; that of a signal is negative. `None` where it is not known.
        duration_s: Wall-clock seconds.
        output: What it printed, decoded; head and tail where it was cut.
        printed_bytes: How much it printed.
        changes: What it did to the files; nothing is known where the wall ended it.
    """

    ending: CopyEnding
    exit_code: int | None
    duration_s: float
    output: str
    printed_bytes: int
    changes: FileChanges


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
        "seconds": command.timeout_s,
        "keep_bytes": command.max_output_bytes,
        "skip": [LIBRARY, *command.skip_dirs],
        "report": REPORT,
        "file_bytes": MAX_CHANGED_FILE_BYTES,
        "most_bytes": MAX_CHANGED_BYTES,
        "most_files": MAX_CHANGED_FILES,
    }
    wall_s = command.timeout_s + COPY_OVERHEAD_S
    limits = replace(
        command.limits,
        wall_s=wall_s,
        cpu_s=max(command.limits.cpu_s, wall_s),
        output_bytes=2 * command.max_output_bytes + COPY_REPORT_BYTES,
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
        by_wall: dict[str, CopyEnding] = {"memory": "memory", "timeout": "timeout"}
        return CopyRun(
            ending=by_wall.get(result.status, "killed"),
            exit_code=result.exit_code,
            duration_s=result.wall_s,
            output=(result.stdout + result.stderr).decode("utf-8", "replace"),
            printed_bytes=len(result.stdout) + len(result.stderr),
            changes=FileChanges(),
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
    source = resources.files("suture.sandbox.working_copy").joinpath("command_runner.py").read_text("utf-8")
    return f"{source}\n\nmain()\n"
