"""A follower and a listener see the events of a ledger while it is written."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from suture.core.ledger import FINAL_EVENT_KINDS, Event, Ledger, RawPayload, follow_ledger
from suture.core.ledger.reading import ListenerProgress, notify_listener
from suture.errors import StorageError


@pytest.mark.parametrize("last", FINAL_EVENT_KINDS)
async def test_a_follower_sees_every_event_and_stops_with_the_run(tmp_path: Path, last: str) -> None:
    with Ledger(tmp_path / "l") as ledger:
        ledger.append(RawPayload(kind="run.started"))

        async def follow() -> list[str]:
            return [event.kind async for event in follow_ledger(ledger.path, poll_interval_s=0.001)]

        following = asyncio.create_task(follow())
        for count in range(5):
            ledger.append(RawPayload(kind=f"step {count}"))
            await asyncio.sleep(0.002)
        ledger.append(RawPayload(kind=last))
        ledger.append(RawPayload(kind="tree.applied"))
        kinds = await following
    assert kinds[:6] == ["run.started", *(f"step {count}" for count in range(5))]
    assert kinds[6:] == [last]


async def test_following_a_missing_ledger_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be read"):
        async for _ in follow_ledger(tmp_path / "none"):
            pass


@pytest.mark.parametrize("fails_after", [None, "step 1"])
async def test_a_caller_can_wait_until_the_listener_is_current(
    tmp_path: Path, fails_after: str | None
) -> None:
    received: list[str] = []

    def receive(event: Event) -> None:
        received.append(event.kind)
        if event.kind == fails_after:
            raise ValueError("failed")

    progress = ListenerProgress(receive)

    with Ledger(tmp_path / "l") as ledger:
        progress.written = lambda: ledger.events
        await progress.wait_until_current()  # nothing is written yet
        ledger.append(RawPayload(kind="run.started"))
        waiting = asyncio.create_task(write_and_wait(progress, ledger))
        try:
            async with notify_listener(ledger.path, progress):
                await waiting
                ledger.append(RawPayload(kind=FINAL_EVENT_KINDS[0]))
        except ValueError:
            assert fails_after

    assert received[:3] == ["run.started", "step 0", "step 1"]


async def write_and_wait(progress: ListenerProgress, ledger: Ledger) -> None:
    for count in range(3):
        ledger.append(RawPayload(kind=f"step {count}"))
    await progress.wait_until_current()
