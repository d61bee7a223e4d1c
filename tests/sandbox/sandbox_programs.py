"""Small programs for the sandbox tests, and a search for processes that survive them."""

from __future__ import annotations

import asyncio
import os
import textwrap
from pathlib import Path
from typing import Any

import pytest

from suture.sandbox import ProgramLimits, RunRequest, get_own_interpreter

LONG = ProgramLimits(wall_s=30)


def python(code: str, **fields: Any) -> RunRequest:
    argv = (get_own_interpreter().executable, "-I", "-S", "-B", "-c", textwrap.dedent(code))
    return RunRequest(argv=argv, **{"limits": LONG, **fields})


def survivors(marker: str) -> list[str]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                words = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if marker.encode() in words:
                found.append(words.decode("utf-8", "replace")[:200])
    return found


async def eventually_gone(marker: str) -> None:
    for _ in range(200):
        if not survivors(marker):
            return
        await asyncio.sleep(0.05)
    pytest.fail(f"still alive: {survivors(marker)}")
