"""Fork a run: start a new one with the state, the events and the blobs that another run had at some step."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

from langchain_core.runnables import RunnableConfig

from suture.core.ledger import RunFolder, copy_events_for_fork, events_until, read_ledger
from suture.core.ledger.kinds import CandidateProposed, ForkPoint, RepairChosen, RunStarted
from suture.core.records import Candidate, encode_record
from suture.errors import StorageError, UsageError
from suture.loop.context import RunContext
from suture.loop.evaluation.change_warnings import LABEL_PREFIX
from suture.loop.graph import CompiledGraph, build_graph
from suture.loop.policy.attempts import find_best
from suture.loop.review.answering import make_edited_candidate
from suture.loop.run_spec import ForkOrigin
from suture.loop.services.candidate_store import Lineage, make_attempt
from suture.loop.state import SCHEMA_VERSION, LoopState, judged_attempts, proposed_attempts
from suture.storage.database import open_checkpointer

ENTRY_NODE = "review"
"""LangGraph continues after the node that is said to have written a state. From `review`, the edges lead on
from any state.
"""


async def load_state_at(
    folder: RunFolder, decision: int, database: Path | str, *, or_nearest: bool = False
) -> ForkOrigin:
    """Return where a run was after a number of its decisions had been carried out.

    Args:
        folder: The run folder; nothing in it changes.
        decision: The number of decisions; 0 is before the first.
        database: The location of the checkpoints (see `open_checkpointer`).
        or_nearest: Whether the next step that the run has may take the place of this one, or its first step if none
            follows. The steps of a fork begin with the one that it started from.

    Raises:
        UsageError: There is no such step, or its state is of another version.
        StorageError: The checkpoints or the ledger cannot be read.
    """
    states: dict[int, LoopState] = {}
    async with open_checkpointer(database) as checkpointer:
        graph = build_graph(checkpointer)
        async for snapshot in graph.aget_state_history(_thread(folder.id)):
            if snapshot.next == ("decide",) and snapshot.values.get("schema_version") == SCHEMA_VERSION:
                # The history begins with the newest state, so the newest with this number of decisions counts.
                states.setdefault(snapshot.values["decisions"], cast(LoopState, snapshot.values))
    if or_nearest and states:
        decision = min((step for step in states if step >= decision), default=min(states))
    if decision not in states:
        remedy = (
            f"there are {min(states)} to {max(states)}" if states else "its checkpoints are gone, or older"
        )
        raise UsageError(f"run {folder.id} has no step {decision} to start from", remedy=remedy)
    events = events_until(read_ledger(folder.ledger_path).events, decision)
    return ForkOrigin(run=folder.id, decision=decision, state=states[decision], events=events, folder=folder)


async def begin_fork(
    origin: ForkOrigin, started: RunStarted, context: RunContext, graph: CompiledGraph
) -> None:
    """Record in the ledger what a fork takes over, and set the graph to the state that it starts from."""
    _link_blobs(origin.folder, context.folder)
    state, proposed = await _apply_changes(origin, context)
    blob = context.folder.save_json({**state, "run_id": ""})  # A replay of this fork has another id.
    events = [*copy_events_for_fork(origin.events, origin.run, offset=1), *proposed]
    fork = ForkPoint(run=origin.run, step=origin.decision, state=blob, events=len(events))
    context.ledger.append_all([replace(started, fork=fork), *events])
    await enter_state(state, context, graph)


async def enter_state(state: LoopState, context: RunContext, graph: CompiledGraph) -> None:
    """Set the graph to a state, so that it continues from there."""
    values = {**state, "run_id": context.folder.id}
    await graph.aupdate_state(_thread(context.folder.id), values, as_node=ENTRY_NODE)


async def rewind(context: RunContext, graph: CompiledGraph) -> None:
    """Reset a run that ended because no model answered to the state before that round.

    The number of decisions is not reset, so that the next decision gets its own number.

    Raises:
        UsageError: The checkpoints hold no state before that round.
    """
    thread = _thread(context.folder.id)
    ended = cast(LoopState, (await graph.aget_state(thread)).values)
    async for snapshot in graph.aget_state_history(thread):
        if snapshot.next == ("decide",) and not _reached_no_model(cast(LoopState, snapshot.values)):
            values = {"decisions": ended["decisions"], "moves": [], "outcome": "", "reason": None}
            await graph.aupdate_state(snapshot.config, values, as_node=ENTRY_NODE)
            return
    raise UsageError(
        f"run {context.folder.id} has no checkpoint to continue from", remedy="start it again: `suture run`"
    )


def _reached_no_model(state: LoopState) -> bool:
    """Return whether the last round produced no candidate because no model could be asked."""
    faults = {attempt.fault for attempt in proposed_attempts(state) if attempt.round == state["round"] - 1}
    return bool(faults) and faults <= {"budget", "model", "no_answer"}


async def _apply_changes(
    origin: ForkOrigin, context: RunContext
) -> tuple[LoopState, list[CandidateProposed | RepairChosen]]:
    """Return the state with the hint and the candidate of the fork, and the events that record these."""
    state = LoopState(**{**origin.state, "moves": [], "outcome": "", "reason": None})
    if origin.hint:
        state["hints"] = [*state["hints"], origin.hint]
    if not origin.files:
        return state, []
    if origin.choice is not None:
        candidate = _make_chosen_candidate(origin.files, origin.choice)
        state["searched"] = True
    else:
        best = find_best(judged_attempts(state))
        base = context.candidates.load(best.blob) if best else None
        candidate = await make_edited_candidate(origin.files, base, context)
    proposal = context.candidates.make_proposal(candidate)
    attempt = make_attempt(proposal, Lineage.beginning(state["round"]))
    state["proposals"] = [*state["proposals"], encode_record(attempt)]
    if origin.choice is None:
        return state, [proposal]
    return state, [proposal, replace(origin.choice, candidate=candidate.hash)]


def _make_chosen_candidate(files: Mapping[str, str], choice: RepairChosen) -> Candidate:
    """Return a repair of the search that a person chose; its label, also in the certificate, records this."""
    label = f"{LABEL_PREFIX}{choice.labels[choice.choice - 1]}, chosen by a person"
    return Candidate(files=files, origin="mutation", label=label)


def _link_blobs(source: RunFolder, target: RunFolder) -> None:
    """Put the blobs of one run into another, as hard links if the file system has them, else as copies."""
    blobs = target.path / "blobs"
    try:
        blobs.mkdir(exist_ok=True)
        for blob in (source.path / "blobs").iterdir():
            # A name with a dot is a file that was still being written.
            if blob.name.startswith(".") or (blobs / blob.name).exists():
                continue
            try:
                os.link(blob, blobs / blob.name)
            except OSError:
                shutil.copyfile(blob, blobs / blob.name)
    except OSError as fault:
        raise StorageError(
            f"the blobs of {source.id} cannot be copied: {fault.strerror}", remedy="free some disk space"
        ) from fault


def _thread(run: str) -> RunnableConfig:
    return {"configurable": {"thread_id": run}}
