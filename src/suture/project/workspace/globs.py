"""Patterns as in a `.gitignore`, matched in time that grows with pattern times name and no faster.

Such patterns come from files of a project, and from certificates of strangers. As regular expressions a dozen
stars in one of them keep a processor busy for ever; here each star is tried once from the left, as the last
star alone ever needs to give way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from suture.errors import UsageError

MOST_STEPS = 20_000_000
"""Some seconds of matching. A project of 5,000 files with 300 patterns needs less than a tenth."""


@dataclass(kw_only=True)
class Globs:
    """Patterns in their order, of which the last that fits decides.

    Attributes:
        patterns: In their order; the last that matches decides.
        said_by: Where they stand, for an error.
        steps_left: How much more may be compared.
    """

    patterns: Sequence[Glob]
    said_by: str = "the patterns"
    steps_left: int = field(default=MOST_STEPS)

    def verdict(self, path: str, *, is_folder: bool) -> bool | None:
        """What they say of one path, not of the folders that it lies in; `None` where none fits.

        Args:
            path: Relative, with single slashes and no `.` or `..` in it.
            is_folder: Whether it is a folder.

        Raises:
            UsageError: The patterns are too many or too long to be tried on that many paths.
        """
        parts = path.split("/")
        for pattern in reversed(self.patterns):
            self._charge(1)
            if (is_folder or not pattern.folders_only) and self._fits(pattern, parts):
                return not pattern.negated
        return None

    def covers(self, path: str) -> bool:
        """Whether a file is meant, by itself or with a folder that it lies in; raises as `verdict`."""
        parts = path.split("/")
        above = ("/".join(parts[:count]) for count in range(1, len(parts)))
        return any(self.verdict(folder, is_folder=True) for folder in above) or bool(
            self.verdict(path, is_folder=False)
        )

    def _fits(self, pattern: Glob, parts: Sequence[str]) -> bool:
        if pattern.plain is not None:
            return pattern.plain == parts[-1]
        if pattern.suffix is not None:
            return parts[-1].endswith(pattern.suffix)
        if not pattern.anchored:
            return self._part_fits(pattern.parts[0], parts[-1])
        return self._folders_fit(pattern.parts, parts)

    def _folders_fit(self, wanted: Sequence[Part], parts: Sequence[str]) -> bool:
        at = here = 0
        star = kept = -1
        while here < len(parts):
            if at < len(wanted) and wanted[at] is FOLDERS:
                # At the end `a/**` means what is in `a`, and not `a` itself: one more is needed.
                star, kept = at, here + (at == len(wanted) - 1)
                at, here = at + 1, kept
            elif at < len(wanted) and self._part_fits(wanted[at], parts[here]):
                at, here = at + 1, here + 1
            elif star >= 0:
                kept += 1
                at, here = star + 1, kept
            else:
                return False
        return at == len(wanted)

    def _part_fits(self, wanted: Part, name: str) -> bool:
        at = here = 0
        star = kept = -1
        steps = 0
        try:
            while here < len(name):
                steps += 1
                place = wanted[at] if at < len(wanted) else None
                if place is ANY:
                    star, kept = at, here
                    at += 1
                elif place is not None and (
                    place == name[here] if isinstance(place, str) else place.accepts(name[here])
                ):
                    at, here = at + 1, here + 1
                elif star >= 0:
                    kept += 1
                    at, here = star + 1, kept
                else:
                    return False
            return all(place is ANY for place in wanted[at:])
        finally:
            self._charge(steps)

    def _charge(self, steps: int) -> None:
        self.steps_left -= steps
        if self.steps_left < 0:
            raise UsageError(
                f"{self.said_by}: matching takes too long",
                remedy="use fewer or simpler patterns, or name a smaller folder",
            )


def parse_globs(lines: Iterable[str], said_by: str = "the patterns") -> Globs:
    """Read patterns as git reads a `.gitignore`; a line that can fit nothing is passed over.

    Args:
        lines: Without their ends.
        said_by: Where they stand, for an error.
    """
    parsed = (parse_glob(line) for line in lines)
    return Globs(patterns=tuple(glob for glob in parsed if glob is not None), said_by=said_by)


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
