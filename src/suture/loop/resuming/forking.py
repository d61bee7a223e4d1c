"""A run that begins where another one was: its state, what had happened until then, and its blobs."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import cast

from langchain_core.runnables import RunnableConfig

from suture.core.ledger import RunFolder, events_until, read_ledger, taken_over
from suture.core.ledger.kinds import CandidateProposed, ForkPoint, RunStarted
from suture.core.records import to_plain
from suture.errors import StorageError, UsageError
from suture.loop.context import RunContext
from suture.loop.graph import Compiled, build_graph
from suture.loop.policy.progress import best_of
from suture.loop.proposing import Lineage, edited_candidate, proposed_candidate
from suture.loop.run_spec import ForkStart
from suture.loop.state import SCHEMA_VERSION, LoopState, proposals_in, tried_in
from suture.storage.database import open_checkpointer

ENTRY = "review"
"""The node that a state is said to come from: its edges lead on from any state (see `graph`)."""


async def start_at(folder: RunFolder, at: int, database: Path | str) -> ForkStart:
    """Where a run was when `at` of its decisions had been carried out.

    Args:
        folder: The run's; nothing in it is changed.
        at: Which step; 0 is before its first decision.
        database: The checkpoints, see `open_checkpointer`.

    Raises:
        UsageError: There is no such step, or its state is of another version.
        StorageError: The checkpoints or the ledger cannot be read.
    """
    states: dict[int, LoopState] = {}
    async with open_checkpointer(database) as checkpointer:
        graph = build_graph(checkpointer)
        async for snapshot in graph.aget_state_history(_thread(folder.id)):
            if snapshot.next == ("decide",) and snapshot.values.get("schema_version") == SCHEMA_VERSION:
                states.setdefault(snapshot.values["decisions"], cast(LoopState, snapshot.values))
    if at not in states:
        there = (
            f"there are {min(states)} to {max(states)}" if states else "its checkpoints are gone, or older"
        )
        raise UsageError(f"run {folder.id} has no step {at} to start from", remedy=there)
    events = events_until(read_ledger(folder.ledger_path).events, at)
    return ForkStart(run=folder.id, at=at, state=states[at], events=events, folder=folder)


def unstarted_fork(start: ForkStart) -> ForkPoint:
    """What the first event of a fork says that failed before it had taken over anything."""
    return ForkPoint(run=start.run, at=start.at, state="", events=len(start.events) + 1)


async def begin(start: ForkStart, started: RunStarted, context: RunContext, graph: Compiled) -> None:
    """Write down what a fork takes over, and set the graph to its state.

    Raises:
        UsageError: A person's candidate writes a file that no candidate may write.
        StorageError: The run folder cannot be written.
    """
    _link_blobs(start.folder, context.folder)
    state, proposed = await _changed(start, context)
    blob = context.folder.put_json({**state, "run_id": ""})
    events = [*taken_over(start.events, start.run, offset=1), *proposed]
    forks = ForkPoint(run=start.run, at=start.at, state=blob, events=len(events))
    context.ledger.append_all([replace(started, forks=forks), *events])
    await enter(state, context, graph)


async def enter(state: LoopState, context: RunContext, graph: Compiled) -> None:
    """Set the graph to a state, so that it goes on from there."""
    values = {**state, "run_id": context.folder.id}
    await graph.aupdate_state(_thread(context.folder.id), values, as_node=ENTRY)


async def rewind(context: RunContext, graph: Compiled) -> None:
    """Set a run that ended because nobody answered back to before the round that found nobody.

    What it had decided keeps its number, so that the next decision has one of its own.

    Raises:
        UsageError: Its checkpoints tell of no state before that round.
    """
    thread = _thread(context.folder.id)
    ended = cast(LoopState, (await graph.aget_state(thread)).values)
    async for snapshot in graph.aget_state_history(thread):
        if snapshot.next == ("decide",) and not _found_nobody(cast(LoopState, snapshot.values)):
            values = {"decisions": ended["decisions"], "moves": [], "outcome": "", "reason": ""}
            await graph.aupdate_state(snapshot.config, values, as_node=ENTRY)
            return
    raise UsageError(
        f"run {context.folder.id} has no checkpoint to go on from", remedy="start it anew: `suture run`"
    )


def _found_nobody(state: LoopState) -> bool:
    """Whether the last round brought no candidate because the models could not be asked."""
    last = [p.fault for p in proposals_in(state) if p.round == state["round"] - 1]
    return bool(last) and set(last) <= {"budget", "model"}


async def _changed(start: ForkStart, context: RunContext) -> tuple[LoopState, list[CandidateProposed]]:
    """The state with the hint and the candidate that the fork brings, and what to tell of these."""
    state = LoopState(**{**start.state, "moves": [], "outcome": "", "reason": ""})
    if start.hint:
        state["hints"] = [*state["hints"], start.hint]
    if not start.files:
        return state, []
    best = best_of(tried_in(state))
    shown = context.candidate(best.blob) if best else None
    candidate = await edited_candidate(start.files, shown, context)
    attempt, event = proposed_candidate(candidate, Lineage.beginning(state["round"]), context)
    state["proposals"] = [*state["proposals"], to_plain(attempt)]
    return state, [event]


def _link_blobs(source: RunFolder, target: RunFolder) -> None:
    """The blobs of one run in another, without copying them where the file system can share them."""
    there = target.path / "blobs"
    try:
        there.mkdir(exist_ok=True)
        for blob in (source.path / "blobs").iterdir():
            if blob.name.startswith(".") or (there / blob.name).exists():
                continue
            try:
                os.link(blob, there / blob.name)
            except OSError:
                shutil.copyfile(blob, there / blob.name)
    except OSError as fault:
        raise StorageError(
            f"the blobs of {source.id} cannot be taken over: {fault.strerror}", remedy="free some disk space"
        ) from fault


def _thread(run: str) -> RunnableConfig:
    return {"configurable": {"thread_id": run}}
