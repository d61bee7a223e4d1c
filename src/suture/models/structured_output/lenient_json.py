"""A reader of almost-JSON, as small models write it, and the search for it in a reply.

It accepts unusual notation (other quotes, Python's constants, missing or doubled commas, comments, bare keys,
newlines and unescaped quotes inside strings, missing closing brackets) and refuses incomplete data: a member
without a value, a string without an end. Nothing is invented.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

from suture.models.tuning import MAX_NESTING, MAX_OBJECT_STARTS

QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "”": "”", "‘": "’", "«": "»"}
BLANK = re.compile(r"(?:\s+|//[^\n]*|#[^\n]*|/\*.*?\*/)+", re.DOTALL)
NUMBER = re.compile(r"[-+]?(?:\d{1,30}(?:\.\d{1,30})?|\.\d{1,30})(?:[eE][-+]?\d{1,3})?(?![\w.%])")
WORD = re.compile(r"[A-Za-z_][\w-]*(?:\.[A-Za-z_]\w*)?")
CONSTANTS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "none": None}
EMPTY_WORDS = frozenset({"undefined", "nan", "infinity", "inf", "todo", "tbd"})
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\"}
# Bounded repetition keeps the matching linear on a reply of ten thousand newlines.
ENDS_KEY = re.compile(r"\s{0,50}(?::|=)")
ENDS_ITEM = re.compile(r"\s{0,50}(?:[,\]]|$)")
ENDS_VALUE = re.compile(
    r"""\s{0,50}(?:\}|$|(?:[,;][,;\s]{0,50}|\n\s{0,50})
    (?:\}|$|//|\#|["'`“”‘]?[A-Za-z_][\w\ \-]{0,50}["'`“”’]?\s{0,50}[:=]))""",
    re.VERBOSE,
)
ENDS_WORD = re.compile(r"[^\S\n]{0,50}(?:[,;}\]\n]|//|#|$)")


class NotJsonLike(ValueError):
    """The text is not an object, even with tolerance."""


def parse_lenient_object(text: str, start: int = 0) -> tuple[Any, int]:
    """Return the object that begins at `start`, and the position after it.

    Raises:
        NotJsonLike: There is no object, or a part of it is missing.
    """
    reader = _Reader(text, start)
    return reader.object(), reader.at


class _Reader:
    """A recursive descent parser over one text."""

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
                raise NotJsonLike(f"no colon behind {key!r}")
            self.at += 2 if self.text.startswith("=>", self.at) else 1
            value = self._value(ENDS_VALUE)
            if key in members and members[key] != value:
                raise NotJsonLike(f"{key!r} is said twice, differently")
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
            raise NotJsonLike(f"no {bracket!r}")
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise NotJsonLike("nested too deeply")
        self.at += 1
        self._skip()

    def _closes(self, bracket: str) -> bool:
        """Return whether the bracket closes here; the end of the text closes all open brackets."""
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
            raise NotJsonLike("a member has no name")
        self.at = word.end()
        return word[0]

    def _bare(self) -> Any:
        """Read a constant, or one word without quotes."""
        word = WORD.match(self.text, self.at)
        if word is None or not ENDS_WORD.match(self.text, word.end()):
            raise NotJsonLike("a member has no value")
        if word[0].lower() in EMPTY_WORDS:
            raise NotJsonLike(f"a member says {word[0]!r}")
        self.at = word.end()
        return CONSTANTS.get(word[0].lower(), word[0])

    def _quoted(self, ends: re.Pattern[str]) -> str:
        """Read a quoted string. A quote inside ends it only where a string may end."""
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
                character_text, at = self._escaped(at)
                parts.append(character_text)
            elif character == closing and ends.match(self.text, at + 1):
                self.at = at + 1
                return "".join(parts)
            else:
                parts.append(character)
                at += 1
        raise NotJsonLike("a text has no end")

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


def find_objects(text: str, names: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yield the objects in a text that may be the requested one, including those inside mere wrappers.

    Text that is marked as thinking is a draft and ignored. So is an object inside another one that already
    has a requested member: an example within a bad answer is not the answer.

    Args:
        text: The reply's text.
        names: Names of the requested members.
    """
    own = {normalise_name(name) for name in names}
    text = _answer_part(text)
    found = list(_top_objects(text))
    if not found and '\\"' in text:
        found = list(_top_objects(text.replace('\\\\"', "'").replace('\\"', '"').replace("\\n", "\n")))
    for data in found:
        yield from _unwrap(data, own)


def _answer_part(text: str) -> str:
    _, closing, answer = text.rpartition("</think>")
    if closing:
        return answer
    return text.partition("<think>")[0]


def _top_objects(text: str) -> Iterator[Any]:
    at = 0
    for _ in range(MAX_OBJECT_STARTS):
        at = text.find("{", at)
        if at < 0:
            return
        try:
            data, at = parse_lenient_object(text, at)
            yield data
        except NotJsonLike:
            at = _end_of_object(text, at)


def _end_of_object(text: str, at: int) -> int:
    """Return the position after the brace that closes the unreadable object at `at`."""
    depth = 0
    for brace in BRACE.finditer(text, at):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.end()
    return len(text)


def _unwrap(data: Any, own: Collection[str]) -> Iterator[dict[str, Any]]:
    if isinstance(data, dict):
        yield data
        if not any(normalise_name(str(name)) in own for name in data):
            for inner in data.values():
                yield from _unwrap(inner, own)
    elif isinstance(data, list):
        for inner in data:
            yield from _unwrap(inner, own)
    elif isinstance(data, str) and data.lstrip().startswith("{"):
        try:
            yield from _unwrap(json.loads(data), own)
        except (ValueError, RecursionError):
            return


def find_labelled_fields(text: str, names: Collection[str]) -> dict[str, str] | None:
    """Return the members of an object that was written as lines `name: value` or tags `<name>value</name>`.

    Args:
        text: The reply's text.
        names: Names of the requested members; any other name is ordinary text.

    Returns:
        Name -> text, or `None` if a name occurs twice, which is ambiguous.
    """
    wanted = {normalise_name(name) for name in names}
    text = _answer_part(text)
    tags = [
        (normalise_name(name), value) for name, value in TAG.findall(text) if normalise_name(name) in wanted
    ]
    pairs = tags or list(_labelled_lines(text, wanted))
    return dict(pairs) if len({name for name, _ in pairs}) == len(pairs) else None


def _labelled_lines(text: str, wanted: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield each name with the text after it, up to a blank line or the next name."""
    name, lines = "", list[str]()
    for line in (*text.splitlines(), ""):
        label = LABEL.match(line)
        named = normalise_name(label[1]) if label else ""
        if name and (named in wanted or (not line.strip() and any(lines))):
            yield name, _join_value(lines)
            name, lines = "", []
        if label and named in wanted:
            name, lines = named, [label[2]]
        elif name and line.strip():
            lines.append(line)
    if name:
        yield name, _join_value(lines)


def _join_value(lines: list[str]) -> str:
    text = " ".join(line.strip() for line in lines if line.strip()).rstrip(",;").strip("*_ ")
    quoted = re.fullmatch(r"(?P<q>[\"'`]+)(.*?)(?P=q)", text, re.DOTALL)
    return quoted[2] if quoted else text


def normalise_name(name: str) -> str:
    """Return a member's name without what models vary: case, blanks, hyphens, underscores."""
    return re.sub(r"[\W_]+", "", name).lower()
