"""Memory of a run: what it recalls at its start and stores at its end; a fault never stops it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from suture.core.ledger import Event, RunFolder, last_payload, read_ledger
from suture.core.ledger.kinds import MemoryRecalled, MemoryStored, RecalledMemory
from suture.core.records import Task, Verdict
from suture.core.settings import Settings
from suture.errors import StorageError, SutureError
from suture.storage.memory.extraction import extract_items
from suture.storage.memory.fingerprints import FailureFingerprint, fingerprint_failures, fingerprint_task
from suture.storage.memory.memory_items import MEMORY_TABLE_NAMES, MemoryTableName
from suture.storage.tuning import (
    MAX_FINGERPRINTS,
    MAX_MEMORY_CHARS,
    MAX_PROMPT_MEMORIES,
    MAX_QUERY_CHARS,
    MAX_RECALLED_ITEMS,
)

if TYPE_CHECKING:
    from suture.storage.database.store import Store
    from suture.storage.memory.recall import MemoryMatch


RECALL_PREFIX = "From an earlier run: "


def recall_for_run(settings: Settings, task: Task, verdict: Verdict | None) -> MemoryRecalled:
    """Recall what earlier runs teach about this one, as the event for the ledger.

    `verdict` is the verdict on the unchanged code; `None` if there is none to repair.
    """
    use = settings.memory.use
    tables: tuple[MemoryTableName, ...]
    if verdict:
        tables = ("failures", "lessons")
        fingerprints = fingerprint_failures(verdict, task.files, task)[:MAX_FINGERPRINTS]
        if not fingerprints:
            return MemoryRecalled(use=use)
    else:
        tables = ("patterns", "lessons")
        fingerprints = [fingerprint_task(task)]
    query = fingerprints[0].signature or " ".join(task.statement.split())[:MAX_QUERY_CHARS]
    try:
        with _open_store(settings) as store:
            matches = _recall_for_all(store, fingerprints, tables, task.language)
            found = tuple(_describe_match(match, rank) for rank, match in enumerate(matches))
            return MemoryRecalled(use=use, query=query, found=found)
    except SutureError as fault:
        return MemoryRecalled(use=use, query=query, fault=f"{type(fault).__name__}: {fault}")


def store_run_memories(settings: Settings, folder: RunFolder, events: Sequence[Event]) -> MemoryStored:
    """Store what a run contributes, as the event for the ledger."""
    from suture.storage.memory.memory_store import store_items

    try:
        with _open_store(settings) as store:
            counts = store_items(store, extract_items(folder, events))
            return MemoryStored(
                failures=counts["failures"], patterns=counts["patterns"], lessons=counts["lessons"]
            )
    except SutureError as fault:
        return MemoryStored(fault=f"{type(fault).__name__}: {fault}")


def relearn_from_runs(
    store: Store,
    runs: Iterable[RunFolder],
    *,
    only_recorded: bool,
    on_fault: Callable[[str], None],
) -> dict[str, int]:
    """Extract the items of finished runs again; known ones stay unchanged.

    Args:
        only_recorded: Whether runs that stored no memories when they ended are skipped.
        on_fault: Called with a message for each run that cannot be read.

    Returns:
        How many `runs` were read, and how many `failures`, `patterns` and `lessons` they contribute.
    """
    from suture.storage.memory.memory_store import store_items

    counts = dict.fromkeys(("runs", *MEMORY_TABLE_NAMES), 0)
    for folder in runs:
        try:
            events = read_ledger(folder.ledger_path).events
            items = extract_items(folder, events)
        except StorageError as fault:
            on_fault(f"run {folder.id} is skipped: {fault}")
            continue
        if only_recorded and last_payload(events, MemoryStored) is None:
            continue
        counts["runs"] += 1
        for name, count in store_items(store, items).items():
            counts[name] += count
    return counts


def _open_store(settings: Settings) -> Store:
    from suture.storage.database.store import open_configured_store

    return open_configured_store(settings)


def _recall_for_all(
    store: Store,
    fingerprints: Sequence[FailureFingerprint],
    tables: Sequence[MemoryTableName],
    language: str,
) -> list[MemoryMatch]:
    """Return the items that resemble any of the failures, each with its best score, the likeliest first."""
    from suture.storage.memory.recall import recall_memories

    best: dict[str, MemoryMatch] = {}
    for fingerprint in fingerprints:
        for match in recall_memories(
            store,
            fingerprint,
            tables=tables,
            language=language,
            repaired=True,
            limit=MAX_RECALLED_ITEMS,
        ):
            key = match.item.key
            if key not in best or match.similarity > best[key].similarity:
                best[key] = match
    matches = sorted(best.values(), key=lambda match: (-match.similarity, match.item.key))
    return matches[:MAX_RECALLED_ITEMS]


def _describe_match(match: MemoryMatch, rank: int) -> RecalledMemory:
    """Return a match with what prompts say of it; only the first ones are in prompts."""
    is_shown = rank < MAX_PROMPT_MEMORIES
    text = f"{RECALL_PREFIX}{match.item.text[:MAX_MEMORY_CHARS]}" if is_shown else ""
    return RecalledMemory(
        key=match.item.key, table=match.item.table, text=text, score=round(match.similarity, 5)
    )
