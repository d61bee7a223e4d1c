"""Finding and reading almost-JSON in a reply, as small models write it.

Unusual notation is accepted: other quotes, Python's constants, missing or doubled commas, comments, bare keys,
newlines and unescaped quotes inside strings, missing closing brackets. Incomplete data is refused: a member
without a value, a string without an end. Nothing is invented.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

from suture.models.tuning import MAX_NESTING, MAX_OBJECT_STARTS

QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "”": "”", "‘": "’", "«": "»"}
"""Opening quote -> closing quote."""
BLANK = re.compile(r"(?:\s+|//[^\n]*|#[^\n]*|/\*.*?\*/)+", re.DOTALL)
NUMBER = re.compile(r"[-+]?(?:\d{1,30}(?:\.\d{1,30})?|\.\d{1,30})(?:[eE][-+]?\d{1,3})?(?![\w.%])")
"""Matches a number that ends there: not the `1` of `1st` or of `1%`."""
WORD = re.compile(r"[A-Za-z_][\w-]*(?:\.[A-Za-z_]\w*)?")
CONSTANTS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "none": None}
EMPTY_WORDS = frozenset({"undefined", "nan", "infinity", "inf", "todo", "tbd"})
"""Words that stand for a missing value, or for a number that JSON does not have."""
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\"}
# Bounded repetition keeps the matching linear on a reply of ten thousand newlines.
ENDS_KEY = re.compile(r"\s{0,50}(?::|=)")
ENDS_ITEM = re.compile(r"\s{0,50}(?:[,\]]|$)")
# A quote inside a string is followed by more text: only what these patterns match can follow its end.
ENDS_VALUE = re.compile(
    r"""\s{0,50}(?:\}|$|(?:[,;][,;\s]{0,50}|\n\s{0,50})
    (?:\}|$|//|\#|["'`“”‘]?[A-Za-z_][\w\ \-]{0,50}["'`“”’]?\s{0,50}[:=]))""",
    re.VERBOSE,
)
ENDS_WORD = re.compile(r"[^\S\n]{0,50}(?:[,;}\]\n]|//|#|$)")


class NotJsonLike(ValueError):
    """The string is not an object, even with tolerance."""


class _LenientParser:
    """A recursive descent parser over one string; each method reads from `position` and moves it.

    The patterns that it passes down specify where a quoted string may end.
    """

    def __init__(self, text: str, position: int) -> None:
        self.text = text
        self.position = position
        self.depth = 0

    def parse_object(self) -> dict[str, Any]:
        """Read an object; raise `NotJsonLike` if there is none, or if a part of it is missing."""
        self._open_bracket("{")
        members: dict[str, Any] = {}
        while not self._closes("}"):
            key = self._parse_key()
            self._skip_blank()
            if self._peek() not in (":", "="):
                raise NotJsonLike(f"no colon behind {key!r}")
            self.position += 2 if self.text.startswith("=>", self.position) else 1
            value = self._parse_value(ENDS_VALUE)
            if key in members and members[key] != value:
                raise NotJsonLike(f"{key!r} is said twice, differently")
            members[key] = value
            self._skip_commas()
        return members

    def _parse_array(self) -> list[Any]:
        self._open_bracket("[")
        items: list[Any] = []
        while not self._closes("]"):
            items.append(self._parse_value(ENDS_ITEM))
            self._skip_commas()
        return items

    def _open_bracket(self, bracket: str) -> None:
        if self._peek() != bracket:
            raise NotJsonLike(f"no {bracket!r}")
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise NotJsonLike("nested too deeply")
        self.position += 1
        self._skip_blank()

    def _closes(self, bracket: str) -> bool:
        """Return whether the bracket closes here; the end of the string closes all open brackets."""
        self._skip_blank()
        if self.position < len(self.text):
            if self.text[self.position] != bracket:
                return False
            self.position += 1
        self.depth -= 1
        return True

    def _parse_value(self, end_pattern: re.Pattern[str]) -> Any:
        """Read any value."""
        self._skip_blank()
        character = self._peek()
        if character == "{":
            return self.parse_object()
        if character == "[":
            return self._parse_array()
        if character in QUOTES:
            return self._parse_quoted(end_pattern)
        if number := NUMBER.match(self.text, self.position):
            self.position = number.end()
            return float(number[0]) if re.search(r"[.eE]", number[0]) else int(number[0])
        return self._parse_bare_word()

    def _parse_key(self) -> str:
        if self._peek() in QUOTES:
            return self._parse_quoted(ENDS_KEY)
        word = WORD.match(self.text, self.position)
        if word is None:
            raise NotJsonLike("a member has no name")
        self.position = word.end()
        return word[0]

    def _parse_bare_word(self) -> Any:
        """Read a constant, or one word without quotes."""
        word = WORD.match(self.text, self.position)
        if word is None or not ENDS_WORD.match(self.text, word.end()):
            raise NotJsonLike("a member has no value")
        if word[0].lower() in EMPTY_WORDS:
            raise NotJsonLike(f"a member says {word[0]!r}")
        self.position = word.end()
        return CONSTANTS.get(word[0].lower(), word[0])

    def _parse_quoted(self, end_pattern: re.Pattern[str]) -> str:
        """Read a quoted string; a quote inside it ends it only where `end_pattern` matches what follows."""
        opening = self.text[self.position]
        triple = opening * 3
        if opening in "\"'`" and self.text.startswith(triple, self.position):
            end = self.text.find(triple, self.position + 3)
            if end > 0:  # three quotes without an end are an empty string and the start of another
                content = self.text[self.position + 3 : end]
                self.position = end + 3
                return content.strip()
        closing = QUOTES[opening]
        parts: list[str] = []
        position = self.position + 1
        while position < len(self.text):
            character = self.text[position]
            if character == "\\" and position + 1 < len(self.text):
                unescaped, position = self._unescape(position)
                parts.append(unescaped)
            elif character == closing and end_pattern.match(self.text, position + 1):
                self.position = position + 1
                return "".join(parts)
            else:
                parts.append(character)
                position += 1
        raise NotJsonLike("a text has no end")

    def _unescape(self, position: int) -> tuple[str, int]:
        """Return what the backslash at `position` stands for, and the position after it, as a pair."""
        character = self.text[position + 1]
        if character in ESCAPES:
            return ESCAPES[character], position + 2
        digits = self.text[position + 2 : position + 6]
        if character == "u" and re.match(r"[0-9a-fA-F]{4}", digits):
            return chr(int(digits, 16)), position + 6
        if character in QUOTES:
            return character, position + 2
        return "\\" + character, position + 2  # not a JSON escape: the backslash was meant, as in `\d`

    def _skip_commas(self) -> None:
        self._skip_blank()
        while self._peek() in (",", ";"):
            self.position += 1
            self._skip_blank()

    def _skip_blank(self) -> None:
        if blank := BLANK.match(self.text, self.position):
            self.position = blank.end()

    def _peek(self) -> str:
        return self.text[self.position] if self.position < len(self.text) else ""


LABEL = re.compile(
    r"^\s*(?:[-*+>]|\d+[.)]|#+)?\s*[*_`\"']*([A-Za-z][\w \-]{0,40}?)[*_`\"']*\s*[:=][*_]*\s*(.*)$"
)
"""Matches a line such as `- **name**: value`."""
TAG = re.compile(r"<([A-Za-z][\w-]*)>\s*([^<>]*?)\s*</\1>")
"""Matches `<name>value</name>`."""
BRACE = re.compile(r"[{}]")


def find_objects(text: str, names: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yield the objects in a reply that may be the requested one, including those inside mere wrappers.

    An object inside another one that already has one of the requested member names is ignored: an example within
    a bad answer is not the answer.
    """
    requested = {normalise_name(name) for name in names}
    objects = list(_find_outermost_objects(text))
    if not objects and '\\"' in text:
        unescaped = text.replace('\\\\"', "'").replace('\\"', '"').replace("\\n", "\n")
        objects = list(_find_outermost_objects(unescaped))
    for data in objects:
        yield from _unwrap(data, requested)


def _find_outermost_objects(text: str) -> Iterator[Any]:
    """Yield the objects in a reply that no other object contains; unreadable ones are skipped."""
    position = 0
    for _ in range(MAX_OBJECT_STARTS):
        position = text.find("{", position)
        if position < 0:
            return
        parser = _LenientParser(text, position)
        try:
            yield parser.parse_object()
            position = parser.position
        except NotJsonLike:
            position = _skip_object(text, position)


def _skip_object(text: str, start: int) -> int:
    """Return the position after the brace that closes the unreadable object at `start`."""
    depth = 0
    for brace in BRACE.finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.end()
    return len(text)


def _unwrap(data: Any, requested: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yield the objects in a value, down to those that have a requested member."""
    if isinstance(data, dict):
        yield data
        if not any(normalise_name(str(name)) in requested for name in data):
            yield from _unwrap(list(data.values()), requested)
    elif isinstance(data, list):
        for item in data:
            yield from _unwrap(item, requested)
    elif isinstance(data, str) and data.lstrip().startswith("{"):
        try:
            yield from _unwrap(json.loads(data), requested)
        except (ValueError, RecursionError):
            return


def find_labelled_fields(text: str, names: Collection[str]) -> dict[str, str] | None:
    """Return the members of an object that was written as lines `name: value` or tags `<name>value</name>`.

    Names that are not among the requested ones are ordinary text. The result is `None` if a name occurs twice,
    which is ambiguous.
    """
    requested = {normalise_name(name) for name in names}
    tags = [(normalise_name(name), value) for name, value in TAG.findall(text)]
    pairs = [(name, value) for name, value in tags if name in requested] or list(
        _find_labelled_lines(text, requested)
    )
    return dict(pairs) if len({name for name, _ in pairs}) == len(pairs) else None


def _find_labelled_lines(text: str, requested: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield each name with the text after it, up to a blank line or the next name."""
    name, lines = "", list[str]()
    for line in (*text.splitlines(), ""):
        label = LABEL.match(line)
        label_name = normalise_name(label[1]) if label else ""
        if name and (label_name in requested or (not line.strip() and any(lines))):
            yield name, _join_value(lines)
            name, lines = "", []
        if label and label_name in requested:
            name, lines = label_name, [label[2]]
        elif name and line.strip():
            lines.append(line)
    if name:
        yield name, _join_value(lines)


def _join_value(lines: list[str]) -> str:
    """Return a member's text on one line, without quotes, Markdown emphasis and a final comma."""
    text = " ".join(line.strip() for line in lines if line.strip()).rstrip(",;").strip("*_ ")
    quoted = re.fullmatch(r"(?P<q>[\"'`]+)(.*?)(?P=q)", text, re.DOTALL)
    return quoted[2] if quoted else text


def normalise_name(name: str) -> str:
    """Return a member's name without what models vary: case, blanks, hyphens, underscores."""
    return re.sub(r"[\W_]+", "", name).lower()
