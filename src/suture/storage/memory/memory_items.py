"""What is remembered: one record for failures, patterns and lessons alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from suture.core.records import content_hash
from suture.storage.memory.secret_scrubbing import scrub

TableName = Literal["failures", "patterns", "lessons"]
TABLES: tuple[TableName, ...] = ("failures", "patterns", "lessons")
MOST_PATCH_CHARS = 4000
MOST_TEXT_CHARS = 1200
MOST_SEARCHED_CHARS = 3000
MOST_RUNS = 200
"""Runs by which the uses of one memory are known: what is older is not counted twice either, as no run is
carried in after so many others."""
SCRUBBED = (
    "text",
    "error_signature",
    "counterexample",
    "diagnosis",
    "code_shape",
    "patch",
    "tests",
    "searched",
)


@dataclass(frozen=True, kw_only=True)
class Item:
    """Something that is remembered across runs; its fields are the columns of its table.

    Attributes:
        table: Which it is.
        run_id: The run that taught it first.
        event_seq: Number of the event there that it comes from.
        source: `run`, `import` or `placebo`.
        state: `active`, `evicted` as it did not help, or `forgotten` as a person wished.
        language: Of the code.
        kind: Of the error, as `memory.signature.kind_of` names it, or of the task.
        text: What a person or a model is told.
        error_signature: See `memory.signature.signature`.
        counterexample: What was called, wanted and got.
        diagnosis: What a debugger said of it.
        code_shape: Kinds of syntax around the failure.
        patch: The change that mended it, or the code that solved the task.
        tests: Ids or sources of the tests that guarded it.
        mended: Whether the run ended well.
        created_s: When, in seconds since the epoch.
        recalled: How often it was shown.
        withheld: How often it was found and held back.
        healed_recalled: How many of the runs that it was shown to ended well.
        healed_withheld: The same of those that did not see it.
        details: `operators` that mended it; `runs` that its uses were counted of.
        searched: The text that it is found by.
    """

    table: TableName
    run_id: str
    event_seq: int = 0
    source: str = "run"
    state: str = "active"
    language: str = "python"
    kind: str = ""
    text: str = ""
    error_signature: str = ""
    counterexample: str = ""
    diagnosis: str = ""
    code_shape: str = ""
    patch: str = ""
    tests: str = ""
    mended: bool = False
    created_s: float = 0.0
    recalled: int = 0
    withheld: int = 0
    healed_recalled: int = 0
    healed_withheld: int = 0
    details: Mapping[str, Any] = field(default_factory=dict)
    searched: str = ""

    @property
    def key(self) -> str:
        """Hash of what it says: what two runs taught alike is one memory."""
        said = (self.language, self.kind, self.text, self.error_signature, self.patch)
        return content_hash([self.table, *said])

    @property
    def operators(self) -> tuple[str, ...]:
        """Operators of the search that mended it; none where a model did."""
        named = self.details.get("operators", ())
        return tuple(str(one) for one in named) if isinstance(named, (list, tuple)) else ()

    @property
    def runs(self) -> tuple[str, ...]:
        """Runs that its uses were counted of."""
        named = self.details.get("runs", ())
        return tuple(str(one) for one in named) if isinstance(named, (list, tuple)) else ()


def bounded(item: Item) -> Item:
    """The item as it may be stored: without secrets, and not too long."""
    scrubbed: dict[str, Any] = {name: scrub(getattr(item, name)) for name in SCRUBBED}
    scrubbed["patch"] = scrubbed["patch"][:MOST_PATCH_CHARS]
    scrubbed["searched"] = scrubbed["searched"][:MOST_SEARCHED_CHARS]
    for name in ("text", "counterexample", "diagnosis", "tests"):
        scrubbed[name] = scrubbed[name][:MOST_TEXT_CHARS]
    return replace(item, **scrubbed)


def item_as_plain(item: Item) -> dict[str, Any]:
    """JSON values, and its key."""
    return {"key": item.key, **{one.name: getattr(item, one.name) for one in fields(item)}}


def item_of_plain(plain: Mapping[str, Any]) -> Item:
    """The item of such values; its key is computed anew.

    Raises:
        ValueError: They are no item's.
    """
    known = {one.name: one for one in fields(Item)}
    given = {name: value for name, value in plain.items() if name in known}
    if given.get("table") not in TABLES or not isinstance(given.get("run_id"), str):
        raise ValueError("it names no table of memories, or no run")
    sample = Item(table="failures", run_id="")
    for name, value in given.items():
        wanted = type(getattr(sample, name))
        fits = isinstance(value, (int, float)) if wanted is float else isinstance(value, wanted)
        if not fits or (wanted is not bool and isinstance(value, bool)):
            raise ValueError(f"{name!r} is of another type")
        if wanted is int and not 0 <= value < 2**53:
            raise ValueError(f"{name!r} is out of range")
    return Item(**given)
