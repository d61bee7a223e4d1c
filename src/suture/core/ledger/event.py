"""Events: the lines of a ledger, and the base class of what they report.

An event has a number, a time, a kind and a payload. The payload is what it reports. Each kind of event has its
own payload class, a subclass of `Payload` in `ledger/kinds/`, whose fields are the keys of `data` on disk.

A field may be added to a kind at any time if it has a default. Any other change needs the kind's next version.
A reader keeps an event of an unknown kind or of a newer version as a `RawPayload`, and does not interpret it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from functools import cached_property
from math import isfinite
from typing import Any, ClassVar, TypeVar, dataclass_transform

from suture.core.codec import WrongTypeError, decode_record, encode_record
from suture.core.tuning import MAX_BUDGET_NUMBER, MAX_EVENT_TIME_S, MAX_SUMMARY_CHARS

POSITION = ("step", "branch", "part")
"""Keys that are added to the data of an event if one of several parallel branches of a round wrote it."""
CATALOGUE: dict[str, type[Payload]] = {}
"""Kind of event -> its payload class, in the order of declaration."""


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class Payload:
    """Base class of what the kinds of events report. Each subclass becomes a frozen, keyword-only dataclass.

    Args:
        kind: The kind's name on disk, which is the class name in words: `RunStarted` is `run.started`. A
            subclass without a kind is not a kind itself; it only shares its fields with its subclasses.
        version: The version of the kind's format.
        counted: Whether the budget is computed from it. An event that cannot be decoded is then an error,
            and is never kept as a `RawPayload`.
    """

    event_kind: ClassVar[str] = ""
    event_version: ClassVar[int] = 1
    event_counted: ClassVar[bool] = False
    __test__: ClassVar[bool] = False  # pytest must not collect `TestsWritten`
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init_subclass__(cls, *, kind: str = "", version: int = 1, counted: bool = False) -> None:
        super().__init_subclass__()
        dataclass(frozen=True, kw_only=True)(cls)
        if kind:
            assert kind not in CATALOGUE, f"{kind!r} is declared twice"
            cls.event_kind, cls.event_version, cls.event_counted = kind, version, counted
            CATALOGUE[kind] = cls


class RawPayload(Payload):
    """An event that this version of Suture cannot decode, as it is on disk.

    Attributes:
        kind: The name of its kind.
        data: Its JSON values.
        version: The version of the kind's format.
    """

    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)
    version: int = 1


PayloadT = TypeVar("PayloadT", bound=Payload)


def encode_payload(payload: Payload) -> dict[str, Any]:
    """Return the JSON values of a payload, which are the `data` of an event on disk."""
    return dict(payload.data) if isinstance(payload, RawPayload) else encode_record(payload)


def decode_payload(kind: str, data: Mapping[str, Any], version: int = 1) -> Payload:
    """Return the payload that the data of an event describes.

    A missing field or an unknown code may come from a newer version of Suture: such an event becomes a
    `RawPayload`. A value of the wrong type means that the line is damaged.

    Raises:
        ValueError: The event is damaged, or the budget depends on it and it cannot be decoded.
    """
    cls = CATALOGUE.get(kind)
    if cls is None or version > cls.event_version:
        return RawPayload(kind=kind, data=data, version=version)
    try:
        payload = decode_record(cls, data)
    except WrongTypeError:
        raise
    except (ValueError, TypeError):
        if cls.event_counted:
            raise
        return RawPayload(kind=kind, data=data, version=version)
    if cls.event_counted:
        _require_countable(payload)
    return payload


def _require_countable(payload: Payload) -> None:
    """Check that the numbers of a payload can be added up."""
    for number_field in fields(payload):
        value = getattr(payload, number_field.name)
        is_too_large = isinstance(value, int) and abs(value) > MAX_BUDGET_NUMBER
        if is_too_large or (isinstance(value, float) and not isfinite(value)):
            raise ValueError(f"{type(payload).__name__}.{number_field.name} cannot be {value!r:.60}")


@dataclass(frozen=True, kw_only=True)
class Event:
    """One line of a ledger.

    Attributes:
        seq: Its position in the ledger, from 0.
        time_s: When it was written, in seconds since the epoch.
        kind: What happened, such as `candidate.proposed` (see docs/events.md).
        data: The JSON values on disk; `payload` is their decoded form.
        run: The id of the run; empty if the ledger is not in a run folder.
        version: The version of the kind's format.
    """

    seq: int
    time_s: float
    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)
    run: str = ""
    version: int = 1

    @cached_property
    def payload(self) -> Payload:
        """What the event reports; a `RawPayload` if this version of Suture cannot decode it."""
        try:
            return decode_payload(self.kind, self.data, self.version)
        except ValueError:
            return RawPayload(kind=self.kind, data=self.data, version=self.version)

    @property
    def is_copied(self) -> bool:
        """Whether a fork copied the event from another run, or a model's reply was recorded there."""
        return bool(self.data.get("from_run"))

    @property
    def step(self) -> int | None:
        """The number of the round, if one of several parallel branches wrote the event; otherwise `None`."""
        return self._position("step")

    @property
    def branch(self) -> int | None:
        """The number of that branch."""
        return self._position("branch")

    @property
    def part(self) -> int | None:
        """The number of the part within that branch, from 1."""
        return self._position("part")

    def _position(self, name: str) -> int | None:
        value = self.data.get(name)
        # In commit events, the key `branch` holds the name of a git branch, which is a string.
        return value if type(value) is int else None


def first_payload(events: Iterable[Event], cls: type[PayloadT]) -> PayloadT | None:
    """Return the payload of the first event of a kind, or `None`."""
    return next((payload for _, payload in select_events(events, cls)), None)


def last_payload(events: Iterable[Event], cls: type[PayloadT]) -> PayloadT | None:
    """Return the payload of the last event of a kind, or `None`."""
    last = None
    for _, payload in select_events(events, cls):
        last = payload
    return last


def select_events(events: Iterable[Event], cls: type[PayloadT]) -> Iterator[tuple[Event, PayloadT]]:
    """Yield the events of a kind with their payloads. Events that cannot be decoded are skipped."""
    for event in events:
        if isinstance(event.payload, cls):
            yield event, event.payload


def encode_event(event: Event) -> dict[str, Any]:
    """Return an event as the JSON value that is on disk."""
    values = {"seq": event.seq, "time_s": event.time_s, "kind": event.kind, "data": dict(event.data)}
    return values if event.version == 1 else {**values, "version": event.version}


def summarise_event(event: Event) -> str:
    """Return an event's kind and the beginning of its data, in one line.

    This serves for events of unknown kinds, of which nothing better can be said.
    """
    data = json.dumps(dict(event.data), default=str) if event.data else ""
    beginning = data if len(data) <= MAX_SUMMARY_CHARS else f"{data[:MAX_SUMMARY_CHARS]}..."
    return f"{event.kind} {beginning}".rstrip()


def create_event(
    payload: Payload, *, seq: int, time_s: float, position: Mapping[str, int], run: str
) -> Event:
    """Return the event that is to be written for a payload."""
    if isinstance(payload, RawPayload):
        kind, version = payload.kind, payload.version
    else:
        kind, version = payload.event_kind, payload.event_version
    data = {**position, **encode_payload(payload)}
    return Event(seq=seq, time_s=time_s, kind=kind, data=data, run=run, version=version)


def decode_event(line: Any, run: str) -> Event | None:
    """Return the event in a line of a ledger, or `None` if the line is not an event.

    Raises:
        ValueError: A field has a type that Suture never writes.
    """
    if not isinstance(line, Mapping) or not {"seq", "time_s", "kind"} <= line.keys():
        return None
    event = Event(
        seq=line["seq"],
        time_s=line["time_s"],
        kind=line["kind"],
        data=_with_shared_keys(line.get("data", {})),
        run=run,
        version=line.get("version", 1),
    )
    expected = (("seq", int), ("time_s", (int, float)), ("kind", str), ("data", Mapping), ("version", int))
    for name, json_type in expected:
        _require_type(name, getattr(event, name), json_type)
    if not abs(event.time_s) <= MAX_EVENT_TIME_S:
        raise ValueError(f"'time_s' is {event.time_s!r:.60}")
    payload = decode_payload(event.kind, event.data, event.version)
    vars(event)["payload"] = payload  # fill the cached property, so that nothing is decoded twice
    for name in POSITION:
        if event.data.get(name) is not None and name not in payload.__dataclass_fields__:
            _require_type(f"{name} of {event.kind}", event.data[name], int)
    return event


def _with_shared_keys(data: Any) -> Any:
    """Return the data with one copy of each key for all events: a long ledger then needs a third less memory."""
    return {sys.intern(key): value for key, value in data.items()} if type(data) is dict else data


def _require_type(name: str, value: object, json_type: Any) -> None:
    if not isinstance(value, json_type) or isinstance(value, bool):
        raise ValueError(f"{name!r} is {value!r:.60}")
