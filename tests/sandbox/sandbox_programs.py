"""Requests for small programs, executable scripts, and a search for the processes of a run."""

from __future__ import annotations

import asyncio
import os
import textwrap
from pathlib import Path
from typing import Any

import pytest

from suture.sandbox import ProgramLimits, RunRequest, get_own_interpreter

LONG_LIMITS = ProgramLimits(wall_s=30)


def python_request(code: str, **fields: Any) -> RunRequest:
    """Return a request that starts an interpreter for `code`, where `RunRequest(python=...)` may fork one."""
    argv = (get_own_interpreter().executable, "-I", "-S", "-B", "-c", textwrap.dedent(code))
    fields.setdefault("limits", LONG_LIMITS)
    return RunRequest(argv=argv, **fields)


def write_script(path: Path, script: str) -> Path:
    """Write an executable shell script and return its path."""
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def find_processes(marker: str) -> list[str]:
    """Return the command lines of all other processes of this machine that contain the marker."""
    command_lines = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                command_line = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if marker.encode() in command_line:
                command_lines.append(command_line.decode("utf-8", "replace")[:200])
    return command_lines


async def wait_until_gone(marker: str) -> None:
    """Fail if a process whose command line contains the marker still runs after ten seconds."""
    for _ in range(200):
        if not find_processes(marker):
            return
        await asyncio.sleep(0.05)
    pytest.fail(f"still alive: {find_processes(marker)}")
