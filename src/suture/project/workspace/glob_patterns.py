"""Patterns as git reads the lines of a `.gitignore`."""

from __future__ import annotations

from dataclasses import dataclass

MOST_CHARS = 4096
"""Of one pattern: no path is longer."""

CLASSES = {
    "alnum": str.isalnum,
    "alpha": str.isalpha,
    "blank": " \t".__contains__,
    "cntrl": lambda char: not char.isprintable(),
    "digit": str.isdecimal,
    "graph": lambda char: char.isprintable() and not char.isspace(),
    "lower": str.islower,
    "print": str.isprintable,
    "punct": lambda char: char.isprintable() and not char.isalnum() and not char.isspace(),
    "space": str.isspace,
    "upper": str.isupper,
    "xdigit": "0123456789abcdefABCDEF".__contains__,
}


@dataclass(frozen=True, slots=True)
class Wild:
    """A place in a pattern that is no plain character.

    Attributes:
        kind: `one` character, or `any` number of them; of a set that is `in` or `out`.
        singles: The characters of a set.
        ranges: First and last ones of its ranges.
        named: The POSIX classes in it, such as `alpha`.
    """

    kind: str
    singles: frozenset[str] = frozenset()
    ranges: tuple[tuple[str, str], ...] = ()
    named: tuple[str, ...] = ()

    def accepts(self, char: str) -> bool:
        """Whether one character fits here."""
        if self.kind == "one":
            return True
        found = (
            char in self.singles
            or any(first <= char <= last for first, last in self.ranges)
            or any(CLASSES[name](char) for name in self.named)
        )
        return found == (self.kind == "in")


ANY = Wild("any")
ONE = Wild("one")
Part = tuple[str | Wild, ...]
"""What stands between two slashes: characters and wild places."""
FOLDERS: Part = (ANY, ANY)
"""`**`: any number of folders."""


@dataclass(frozen=True, slots=True)
class Glob:
    """One line of a `.gitignore`: its pattern, and whether it lets in again.

    Attributes:
        parts: What it is cut into by slashes.
        negated: It takes back what one before it has said.
        folders_only: It is about folders.
        anchored: It begins where its file lies; else it is about names at any depth.
        plain: The name itself, where nothing in it is wild and it is not anchored.
        suffix: How names end, where it is not anchored and one star at its beginning is all that is wild.
    """

    parts: tuple[Part, ...]
    negated: bool
    folders_only: bool
    anchored: bool
    plain: str | None
    suffix: str | None


def parse_glob(line: str) -> Glob | None:
    """Read one line of a `.gitignore`; `None` where it can fit nothing."""
    text = _without_spaces(line)
    if not text or text.startswith("#") or len(text) > MOST_CHARS:
        return None
    negated = text.startswith("!")
    text = text.removeprefix("!")
    folders_only = text.endswith("/")
    text = text.removesuffix("/")
    anchored = "/" in text
    parts = _parts(text.removeprefix("/"))
    if not text or parts is None:
        return None
    name: Part = (ONE,) if anchored else parts[0]
    return Glob(
        parts=parts,
        negated=negated,
        folders_only=folders_only,
        anchored=anchored,
        plain=_text(name),
        suffix=_text(name[1:]) if name[0] is ANY else None,
    )


def _text(part: Part) -> str | None:
    return "".join(map(str, part)) if all(isinstance(place, str) for place in part) else None


def _without_spaces(line: str) -> str:
    bare = line.rstrip(" ")
    slashes = len(bare) - len(bare.rstrip("\\"))
    return f"{bare} " if slashes % 2 and len(bare) < len(line) else bare


def _parts(text: str) -> tuple[Part, ...] | None:
    """A pattern cut at its slashes; `None` where it can fit nothing."""
    parts: list[Part] = []
    current: list[str | Wild] = []
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char == "/":
            parts.append(_part(current))
            current = []
        elif char == "*":
            current.append(ANY)
        elif char == "?":
            current.append(ONE)
        elif char == "[":
            found = _set(text, at)
            if found is None:
                return None
            place, at = found
            current.append(place)
        elif char == "\\":
            if at == len(text):
                return None
            current.append(text[at])
            at += 1
        else:
            current.append(char)
    return (*parts, _part(current))


def _part(places: list[str | Wild]) -> Part:
    if tuple(places) == FOLDERS:
        return FOLDERS
    # More stars in a row mean one.
    return tuple(place for at, place in enumerate(places) if place is not ANY or places[at - 1 : at] != [ANY])


def _set(text: str, at: int) -> tuple[Wild, int] | None:
    """The set that begins at a place, and where it ends; `None` where it does not end."""
    kind = "out" if text[at : at + 1] in ("!", "^") else "in"
    at += kind == "out"
    singles: set[str] = set()
    ranges: list[tuple[str, str]] = []
    named: list[str] = []
    first = at
    while at < len(text) and (text[at] != "]" or at == first):
        if text.startswith("[:", at) and (end := text.find(":]", at + 2)) >= 0:
            if text[at + 2 : end] not in CLASSES:
                return None
            named.append(text[at + 2 : end])
            at = end + 2
            continue
        low, at = _char(text, at)
        if text[at : at + 1] == "-" and text[at + 1 : at + 2] not in ("", "]"):
            high, at = _char(text, at + 1)
            ranges.append((low, high))
        else:
            singles.add(low)
    if at >= len(text):
        return None
    return Wild(kind, frozenset(singles), tuple(ranges), tuple(named)), at + 1


def _char(text: str, at: int) -> tuple[str, int]:
    if text[at] == "\\" and at + 1 < len(text):
        return text[at + 1], at + 2
    return text[at], at + 1
