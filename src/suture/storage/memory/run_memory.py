"""Memory of a run: what it recalls at its start and stores at its end; a fault never stops it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from suture.core.ledger import Event, RunFolder, last_payload, read_ledger
from suture.core.ledger.kinds import MemoryRecalled, MemoryStored, RecalledMemory, RunFinished
from suture.core.records import Task, Verdict
from suture.core.settings import Settings
from suture.errors import StorageError, SutureError
from suture.storage.memory.embedders import open_embedder
from suture.storage.memory.extraction import extract_items
from suture.storage.memory.fingerprints import FailureFingerprint, fingerprint_failures, fingerprint_task
from suture.storage.memory.memory_items import MEMORY_TABLE_NAMES, MemoryItem, MemoryTableName
from suture.storage.memory.retention import PLACEBOS, draw_arm, placebo_text
from suture.storage.tuning import (
    ASSUMED_OPERATORS,
    MAX_FINGERPRINTS,
    MAX_OPERATOR_FACTOR,
    MAX_RECALLED_ITEMS,
    MAX_REEMBEDDED_PER_RUN,
    MIN_OPERATOR_FACTOR,
    PRIOR_STRENGTH,
)

if TYPE_CHECKING:
    from suture.storage.database.store import Store
    from suture.storage.memory.embedders import Embedder
    from suture.storage.memory.recall import MemoryMatch


RECALL_PREFIX = "From an earlier run: "


def recall_for_run(settings: Settings, task: Task, verdict: Verdict | None) -> MemoryRecalled:
    """Recall what earlier runs teach about this one, as the event for the ledger.

    Args:
        settings: How memories are used, the database and the embedder.
        task: The task.
        verdict: The verdict on the unchanged code; `None` if there is none to repair.
    """
    use = settings.memory.use
    fingerprints = (
        fingerprint_failures(verdict, task.files, task)[:MAX_FINGERPRINTS]
        if verdict
        else [fingerprint_task(task)]
    )
    query = fingerprints[0].signature or " ".join(task.statement.split())[:200] if fingerprints else ""
    if not fingerprints:
        return MemoryRecalled(use=use)
    try:
        with _open_store(settings) as store:
            embedder = _open_embedder(settings, store)
            tables: tuple[MemoryTableName, ...] = (
                ("failures", "lessons") if verdict else ("patterns", "lessons")
            )
            found = _recall_all(store, embedder, fingerprints, tables, task.language)
            return MemoryRecalled(
                use=use,
                query=query,
                embedder=embedder.identity if embedder else "",
                found=tuple(drawn := [_draw_use(one, rank, settings) for rank, one in enumerate(found)]),
                factors=_operator_prior(found, drawn) if use in ("search", "on") else {},
            )
    except SutureError as fault:
        return MemoryRecalled(use=use, query=query, fault=f"{type(fault).__name__}: {fault}")


def store_run_memories(settings: Settings, folder: RunFolder, events: Sequence[Event]) -> MemoryStored:
    """Store what a run contributes, and count the uses of recalled items, as the event for the ledger."""
    try:
        with _open_store(settings) as store:
            return learn_from_run(store, open_embedder(settings), folder, events)
    except SutureError as fault:
        return MemoryStored(fault=f"{type(fault).__name__}: {fault}")


def learn_from_run(
    store: Store, embedder: Embedder | None, folder: RunFolder, events: Sequence[Event]
) -> MemoryStored:
    """Do the same as `store_run_memories` in an open database; repeating it changes nothing.

    Raises:
        StorageError: The database or the run's folder failed.
        ModelError: The embedder failed.
    """
    return _learn_items(store, embedder, folder, events, extract_items(folder, events))


def _learn_items(
    store: Store,
    embedder: Embedder | None,
    folder: RunFolder,
    events: Sequence[Event],
    items: Sequence[MemoryItem],
) -> MemoryStored:
    from suture.storage.memory.memory_store import evict_useless, record_use, store_items

    counts = store_items(store, items, embedder)
    recalled, ended = last_payload(events, MemoryRecalled), last_payload(events, RunFinished)
    if recalled is not None and ended is not None:
        healed = ended.outcome == "healed"
        for one in recalled.found:
            record_use(store, one.table, one.key, folder.id, shown=one.arm == "shown", healed=healed)
            if one.placebo:
                store_items(store, [_placebo_item(one.placebo)], None)
                record_use(
                    store, "lessons", _placebo_item(one.placebo).key, folder.id, shown=True, healed=healed
                )
        evict_useless(store, [(one.table, one.key) for one in recalled.found])
    return MemoryStored(failures=counts["failures"], patterns=counts["patterns"], lessons=counts["lessons"])


def relearn_from_runs(
    store: Store,
    embedder: Embedder | None,
    runs: Iterable[RunFolder],
    *,
    only_recorded: bool,
    on_fault: Callable[[str], None],
) -> dict[str, int]:
    """Extract the items of finished runs again; known ones stay unchanged.

    Args:
        store: The database.
        embedder: Computes vectors; without one items are found by their words.
        runs: The runs' folders.
        only_recorded: Whether only runs count that stored memories when they ended.
        on_fault: Called with a message for each run that cannot be read.

    Returns:
        How many `runs` were read, and how many `failures`, `patterns` and `lessons` they contribute.

    Raises:
        StorageError: The database failed.
        ModelError: The embedder failed.
    """
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
        stored = _learn_items(store, embedder, folder, events, items)
        counts["runs"] += 1
        for name in MEMORY_TABLE_NAMES:
            counts[name] += getattr(stored, name)
    return counts


def _open_store(settings: Settings) -> Store:
    from suture.storage.database.store import open_configured_store

    return open_configured_store(settings)


def _open_embedder(settings: Settings, store: Store) -> Embedder | None:
    """Return the embedder; the first items with vectors of another embedder are re-embedded."""
    from suture.storage.memory.memory_store import reembed_items

    embedder = open_embedder(settings)
    if embedder is not None:
        reembed_items(store, embedder, limit=MAX_REEMBEDDED_PER_RUN)
    return embedder


def _recall_all(
    store: Store,
    embedder: Embedder | None,
    fingerprints: Sequence[FailureFingerprint],
    tables: Sequence[MemoryTableName],
    language: str,
) -> list[MemoryMatch]:
    from suture.storage.memory.recall import recall_memories

    best: dict[str, MemoryMatch] = {}
    for fingerprint in fingerprints:
        for one in recall_memories(
            store,
            fingerprint.search_text,
            embedder,
            tables=tables,
            language=language,
            repaired=True,
            limit=MAX_RECALLED_ITEMS,
            embedding_text=fingerprint.embedding_text,
        ):
            if one.score > (best[one.item.key].score if one.item.key in best else 0.0):
                best[one.item.key] = one
    return sorted(best.values(), key=lambda one: (-one.score, -one.similarity, one.item.key))[
        :MAX_RECALLED_ITEMS
    ]


def _draw_use(found: MemoryMatch, rank: int, settings: Settings) -> RecalledMemory:
    """Draw whether an item is shown, and return what prompts say of it."""
    knobs, item = settings.memory, found.item
    arm = draw_arm(
        item.key,
        item.recalled + item.withheld,
        seed=knobs.seed,
        withheld=knobs.withheld_share,
        placebo=knobs.placebo_share,
    )
    is_shown = knobs.use in ("prompts", "on") and rank < knobs.max_memories
    shown_text, placebo = "", ""
    if is_shown and arm != "withheld":
        shown_text = item.text[: knobs.max_chars]
        if arm == "placebo":
            number, shown_text = placebo_text(shown_text, item.key)
            placebo = str(number)
    return RecalledMemory(
        key=item.key,
        table=item.table,
        arm=arm,
        text=f"{RECALL_PREFIX}{shown_text}" if shown_text else "",
        score=round(found.score, 5),
        operators=item.operators,
        placebo=placebo,
    )


def _operator_prior(found: Sequence[MemoryMatch], drawn: Sequence[RecalledMemory]) -> dict[str, float]:
    """Return the prior on the search's order; withheld items do not count."""
    best = found[0].score if found else 1.0
    votes: dict[str, tuple[tuple[str, ...], float]] = {}
    for one, use in zip(found, drawn, strict=True):
        if use.arm == "shown" and one.item.operators:  # several failures of one run share one repair
            votes.setdefault(one.item.patch, (one.item.operators, one.score / best))
    return dict(operator_factors(votes.values()))


def _placebo_item(number: str) -> MemoryItem:
    return MemoryItem(
        table="lessons", run_id="", source="placebo", kind="placebo", text=PLACEBOS[int(number)]
    )


def operator_factors(repairs: Iterable[tuple[tuple[str, ...], float]]) -> Mapping[str, float]:
    """Return operator -> how much likelier its mutations are; operators without evidence are omitted.

    The shares are those of a Dirichlet distribution over the operators with a uniform prior, divided by the
    uniform share.

    Args:
        repairs: Operators that repaired a similar failure, and its similarity in [0, 1].
    """
    weights: Counter[str] = Counter()
    for operators, weight in repairs:
        for operator in operators:
            weights[operator] += weight / len(operators)  # type: ignore[assignment]  # a Counter of floats
    total = sum(weights.values())
    if not total:
        return {}
    even = 1 / ASSUMED_OPERATORS
    return {
        operator: round(
            min(
                MAX_OPERATOR_FACTOR,
                max(MIN_OPERATOR_FACTOR, (weight + PRIOR_STRENGTH * even) / (total + PRIOR_STRENGTH) / even),
            ),
            3,
        )
        for operator, weight in sorted(weights.items())
    }
