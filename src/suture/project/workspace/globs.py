"""Match paths against patterns (globs) as in a `.gitignore`.

Patterns come from a project's files and from certificates of strangers. As an ordinary regular expression, a pattern
with a dozen stars can take forever. Here the text after each star is matched at its first occurrence and never
elsewhere (an atomic group), which is enough for globs and takes time in proportion to the lengths of pattern and path.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from suture.errors import UsageError
from suture.project.tuning import MAX_GLOB_CHARS, MAX_MATCH_STEPS


@dataclass(frozen=True, kw_only=True)
class Glob:
    """A parsed line of a `.gitignore`.

    Attributes:
        expression: A regular expression for the whole path, or for the name if the pattern is not anchored.
        literal: A string that is in everything that matches; empty if there is none.
        negated: Whether it starts with `!` and cancels earlier patterns.
        anchored: Whether it starts at the folder of its file; otherwise it matches names at any depth.
    """

    expression: str
    literal: str
    negated: bool
    folders_only: bool
    anchored: bool

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The compiled expression; most patterns of a long list are never tried."""
        return re.compile(self.expression)


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
        self._charge(len(self.patterns))
        name = path.rpartition("/")[2]
        # Nearly all paths have none of these strings, and a project may have 100,000 files.
        if not self._any_literal.search(path):
            return None
        for pattern in reversed(self.patterns):
            subject = path if pattern.anchored else name
            if pattern.literal in subject and (is_folder or not pattern.folders_only):
                self._charge(len(subject))
                if pattern.regex.fullmatch(subject):
                    return not pattern.negated
        return None

    def covers(self, path: str) -> bool:
        """Return whether the patterns include a file or a folder around it. Raises as `verdict`."""
        parts = path.split("/")
        folders = ("/".join(parts[:count]) for count in range(1, len(parts)))
        if any(self.verdict(folder, is_folder=True) for folder in folders):
            return True
        return self.verdict(path, is_folder=False) is True

    @cached_property
    def _any_literal(self) -> re.Pattern[str]:
        literals = {pattern.literal for pattern in self.patterns}
        return re.compile("|".join(map(re.escape, sorted(literals))) if literals else NOTHING)

    def _charge(self, steps: int) -> None:
        """Count comparisons. Raises a `UsageError` if none are left."""
        self.steps_left -= steps
        if self.steps_left < 0:
            raise UsageError(
                f"{self.source}: matching takes too long",
                remedy="use fewer or simpler patterns, or name a smaller folder",
            )


def parse_globs(lines: Iterable[str], source: str = "the patterns") -> Globs:
    """Parse patterns as git parses a `.gitignore`. Lines that can match nothing are skipped.

    Args:
        source: Where they come from, for error messages.
    """
    parsed = (parse_glob(line) for line in lines)
    return Globs(patterns=tuple(glob for glob in parsed if glob is not None), source=source)


NOTHING = "(?!)"
NO_LITERAL = re.compile(r"\\.|\[.*|[*?/]", re.DOTALL)
"""What separates the literal parts of a pattern. What follows a bracket is ignored."""
ONE = "[^/]"
FOLDERS = "(?:[^/]+/)*"
CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\s",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
"""Name of a POSIX class, as in `[[:alpha:]]` -> what a regular expression has for it inside of brackets."""
STAR = None
Part = list[str | None]
"""A part of a pattern between two slashes: a regular expression for each character, and `STAR`."""


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
    parts = _split(text.removeprefix("/"))
    if not text or parts is None:
        return None
    return Glob(
        expression=_translate_path(parts) if anchored else _translate_part(parts[0]),
        literal=max(NO_LITERAL.split(text), key=len),
        negated=negated,
        folders_only=folders_only,
        anchored=anchored,
    )


def _strip_spaces(line: str) -> str:
    """Return a line without the spaces at its end, except for one that a backslash escapes."""
    stripped = line.rstrip(" ")
    backslashes = len(stripped) - len(stripped.rstrip("\\"))
    return f"{stripped} " if backslashes % 2 and len(stripped) < len(line) else stripped


def _translate_path(parts: Sequence[Part]) -> str:
    """Return a regular expression for a path. `**` matches any folders; at the end, what is in the folder."""
    sequences: list[list[str]] = [[]]
    for part in parts:
        if part == [STAR, STAR]:
            sequences.append([])
        else:
            sequences[-1].append(_translate_part(part))
    if len(sequences) == 1:
        return "/".join(sequences[0])
    first, *middle, last = ("".join(f"{part}/" for part in sequence) for sequence in sequences)
    expression = first + "".join(f"(?>{FOLDERS}?{folders})" for folders in middle if folders)
    return expression + (FOLDERS + last.removesuffix("/") if last else "(?s:.+)")


def _translate_part(part: Part) -> str:
    """Return a regular expression for one name in a path."""
    texts = [""]
    for token in part:
        if token is STAR:
            texts.append("")
        else:
            texts[-1] += token
    if len(texts) == 1:
        return texts[0]
    first, *middle, last = texts
    return f"{first}{''.join(f'(?>{ONE}*?{text})' for text in middle if text)}{ONE}*{last}"


def _split(text: str) -> list[Part] | None:
    """Split a pattern at its slashes; return `None` if it can match nothing."""
    parts: list[Part] = [[]]
    position = 0
    while position < len(text):
        char = text[position]
        position += 1
        if char == "/":
            parts.append([])
        elif char == "*":
            parts[-1].append(STAR)
        elif char == "?":
            parts[-1].append(ONE)
        elif char == "[":
            translated = _translate_set(text, position)
            if translated is None:
                return None
            expression, position = translated
            parts[-1].append(expression)
        elif char == "\\":
            if position == len(text):
                return None
            parts[-1].append(re.escape(text[position]))
            position += 1
        else:
            parts[-1].append(re.escape(char))
    return parts


def _translate_set(text: str, position: int) -> tuple[str, int] | None:
    """Translate a set such as `[a-z]`; return (expression, position after it), or `None` if it does not end."""
    negated = text[position : position + 1] in ("!", "^")
    position += negated
    members = ""
    content_start = position
    while position < len(text) and (text[position] != "]" or position == content_start):
        if text.startswith("[:", position) and (end := text.find(":]", position + 2)) >= 0:
            if text[position + 2 : end] not in CLASSES:
                return None
            members += CLASSES[text[position + 2 : end]]
            position = end + 2
            continue
        first, position = _char(text, position)
        if text[position : position + 1] == "-" and text[position + 1 : position + 2] not in ("", "]"):
            last, position = _char(text, position + 1)
            # As in git, a range that runs backwards matches its first character.
            members += f"{re.escape(first)}-{re.escape(last)}" if first <= last else re.escape(first)
        else:
            members += re.escape(first)
    if position >= len(text):
        return None
    if negated:
        return f"[^/{members}]", position + 1
    return f"(?!/)[{members}]" if members else NOTHING, position + 1


def _char(text: str, position: int) -> tuple[str, int]:
    """Return (character at a position, position after it). A backslash escapes the character after it."""
    if text[position] == "\\" and position + 1 < len(text):
        return text[position + 1], position + 2
    return text[position], position + 1
