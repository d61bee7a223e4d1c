"""The memory item: one record for failures, patterns and lessons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

from suture.core.records import content_hash
from suture.storage.memory.secret_scrubbing import scrub_secrets
from suture.storage.tuning import MAX_PATCH_CHARS, MAX_SEARCH_TEXT_CHARS, MAX_TEXT_CHARS

MemorySource = Literal["run", "import"]
MemoryState = Literal["active", "forgotten"]
MemoryTableName = Literal["failures", "patterns", "lessons"]
MEMORY_TABLE_NAMES: tuple[MemoryTableName, ...] = ("failures", "patterns", "lessons")
SCRUBBED_FIELDS = (
    "text",
    "error_signature",
    "counterexample",
    "diagnosis",
    "code_shape",
    "patch",
    "tests",
    "search_text",
)


@dataclass(frozen=True, kw_only=True)
class MemoryItem:
    """Something remembered across runs; its fields are the columns of its table.

    Attributes:
        run_id: The run that contributed it first.
        event_seq: Number of the event there that it comes from.
        state: `active`, or `forgotten` on a person's request.
        kind: Kind of the error, as `fingerprints.error_class` returns it, or of the task.
        text: Shown to people and models.
        error_signature: See `fingerprints.error_signature`.
        counterexample: The call, and the expected and actual values.
        code_shape: Kinds of syntax nodes around the failure.
        patch: The change that repaired the failure, or the code that solved the task.
        tests: Ids or sources of the tests that passed.
        repaired: Whether the run healed.
        created_s: Creation time in seconds since the epoch.
        recalled: How often it was shown.
        healed_recalled: How many of the runs that saw it were healed.
        details: `runs` whose uses were counted.
    """

    table: MemoryTableName
    run_id: str
    event_seq: int = 0
    source: MemorySource = "run"
    state: MemoryState = "active"
    language: str = "python"
    kind: str = ""
    text: str = ""
    error_signature: str = ""
    counterexample: str = ""
    diagnosis: str = ""
    code_shape: str = ""
    patch: str = ""
    tests: str = ""
    repaired: bool = False
    created_s: float = 0.0
    recalled: int = 0
    healed_recalled: int = 0
    details: Mapping[str, Any] = field(default_factory=dict)
    search_text: str = ""

    @property
    def key(self) -> str:
        """Return a hash of the content: what two runs contribute alike is one item."""
        content = (self.language, self.kind, self.text, self.error_signature, self.patch)
        return content_hash([self.table, *content])

    @property
    def runs(self) -> tuple[str, ...]:
        """Return the runs whose uses were counted."""
        values = self.details.get("runs", ())  # an imported item may hold anything there
        return tuple(str(value) for value in values) if isinstance(values, (list, tuple)) else ()


def sanitise_item(item: MemoryItem) -> MemoryItem:
    """Return the item as it may be stored: without secrets, and with bounded texts."""
    scrubbed: dict[str, Any] = {name: scrub_secrets(getattr(item, name)) for name in SCRUBBED_FIELDS}
    scrubbed["patch"] = scrubbed["patch"][:MAX_PATCH_CHARS]
    scrubbed["search_text"] = scrubbed["search_text"][:MAX_SEARCH_TEXT_CHARS]
    for name in ("text", "counterexample", "diagnosis", "tests"):
        scrubbed[name] = scrubbed[name][:MAX_TEXT_CHARS]
    return replace(item, **scrubbed)


def item_to_plain(item: MemoryItem) -> dict[str, Any]:
    """Return an item as JSON values, with its key."""
    return {"key": item.key, **{column.name: getattr(item, column.name) for column in fields(item)}}


def parse_item(plain: Mapping[str, Any]) -> MemoryItem:
    """Parse JSON values into an item; raise `ValueError` if they are none.

    Unknown names are ignored, and the key is computed again.
    """
    names = {column.name for column in fields(MemoryItem)}
    values = {name: value for name, value in plain.items() if name in names}
    if values.get("table") not in MEMORY_TABLE_NAMES or not isinstance(values.get("run_id"), str):
        raise ValueError("it has no memory table, or no run")
    if values.get("source", "run") not in get_args(MemorySource):
        raise ValueError("it has an unknown source")
    if values.get("state", "active") not in get_args(MemoryState):
        raise ValueError("it has an unknown state")
    sample = MemoryItem(table="failures", run_id="")  # its values have the types that are required
    for name, value in values.items():
        cls = type(getattr(sample, name))
        has_type = isinstance(value, (int, float)) if cls is float else isinstance(value, cls)
        if not has_type or (cls is not bool and isinstance(value, bool)):
            raise ValueError(f"{name!r} has the wrong type")
        if cls is int and not 0 <= value < 2**53:  # up to there every JSON reader keeps integers exact
            raise ValueError(f"{name!r} is out of range")
    return MemoryItem(**values)
