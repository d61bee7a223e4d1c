"""Match paths against patterns as in a `.gitignore`, in time proportional to pattern length times path
length.

Such patterns come from a project's files, and from certificates of strangers. As a regular expression, a
pattern with a dozen stars can take forever. Here each star is matched as early as possible, because only the
last star ever needs to match more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from suture.errors import UsageError
from suture.project.tuning import MAX_GLOB_CHARS, MAX_MATCH_STEPS


@dataclass(kw_only=True)
class Globs:
    """A list of patterns, of which the last one that matches decides.

    Attributes:
        patterns: The patterns in their order.
        source: Where the patterns come from, for error messages.
        steps_left: Number of comparisons that are still allowed.
    """

    patterns: Sequence[Glob]
    source: str = "the patterns"
    steps_left: int = field(default=MAX_MATCH_STEPS)

    def verdict(self, path: str, *, is_folder: bool) -> bool | None:
        """Return whether the patterns mean a path itself, regardless of its folders; `None` if none matches.

        Args:
            path: A relative path with single slashes and without `.` and `..`.
            is_folder: Whether it is a folder.

        Raises:
            UsageError: There are too many or too long patterns for that many paths.
        """
        parts = path.split("/")
        for pattern in reversed(self.patterns):
            self._charge(1)
            if (is_folder or not pattern.folders_only) and self._fits(pattern, parts):
                return not pattern.negated
        return None

    def covers(self, path: str) -> bool:
        """Return whether the patterns mean a file or a folder that contains it. Raises as `verdict`."""
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
        star = retry_at = -1
        while here < len(parts):
            if at < len(wanted) and wanted[at] is FOLDERS:
                # At the end of a pattern, `a/**` means what is in `a` but not `a` itself, so it needs one
                # more part.
                star, retry_at = at, here + (at == len(wanted) - 1)
                at, here = at + 1, retry_at
            elif at < len(wanted) and self._part_fits(wanted[at], parts[here]):
                at, here = at + 1, here + 1
            elif star >= 0:
                retry_at += 1
                at, here = star + 1, retry_at
            else:
                return False
        return at == len(wanted)

    def _part_fits(self, wanted: Part, name: str) -> bool:
        at = here = 0
        star = retry_at = -1
        steps = 0
        try:
            while here < len(name):
                steps += 1
                place = wanted[at] if at < len(wanted) else None
                if place is ANY:
                    star, retry_at = at, here
                    at += 1
                elif place is not None and (
                    place == name[here] if isinstance(place, str) else place.accepts(name[here])
                ):
                    at, here = at + 1, here + 1
                elif star >= 0:
                    retry_at += 1
                    at, here = star + 1, retry_at
                else:
                    return False
            return all(place is ANY for place in wanted[at:])
        finally:
            self._charge(steps)

    def _charge(self, steps: int) -> None:
        self.steps_left -= steps
        if self.steps_left < 0:
            raise UsageError(
                f"{self.source}: matching takes too long",
                remedy="use fewer or simpler patterns, or name a smaller folder",
            )


def parse_globs(lines: Iterable[str], source: str = "the patterns") -> Globs:
    """Parse patterns as git parses a `.gitignore`. Lines that can match nothing are skipped.

    Args:
        lines: The lines, without line ends.
        source: Where they come from, for error messages.
    """
    parsed = (parse_glob(line) for line in lines)
    return Globs(patterns=tuple(glob for glob in parsed if glob is not None), source=source)


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
class Wildcard:
    """A wildcard in a pattern.

    Attributes:
        kind: `one` character, `any` number of them, or a character `in` or `out` of a set.
        singles: The single characters of the set.
        ranges: First and last characters of its ranges.
        named: The POSIX classes in it, such as `alpha`.
    """

    kind: str
    singles: frozenset[str] = frozenset()
    ranges: tuple[tuple[str, str], ...] = ()
    named: tuple[str, ...] = ()

    def accepts(self, char: str) -> bool:
        """Return whether a character matches."""
        if self.kind == "one":
            return True
        found = (
            char in self.singles
            or any(first <= char <= last for first, last in self.ranges)
            or any(CLASSES[name](char) for name in self.named)
        )
        return found == (self.kind == "in")


ANY = Wildcard("any")
ONE = Wildcard("one")
Part = tuple[str | Wildcard, ...]
"""The part of a pattern between two slashes: characters and wildcards."""
FOLDERS: Part = (ANY, ANY)
"""`**`: any number of folders."""


@dataclass(frozen=True, slots=True)
class Glob:
    """A parsed line of a `.gitignore`.

    Attributes:
        parts: Its parts between slashes.
        negated: Whether it starts with `!` and cancels earlier patterns.
        folders_only: Whether it matches only folders.
        anchored: Whether it starts at the folder of its file; otherwise it matches names at any depth.
        plain: The name to match, if the pattern is not anchored and has no wildcards.
        suffix: The suffix to match, if the pattern is not anchored and a star at its beginning is the only
            wildcard.
    """

    parts: tuple[Part, ...]
    negated: bool
    folders_only: bool
    anchored: bool
    plain: str | None
    suffix: str | None


def parse_glob(line: str) -> Glob | None:
    """Parse one line of a `.gitignore`; return `None` if it can match nothing."""
    text = _strip_spaces(line)
    if not text or text.startswith("#") or len(text) > MAX_GLOB_CHARS:
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


def _strip_spaces(line: str) -> str:
    bare = line.rstrip(" ")
    slashes = len(bare) - len(bare.rstrip("\\"))
    return f"{bare} " if slashes % 2 and len(bare) < len(line) else bare


def _parts(text: str) -> tuple[Part, ...] | None:
    """Split a pattern at its slashes; return `None` if it can match nothing."""
    parts: list[Part] = []
    current: list[str | Wildcard] = []
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


def _part(places: list[str | Wildcard]) -> Part:
    if tuple(places) == FOLDERS:
        return FOLDERS
    # Several stars in a row mean the same as one.
    return tuple(place for at, place in enumerate(places) if place is not ANY or places[at - 1 : at] != [ANY])


def _set(text: str, at: int) -> tuple[Wildcard, int] | None:
    """Parse the set that begins at a position; return it and its end, or `None` if it does not end."""
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
    return Wildcard(kind, frozenset(singles), tuple(ranges), tuple(named)), at + 1


def _char(text: str, at: int) -> tuple[str, int]:
    if text[at] == "\\" and at + 1 < len(text):
        return text[at + 1], at + 2
    return text[at], at + 1
