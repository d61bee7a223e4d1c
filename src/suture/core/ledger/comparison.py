"""Did two runs go the same way? Their ledgers side by side, without what no two runs share."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from suture.core.ledger.event import Event, encode_payload
from suture.core.ledger.kinds import (
    BudgetRefused,
    CertificateWritten,
    ReviewAsked,
    RunPaused,
    RunResumed,
    SearchFinished,
)
from suture.core.ledger.reading import FINAL_EVENT_KINDS, read_ledger
from suture.core.ledger.run_folder import RunFolder
from suture.core.ledger.run_state import drop_superseded_ends

VOLATILE = (
    (re.compile(r"\bat 0x[0-9a-fA-F]{4,16}\b"), "at 0x0"),  # the default repr of an object
    (re.compile(r"\bin \d+\.\d+ ?s\b"), "in 0s"),  # the last line of pytest, and of unittest
    (re.compile(r"\b\d+\.\d+s (?=call|setup|teardown)"), "0s "),  # pytest --durations
    (re.compile(r"/tmp/tmp[a-z0-9_]{8}\b"), "/tmp/tmp"),  # the folders of `tempfile`
)

BOOKKEEPING = (
    *(RunResumed.event_kind, RunPaused.event_kind, ReviewAsked.event_kind, CertificateWritten.event_kind),
    *(SearchFinished.event_kind, BudgetRefused.event_kind),
)
"""How far a search or a proof got is a matter of time; what came of it are candidates, which are compared."""

TIMES = {"time_s", "seconds", "wall_s"}
USAGE = {
    *("tokens", "prompt_tokens", "completion_tokens", "cached_tokens", "model_calls", "unpriced_calls"),
    *("money", "spend", "retries", "priced"),
}
NAMES = {"act", "most", "run_id", "reservation", "replayed", "replays", "forks", "from_run"}
SURROUNDINGS = {"settings", "project", "interpreter", "python", "python_origin", "toolchain"}
"""Where it ran; the verdicts say whether that made a difference."""
LEFT_OUT = frozenset(TIMES | USAGE | NAMES | SURROUNDINGS)
RESOLVED = ("verdict", "result")
"""Blobs that hold times: compared by what they say, not by their hash."""


def normalise_text(text: str) -> str:
    """The text with addresses of objects, durations of test runs and names of temporary folders made alike.

    It is for comparing and for naming calls, never for showing.
    """
    for pattern, alike in VOLATILE:
        text = pattern.sub(alike, text)
    return text


@dataclass(frozen=True, kw_only=True)
class Divergence:
    """The first place where two runs part.

    Attributes:
        position: Place in the order of comparison, from 0.
        kind: The event's kind, in the first run or, where that has no more events, in the second.
        field: What differs, such as `passed` or `result.outcome`; empty where the events are of two kinds.
        first: The value in the first run, as JSON; empty where it has none.
        second: The value in the second run.
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
    """The first difference between two runs, or `None` where they went the same way.

    Events are ordered by (step, branch, part, seq): the branches of a round run at the same time, so in which
    order their events came is chance. Times, usage, run ids and the machine's paths are left out, and
    verdicts and results are compared by what they say.

    Raises:
        StorageError: A ledger or a blob cannot be read.
    """
    pairs = zip_longest(_told(first), _told(second))
    for position, (one, two) in enumerate(pairs):
        if one != two:
            return _difference(position, one, two)
    return None


Told = tuple[str, Mapping[str, Any]]


def _told(run: RunFolder) -> Iterator[Told]:
    for event in _ordered(_part_of_the_run(read_ledger(run.ledger_path).events)):
        said = {**event.data, **encode_payload(event.payload)}  # what one ledger leaves out another may say
        yield event.kind, {key: _steady(key, value, run) for key, value in _kept(said)}


def _part_of_the_run(events: Iterable[Event]) -> Iterator[Event]:
    for event in drop_superseded_ends(events):
        if event.kind not in BOOKKEEPING:
            yield event
        if event.kind in FINAL_EVENT_KINDS:  # a change that the user had applied is no part of the run
            return


def _ordered(events: Iterable[Event]) -> list[Event]:
    """By (step, branch, part, seq). An event of no branch stays where it is, after what came before it."""
    keyed: list[tuple[int, int, int, int, Event]] = []
    stretch = 0
    for event in events:
        if event.branch is not None:
            place = (stretch, event.branch, event.part or 0)
            keyed.append((*place, event.seq, event))
        else:
            keyed.append((stretch + 1, 0, 0, event.seq, event))
            stretch += 2
    return [event for *_, event in sorted(keyed, key=lambda entry: entry[:4])]


def _kept(data: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((key, value) for key, value in data.items() if key not in LEFT_OUT)


def _steady(key: str, value: Any, run: RunFolder) -> Any:
    if key in RESOLVED and value and isinstance(value, str):
        value = run.get_json(value)
    if isinstance(value, Mapping):
        return {name: _steady("", inner, run) for name, inner in _kept(value)}
    if isinstance(value, list):
        return [_steady("", inner, run) for inner in value]
    return normalise_text(value) if isinstance(value, str) else value


def _difference(position: int, one: Told | None, two: Told | None) -> Divergence:
    if one is None or two is None or one[0] != two[0]:
        present = one or two
        assert present is not None  # zip_longest pads only one of the two
        return Divergence(
            position=position,
            kind=present[0],
            field="",
            first=one[0] if one else "",
            second=two[0] if two else "",
        )
    field, left, right = _first_unequal("", one[1], two[1])
    return Divergence(position=position, kind=one[0], field=field, first=_shown(left), second=_shown(right))


def _first_unequal(where: str, one: Any, two: Any) -> tuple[str, Any, Any]:
    """Where two unequal values part, as deep inside as can be told."""
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        for key in sorted(one.keys() | two.keys()):
            if one.get(key) != two.get(key):
                return _first_unequal(f"{where}.{key}".lstrip("."), one.get(key), two.get(key))
    if isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        for number, (left, right) in enumerate(zip(one, two, strict=True)):
            if left != right:
                return _first_unequal(f"{where}[{number}]", left, right)
    return where, one, two


def _shown(value: Any) -> str:
    return "" if value is None else json.dumps(value, sort_keys=True)
