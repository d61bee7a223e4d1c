"""Where in a reply the data may stand: every object in it, and the forms that are no JSON at all."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

from suture.models.structured.lenient_json import NotData, read_untidy

LABEL = re.compile(
    r"^\s*(?:[-*+>]|\d+[.)]|#+)?\s*[*_`\"']*([A-Za-z][\w \-]{0,40}?)[*_`\"']*\s*[:=][*_]*\s*(.*)$"
)
TAG = re.compile(r"<([A-Za-z][\w-]*)>\s*([^<>]*?)\s*</\1>")
BRACE = re.compile(r"[{}]")
MAX_STARTS = 40
"""Braces that are tried as the start of an object; code quoted in prose has many."""


def objects_in(text: str, names: Collection[str]) -> Iterator[dict[str, Any]]:
    """The objects in a text that may be what was asked for, and those inside mere wrappers.

    What stands in a part marked as thinking is a draft, and not looked at. Nor is what stands inside an
    object that has a member of its own: an example in a bad answer is not the answer.

    Args:
        text: The reply's text.
        names: The names of the members of what was asked for.
    """
    own = {bare_name(name) for name in names}
    text = _answer_part(text)
    found = list(_top_objects(text))
    if not found and '\\"' in text:
        found = list(_top_objects(text.replace('\\\\"', "'").replace('\\"', '"').replace("\\n", "\n")))
    for data in found:
        yield from _unwrapped(data, own)


def _answer_part(text: str) -> str:
    _, closing, answer = text.rpartition("</think>")
    if closing:
        return answer
    return text.partition("<think>")[0]


def _top_objects(text: str) -> Iterator[Any]:
    at = 0
    for _ in range(MAX_STARTS):
        at = text.find("{", at)
        if at < 0:
            return
        try:
            data, at = read_untidy(text, at)
            yield data
        except NotData:
            at = _behind(text, at)


def _behind(text: str, at: int) -> int:
    """Behind the brace that closes the one at `at`: what lies between belongs to what could not be read."""
    depth = 0
    for brace in BRACE.finditer(text, at):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.end()
    return len(text)


def _unwrapped(data: Any, own: Collection[str]) -> Iterator[dict[str, Any]]:
    if isinstance(data, dict):
        yield data
        if not any(bare_name(str(name)) in own for name in data):
            for inner in data.values():
                yield from _unwrapped(inner, own)
    elif isinstance(data, list):
        for inner in data:
            yield from _unwrapped(inner, own)
    elif isinstance(data, str) and data.lstrip().startswith("{"):
        try:
            yield from _unwrapped(json.loads(data), own)
        except (ValueError, RecursionError):
            return


def written_out(text: str, names: Collection[str]) -> dict[str, str] | None:
    """The members of an object that was written as lines `name: value`, or as tags `<name>value</name>`.

    Args:
        text: The reply's text.
        names: The names of the members; another name is part of the text.

    Returns:
        What was found, or `None` where a name stands twice: nobody knows which is meant.
    """
    wanted = {bare_name(name) for name in names}
    text = _answer_part(text)
    tags = [(bare_name(name), value) for name, value in TAG.findall(text) if bare_name(name) in wanted]
    pairs = tags or list(_labelled(text, wanted))
    return dict(pairs) if len({name for name, _ in pairs}) == len(pairs) else None


def _labelled(text: str, wanted: Collection[str]) -> Iterator[tuple[str, str]]:
    """Each name with the text behind it, up to a blank line or the next name."""
    name, lines = "", list[str]()
    for line in (*text.splitlines(), ""):
        label = LABEL.match(line)
        named = bare_name(label[1]) if label else ""
        if name and (named in wanted or (not line.strip() and any(lines))):
            yield name, _joined(lines)
            name, lines = "", []
        if label and named in wanted:
            name, lines = named, [label[2]]
        elif name and line.strip():
            lines.append(line)
    if name:
        yield name, _joined(lines)


def _joined(lines: list[str]) -> str:
    text = " ".join(line.strip() for line in lines if line.strip()).rstrip(",;").strip("*_ ")
    quoted = re.fullmatch(r"(?P<q>[\"'`]+)(.*?)(?P=q)", text, re.DOTALL)
    return quoted[2] if quoted else text


def bare_name(name: str) -> str:
    """A member's name without what models vary in it: case, blanks, hyphens, underscores."""
    return re.sub(r"[\W_]+", "", name).lower()
