"""What a run asks of memory when it begins, and leaves there when it has ended. Neither ever stops a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from suture.core.ledger import Event, RunFolder, last_of, read_ledger
from suture.core.ledger.kinds import MemoryKept, MemoryRecalled, RecalledMemory, RunFinished
from suture.core.records import Task, Verdict
from suture.core.settings import Settings
from suture.errors import StorageError, SutureError
from suture.storage.memory.embedders import open_embedder
from suture.storage.memory.extraction import items_of
from suture.storage.memory.fingerprints import FailureClue, clue_of_task, clues_of_failure
from suture.storage.memory.memory_items import TABLES, Item, TableName
from suture.storage.memory.retention import PLACEBOS, arm_of, placebo_for

if TYPE_CHECKING:
    from suture.storage.database.store import Store
    from suture.storage.memory.embedders import Embedder
    from suture.storage.memory.recall import Found


MOST_CLUES = 2
"""Kinds of failures of one run that memory is asked about."""
VOTERS = 20
"""Memories that a prior on the search's order is made of."""
MOST_EMBEDDED = 500
"""Memories of another embedder that a run embeds anew in passing; `suture memory embed` does all."""
TOLD = "From an earlier run: "


def recalled_for(settings: Settings, task: Task, verdict: Verdict | None) -> MemoryRecalled:
    """What earlier runs teach about this one, as the event that tells of it.

    Args:
        settings: Say what is used, from which database, by which embedder.
        task: What is wanted.
        verdict: On the code as it is; `None` where there is none to mend.
    """
    use = settings.memory.use
    clues = clues_of_failure(verdict, task.files, task)[:MOST_CLUES] if verdict else [clue_of_task(task)]
    query = clues[0].signature or " ".join(task.statement.split())[:200] if clues else ""
    if not clues:
        return MemoryRecalled(use=use)
    try:
        with _opened(settings) as store:
            embedder = _embedder_of(settings, store)
            tables: tuple[TableName, ...] = ("failures", "lessons") if verdict else ("patterns", "lessons")
            found = _asked(store, embedder, clues, tables, task.language)
            return MemoryRecalled(
                use=use,
                query=query,
                embedder=embedder.identity if embedder else "",
                found=tuple(drawn := [_drawn(one, rank, settings) for rank, one in enumerate(found)]),
                factors=_factors(found, drawn) if use in ("search", "on") else {},
            )
    except SutureError as fault:
        return MemoryRecalled(use=use, query=query, fault=f"{type(fault).__name__}: {fault}")


def kept_of(settings: Settings, folder: RunFolder, events: Sequence[Event]) -> MemoryKept:
    """Store what a run taught, and count what its memories were good for, as the event that tells of it."""
    try:
        with _opened(settings) as store:
            return learn(store, open_embedder(settings), folder, events)
    except SutureError as fault:
        return MemoryKept(fault=f"{type(fault).__name__}: {fault}")


def learn(store: Store, embedder: Embedder | None, folder: RunFolder, events: Sequence[Event]) -> MemoryKept:
    """As `kept_of`, in an open database; done twice it changes nothing.

    Raises:
        StorageError: The database, or the run's folder, failed.
        ModelError: The embedder failed.
    """
    return _learned(store, embedder, folder, events, items_of(folder, events))


def _learned(
    store: Store,
    embedder: Embedder | None,
    folder: RunFolder,
    events: Sequence[Event],
    items: Sequence[Item],
) -> MemoryKept:
    from suture.storage.memory.memory_store import count_use, evict_useless, keep

    counts = keep(store, items, embedder)
    recalled, ended = last_of(events, MemoryRecalled), last_of(events, RunFinished)
    if recalled is not None and ended is not None:
        healed = ended.outcome == "healed"
        for one in recalled.found:
            count_use(store, one.table, one.key, folder.id, shown=one.arm == "shown", healed=healed)
            if one.placebo:
                keep(store, [_placebo(one.placebo)], None)
                count_use(store, "lessons", _placebo(one.placebo).key, folder.id, shown=True, healed=healed)
        evict_useless(store, [(one.table, one.key) for one in recalled.found])
    return MemoryKept(failures=counts["failures"], patterns=counts["patterns"], lessons=counts["lessons"])


def learn_again(
    store: Store,
    embedder: Embedder | None,
    runs: Iterable[RunFolder],
    *,
    kept_alone: bool,
    on_fault: Callable[[str], None],
) -> dict[str, int]:
    """Make memories of runs that have ended; what is known already stays as it is.

    Args:
        store: The database.
        embedder: Makes vectors; without one memories are found by their words.
        runs: Their folders.
        kept_alone: Whether only runs count that left memories when they ended.
        on_fault: Is told of a run that cannot be read.

    Returns:
        How many `runs` were read, and how many `failures`, `patterns` and `lessons` they taught.

    Raises:
        StorageError: The database failed.
        ModelError: The embedder failed.
    """
    counts = dict.fromkeys(("runs", *TABLES), 0)
    for folder in runs:
        try:
            events = read_ledger(folder.ledger_path).events
            items = items_of(folder, events)
        except StorageError as fault:
            on_fault(f"run {folder.id} is passed over: {fault}")
            continue
        if kept_alone and last_of(events, MemoryKept) is None:
            continue
        kept = _learned(store, embedder, folder, events, items)
        counts["runs"] += 1
        for name in TABLES:
            counts[name] += getattr(kept, name)
    return counts


def _opened(settings: Settings) -> Store:
    from suture.storage.database.store import store_of

    return store_of(settings)


def _embedder_of(settings: Settings, store: Store) -> Embedder | None:
    """The embedder; where memories have vectors of another, the first of them get its own."""
    from suture.storage.memory.memory_store import embed_anew

    embedder = open_embedder(settings)
    if embedder is not None:
        embed_anew(store, embedder, most=MOST_EMBEDDED)
    return embedder


def _asked(
    store: Store,
    embedder: Embedder | None,
    clues: Sequence[FailureClue],
    tables: Sequence[TableName],
    language: str,
) -> list[Found]:
    from suture.storage.memory.recall import recall

    best: dict[str, Found] = {}
    for clue in clues:
        for one in recall(
            store,
            clue.searched,
            embedder,
            tables=tables,
            language=language,
            mended=True,
            limit=VOTERS,
            meaning=clue.meaning,
        ):
            if one.score > (best[one.item.key].score if one.item.key in best else 0.0):
                best[one.item.key] = one
    return sorted(best.values(), key=lambda one: (-one.score, -one.likeness, one.item.key))[:VOTERS]


def _drawn(found: Found, rank: int, settings: Settings) -> RecalledMemory:
    """What chance does with a memory, and what prompts are told of it."""
    knobs, item = settings.memory, found.item
    arm = arm_of(
        item.key,
        item.recalled + item.withheld,
        seed=knobs.seed,
        withheld=knobs.withheld,
        placebo=knobs.placebo,
    )
    is_told = knobs.use in ("prompts", "on") and rank < knobs.most
    told, placebo = "", ""
    if is_told and arm != "withheld":
        told = item.text[: knobs.chars]
        if arm == "placebo":
            number, told = placebo_for(told, item.key)
            placebo = str(number)
    return RecalledMemory(
        key=item.key,
        table=item.table,
        arm=arm,
        told=f"{TOLD}{told}" if told else "",
        score=round(found.score, 5),
        operators=item.operators,
        placebo=placebo,
    )


def _factors(found: Sequence[Found], drawn: Sequence[RecalledMemory]) -> dict[str, float]:
    """The prior on the search's order; a memory that is held back has no vote."""
    best = found[0].score if found else 1.0
    votes: dict[str, tuple[tuple[str, ...], float]] = {}
    for one, what in zip(found, drawn, strict=True):
        if what.arm == "shown" and one.item.operators:  # several failures of one run are one mend
            votes.setdefault(one.item.patch, (one.item.operators, one.score / best))
    return dict(operator_factors(votes.values()))


def _placebo(number: str) -> Item:
    return Item(table="lessons", run_id="", source="placebo", kind="placebo", text=PLACEBOS[int(number)])


MOST, LEAST = 4.0, 0.8
"""What a factor is held within: memories order a search, and take nothing out of it."""
STRENGTH = 6.0
"""Mends that the equal start counts as: a few memories move the order a little."""
OPERATORS = 40
"""About how many operators there are; before anything is known each is as likely."""


def operator_factors(mended: Iterable[tuple[tuple[str, ...], float]]) -> Mapping[str, float]:
    """Operator -> how much likelier its changes are taken for; those never seen are not in it.

    The shares are those of a Dirichlet distribution over the operators with an even start, divided by the
    even share.

    Args:
        mended: Operators that mended a failure like this, and how like it was, in [0, 1].
    """
    weights: Counter[str] = Counter()
    for operators, weight in mended:
        for operator in operators:
            weights[operator] += weight / len(operators)  # type: ignore[assignment]  # a Counter of floats
    total = sum(weights.values())
    if not total:
        return {}
    even = 1 / OPERATORS
    return {
        operator: round(min(MOST, max(LEAST, (weight + STRENGTH * even) / (total + STRENGTH) / even)), 3)
        for operator, weight in sorted(weights.items())
    }
