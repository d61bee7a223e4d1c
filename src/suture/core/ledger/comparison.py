"""Compare two runs: find the first difference between their ledgers that a repetition cannot explain.

Times, usage, ids and the machine differ between any two runs, so they are ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from suture.core.ledger.event import Event
from suture.core.ledger.kinds import (
    BudgetRefused,
    CertificateWritten,
    ReviewAsked,
    RunPaused,
    RunResumed,
    SandboxSubstituted,
    SearchFinished,
)
from suture.core.ledger.reading import FINAL_EVENT_KINDS, read_ledger
from suture.core.ledger.run_folder import RunFolder
from suture.core.ledger.run_state import drop_superseded_ends

VOLATILE_TEXT = (
    (re.compile(r"\bat 0x[0-9a-fA-F]{4,16}\b"), "at 0x0"),  # the default repr of an object
    (re.compile(r"\bin \d+\.\d+ ?s\b"), "in 0s"),  # the last line of pytest, and of unittest
    (re.compile(r"\b\d+\.\d+s (?=call|setup|teardown)"), "0s "),  # pytest --durations
    (re.compile(r"/tmp/tmp[a-z0-9_]{8}\b"), "/tmp/tmp"),  # the folders of `tempfile`
)

IGNORED_KINDS = (
    RunResumed.event_kind,
    SandboxSubstituted.event_kind,
    RunPaused.event_kind,
    ReviewAsked.event_kind,
    CertificateWritten.event_kind,
    SearchFinished.event_kind,
    BudgetRefused.event_kind,
)
"""Kinds of events that are not compared.

How far a search or a certification gets depends on the machine's speed. What results from it are candidates,
which are compared."""

TIME_KEYS = {"time_s", "seconds", "wall_s", "preparation_s"}
# Replies that are replayed cost nothing, so usage depends on how the run was repeated.
USAGE_KEYS = {
    "tokens",
    "prompt_tokens",
    "completion_tokens",
    "cached_tokens",
    "model_calls",
    "unpriced_calls",
    "money",
    "spend",
    "retries",
    "priced",
}
# Ids, and what says how a call was found again. `max_reply_tokens` depends on the remaining budget.
IDENTITY_KEYS = {
    "act",
    "max_reply_tokens",
    "run_id",
    "reservation",
    "replayed",
    "replayed_run",
    "fork",
    "from_run",
}
ENVIRONMENT_KEYS = {"settings", "project", "interpreter", "python", "python_origin", "toolchain"}
"""Keys of where the run took place. The verdicts show whether that made a difference."""
IGNORED_KEYS = frozenset(TIME_KEYS | USAGE_KEYS | IDENTITY_KEYS | ENVIRONMENT_KEYS)
BLOB_KEYS = ("verdict", "result", "judgement")
"""Keys of blobs that contain times. Their content is compared, not their hash, after times are removed."""


def normalise_text(text: str) -> str:
    """Return a string with fixed values for object addresses, test durations and names of temporary folders.

    The result is used to compare strings and to hash model calls, never for display.
    """
    for pattern, replacement in VOLATILE_TEXT:
        text = pattern.sub(replacement, text)
    return text


@dataclass(frozen=True, kw_only=True)
class Divergence:
    """The first difference between two runs.

    Attributes:
        position: Position in the order of comparison, from 0.
        kind: Kind of the event in the first run. If the first run has no more events, the kind of the event
            in the second run.
        field: What differs, such as `passed` or `result.outcome`; empty if the events have different kinds.
        first: The value in the first run, as JSON; empty if it has none.
        second: The same for the second run.
    """

    position: int
    kind: str
    field: str
    first: str
    second: str

    def __str__(self) -> str:
        where = f"event {self.position}, {self.kind}" + (f", {self.field}" if self.field else "")
        return f"{where}: {self.first or 'nothing'} | {self.second or 'nothing'}"


def compare_runs(first: RunFolder, second: RunFolder) -> Divergence | None:
    """Return the first difference between two runs, or `None` if there is none.

    Events are compared in the order of (step, branch, part, seq), because parallel branches write in any
    order. Times, usage, run ids and the machine's paths are ignored, and verdicts and results are compared
    by content.

    Raises:
        StorageError: A ledger or a blob cannot be read.
    """
    pairs = zip_longest(_comparable_events(first), _comparable_events(second))
    for position, (first_event, second_event) in enumerate(pairs):
        if first_event != second_event:
            return _describe_difference(position, first_event, second_event)
    return None


ComparableEvent = tuple[str, Mapping[str, Any]]
"""(kind of an event, its normalised data)."""


def _comparable_events(run: RunFolder) -> Iterator[ComparableEvent]:
    for event in _sort_events(_select_events(read_ledger(run.ledger_path).events)):
        yield event.kind, {key: _normalise(key, value, run) for key, value in _without_ignored(event.data)}


def _select_events(events: Iterable[Event]) -> Iterator[Event]:
    for event in drop_superseded_ends(events):
        if event.kind not in IGNORED_KINDS:
            yield event
        if event.kind in FINAL_EVENT_KINDS:  # what follows, such as applying the change, is not the run's
            return


def _sort_events(events: Iterable[Event]) -> list[Event]:
    """Return events sorted by (step, branch, part, seq).

    An event outside of branches divides the ledger into sections: branches are sorted only within one.
    """
    keyed: list[tuple[int, int, int, int, Event]] = []
    section = 0
    for event in events:
        if event.branch is not None:
            keyed.append((section, event.branch, event.part or 0, event.seq, event))
        else:
            keyed.append((section + 1, 0, 0, event.seq, event))
            section += 2
    return [event for *_, event in sorted(keyed, key=lambda entry: entry[:4])]


def _without_ignored(data: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((key, value) for key, value in data.items() if key not in IGNORED_KEYS)


def _normalise(key: str, value: Any, run: RunFolder) -> Any:
    # Only keys of the event itself name blobs, so values inside it are normalised with an empty key.
    if key in BLOB_KEYS and value and isinstance(value, str):
        value = run.load_json(value)
    if isinstance(value, Mapping):
        return {name: _normalise("", inner, run) for name, inner in _without_ignored(value)}
    if isinstance(value, list):
        return [_normalise("", inner, run) for inner in value]
    return normalise_text(value) if isinstance(value, str) else value


def _describe_difference(
    position: int, first: ComparableEvent | None, second: ComparableEvent | None
) -> Divergence:
    first_kind, first_data = first or ("", {})
    second_kind, second_data = second or ("", {})
    if first is None or second is None or first_kind != second_kind:
        return Divergence(
            position=position,
            kind=first_kind or second_kind,
            field="",
            first=first_kind,
            second=second_kind,
        )
    field, first_value, second_value = _first_unequal("", first_data, second_data)
    return Divergence(
        position=position,
        kind=first_kind,
        field=field,
        first=_render_json(first_value),
        second=_render_json(second_value),
    )


def _first_unequal(path: str, first: Any, second: Any) -> tuple[str, Any, Any]:
    """Return the innermost difference between two unequal values: (path to it, first value, second value)."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        for key in sorted(first.keys() | second.keys()):
            if first.get(key) != second.get(key):
                return _first_unequal(f"{path}.{key}".lstrip("."), first.get(key), second.get(key))
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for number, (first_item, second_item) in enumerate(zip(first, second, strict=True)):
            if first_item != second_item:
                return _first_unequal(f"{path}[{number}]", first_item, second_item)
    return path, first, second


def _render_json(value: Any) -> str:
    return "" if value is None else json.dumps(value, sort_keys=True)
