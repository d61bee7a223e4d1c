"""What `inside.py` says of a run. It comes from behind the wall, so nothing of it is believed unread."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

COLLECT_BYTES = 32 << 20
"""The most that one collected file may hold, and all of one run together."""


EndingKind = Literal["exit", "signal", "timeout", "memory"]


@dataclass(frozen=True, kw_only=True)
class ProgramEnding:
    """How the program ended, by its own side's account.

    Attributes:
        kind: It exited, a signal ended it, its time was up, or it held too much memory in all.
        number: The exit code or the signal.
        cpu_s: CPU seconds of all its processes.
        files: The files that were asked for, path -> content.
    """

    kind: EndingKind
    number: int
    cpu_s: float = 0.0
    files: dict[str, bytes] = field(default_factory=dict)


KINDS: dict[bytes, EndingKind] = {b"e": "exit", b"s": "signal", b"t": "timeout", b"m": "memory"}


async def read_start(report: asyncio.StreamReader) -> str | None:
    """Wait until the program starts.

    Returns:
        `None` when it does; else why not, empty where the wall fell before it could say so.
    """
    first = await report.read(1)
    if first == b"S":
        return None
    return (await report.read(4096)).decode("utf-8", "replace") if first == b"X" else ""


async def read_ending(report: asyncio.StreamReader, collect: Sequence[str]) -> ProgramEnding | None:
    """Read how the program ended; `None` where the account breaks off or makes no sense.

    Args:
        report: The report's pipe, after its start.
        collect: The paths that were asked for.
    """
    try:
        head = await report.readexactly(10)
        kind = KINDS.get(head[1:2])
        if head[:1] != b"E" or kind is None:
            return None
        files: dict[str, bytes] = {}
        room = COLLECT_BYTES
        while (tag := await report.readexactly(1)) == b"F":
            index = int.from_bytes(await report.readexactly(4), "big")
            size = int.from_bytes(await report.readexactly(8), "big")
            if index >= len(collect) or size > room:
                return None
            room -= size
            files[collect[index]] = await report.readexactly(size)
    except asyncio.IncompleteReadError:
        return None
    if tag != b".":
        return None
    number, cpu_ms = int.from_bytes(head[2:6], "big"), int.from_bytes(head[6:], "big")
    return ProgramEnding(kind=kind, number=number, cpu_s=cpu_ms / 1000, files=files)
