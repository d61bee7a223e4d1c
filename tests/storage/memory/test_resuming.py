"""A resumed run keeps what it recalled at first, whatever the memory contains by then."""

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
from suture.storage.memory.embedders import HashedNgrams
from suture.storage.memory.memory_items import MemoryItem
from suture.storage.memory.memory_store import set_state, store_items

KNOWN = MemoryItem(
    table="patterns",
    run_id="of-old",
    kind="write",
    text="A like task was solved by adding a number to itself.",
    repaired=True,
    search_text="double Write double(n)",
)
LATER = MemoryItem(
    table="patterns",
    run_id="of-now",
    kind="write",
    text="Doubling is a shift by one place.",
    repaired=True,
    search_text="double Write double(n) of 2 and 5",
)


def settings_of(home: Path, url: str) -> Settings:
    memory = MemorySettings(use="on", withheld_share=0, placebo_share=0)
    return make_settings(home).model_copy(update={"store": StoreSettings(url=url), "memory": memory})


def victim(home: str, url: str) -> None:
    """The program of the killed process."""
    DeadlyLedger("candidate.checked", 1).arm()
    settings, model = settings_of(Path(home), url), PaidModel(Path(home).parent / "calls.jsonl")
    asyncio.run(solve(TASK, WriteOptions(settings=settings, model=model, on_review=lambda review: APPROVED)))


@pytest.mark.timeout(300)  # a process with a wall of its own
async def test_a_resumed_run_keeps_its_recalled_memories(
    store_url: str, tmp_path: Path, require: Require, sandbox_requirement: Requirement
) -> None:
    require("bubblewrap", sandbox_requirement.ok, sandbox_requirement.detail)
    home, log = tmp_path / "home", tmp_path / "calls.jsonl"
    with open_store(store_url, tmp_path) as store:
        store_items(store, [KNOWN], HashedNgrams())
    killed = subprocess.run(
        [sys.executable, __file__, str(home), store_url],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        timeout=200,
    )
    assert killed.returncode == -signal.SIGKILL
    with open_store(store_url, tmp_path) as store:
        set_state(store, [("patterns", KNOWN.key)], "forgotten")
        store_items(store, [LATER], HashedNgrams())
    settings = settings_of(home, store_url)
    done = await resume("last", settings=settings, model=PaidModel(log), on_review=lambda review: APPROVED)
    assert done.outcome == "healed", done.reason
    events = read_ledger(find_run(home, "last").ledger_path).events
    (recalled,) = [one for _, one in select_events(events, MemoryRecalled)]
    assert [KNOWN.text in told for told in recalled.prompt_texts] == [True]
    calls = [json.loads(line) for line in log.read_text().splitlines()]
    assert len({json.dumps(call) for call in calls}) == len(calls)
    first_prompts = ["\n".join(messages) for messages, _, index in calls if index == 0]
    assert any(KNOWN.text in prompt for prompt in first_prompts)
    assert not any(LATER.text in "\n".join(messages) for messages, _, _ in calls)


if __name__ == "__main__":
    victim(*sys.argv[1:])
