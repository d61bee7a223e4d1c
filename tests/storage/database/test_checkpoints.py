"""Checkpoints of the graph: which values they hold, and how faults of their file are reported."""

from __future__ import annotations

import asyncio
import operator
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.errors import NodeError
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

from suture.errors import StorageError
from suture.storage.database import open_checkpointer

THREAD: RunnableConfig = {"configurable": {"thread_id": "t"}}
PLAIN_VALUES = {
    "text": "é\x00",
    "n": 1,
    "big": 2**62,
    "x": 0.1,
    "yes": True,
    "none": None,
    "list": [[1], {}],
    "dict": {"": []},
}


class State(TypedDict, total=False):
    """The state of the test graphs."""

    value: Any
    found: Annotated[list[Any], operator.add]


@dataclass
class CustomValue:
    """A value that is no plain JSON value."""

    x: int = 1


async def round_trip(checkpointer: BaseCheckpointSaver[str], value: Any) -> Any:
    """Return a state's `value` after a round trip through a checkpoint."""

    async def node(state: State) -> State:
        return {"value": value}

    graph = StateGraph(State)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    app = graph.compile(checkpointer=checkpointer)
    await app.ainvoke({"value": None}, THREAD, durability="sync")
    return (await app.aget_state(THREAD)).values["value"]


async def test_plain_values_survive_reopening_the_file(tmp_path: Path) -> None:
    path = tmp_path / "made" / "on the way" / "checkpoints.db"

    async with open_checkpointer(path) as checkpointer:
        assert await round_trip(checkpointer, PLAIN_VALUES) == PLAIN_VALUES
    async with open_checkpointer(path) as checkpointer:
        saved = await checkpointer.aget_tuple(THREAD)
        assert saved is not None
        assert saved.checkpoint["channel_values"]["value"] == PLAIN_VALUES


async def test_the_file_is_in_wal_mode(tmp_path: Path) -> None:
    async with open_checkpointer(tmp_path / "c.db"):
        connection = sqlite3.connect(tmp_path / "c.db")
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        connection.close()


@pytest.mark.parametrize(
    "value",
    [
        CustomValue(),
        [CustomValue()],
        {"a": CustomValue()},
        (1, 2),
        {1, 2},
        {1: 2},
        b"x",
        Path("x"),
        1 << 70,
        "half \ud83d",
        1j,
    ],
    ids=repr,
)
async def test_values_that_do_not_round_trip_are_refused(tmp_path: Path, value: Any) -> None:
    async with open_checkpointer(tmp_path / "c.db") as checkpointer:
        with pytest.raises(StorageError, match="state"):
            await round_trip(checkpointer, value)


async def test_the_error_names_the_path_and_the_class_of_the_value(tmp_path: Path) -> None:
    async with open_checkpointer(tmp_path / "c.db") as checkpointer:
        with pytest.raises(
            StorageError, match=r"\['value'\]\['a'\]\[1\] is a .*\.CustomValue, not a plain JSON value"
        ):
            await round_trip(checkpointer, {"a": [0, CustomValue()]})


async def test_fan_out_failed_branches_and_interrupts_are_restored(tmp_path: Path) -> None:
    async def plan(state: State) -> State:
        return {"value": 0}

    async def branch(state: State) -> State:
        if state["value"] == 1:
            raise ValueError("no")
        return {"found": [state["value"]]}

    async def handle_failure(state: State, error: NodeError) -> State:
        return {"found": [repr(error.error)]}

    async def ask(state: State) -> Command[Any]:
        return Command(update={"value": interrupt({"question": "merge?"})}, goto=END)

    graph = StateGraph(State)
    graph.add_node("plan", plan)
    graph.add_node("branch", branch, error_handler=handle_failure)
    graph.add_node("ask", ask)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges(
        "plan", lambda _: [Send("branch", {"value": n}) for n in range(3)], ["branch"]
    )
    graph.add_edge("branch", "ask")

    async with open_checkpointer(tmp_path / "c.db") as checkpointer:
        app = graph.compile(checkpointer=checkpointer)
        paused = await app.ainvoke({}, THREAD, durability="sync")
        assert paused["found"] == [0, "ValueError('no')", 2]

    async with open_checkpointer(tmp_path / "c.db") as checkpointer:
        app = graph.compile(checkpointer=checkpointer)
        final_state = await app.ainvoke(Command(resume="yes"), THREAD, durability="sync")
    assert final_state["value"] == "yes"


def write_text_file(path: Path) -> None:
    """Write a file that is no database."""
    path.write_text("this is a diary, not a database\n" * 1000)


def create_folder(path: Path) -> None:
    """Create a folder where the database should be."""
    path.mkdir()


def replace_parent_with_file(path: Path) -> None:
    """Make the parent folder a file."""
    path.parent.rmdir()
    path.parent.touch()


@pytest.mark.parametrize(
    ("spoil", "remedy"),
    [(write_text_file, "move"), (create_folder, "SUTURE_HOME"), (replace_parent_with_file, "SUTURE_HOME")],
)
async def test_an_unopenable_file_has_a_remedy(tmp_path: Path, spoil: object, remedy: str) -> None:
    path = tmp_path / "home" / "checkpoints.db"
    path.parent.mkdir()
    assert callable(spoil)

    spoil(path)
    with pytest.raises(StorageError) as caught:
        async with open_checkpointer(path):
            pass
    assert remedy in caught.value.remedy


FULL_DISK = """
import asyncio, resource, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from suture.errors import StorageError
from suture.storage.database import open_checkpointer
from test_checkpoints import round_trip

async def main():
    async with open_checkpointer(Path(sys.argv[2])) as checkpointer:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
        await round_trip(checkpointer, "x" * 1_000_000)

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    asyncio.run(main())
except StorageError as fault:
    print(fault)
"""


def test_a_full_disk_is_a_storage_error(tmp_path: Path) -> None:
    child = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(Path(__file__).parent), str(tmp_path / "c.db")],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )

    assert child.returncode == 0, child.stderr
    assert "free some disk space" in child.stdout


async def test_an_exception_of_the_caller_is_not_mapped(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        async with open_checkpointer(tmp_path / "c.db"):
            raise FileNotFoundError(2, "No such file or directory", str(tmp_path))


async def test_two_event_loops_can_open_the_same_file(tmp_path: Path) -> None:
    async def open_and_round_trip(value: int) -> Any:
        async with open_checkpointer(tmp_path / "c.db") as checkpointer:
            return await round_trip(checkpointer, value)

    assert await asyncio.to_thread(lambda: asyncio.run(open_and_round_trip(1))) == 1
    assert await open_and_round_trip(2) == 2


async def create_database(path: Path) -> None:
    """Create a database with the checkpoints of one thread."""
    async with open_checkpointer(path) as checkpointer:
        graph = compile_graph(checkpointer)
        await graph.ainvoke({"value": 1, "found": []}, THREAD)


def compile_graph(checkpointer: BaseCheckpointSaver[Any]) -> Any:
    """Return a graph of one node."""
    graph = StateGraph(State)
    graph.add_node("one", lambda state: {"value": [state["value"]]})
    graph.add_edge(START, "one")
    graph.add_edge("one", END)
    return graph.compile(checkpointer=checkpointer)


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("update checkpoints set checkpoint = ?", b"\xc1garbled"),
        ("update checkpoints set checkpoint = ?", b""),
        ("update checkpoints set checkpoint = ?", b"\x01"),
        ("update checkpoints set checkpoint = ?", "a text"),
        ("update checkpoints set checkpoint = ?", None),
        ("update checkpoints set checkpoint = substr(checkpoint, 1, ?)", 40),
        ("update checkpoints set type = ?", "pickle"),
        ("update checkpoints set type = ?", None),
        ("update checkpoints set metadata = ?", b"{"),
        ("update checkpoints set metadata = ?", b"\xff\xfe"),
        ("update checkpoints set metadata = ?", b"[]"),
        ("update writes set value = ?", b"\xc1"),
        ("update writes set type = ?", 7),
    ],
)
async def test_a_damaged_row_is_reported_with_file_and_remedy(
    tmp_path: Path, change: str, value: object
) -> None:
    path = tmp_path / "checkpoints.db"
    await create_database(path)
    with sqlite3.connect(path) as connection:
        assert connection.execute(change, (value,)).rowcount > 0

    connection.close()

    async with open_checkpointer(path) as checkpointer:
        graph = compile_graph(checkpointer)

        with pytest.raises(StorageError, match=r"checkpoint of run t .* is damaged") as caught:
            await list_history(graph.aget_state_history(THREAD))
        assert str(path) in caught.value.message
        assert str(path) in caught.value.remedy
        if "update checkpoints" in change:
            with pytest.raises(StorageError, match="is damaged"):
                await graph.aget_state(THREAD)


async def list_history(history: Any) -> list[Any]:
    """Return all snapshots of a history."""
    return [snapshot async for snapshot in history]
