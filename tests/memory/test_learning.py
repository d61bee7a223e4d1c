"""What one process mended another one recalls, from the command line to the prompt."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from requirements import Require, find_wall
from suture.api import replay
from suture.ledger import RunFolder, last_of, list_runs, read_ledger
from suture.ledger.kinds import MemoryKept, MemoryRecalled, ModelCalled
from suture.memory.embedding.hashed import HashedNgrams
from suture.memory.embedding.minilm import MiniLm, is_installed
from suture.memory.storing import rows_of, stored_items
from suture.settings import Settings
from suture.settings.schema import PathSettings
from suture.store.database import Store, open_store

TEST = (
    "from {module} import {name}\n\n\ndef test_it():\n    assert {name}([('a', 3, 2), ('b', 5, 1)]) == 11\n"
)
WRONG = """def {name}(lines):
    total = 0
    for label, price, count in lines:
        total += price
    return total
"""
RIGHT = WRONG.replace("price\n", "price * count\n")
MENDED = "total += price * count"


def project(folder: Path, module: str, name: str) -> Path:
    folder.mkdir()
    (folder / f"{module}.py").write_text(WRONG.format(name=name), "utf-8")
    (folder / f"test_{module}.py").write_text(TEST.format(module=module, name=name), "utf-8")
    reply = f"```python\n{RIGHT.format(name=name)}```\n"
    (folder.parent / f"{module}.yaml").write_text(json.dumps([{"repeat": True, "text": reply}]), "utf-8")
    return folder


def heal(folder: Path, module: str, home: Path, url: str, **settings: str) -> RunFolder:
    """Heal a project in a process of its own, without the search; answers its run."""
    given = {
        "store.url": url,
        "repair.enabled": "false",
        "proof.seconds": "0",
        "proof.minimising_runs": "0",
        "memory.withheld": "0",
        "memory.placebo": "0",
        "memory.embedder": "hashed",
        **settings,
    }
    flags = [word for name, value in given.items() for word in ("--set", f"{name}={value}")]
    model = f"scripted:{folder.parent / f'{module}.yaml'}"
    command = [sys.executable, "-m", "suture.cli", "heal", str(folder), "--model", model, *flags]
    environment: Mapping[str, str] = {**os.environ, "SUTURE_HOME": str(home)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=250, check=False)
    assert ended.returncode == 0, ended.stderr
    return list_runs(home)[-1]


def prompts_of(run: RunFolder) -> str:
    """All that models were asked in a run."""
    assert last_of(read_ledger(run.ledger_path).events, ModelCalled) is not None
    stored = [json.loads(path.read_text("utf-8")) for path in (run.path / "replies").glob("*.json")]
    return "\n".join(message["content"] for one in stored for message in one["messages"])


@pytest.mark.timeout(600)  # three processes, each with a wall of its own
def test_a_failure_mended_in_one_run_reaches_the_prompt_of_the_next(
    store_url: str, tmp_path: Path, require: Require
) -> None:
    wall = find_wall()
    require("bubblewrap", wall.ok, wall.detail)
    require("minilm", is_installed(), "the embedder minilm is not installed")
    home = tmp_path / "home"
    first = project(tmp_path / "first", "cart", "cart_total")
    second = project(tmp_path / "second", "bill", "bill_sum")
    taught = heal(first, "cart", home, store_url, **{"memory.use": "on"})
    events = read_ledger(taught.ledger_path).events
    recalled, kept = last_of(events, MemoryRecalled), last_of(events, MemoryKept)
    assert recalled is not None
    assert recalled.found == ()
    assert kept == MemoryKept(failures=1)
    with open_store(store_url, home) as store:
        assert [item.mended for item in stored_items(store)] == [True]
        assert embedders(store) == {HashedNgrams.identity}

    without = heal(second, "bill", home, store_url, **{"memory.use": "off"})
    assert last_of(read_ledger(without.ledger_path).events, MemoryRecalled) is None
    assert MENDED not in prompts_of(without)

    again = heal(second, "bill", home, store_url, **{"memory.use": "on", "memory.embedder": "minilm"})
    recalled = last_of(read_ledger(again.ledger_path).events, MemoryRecalled)
    assert recalled is not None
    assert recalled.embedder == MiniLm.identity
    assert MENDED in recalled.told[0]
    assert recalled.told[0] in prompts_of(again)
    with open_store(store_url, home) as store:
        assert embedders(store) == {MiniLm.identity}
        mended = next(item for item in stored_items(store) if item.run_id == taught.id)
    assert (mended.recalled, mended.healed_recalled) == (1, 1)

    settings = Settings(paths=PathSettings(home=home))
    replayed = asyncio.run(replay(again.path, settings=settings))
    assert replayed.same, replayed.difference


def embedders(store: Store) -> set[str]:
    """Who made the vectors that there are."""
    return {made_by for _, made_by in rows_of(store, "failures", range(1, 10)).values()}
