"""A repair in one process is recalled by the next, from the command line to the prompt."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from suture.api import HealOptions, fork_from_iteration, heal, replay
from suture.core.ledger import RunFolder, find_run, last_payload, list_runs, read_ledger
from suture.core.ledger.kinds import MemoryRecalled, MemoryStored, ModelCalled
from suture.core.settings import load_settings
from suture.interfaces.cli.app import app
from suture.sandbox import BubblewrapSandbox, Sandbox
from suture.storage.database.store import open_store
from suture.storage.memory.memory_store import forget_items, iter_items

pytestmark = pytest.mark.usefixtures("active_bare_python")
TEST = (
    "from {module} import {name}\n\n\ndef test_it():\n    assert {name}([('a', 3, 2), ('b', 5, 1)]) == 11\n"
)
WRONG = """def {name}(lines):
    total = 0
    for label, price, count in lines:
        total += price
    return total
"""
CORRECT = WRONG.replace("price\n", "price * count\n")
REPAIRED_LINE = "total += price * count"


def make_project(folder: Path, module: str, name: str) -> Path:
    """Create a project with a failing test, and beside it a script with the correct reply."""
    folder.mkdir()
    (folder / f"{module}.py").write_text(WRONG.format(name=name), "utf-8")
    (folder / f"test_{module}.py").write_text(TEST.format(module=module, name=name), "utf-8")
    correct_reply = f"```python\n{CORRECT.format(name=name)}```\n"
    (folder.parent / f"{module}.yaml").write_text(
        json.dumps([{"repeat": True, "text": correct_reply}]), "utf-8"
    )
    return folder


def make_settings(home: Path, url: str, **memory: str) -> dict[str, object]:
    """Return settings of a run without search, with a scripted coder."""
    return {
        "paths.home": str(home),
        "store.url": url,
        "repair.enabled": "false",
        "certification.seconds": "0",
        "certification.minimising_runs": "0",
        **{f"memory.{name}": value for name, value in memory.items()},
    }


async def heal_in_this_process(
    folder: Path, module: str, settings_values: dict[str, object], sandbox: Sandbox
) -> RunFolder:
    """Heal a project in this process, and return its run."""
    settings = load_settings(folder, settings_values).settings
    model = f"scripted:{folder.parent / f'{module}.yaml'}"
    result = await heal(folder, HealOptions(settings=settings, model=model, sandbox=sandbox))
    assert result.outcome == "healed", result.reason
    return find_run(settings.paths.home, result.run_id)


def heal_by_command_line(folder: Path, module: str, settings_values: dict[str, object]) -> RunFolder:
    """Heal a project through the command line, in a separate process."""
    home = Path(str(settings_values["paths.home"]))
    model = f"scripted:{folder.parent / f'{module}.yaml'}"
    command = [
        sys.executable,
        "-m",
        "suture.interfaces.cli",
        "heal",
        str(folder),
        "--model",
        model,
        *as_flags(settings_values),
    ]
    process = subprocess.run(command, capture_output=True, text=True, timeout=250, check=False)
    assert process.returncode == 0, process.stderr
    return list_runs(home)[-1]


def read_prompts(run: RunFolder) -> str:
    """Return all prompts of a run."""
    assert last_payload(read_ledger(run.ledger_path).events, ModelCalled) is not None
    stored = [json.loads(path.read_text("utf-8")) for path in (run.path / "replies").glob("*.json")]
    return "\n".join(message["content"] for recording in stored for message in recording["messages"])


@pytest.mark.timeout(400)  # three runs, one of them in a process that starts its own sandbox
async def test_a_repaired_failure_reaches_the_prompt_of_the_next_run(
    store_url: str, tmp_path: Path, sandbox: BubblewrapSandbox
) -> None:
    home = tmp_path / "home"
    first = make_project(tmp_path / "first", "cart", "cart_total")
    second = make_project(tmp_path / "second", "bill", "bill_sum")
    first_run = await heal_in_this_process(
        first, "cart", make_settings(home, store_url, use="prompts"), sandbox
    )
    events = read_ledger(first_run.ledger_path).events
    recalled, stored = last_payload(events, MemoryRecalled), last_payload(events, MemoryStored)
    assert recalled is not None
    assert recalled.found == ()
    assert stored == MemoryStored(failures=1)
    with open_store(store_url, home) as store:
        assert [item.repaired for item in iter_items(store)] == [True]

    run_without_memory = await heal_in_this_process(
        second, "bill", make_settings(home, store_url, use="off"), sandbox
    )
    assert last_payload(read_ledger(run_without_memory.ledger_path).events, MemoryRecalled) is None
    assert REPAIRED_LINE not in read_prompts(run_without_memory)

    second_run = heal_by_command_line(second, "bill", make_settings(home, store_url, use="prompts"))
    recalled = last_payload(read_ledger(second_run.ledger_path).events, MemoryRecalled)
    assert recalled is not None
    assert REPAIRED_LINE in recalled.prompt_texts[0]
    assert recalled.prompt_texts[0] in read_prompts(second_run)
    with open_store(store_url, home) as store:
        memory = next(item for item in iter_items(store) if item.run_id == first_run.id)
        forget_items(store, [("failures", memory.key)])

    # A replay and a fork still get the memory that was forgotten after the original run.
    settings = load_settings(second, make_settings(home, store_url, use="prompts")).settings
    replayed = await replay(second_run.path, settings=settings, sandbox=sandbox)
    assert replayed.same, replayed.difference
    forked = await fork_from_iteration(
        second_run.path, 1, settings=settings, model=f"scripted:{tmp_path / 'bill.yaml'}", sandbox=sandbox
    )
    fork_events = read_ledger(find_run(home, forked.run_id).ledger_path).events
    assert last_payload(fork_events, MemoryRecalled) == recalled

    with open_store(store_url, home) as store:
        with store.write_transaction() as connection:
            connection.exec_driver_sql("DELETE FROM failures")
        rebuild = CliRunner().invoke(app, ["db", "rebuild", *as_flags(make_settings(home, store_url))])
        assert rebuild.exit_code == 0, rebuild.output
        rebuilt_memory = next(item for item in iter_items(store) if item.key == memory.key)
    assert REPAIRED_LINE in rebuilt_memory.text


def as_flags(settings_values: dict[str, object]) -> list[str]:
    """Return settings as command-line options."""
    return [argument for name, value in settings_values.items() for argument in ("--set", f"{name}={value}")]
