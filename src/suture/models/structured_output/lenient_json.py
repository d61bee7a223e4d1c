"""A reader of almost-JSON: what small models write when they mean a JSON object.

It understands what is said in an unusual way (other quotes, Python's constants, missing or doubled commas,
comments, bare keys, line ends and unescaped quotes inside texts, closing brackets that were forgotten) and
refuses what is not said at all: a member without a value, a text without an end. Nothing is invented.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "”": "”", "‘": "’", "«": "»"}
BLANK = re.compile(r"(?:\s+|//[^\n]*|#[^\n]*|/\*.*?\*/)+", re.DOTALL)
NUMBER = re.compile(r"[-+]?(?:\d{1,30}(?:\.\d{1,30})?|\.\d{1,30})(?:[eE][-+]?\d{1,3})?(?![\w.%])")
WORD = re.compile(r"[A-Za-z_][\w-]*(?:\.[A-Za-z_]\w*)?")
CONSTANTS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "none": None}
NOTHING_SAID = frozenset({"undefined", "nan", "infinity", "inf", "todo", "tbd"})
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\"}
# Bounded, so that a reply of ten thousand line ends costs no more than its length.
ENDS_KEY = re.compile(r"\s{0,50}(?::|=)")
ENDS_ITEM = re.compile(r"\s{0,50}(?:[,\]]|$)")
ENDS_VALUE = re.compile(
    r"""\s{0,50}(?:\}|$|(?:[,;][,;\s]{0,50}|\n\s{0,50})
    (?:\}|$|//|\#|["'`“”‘]?[A-Za-z_][\w\ \-]{0,50}["'`“”’]?\s{0,50}[:=]))""",
    re.VERBOSE,
)
ENDS_WORD = re.compile(r"[^\S\n]{0,50}(?:[,;}\]\n]|//|#|$)")
MAX_DEPTH = 20
"""Of values within values; the reader calls itself for each."""


class NotData(ValueError):
    """The text is no object, however kindly it is read."""


def read_untidy(text: str, start: int = 0) -> tuple[Any, int]:
    """The object that begins at `start`, and where it ends.

    Raises:
        NotData: There is none, or a part of it is not said.
    """
    reader = _Reader(text, start)
    return reader.object(), reader.at


class _Reader:
    """A recursive descent over one text."""

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at
        self.depth = 0

    def object(self) -> dict[str, Any]:
        self._open("{")
        members: dict[str, Any] = {}
        while not self._closes("}"):
            key = self._key()
            self._skip()
            if self._peek() not in (":", "="):
                raise NotData(f"no colon behind {key!r}")
            self.at += 2 if self.text.startswith("=>", self.at) else 1
            value = self._value(ENDS_VALUE)
            if key in members and members[key] != value:
                raise NotData(f"{key!r} is said twice, differently")
            members[key] = value
            self._commas()
        return members

    def array(self) -> list[Any]:
        self._open("[")
        items: list[Any] = []
        while not self._closes("]"):
            items.append(self._value(ENDS_ITEM))
            self._commas()
        return items

    def _open(self, bracket: str) -> None:
        if self._peek() != bracket:
            raise NotData(f"no {bracket!r}")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise NotData("nested too deeply")
        self.at += 1
        self._skip()

    def _closes(self, bracket: str) -> bool:
        """Whether the bracket closes here; the end of the text closes everything that is open."""
        self._skip()
        closed = self._peek() == bracket
        if closed:
            self.at += 1
        if closed or self.at >= len(self.text):
            self.depth -= 1
            return True
        return False

    def _value(self, ends: re.Pattern[str]) -> Any:
        self._skip()
        mark = self._peek()
        if mark == "{":
            return self.object()
        if mark == "[":
            return self.array()
        if mark in QUOTES:
            return self._quoted(ends)
        if number := NUMBER.match(self.text, self.at):
            self.at = number.end()
            return float(number[0]) if re.search(r"[.eE]", number[0]) else int(number[0])
        return self._bare()

    def _key(self) -> str:
        if self._peek() in QUOTES:
            return self._quoted(ENDS_KEY)
        word = WORD.match(self.text, self.at)
        if word is None:
            raise NotData("a member has no name")
        self.at = word.end()
        return word[0]

    def _bare(self) -> Any:
        """A constant, or one word without quotes."""
        word = WORD.match(self.text, self.at)
        if word is None or not ENDS_WORD.match(self.text, word.end()):
            raise NotData("a member has no value")
        if word[0].lower() in NOTHING_SAID:
            raise NotData(f"a member says {word[0]!r}")
        self.at = word.end()
        return CONSTANTS.get(word[0].lower(), word[0])

    def _quoted(self, ends: re.Pattern[str]) -> str:
        """A text in quotes. A quote inside it ends it only where a text may end."""
        opening = self.text[self.at]
        triple = opening * 3
        if opening in "\"'`" and self.text.startswith(triple, self.at):
            close = self.text.find(triple, self.at + 3)
            if close > 0:
                inside = self.text[self.at + 3 : close]
                self.at = close + 3
                return inside.strip()
        closing = QUOTES[opening]
        parts: list[str] = []
        at = self.at + 1
        while at < len(self.text):
            character = self.text[at]
            if character == "\\" and at + 1 < len(self.text):
                said, at = self._escaped(at)
                parts.append(said)
            elif character == closing and ends.match(self.text, at + 1):
                self.at = at + 1
                return "".join(parts)
            else:
                parts.append(character)
                at += 1
        raise NotData("a text has no end")

    def _escaped(self, at: int) -> tuple[str, int]:
        mark = self.text[at + 1]
        if mark in ESCAPES:
            return ESCAPES[mark], at + 2
        if mark == "u" and re.match(r"[0-9a-fA-F]{4}", self.text[at + 2 : at + 6]):
            return chr(int(self.text[at + 2 : at + 6], 16)), at + 6
        if mark in QUOTES:
            return mark, at + 2
        return "\\" + mark, at + 2

    def _commas(self) -> None:
        self._skip()
        while self._peek() in (",", ";"):
            self.at += 1
            self._skip()

    def _skip(self) -> None:
        if blank := BLANK.match(self.text, self.at):
            self.at = blank.end()

    def _peek(self) -> str:
        return self.text[self.at] if self.at < len(self.text) else ""


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
