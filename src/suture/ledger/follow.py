"""Reading a ledger while its run goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from suture.ledger.events import read_ledger
from suture.records import Event

__all__ = ["LAST_EVENTS", "follow_ledger"]

LAST_EVENTS = ("run.finished", "run.refused")
"""Kinds after which a run writes nothing more of its own."""


async def follow_ledger(path: Path, *, every_s: float = 0.05) -> AsyncIterator[Event]:
    """Every event, as soon as it is on disk, until the run ends.

    A slow reader never slows the run: it reads the same file that everyone else does.

    Args:
        path: The ledger.
        every_s: Seconds between two looks.

    Raises:
        StorageError: The file cannot be read.
    """
    seen = 0
    while True:
        events = read_ledger(path).events
        for event in events[seen:]:
            yield event
            if event.kind in LAST_EVENTS:
                return
        seen = len(events)
        await asyncio.sleep(every_s)
