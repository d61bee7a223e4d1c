"""One line of a ledger: what happened when, in which run, and what there is to say of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import suture.core.ledger.kinds  # noqa: F401  # declares every kind
from suture.core.ledger.payload import Payload, RawPayload, data_of, payload_of

PayloadT = TypeVar("PayloadT", bound=Payload)

PLACE = ("step", "branch", "part")
"""Of every event that a branch of a round wrote."""
SHORT_CHARS = 200
LATEST_S = 250_000_000_000
"""The year 9892: later times, and nan, no calendar of Python's can tell."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """One line of a ledger.

    Attributes:
        seq: Position in the ledger, from 0.
        time_s: Seconds since the epoch.
        kind: What happened, such as `candidate.proposed` (see docs/events.md).
        data: JSON values as they lie on disk; `payload` is what they say.
        run: The run whose ledger it stands in; empty where it was read from no run's folder.
        version: Of the kind's form.
    """

    seq: int
    time_s: float
    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)
    run: str = ""
    version: int = 1

    @cached_property
    def payload(self) -> Payload:
        """What it says; a `RawPayload` where this version of Suture does not know."""
        try:
            return payload_of(self.kind, self.data, self.version)
        except ValueError:
            return RawPayload(kind=self.kind, data=self.data, version=self.version)

    @property
    def step(self) -> int | None:
        """The round that it was written in, by one of several branches."""
        return self._place("step")

    @property
    def branch(self) -> int | None:
        """Number of that branch; of a hand-over the field of that name is git's, and no place in the run."""
        return self._place("branch")

    @property
    def part(self) -> int | None:
        """Number of the part of that branch, from 1."""
        return self._place("part")

    def _place(self, name: str) -> int | None:
        found = self.data.get(name)
        return found if type(found) is int else None


def first_of(events: Iterable[Event], cls: type[PayloadT]) -> PayloadT | None:
    """What the first event of a kind says; `None` where there is none."""
    return next((payload for _, payload in those_of(events, cls)), None)


def last_of(events: Iterable[Event], cls: type[PayloadT]) -> PayloadT | None:
    """What the last event of a kind says; `None` where there is none."""
    found = None
    for _, payload in those_of(events, cls):
        found = payload
    return found


def those_of(events: Iterable[Event], cls: type[PayloadT]) -> Iterator[tuple[Event, PayloadT]]:
    """The events of a kind, each with what it says; those that this version cannot read are passed over."""
    for event in events:
        if isinstance(event.payload, cls):
            yield event, event.payload


def event_as_json(event: Event) -> dict[str, Any]:
    """An event as a JSON value, as it lies on disk."""
    fields = {"seq": event.seq, "time_s": event.time_s, "kind": event.kind, "data": dict(event.data)}
    return fields if event.version == 1 else {**fields, "version": event.version}


def event_in_short(event: Event) -> str:
    """Its kind and the beginning of its data: for an event that nobody can say more of."""
    text = json.dumps(dict(event.data), default=str) if event.data else ""
    short = text if len(text) <= SHORT_CHARS else f"{text[:SHORT_CHARS]}..."
    return f"{event.kind} {short}".rstrip()


def written_event(payload: Payload, *, seq: int, time_s: float, place: Mapping[str, int], run: str) -> Event:
    """An event that is about to be written.

    Args:
        payload: What it says.
        seq: Its position.
        time_s: Seconds since the epoch.
        place: Its place among what other branches of a round write.
        run: The run's id.
    """
    if isinstance(payload, RawPayload):
        kind, version = payload.kind, payload.version
    else:
        kind, version = payload.event_kind, payload.event_version
    data = {**place, **data_of(payload)}
    return Event(seq=seq, time_s=time_s, kind=kind, data=data, run=run, version=version)


def parsed_event(line: Any, run: str) -> Event | None:
    """The event of a line's JSON value; `None` where it is no event.

    Raises:
        ValueError: It has a field of another type than Suture writes.
    """
    if not isinstance(line, Mapping) or not {"seq", "time_s", "kind"} <= line.keys():
        return None
    event = Event(
        seq=line["seq"],
        time_s=line["time_s"],
        kind=line["kind"],
        data=line.get("data", {}),
        run=run,
        version=line.get("version", 1),
    )
    whole = (("seq", int), ("time_s", (int, float)), ("kind", str), ("data", Mapping), ("version", int))
    for name, wanted in whole:
        _require(name, getattr(event, name), wanted)
    if not abs(event.time_s) <= LATEST_S:
        raise ValueError(f"'time_s' is {event.time_s!r:.60}")
    payload = payload_of(event.kind, event.data, event.version)
    vars(event)["payload"] = payload  # where the cached property would keep it: it is worked out once
    for name in PLACE:
        if event.data.get(name) is not None and name not in payload.__dataclass_fields__:
            _require(f"{name} of {event.kind}", event.data[name], int)
    return event


def _require(name: str, value: object, wanted: Any) -> None:
    if not isinstance(value, wanted) or isinstance(value, bool):
        raise ValueError(f"{name!r} is {value!r:.60}")
