"""A member more in a JSON text, of which the rest stays as it is written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

BLANK = " \t\r\n"


@dataclass(frozen=True, kw_only=True)
class Member:
    """A member of an object: its name, and where name and value begin and the value ends."""

    name: str
    start: int
    value: int
    end: int


def with_member(text: str, table: str, name: str, value: str) -> str:
    """A text with `name: value` in one of its top object's tables, which is made where it is not there.

    Where the names of the table are in order, so they are afterwards.

    Args:
        text: A JSON object.
        table: The name of an object in it.
        name: Of the new member.
        value: Of the new member.

    Raises:
        ValueError: It is no such object.
    """
    top = list(_members(text, _skip(text, 0)))
    step = _blank_before(text, top[0].start) if top else "\n  "
    entry = f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False)}"
    found = next((one for one in reversed(top) if one.name == table), None)
    deeper = step + step.rpartition("\n")[2] if "\n" in step else step
    if found is None:
        whole = f"{json.dumps(table)}: {{{deeper}{entry}{step}}}"
        return _after(text, top, whole, step)
    members = list(_members(text, found.value))
    if not members:
        return f"{text[: found.value]}{{{deeper}{entry}{step}}}{text[found.end :]}"
    names = [one.name for one in members]
    later = next((one for one in members if one.name > name), None) if names == sorted(names) else None
    if later is None:
        return _after(text, members, entry, "")
    return f"{text[: later.start]}{entry},{_blank_before(text, later.start)}{text[later.start :]}"


def _after(text: str, members: list[Member], entry: str, step: str) -> str:
    if not members:
        start = _skip(text, 0) + 1
        return f"{text[:start]}{step}{entry}{step[: step.find(chr(10)) + 1]}{text[start:].lstrip(BLANK)}"
    last = members[-1]
    return f"{text[: last.end]},{_blank_before(text, last.start)}{entry}{text[last.end :]}"


def _blank_before(text: str, at: int) -> str:
    start = at
    while text[start - 1] in BLANK:
        start -= 1
    return text[start:at]


def _skip(text: str, at: int) -> int:
    while text[at : at + 1] and text[at] in BLANK:
        at += 1
    return at


def _members(text: str, at: int) -> Iterator[Member]:
    """The members of the object that begins there."""
    decoder = json.JSONDecoder()
    if text[at : at + 1] != "{":
        raise ValueError("there is no object")
    at = _skip(text, at + 1)
    while text[at : at + 1] == '"':
        start = at
        name, at = decoder.raw_decode(text, at)
        value = _skip(text, _skip(text, at) + 1)
        _, end = decoder.raw_decode(text, value)
        yield Member(name=name, start=start, value=value, end=end)
        at = _skip(text, end)
        if text[at : at + 1] != ",":
            return
        at = _skip(text, at + 1)
