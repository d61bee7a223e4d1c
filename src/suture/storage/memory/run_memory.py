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
    MAX_QUERY_CHARS,
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
            from suture.storage.memory.memory_store import reembed_items

            embedder = open_embedder(settings)
            if embedder is not None:
                reembed_items(store, embedder, limit=MAX_REEMBEDDED_PER_RUN)
            matches = _recall_for_all(store, embedder, fingerprints, tables, task.language)
            uses = tuple(_draw_use(match, rank, settings) for rank, match in enumerate(matches))
            return MemoryRecalled(
                use=use,
                query=query,
                embedder=embedder.identity if embedder else "",
                found=uses,
                factors=_operator_prior(matches, uses) if use in ("search", "on") else {},
            )
    except SutureError as fault:
        return MemoryRecalled(use=use, query=query, fault=f"{type(fault).__name__}: {fault}")


def store_run_memories(settings: Settings, folder: RunFolder, events: Sequence[Event]) -> MemoryStored:
    """Store what a run contributes, and count the uses of recalled items, as the event for the ledger."""
    try:
        with _open_store(settings) as store:
            embedder = open_embedder(settings)
            counts = _learn_items(store, embedder, folder, events, extract_items(folder, events))
            return MemoryStored(
                failures=counts["failures"], patterns=counts["patterns"], lessons=counts["lessons"]
            )
    except SutureError as fault:
        return MemoryStored(fault=f"{type(fault).__name__}: {fault}")


def _learn_items(
    store: Store,
    embedder: Embedder | None,
    folder: RunFolder,
    events: Sequence[Event],
    items: Sequence[MemoryItem],
) -> dict[MemoryTableName, int]:
    """Store items and count the run's uses of recalled ones; return how many items belong to each table.

    Repeating it changes nothing.
    """
    from suture.storage.memory.memory_store import evict_useless, record_use, store_items

    counts = store_items(store, items, embedder)
    recalled, ended = last_payload(events, MemoryRecalled), last_payload(events, RunFinished)
    if recalled is not None and ended is not None:
        healed = ended.outcome == "healed"
        for use in recalled.found:
            record_use(store, use.table, use.key, folder.id, shown=use.arm == "shown", healed=healed)
            if use.placebo:  # the number of the text among `PLACEBOS`, as text; empty if no placebo was shown
                placebo = MemoryItem(
                    table="lessons",
                    run_id="",  # all runs that show this text share one item
                    source="placebo",
                    kind="placebo",
                    text=PLACEBOS[int(use.placebo)],
                )
                store_items(store, [placebo], None)
                record_use(store, "lessons", placebo.key, folder.id, shown=True, healed=healed)
        evict_useless(store, [(use.table, use.key) for use in recalled.found])
    return counts


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
        only_recorded: Whether runs that stored no memories when they ended are skipped.
        on_fault: Called with a message for each run that cannot be read.

    Returns:
        How many `runs` were read, and how many `failures`, `patterns` and `lessons` they contribute.
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
        counts["runs"] += 1
        for name, count in _learn_items(store, embedder, folder, events, items).items():
            counts[name] += count
    return counts


def _open_store(settings: Settings) -> Store:
    from suture.storage.database.store import open_configured_store

    return open_configured_store(settings)


def _recall_for_all(
    store: Store,
    embedder: Embedder | None,
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
            fingerprint.search_text,
            embedder,
            tables=tables,
            language=language,
            repaired=True,
            limit=MAX_RECALLED_ITEMS,
            embedding_text=fingerprint.embedding_text,
        ):
            if match.item.key not in best or match.score > best[match.item.key].score:
                best[match.item.key] = match
    matches = sorted(best.values(), key=lambda match: (-match.score, -match.similarity, match.item.key))
    return matches[:MAX_RECALLED_ITEMS]


def _draw_use(match: MemoryMatch, rank: int, settings: Settings) -> RecalledMemory:
    """Draw whether an item is shown, and return what prompts say of it."""
    item, use = match.item, settings.memory.use
    arm = draw_arm(
        item.key,
        item.recalled + item.withheld,
        seed=settings.memory.seed,
        withheld=settings.memory.withheld_share,
        placebo=settings.memory.placebo_share,
    )
    prompt_text, placebo = "", ""
    if use in ("prompts", "on") and rank < settings.memory.max_memories and arm != "withheld":
        prompt_text = item.text[: settings.memory.max_chars]
        if arm == "placebo":
            number, prompt_text = placebo_text(prompt_text, item.key)
            placebo = str(number)  # the event holds a key as text
    return RecalledMemory(
        key=item.key,
        table=item.table,
        arm=arm,
        text=f"{RECALL_PREFIX}{prompt_text}" if prompt_text else "",
        score=round(match.score, 5),
        operators=item.operators,
        placebo=placebo,
    )


def _operator_prior(matches: Sequence[MemoryMatch], uses: Sequence[RecalledMemory]) -> dict[str, float]:
    """Return the prior on the search's order; withheld items do not count."""
    best_score = matches[0].score if matches else 1.0
    repairs: dict[str, tuple[tuple[str, ...], float]] = {}
    for match, use in zip(matches, uses, strict=True):
        if use.arm == "shown" and match.item.operators:  # several failures of one run share one repair
            repairs.setdefault(match.item.patch, (match.item.operators, match.score / best_score))
    return dict(operator_factors(repairs.values()))


def operator_factors(repairs: Iterable[tuple[tuple[str, ...], float]]) -> Mapping[str, float]:
    """Return operator -> how much likelier its mutations are; operators without evidence are omitted.

    A factor is an operator's share in a Dirichlet distribution over the operators with a uniform prior, divided
    by the uniform share. `repairs` are pairs `(operators that repaired a similar failure, its similarity)`.
    """
    weights: Counter[str] = Counter()
    for operators, weight in repairs:
        for operator in operators:
            weights[operator] += weight / len(operators)  # type: ignore[assignment]  # a Counter of floats
    total = sum(weights.values())
    if not total:
        return {}
    uniform_share = 1 / ASSUMED_OPERATORS
    factors: dict[str, float] = {}
    for operator, weight in sorted(weights.items()):
        share = (weight + PRIOR_STRENGTH * uniform_share) / (total + PRIOR_STRENGTH)
        factor = min(MAX_OPERATOR_FACTOR, max(MIN_OPERATOR_FACTOR, share / uniform_share))
        factors[operator] = round(factor, 3)
    return factors
