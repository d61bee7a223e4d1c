"""Match paths against patterns (globs) as in a `.gitignore`.

Patterns come from a project's files and from certificates of strangers. As a regular expression, a pattern
with a dozen stars can take forever. Here the time is proportional to the length of the pattern times the
length of the path: a star first matches nothing, and only the last star that was met is ever extended.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from suture.errors import UsageError
from suture.project.tuning import MAX_GLOB_CHARS, MAX_MATCH_STEPS


@dataclass(kw_only=True)
class Globs:
    """A list of patterns, of which the last one that matches decides.

    Attributes:
        source: Where the patterns come from, for error messages.
        steps_left: Number of comparisons that are still allowed.
    """

    patterns: Sequence[Glob]
    source: str = "the patterns"
    steps_left: int = field(default=MAX_MATCH_STEPS)

    def verdict(self, path: str, *, is_folder: bool) -> bool | None:
        """Return whether the patterns include a path (`True`) or exclude it by `!` (`False`).

        Return `None` if no pattern matches the path. Patterns that match only a folder around it do not count.

        Args:
            path: A relative path with single slashes and without `.` and `..`.

        Raises:
            UsageError: There are too many or too long patterns for that many paths.
        """
        parts = path.split("/")
        name = parts[-1]
        possible = self._list_possible(name)
        self._charge(len(possible))
        for number in possible:
            pattern = self.patterns[number]
            # This rules out nearly all of them, and a project may have 100,000 files.
            if not _may_fit(pattern.name_texts, name):
                continue
            if (is_folder or not pattern.folders_only) and self._fits(pattern, parts):
                return not pattern.negated
        return None

    def covers(self, path: str) -> bool:
        """Return whether the patterns include a file or a folder around it. Raises as `verdict`."""
        parts = path.split("/")
        folders = ("/".join(parts[:count]) for count in range(1, len(parts)))
        if any(self.verdict(folder, is_folder=True) for folder in folders):
            return True
        return self.verdict(path, is_folder=False) is True

    def _list_possible(self, name: str) -> list[int]:
        """Return the numbers of the patterns that may match a file or folder of this name, the last one first."""
        keys = (("name", name), ("first", name[:1]), ("last", name[-1:]), ("any", ""))
        return sorted((number for key in keys for number in self._numbers.get(key, ())), reverse=True)

    @cached_property
    def _numbers(self) -> dict[tuple[str, str], list[int]]:
        """What a pattern says about the name that it matches -> the numbers of such patterns."""
        numbers: dict[tuple[str, str], list[int]] = {}
        for number, pattern in enumerate(self.patterns):
            numbers.setdefault(_describe_name(pattern.parts[-1]), []).append(number)
        return numbers

    def _fits(self, pattern: Glob, parts: Sequence[str]) -> bool:
        if pattern.plain is not None:
            return pattern.plain == parts[-1]
        if pattern.suffix is not None:
            return parts[-1].endswith(pattern.suffix)
        if not pattern.anchored:
            return self._part_fits(pattern.parts[0], parts[-1])
        return self._path_fits(pattern.parts, parts)

    def _path_fits(self, pattern: Sequence[Part], parts: Sequence[str]) -> bool:
        """Return whether a pattern matches a path, both split at their slashes. `**` matches any folders."""
        pattern_at = path_at = 0
        # Where the last `**` is in the pattern, and the part of the path up to which it matches so far.
        star_at = retry_at = -1
        while path_at < len(parts):
            if pattern_at < len(pattern) and pattern[pattern_at] is FOLDERS:
                # At its end, `a/**` means what is in `a` but not `a` itself, so it needs one more part.
                star_at, retry_at = pattern_at, path_at + (pattern_at == len(pattern) - 1)
                pattern_at, path_at = pattern_at + 1, retry_at
            elif pattern_at < len(pattern) and self._part_fits(pattern[pattern_at], parts[path_at]):
                pattern_at, path_at = pattern_at + 1, path_at + 1
            elif star_at >= 0:
                retry_at += 1
                pattern_at, path_at = star_at + 1, retry_at
            else:
                return False
        return pattern_at == len(pattern)

    def _part_fits(self, pattern: Part, name: str) -> bool:
        """Return whether one part of a pattern matches one name in a path."""
        pattern_at = name_at = 0
        star_at = retry_at = -1  # as in `_path_fits`, for `*` and the characters of the name
        steps = 0
        try:
            while name_at < len(name):
                steps += 1
                token = pattern[pattern_at] if pattern_at < len(pattern) else None
                if token is ANY:
                    star_at, retry_at = pattern_at, name_at
                    pattern_at += 1
                elif token is not None and _accepts(token, name[name_at]):
                    pattern_at, name_at = pattern_at + 1, name_at + 1
                elif star_at >= 0:
                    retry_at += 1
                    pattern_at, name_at = star_at + 1, retry_at
                else:
                    return False
            return all(token is ANY for token in pattern[pattern_at:])
        finally:
            self._charge(steps)

    def _charge(self, steps: int) -> None:
        """Count comparisons. Raises a `UsageError` if none are left."""
        self.steps_left -= steps
        if self.steps_left < 0:
            raise UsageError(
                f"{self.source}: matching takes too long",
                remedy="use fewer or simpler patterns, or name a smaller folder",
            )


def _may_fit(texts: Sequence[str], name: str) -> bool:
    """Return whether a name contains the texts between a pattern's wildcards, in whatever order."""
    if not (name.startswith(texts[0]) and name.endswith(texts[-1])):
        return False
    return len(texts) <= 2 or all(text in name for text in texts[1:-1])


def _describe_name(part: Part) -> tuple[str, str]:
    """Return what the last part of a pattern says about a name: all of it, its first or last character, or nothing."""
    text = _text(part)
    if text is not None:
        return "name", text
    if isinstance(part[0], str):
        return "first", part[0]
    return ("last", part[-1]) if isinstance(part[-1], str) else ("any", "")


def parse_globs(lines: Iterable[str], source: str = "the patterns") -> Globs:
    """Parse patterns as git parses a `.gitignore`. Lines that can match nothing are skipped.

    Args:
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
"""Name of a POSIX class, as in `[[:alpha:]]` -> whether a character belongs to it."""


@dataclass(frozen=True, slots=True)
class Wildcard:
    """A wildcard in a pattern.

    Attributes:
        kind: What it matches: `one` character, `any` number of characters, one character that is `in` a set,
            or one that is `out` of it.
        singles: The single characters of the set.
        ranges: (first, last) character of each range of the set.
        named: The POSIX classes in the set, such as `alpha`.
    """

    kind: str
    singles: frozenset[str] = frozenset()
    ranges: tuple[tuple[str, str], ...] = ()
    named: tuple[str, ...] = ()

    def accepts(self, char: str) -> bool:
        """Return whether a character matches."""
        if self.kind == "one":
            return True
        is_in_set = (
            char in self.singles
            or any(first <= char <= last for first, last in self.ranges)
            or any(CLASSES[name](char) for name in self.named)
        )
        return is_in_set == (self.kind == "in")


def _accepts(token: str | Wildcard, char: str) -> bool:
    return token == char if isinstance(token, str) else token.accepts(char)


ANY = Wildcard("any")
ONE = Wildcard("one")
Part = tuple[str | Wildcard, ...]
"""A part of a pattern between two slashes: its characters and wildcards in their order."""
FOLDERS: Part = (ANY, ANY)
"""`**`: any number of folders."""


@dataclass(frozen=True, slots=True)
class Glob:
    """A parsed line of a `.gitignore`.

    Attributes:
        negated: Whether it starts with `!` and cancels earlier patterns.
        anchored: Whether it starts at the folder of its file; otherwise it matches names at any depth.
        plain: The name to match, if the pattern is not anchored and has no wildcards.
        suffix: The suffix to match, if the pattern is not anchored and a star at its beginning is the only
            wildcard.
        name_texts: The texts before, between and after the wildcards in the last part of the pattern. A name that
            it matches contains them all.
    """

    parts: tuple[Part, ...]
    negated: bool
    folders_only: bool
    anchored: bool
    plain: str | None
    suffix: str | None
    name_texts: tuple[str, ...]


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
        name_texts=_texts_between_wildcards(parts[-1]),
    )


def _text(part: Part) -> str | None:
    """Return a part of a pattern as text, or `None` if it has wildcards."""
    return "".join(map(str, part)) if all(isinstance(token, str) for token in part) else None


def _texts_between_wildcards(part: Part) -> tuple[str, ...]:
    texts = [""]
    for token in part:
        if isinstance(token, str):
            texts[-1] += token
        else:
            texts.append("")
    return tuple(texts)


def _strip_spaces(line: str) -> str:
    """Return a line without the spaces at its end, except for one that a backslash escapes."""
    stripped = line.rstrip(" ")
    backslashes = len(stripped) - len(stripped.rstrip("\\"))
    return f"{stripped} " if backslashes % 2 and len(stripped) < len(line) else stripped


def _parts(text: str) -> tuple[Part, ...] | None:
    """Split a pattern at its slashes; return `None` if it can match nothing."""
    parts: list[Part] = []
    current: list[str | Wildcard] = []
    position = 0
    while position < len(text):
        char = text[position]
        position += 1
        if char == "/":
            parts.append(_part(current))
            current = []
        elif char == "*":
            current.append(ANY)
        elif char == "?":
            current.append(ONE)
        elif char == "[":
            parsed_set = _set(text, position)
            if parsed_set is None:
                return None
            wildcard, position = parsed_set
            current.append(wildcard)
        elif char == "\\":
            if position == len(text):
                return None
            current.append(text[position])
            position += 1
        else:
            current.append(char)
    return (*parts, _part(current))


def _part(tokens: list[str | Wildcard]) -> Part:
    if tuple(tokens) == FOLDERS:
        return FOLDERS
    # Several stars in a row mean the same as one.
    return tuple(
        token
        for position, token in enumerate(tokens)
        if token is not ANY or tokens[position - 1 : position] != [ANY]
    )


def _set(text: str, position: int) -> tuple[Wildcard, int] | None:
    """Parse a set such as `[a-z]`; return (the set, position after it), or `None` if it does not end."""
    kind = "out" if text[position : position + 1] in ("!", "^") else "in"
    position += kind == "out"
    singles: set[str] = set()
    ranges: list[tuple[str, str]] = []
    named: list[str] = []
    content_start = position
    while position < len(text) and (text[position] != "]" or position == content_start):
        if text.startswith("[:", position) and (end := text.find(":]", position + 2)) >= 0:
            if text[position + 2 : end] not in CLASSES:
                return None
            named.append(text[position + 2 : end])
            position = end + 2
            continue
        first, position = _char(text, position)
        if text[position : position + 1] == "-" and text[position + 1 : position + 2] not in ("", "]"):
            last, position = _char(text, position + 1)
            ranges.append((first, last))
        else:
            singles.add(first)
    if position >= len(text):
        return None
    return Wildcard(kind, frozenset(singles), tuple(ranges), tuple(named)), position + 1


def _char(text: str, position: int) -> tuple[str, int]:
    """Return (character at a position, position after it). A backslash escapes the character after it."""
    if text[position] == "\\" and position + 1 < len(text):
        return text[position + 1], position + 2
    return text[position], position + 1
