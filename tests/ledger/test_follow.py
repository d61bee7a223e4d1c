from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from suture.errors import StorageError
from suture.ledger import LAST_EVENTS, Ledger, RawPayload, follow_ledger


@pytest.mark.parametrize("last", LAST_EVENTS)
async def test_a_follower_sees_every_event_once_and_stops_with_the_run(tmp_path: Path, last: str) -> None:
    with Ledger(tmp_path / "l") as ledger:
        ledger.append(RawPayload(kind="run.started"))

        async def follow() -> list[str]:
            return [event.kind async for event in follow_ledger(ledger.path, every_s=0.001)]

        following = asyncio.create_task(follow())
        for count in range(5):
            ledger.append(RawPayload(kind=f"step {count}"))
            await asyncio.sleep(0.002)
        ledger.append(RawPayload(kind=last))
        ledger.append(RawPayload(kind="tree.applied"))
        kinds = await following
    assert kinds[:6] == ["run.started", *(f"step {count}" for count in range(5))]
    assert kinds[6:] == [last]


async def test_following_nothing_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be read"):
        async for _ in follow_ledger(tmp_path / "none"):
            pass
