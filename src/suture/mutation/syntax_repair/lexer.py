"""The tokens of a whole source that cannot be read, in a language with brackets around its blocks."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

END = "\n"
"""What ends a line: a token of its own, as it may end a statement."""
WORD = re.compile(r"[^\W\d]\w*|[$#@]?[\w$]+")
BEFORE_PATTERNS = re.compile(r"[(,=:\[!&|?{};+\-*%<>~^]$|^(?:return|typeof|case|in|of|=>)$|^\n$")
"""What a regular expression may stand behind, and a division cannot."""
STRING = r""""(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'"""
PIECE = re.compile(r"(?:\\.|\$(?!\{)|[^`\\$])*(?:`|\$\{)", re.DOTALL)
"""Of a long string, up to its end or to code within it."""
REGEX = re.compile(r"/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/[a-z]*")


@dataclass(frozen=True, kw_only=True)
class SourceToken:
    """A token of a source.

    Attributes:
        kind: `word`, `number`, `string`, `sign` or `end`; a word of the language is a sign.
        text: As the source has it.
        row: Its line, from 0; where it is of several lines, the first.
        start: Where it begins in that, in characters.
    """

    kind: str
    text: str
    row: int
    start: int

    @property
    def end(self) -> int:
        """Where it ends, in the same line."""
        return self.start + len(self.text)


@dataclass(frozen=True, kw_only=True)
class Lexer:
    """What a language's tokens are.

    Attributes:
        known: Its own words and signs.
    """

    known: frozenset[str]

    @property
    def pattern(self) -> re.Pattern[str]:
        """One token; each kind is a group."""
        return _pattern(self.known)

    def tokens(self, text: str) -> list[SourceToken]:
        """All tokens but comments, as far as they can be told."""
        found: list[SourceToken] = []
        at = row = begins = 0
        open_braces: list[int] = []  # of each long string that is interrupted by code, those of that code
        while at < len(text):
            kind, token = self._next(text, at, found, open_braces)
            if kind == "word" and token in self.known:
                kind = "sign"
            if kind not in ("comment", "space"):
                found.append(SourceToken(kind=kind, text=token, row=row, start=at - begins))
            if lines := token.count("\n"):
                row, begins = row + lines, at + token.rindex("\n") + 1
            at += len(token)
        return found

    def _next(self, text: str, at: int, found: list[SourceToken], open_braces: list[int]) -> tuple[str, str]:
        """The kind and the text of the token at a place."""
        if text[at] == "`" or (text[at] == "}" and open_braces and not open_braces[-1]):
            piece = PIECE.match(text, at + 1)
            if piece is not None:
                open_braces[-1:] = [] if text[at] == "}" else open_braces[-1:]
                if piece[0].endswith("{"):
                    open_braces.append(0)
                return "string", text[at] + piece[0]
        if text[at] == "/" and (not found or BEFORE_PATTERNS.search(found[-1].text)):
            pattern = REGEX.match(text, at)
            if pattern is not None:
                return "string", pattern[0]
        match = self.pattern.match(text, at)
        if match is None:
            return "space", text[at]
        if open_braces:
            open_braces[-1] += (match[0] == "{") - (match[0] == "}")
        return match.lastgroup or "", match[0]


@lru_cache(maxsize=8)
def _pattern(known: Collection[str]) -> re.Pattern[str]:
    signs = sorted((s for s in known if not WORD.fullmatch(s)), key=lambda s: (-len(s), s))
    either = "|".join(map(re.escape, signs))
    return re.compile(
        rf"""(?P<comment>//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)|(?P<end>\n)|(?P<space>[^\S\n]+)"""
        rf"""|(?P<string>{STRING}|`(?:\\.|[^`\\])*`)"""
        rf"""|(?P<number>\d(?:[\w.]|(?<=[eE])[-+])*)|(?P<word>[@#]?[^\W\d$]\w*(?:\$\w*)*|\$[\w$]*)"""
        rf"""|(?P<sign>{either}|[^\s\w])"""
    )
