"""The memory item: one record for failures, patterns and lessons."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from suture.core.records import content_hash
from suture.storage.memory.secret_scrubbing import scrub_secrets
from suture.storage.tuning import MAX_PATCH_CHARS, MAX_SEARCH_TEXT_CHARS, MAX_TEXT_CHARS

MemoryState = Literal["active", "forgotten"]
MemoryTableName = Literal["failures", "patterns", "lessons"]
MEMORY_TABLE_NAMES: tuple[MemoryTableName, ...] = ("failures", "patterns", "lessons")
TEXT_LIMITS: Mapping[str, int | None] = {
    "text": MAX_TEXT_CHARS,
    "error_signature": None,
    "counterexample": MAX_TEXT_CHARS,
    "diagnosis": MAX_TEXT_CHARS,
    "code_shape": None,
    "patch": MAX_PATCH_CHARS,
    "tests": MAX_TEXT_CHARS,
    "search_text": MAX_SEARCH_TEXT_CHARS,
}
"""Fields from which secrets are removed -> the length at which they are cut; `None` where they are short."""


@dataclass(frozen=True, kw_only=True)
class MemoryItem:
    """Something remembered across runs; its fields are the columns of its table.

    Attributes:
        run_id: The run that contributed it first.
        state: `active`, or `forgotten` on a person's request.
        kind: Kind of the error, as `fingerprints.error_class` returns it, or of the task.
        text: Shown to people and models.
        error_signature: See `fingerprints.error_signature`.
        counterexample: The call, and the expected and actual values.
        code_shape: Kinds of syntax nodes of the failing function.
        patch: The change that repaired the failure, or the code that solved the task.
        tests: Ids or sources of the tests that passed.
        repaired: Whether the run healed.
        created_s: Creation time in seconds since the epoch.
        search_text: What a pattern or a lesson is found by.
    """

    table: MemoryTableName
    run_id: str
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
    search_text: str = ""

    @property
    def key(self) -> str:
        """Return a hash of the content: equal contributions of two runs are one item."""
        content = (self.language, self.kind, self.text, self.error_signature, self.patch)
        return content_hash([self.table, *content])


def sanitise_item(item: MemoryItem) -> MemoryItem:
    """Return the item as it may be stored: without secrets, and with strings of bounded length."""
    texts: dict[str, Any] = {
        name: scrub_secrets(getattr(item, name))[:max_chars] for name, max_chars in TEXT_LIMITS.items()
    }
    return replace(item, **texts)


def item_to_plain(item: MemoryItem) -> dict[str, Any]:
    """Return an item as JSON values, with its key."""
    return {"key": item.key, **asdict(item)}


def parse_item(plain: Mapping[str, Any]) -> MemoryItem:
    """Parse JSON values into an item; raise `ValueError` if they are not an item.

    Unknown names are ignored, and the key is computed again.
    """
    try:
        # A strict parser takes an object only from JSON; a lax one would take "yes" for a Boolean.
        return _item_parser().validate_json(json.dumps(plain, allow_nan=False), strict=True)
    except ValidationError as fault:
        first = fault.errors()[0]
        # Text that is not JSON for Pydantic, such as half a pair of surrogates, has no location.
        field = f"{first['loc'][-1]!r}: " if first["loc"] else ""
        raise ValueError(f"{field}{first['msg']}") from fault


@cache
def _item_parser() -> TypeAdapter[MemoryItem]:
    return TypeAdapter(MemoryItem)
