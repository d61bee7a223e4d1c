"""A resumed run keeps the memories that it recalled before, even if the memory has changed since."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from requirements import Require
from scenario.killing_ledger import DeadlyLedger
from scenario.test_kill import APPROVED, TASK, PaidModel, make_settings
from suture.api import WriteOptions, resume, solve
from suture.core.ledger import find_run, read_ledger, select_events
from suture.core.ledger.kinds import MemoryRecalled
from suture.core.settings import Settings, StoreSettings
from suture.core.settings.schema import MemorySettings
from suture.sandbox import Requirement
from suture.storage.database.store import open_store
from suture.storage.memory.memory_items import MemoryItem
from suture.storage.memory.memory_store import forget_items, store_items

FORGOTTEN_MEMORY = MemoryItem(
    table="patterns",
    run_id="of-old",
    kind="write",
    text="A like task was solved by adding a number to itself.",
    repaired=True,
    search_text="double Write double(n)",
)
LATER_MEMORY = MemoryItem(
    table="patterns",
    run_id="of-now",
    kind="write",
    text="Doubling is a shift by one place.",
    repaired=True,
    search_text="double Write double(n) of 2 and 5",
)


def make_memory_settings(home: Path, url: str) -> Settings:
    """Return settings under which memory is used in every run."""
    memory = MemorySettings(use="prompts")
    return make_settings(home).model_copy(update={"store": StoreSettings(url=url), "memory": memory})


def run_until_killed(home: str, url: str) -> None:
    """The program of the process that is killed after its first checked candidate."""
    DeadlyLedger("candidate.checked", 1).arm()
    settings, model = make_memory_settings(Path(home), url), PaidModel(Path(home).parent / "calls.jsonl")
    asyncio.run(solve(TASK, WriteOptions(settings=settings, model=model, on_review=lambda review: APPROVED)))


@pytest.mark.timeout(300)  # two processes, each with its own sandbox
async def test_a_resumed_run_keeps_its_recalled_memories(
    store_url: str, tmp_path: Path, require: Require, sandbox_requirement: Requirement
) -> None:
    require("bubblewrap", sandbox_requirement.ok, sandbox_requirement.detail)
    home, call_log = tmp_path / "home", tmp_path / "calls.jsonl"
    with open_store(store_url, tmp_path) as store:
        store_items(store, [FORGOTTEN_MEMORY])
    killed = subprocess.run(
        [sys.executable, __file__, str(home), store_url],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        timeout=200,
    )

    assert killed.returncode == -signal.SIGKILL

    with open_store(store_url, tmp_path) as store:
        forget_items(store, [("patterns", FORGOTTEN_MEMORY.key)])
        store_items(store, [LATER_MEMORY])
    settings = make_memory_settings(home, store_url)
    result = await resume(
        "last", settings=settings, model=PaidModel(call_log), on_review=lambda review: APPROVED
    )

    assert result.outcome == "healed", result.reason

    events = read_ledger(find_run(home, "last").ledger_path).events
    (recalled,) = [payload for _, payload in select_events(events, MemoryRecalled)]
    assert [FORGOTTEN_MEMORY.text in text for text in recalled.prompt_texts] == [True]

    calls = [json.loads(line) for line in call_log.read_text().splitlines()]
    assert len({json.dumps(call) for call in calls}) == len(calls)

    first_prompts = ["\n".join(messages) for messages, _, index in calls if index == 0]
    assert any(FORGOTTEN_MEMORY.text in prompt for prompt in first_prompts)
    assert not any(LATER_MEMORY.text in "\n".join(messages) for messages, _, _ in calls)


if __name__ == "__main__":
    run_until_killed(*sys.argv[1:])
