"""Run one command in a copy of a project inside the sandbox: its output, how it ended, what it changed.

The report of the changes comes from inside the sandbox, so nothing in it is trusted before it is checked.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from suture.sandbox import tuning
from suture.sandbox.contract import LIBRARY, Mount, ProgramLimits, RunRequest, RunResult, Sandbox
from suture.sandbox.execution.process import read_source


@dataclass(frozen=True, kw_only=True)
class FileChanges:
    """What a command did to a copy.

    Attributes:
        changed: Files that are new or different, path -> content.
        deleted: Paths of files that no longer exist.
        left_out: Paths of changed files that were not collected: too large, too many, or with a name that
            cannot appear in a diff.
    """

    changed: Mapping[str, bytes] = field(default_factory=dict)
    deleted: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def parse_changes(encoded: bytes) -> FileChanges:
    """Parse the report of a command's changes, as `command_runner.encode_changes` returns it.

    The report is not trusted. Nothing is changed if it makes no sense, and unusable paths are left out.
    """
    try:
        report: Any = json.loads(encoded)
        entries = [
            (str(path), str(content)) for path, content in report["changed"][: tuning.MAX_CHANGED_FILES]
        ]
        deleted = [str(path) for path in report["deleted"]]
        left_out = [str(path) for path in report["left_out"]]
        contents = {path: base64.b64decode(content, validate=True) for path, content in entries}
    except (ValueError, TypeError, KeyError, RecursionError):
        return FileChanges()
    changed: dict[str, bytes] = {}
    free_bytes = tuning.MAX_CHANGED_BYTES
    for path, content in contents.items():
        if is_presentable_path(path) and len(content) <= min(tuning.MAX_CHANGED_FILE_BYTES, free_bytes):
            changed[path] = content
            free_bytes -= len(content)
        else:
            left_out.append(path)
    omitted = tuple(
        ascii(path)[1:-1]
        for path in left_out[: tuning.MAX_CHANGED_FILES]
        if len(path) <= tuning.MAX_CHANGED_PATH_CHARS
    )
    return FileChanges(
        changed=changed,
        deleted=tuple(filter(is_presentable_path, deleted[: tuning.MAX_CHANGED_FILES])),
        left_out=omitted,
    )


def is_presentable_path(path: str) -> bool:
    """Return whether a path stays in its folder and can appear in a diff, a prompt and a ledger."""
    parts = path.split("/")
    return (
        path.isprintable() and len(path) <= tuning.MAX_CHANGED_PATH_CHARS and not {"", ".", ".."} & set(parts)
    )


CopyEnding = Literal["exit", "timeout", "not_started", "memory", "killed"]
"""How a command ended: it exited, timed out, could not be started, used too much memory, or was ended by the
sandbox for another reason."""
REPORT_PATH = f"{LIBRARY}/changes"


@dataclass(frozen=True, kw_only=True)
class CopyCommand:
    """A command, and the copy that it runs in.

    Attributes:
        argv: The program and its arguments.
        files: The copy: path -> content.
        timeout_s: Maximum wall-clock seconds.
        env: Variables; `{box}` in their values stands for the copy's folder.
        mounts: Interpreters and packages to show read-only.
        limits: What it may use; their time limits are ignored.
        max_output_bytes: Maximum that is kept of its output, half from the head and half from the tail.
        skip_dirs: Names of folders in which changes are not searched.
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
    """The outcome of a command.

    Attributes:
        ending: How it ended.
        exit_code: Its exit code, negative for a signal; `None` if it is unknown.
        duration_s: Wall-clock seconds.
        output: What it printed, decoded; only head and tail if it was truncated.
        printed_bytes: How much it printed.
        changes: What it did to the files; empty if the sandbox ended it.
    """

    ending: CopyEnding
    exit_code: int | None
    duration_s: float
    output: str
    printed_bytes: int
    changes: FileChanges


async def run_in_copy(command: CopyCommand, sandbox: Sandbox) -> CopyRun:
    """Run a command in a copy of a project. Everything that it started has ended when this returns.

    Raises:
        UsageError: The files do not fit into the sandbox.
        SandboxError: The sandbox failed.
    """
    instructions = {
        "argv": list(command.argv),
        "env": dict(command.env),
        "seconds": command.timeout_s,
        "keep_bytes": command.max_output_bytes,
        "skip": [LIBRARY, *command.skip_dirs],
        "report": REPORT_PATH,
        "file_bytes": tuning.MAX_CHANGED_FILE_BYTES,
        "most_bytes": tuning.MAX_CHANGED_BYTES,
        "most_files": tuning.MAX_CHANGED_FILES,
    }
    wall_s = command.timeout_s + tuning.COPY_OVERHEAD_S
    limits = replace(
        command.limits,
        wall_s=wall_s,
        cpu_s=max(command.limits.cpu_s, wall_s),
        output_bytes=2 * command.max_output_bytes + tuning.COPY_REPORT_BYTES,
    )
    request = RunRequest(
        python=f"{read_source('suture.sandbox.working_copy.command_runner')}\n\nmain()\n",
        files={f"{LIBRARY}/.keep": b"", **command.files},
        stdin=json.dumps(instructions).encode("ascii"),
        mounts=command.mounts,
        limits=limits,
        collect=(REPORT_PATH,),
    )
    result = await sandbox.run(request)
    ending_by_status: dict[str, CopyEnding] = {"memory": "memory", "timeout": "timeout"}
    return _parse_report(result) or CopyRun(
        ending=ending_by_status.get(result.status, "killed"),
        exit_code=result.exit_code,
        duration_s=result.wall_s,
        output=(result.stdout + result.stderr).decode("utf-8", "replace"),
        printed_bytes=len(result.stdout) + len(result.stderr),
        changes=FileChanges(),
    )


def _parse_report(result: RunResult) -> CopyRun | None:
    """Parse what `command_runner.py` printed; `None` if it was ended or if that makes no sense."""
    line, _, output = result.stdout.partition(b"\n")
    if result.status != "ok":
        return None
    try:
        report = json.loads(line)
        if report["ended"] not in ("exit", "timeout", "not_started"):
            return None
        return CopyRun(
            ending=report["ended"],
            exit_code=int(report["code"]),
            duration_s=max(0.0, float(report["seconds"])),
            output=output.decode("utf-8", "replace"),
            printed_bytes=max(0, int(report["bytes"])),
            changes=parse_changes(result.files.get(REPORT_PATH, b"")),
        )
    except (ValueError, TypeError, KeyError, OverflowError):
        return None
