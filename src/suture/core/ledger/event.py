"""One line of a ledger: what happened when, in which run, and what there is to say of it."""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import cache, cached_property
from math import isfinite
from typing import (
    Any,
    ClassVar,
    Literal,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from suture.core.codec import restoring, to_plain

MOST_COUNTED = 10**60
"""Of anything: sums of these can still be told."""
CATALOGUE: dict[str, type[Payload]] = {}
"""Kind -> its type, in the order of their declaration."""


def if_absent(value: Any) -> Any:
    """A field that is always written, and has this value on the lines of a Suture that did not know it."""
    return field(metadata={"absent": value})


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field, if_absent))
class Payload:
    """What one kind of event says: each subclass is a frozen, keyword-only dataclass.

    Args:
        kind: Its name on disk; a class without one holds what several kinds share.
        version: Of its form; lines of a later one are passed over.
        counted: Whether the budget is counted from it: a line that lacks a field is then damaged, not
            passed over.
    """

    event_kind: ClassVar[str] = ""
    event_version: ClassVar[int] = 1
    event_counted: ClassVar[bool] = False
    __test__: ClassVar[bool] = False  # `TestsWritten` holds no tests for pytest
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init_subclass__(cls, *, kind: str = "", version: int = 1, counted: bool = False) -> None:
        super().__init_subclass__()
        dataclass(frozen=True, kw_only=True)(cls)
        if kind:
            assert kind not in CATALOGUE, f"{kind!r} is declared twice"
            cls.event_kind, cls.event_version, cls.event_counted = kind, version, counted
            CATALOGUE[kind] = cls

    @classmethod
    def modern(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """The data of a line that an older Suture wrote, in the form of now."""
        return data


class RawPayload(Payload):
    """An event as it lies on disk: of a kind or a version that is not known here, or without what it needs.

    Attributes:
        kind: Its name.
        data: JSON values.
        version: Of the kind's form.
    """

    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)
    version: int = 1


@dataclass(frozen=True, kw_only=True, eq=False)
class _Form:
    """How a field lies on disk."""

    attribute: str
    name: str
    json_types: tuple[type, ...]
    optional: bool
    restore: Callable[[Any, str], Any] | None
    """Makes its JSON value itself again; `None` where it is that already."""
    absent: Any
    """Its value where it is not there; `MISSING` where nobody can say."""
    left_out: Any
    """The value with which it is not written; `MISSING` where it always is."""


def disk_name(attribute: str) -> str:
    """What a field is called on disk: `from_` is `from`, which is no name for an attribute."""
    return attribute.removesuffix("_")


def _forms(cls: type[Payload]) -> tuple[_Form, ...]:
    known: Any = cls  # mypy does not see that a class with a hash of its own has one itself
    return _forms_once(known)


@cache
def _forms_once(cls: Any) -> tuple[_Form, ...]:
    hints = get_type_hints(cls)
    return tuple(_form(one, hints[one.name]) for one in fields(cls))


def _form(one: Field[Any], hint: Any) -> _Form:
    optional = get_origin(hint) in (Union, types.UnionType)
    default = one.default_factory() if one.default_factory is not MISSING else one.default
    inner = get_args(hint)[0] if optional else hint
    json_types = _json_types(inner)
    # A whole number where a float may be stays one, so that it is told as it was written.
    as_it_is = inner is str or (json_types[0] in (int, bool, object))
    return _Form(
        attribute=one.name,
        name=disk_name(one.name),
        json_types=json_types,
        optional=optional,
        restore=None if as_it_is else restoring(hint),
        absent=one.metadata.get("absent", default),
        left_out=default,
    )


def _json_types(hint: Any) -> tuple[type, ...]:
    """What a JSON value of this type can be."""
    origin = get_origin(hint)
    if origin is Literal or hint is str:
        return (str,)
    if origin is tuple:
        return (list,)
    if origin is Mapping or is_dataclass(hint):
        return (dict,)
    known: dict[Any, tuple[type, ...]] = {float: (int, float), int: (int,), bool: (bool,)}
    return known.get(hint, (object,))


def is_json(value: object, json_types: tuple[type, ...]) -> bool:
    """Whether a value is of one of these types; `True` is no number, nor is what no float can hold one."""
    if float in json_types and isinstance(value, int) and abs(value) > sys.float_info.max:
        return False
    return isinstance(value, json_types) and (not isinstance(value, bool) or int not in json_types)


def is_beyond_counting(value: object) -> bool:
    """Whether a value is a number that no budget can be counted with: nan, infinite, or too long to tell."""
    if isinstance(value, float):
        return not isfinite(value)
    return isinstance(value, int) and abs(value) > MOST_COUNTED


def payload_of(kind: str, data: Mapping[str, Any], version: int = 1) -> Payload:
    """What a line says.

    Args:
        kind: Its kind.
        data: JSON values.
        version: Of the kind's form, as the line says.

    Raises:
        ValueError: A field is of another type than Suture writes, or one is missing that is counted.
    """
    cls = CATALOGUE.get(kind)
    if cls is None or version > cls.event_version:
        return RawPayload(kind=kind, data=data, version=version)
    found = _found(cls, cls.modern(data))
    missing = next((form.name for form, value in found.items() if value is MISSING), "")
    if missing and cls.event_counted:
        raise ValueError(f"{kind!r} has no {missing!r}")
    try:
        if not missing:
            return cls(**{form.attribute: _restored(form, value) for form, value in found.items()})
    except (ValueError, TypeError):
        pass  # it says more than this version knows
    return RawPayload(kind=kind, data=data, version=version)


def _found(cls: type[Payload], data: Mapping[str, Any]) -> dict[_Form, Any]:
    """The JSON value of each field; `MISSING` where it is not there and nobody can say what it was."""
    found: dict[_Form, Any] = {}
    for form in _forms(cls):
        value = data.get(form.name, MISSING)
        if value is MISSING or (value is None and not form.optional):
            found[form] = form.absent
        elif (value is None or is_json(value, form.json_types)) and not (
            cls.event_counted and is_beyond_counting(value)
        ):
            found[form] = value
        else:
            raise ValueError(f"{form.name!r} of {cls.event_kind!r} is {value!r:.60}")
    return found


def _restored(form: _Form, value: Any) -> Any:
    if value is form.absent or form.restore is None:
        return value
    return form.restore(value, form.name)


def data_of(payload: Payload) -> dict[str, Any]:
    """What is written of a payload: JSON values."""
    if isinstance(payload, RawPayload):
        return dict(payload.data)
    return {
        form.name: value
        for form, value in _plain(payload)
        if form.left_out is MISSING or getattr(payload, form.attribute) != form.left_out
    }


def every_field_of(payload: Payload) -> dict[str, Any]:
    """All fields of a payload as JSON values, also those that are not written."""
    if isinstance(payload, RawPayload):
        return dict(payload.data)
    return {form.name: value for form, value in _plain(payload)}


def _plain(payload: Payload) -> list[tuple[_Form, Any]]:
    plain = to_plain(payload)
    return [(form, plain[form.attribute]) for form in _forms(type(payload))]


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
