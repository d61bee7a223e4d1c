"""A repair in one process is recalled by the next, from the command line to the prompt."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from requirements import Require
from suture.api import HealOptions, fork_from_iteration, heal, replay
from suture.core.ledger import RunFolder, find_run, last_payload, list_runs, read_ledger
from suture.core.ledger.kinds import MemoryRecalled, MemoryStored, ModelCalled
from suture.core.settings import load_settings
from suture.interfaces.cli.app import app
from suture.sandbox import BubblewrapSandbox, Sandbox
from suture.storage.database.store import Store, open_store
from suture.storage.memory.embedders import HashedNgrams
from suture.storage.memory.memory_store import items_by_id, iter_items, set_state
from suture.storage.memory.minilm import MiniLm, is_installed

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


def make_settings(home: Path, url: str, **memory: str) -> dict[str, object]:
    """Settings of a run without search, with a scripted coder."""
    return {
        "paths.home": str(home),
        "store.url": url,
        "repair.enabled": "false",
        "certification.seconds": "0",
        "certification.minimising_runs": "0",
        "memory.withheld_share": "0",
        "memory.placebo_share": "0",
        "memory.embedder": "hashed",
        **{f"memory.{name}": value for name, value in memory.items()},
    }


async def heal_here(folder: Path, module: str, given: dict[str, object], sandbox: Sandbox) -> RunFolder:
    """Heal a project in this process, and return its run."""
    settings = load_settings(folder, given).settings
    model = f"scripted:{folder.parent / f'{module}.yaml'}"
    done = await heal(folder, HealOptions(settings=settings, model=model, sandbox=sandbox))
    assert done.outcome == "healed", done.reason
    return find_run(settings.paths.home, done.run_id)


def heal_elsewhere(folder: Path, module: str, given: dict[str, object]) -> RunFolder:
    """Heal a project through the command line, in a separate process."""
    home = Path(str(given["paths.home"]))
    model = f"scripted:{folder.parent / f'{module}.yaml'}"
    command = [
        sys.executable,
        "-m",
        "suture.interfaces.cli",
        "heal",
        str(folder),
        "--model",
        model,
        *flags_of(given),
    ]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=250, check=False)
    assert ended.returncode == 0, ended.stderr
    return list_runs(home)[-1]


def prompts_of(run: RunFolder) -> str:
    """All prompts of a run."""
    assert last_payload(read_ledger(run.ledger_path).events, ModelCalled) is not None
    stored = [json.loads(path.read_text("utf-8")) for path in (run.path / "replies").glob("*.json")]
    return "\n".join(message["content"] for one in stored for message in one["messages"])


@pytest.mark.timeout(400)  # three runs, one of them in a process with a wall of its own
async def test_a_repaired_failure_reaches_the_prompt_of_the_next_run(
    store_url: str, tmp_path: Path, require: Require, sandbox: BubblewrapSandbox
) -> None:
    require("minilm", is_installed(), "the embedder minilm is not installed")
    home = tmp_path / "home"
    first = project(tmp_path / "first", "cart", "cart_total")
    second = project(tmp_path / "second", "bill", "bill_sum")
    taught = await heal_here(first, "cart", make_settings(home, store_url, use="on"), sandbox)
    events = read_ledger(taught.ledger_path).events
    recalled, kept = last_payload(events, MemoryRecalled), last_payload(events, MemoryStored)
    assert recalled is not None
    assert recalled.found == ()
    assert kept == MemoryStored(failures=1)
    with open_store(store_url, home) as store:
        assert [item.repaired for item in iter_items(store)] == [True]
        assert embedders(store) == {HashedNgrams.identity}

    without = await heal_here(second, "bill", make_settings(home, store_url, use="off"), sandbox)
    assert last_payload(read_ledger(without.ledger_path).events, MemoryRecalled) is None
    assert MENDED not in prompts_of(without)

    again = heal_elsewhere(second, "bill", make_settings(home, store_url, use="on", embedder="minilm"))
    recalled = last_payload(read_ledger(again.ledger_path).events, MemoryRecalled)
    assert recalled is not None
    assert recalled.embedder == MiniLm.identity
    assert MENDED in recalled.prompt_texts[0]
    assert recalled.prompt_texts[0] in prompts_of(again)
    with open_store(store_url, home) as store:
        assert embedders(store) == {MiniLm.identity}
        mended = next(item for item in iter_items(store) if item.run_id == taught.id)
        set_state(store, [("failures", mended.key)], "forgotten")
    assert (mended.recalled, mended.healed_recalled) == (1, 1)

    # What is forgotten by now reaches the prompts of a run that does the old one again, and only of that.
    settings = load_settings(second, make_settings(home, store_url, use="on")).settings
    replayed = await replay(again.path, settings=settings, sandbox=sandbox)
    assert replayed.same, replayed.difference
    forked = await fork_from_iteration(
        again.path, 1, settings=settings, model=f"scripted:{tmp_path / 'bill.yaml'}", sandbox=sandbox
    )
    its_own = read_ledger(find_run(home, forked.run_id).ledger_path).events
    assert last_payload(its_own, MemoryRecalled) == recalled

    with open_store(store_url, home) as store:
        with store.write_transaction() as connection:
            connection.exec_driver_sql("DELETE FROM failures")
        rebuilt = CliRunner().invoke(app, ["db", "rebuild", *flags_of(make_settings(home, store_url))])
        assert rebuilt.exit_code == 0, rebuilt.output
        found = next(item for item in iter_items(store) if item.key == mended.key)
    assert (found.recalled, found.healed_recalled) == (2, 2)  # the run and its fork; a replay is no use of it


def flags_of(given: dict[str, object]) -> list[str]:
    """Settings as command-line options."""
    return [word for name, value in given.items() for word in ("--set", f"{name}={value}")]


def embedders(store: Store) -> set[str]:
    """The embedders of the stored vectors."""
    return {made_by for _, made_by in items_by_id(store, "failures", range(1, 10)).values()}
