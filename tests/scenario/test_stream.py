"""A streamed run yields every ledger event in order, then the result. No consumer slows it down."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

import suture
from run_events import read_events
from suture.api import HealOptions, WriteOptions
from suture.core.ledger import Event
from suture.core.records import Result
from suture.core.settings import Settings
from suture.errors import UsageError
from suture.models import Message, Reply, Sampling
from suture.testing import ScriptedModel

TASK = "Write double(n).\n\n>>> double(2)\n4\n>>> double(5)\n10\n"
RIGHT = "```python\ndef double(n):\n    return n + n\n```"


async def test_a_stream_yields_every_event_and_then_the_result(settings: Settings) -> None:
    items = [
        item
        async for item in suture.stream(TASK, WriteOptions(settings=settings, model=ScriptedModel([RIGHT])))
    ]

    *events, result = items
    assert isinstance(result, Result)
    assert result.outcome == "healed"
    ledger = read_events(settings.paths.home, result.run_id)
    last = next(index for index, event in enumerate(ledger) if event.kind == "run.finished")
    assert events == list(ledger[: last + 1])


async def test_the_repair_of_a_project_is_streamed(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p/code.py").write_text("X = 1\n")
    (tmp_path / "p/test_code.py").write_text("from code import X\n\n\ndef test_x():\n    assert X\n")
    stream = suture.stream(
        tmp_path / "p", HealOptions(test="python -c pass", settings=settings, model=ScriptedModel([]))
    )

    items = [item async for item in stream]

    assert isinstance(items[-1], Result)
    assert items[-1].outcome == "nothing_to_heal"


async def test_a_slow_consumer_does_not_slow_the_run(settings: Settings) -> None:
    stream = suture.stream(TASK, WriteOptions(settings=settings, model=ScriptedModel([RIGHT])))
    ledger: Path | None = None
    async for _ in stream:
        while ledger is None or '"run.finished"' not in ledger.read_text():
            await asyncio.sleep(0.05)  # the consumer stays at the first event until the run has ended
            ledger = next(settings.paths.home.glob("runs/*/ledger.jsonl"), None)


async def test_closing_the_stream_cancels_the_run(settings: Settings) -> None:
    class SlowModel:
        name = "scripted:slow"

        async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
            await asyncio.sleep(600)
            raise AssertionError("nobody waits that long")

        async def close(self) -> None:
            pass

    stream = suture.stream(TASK, WriteOptions(settings=settings, model=SlowModel()))
    async for item in stream:
        if isinstance(item, Event) and item.kind == "budget.reserved":
            break

    await stream.aclose()

    ledger = read_events(settings.paths.home)
    assert (ledger[-1].kind, ledger[-1].data["outcome"]) == ("run.finished", "cancelled")


async def test_a_stream_raises_usage_errors(settings: Settings) -> None:
    with pytest.raises(UsageError, match="empty"):
        async for _ in suture.stream("  ", WriteOptions(settings=settings)):
            pass
    with pytest.raises(UsageError, match="on_event"):
        async for _ in suture.stream(TASK, WriteOptions(settings=settings, on_event=print)):
            pass
