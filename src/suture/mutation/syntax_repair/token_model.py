"""A language model of tokens that ranks changes of a source that does not parse.

The model is a noisy channel: a broken source is one that has lost a token, gained one, or got another one
instead. A change is as likely as the resulting text, by the token statistics of the project, times the odds
of that slip.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from functools import lru_cache

from suture.mutation.syntax_repair.source_lines import LineRewrite, ParseStop, rewrite_line
from suture.mutation.tuning import (
    CONTEXT_ROWS,
    DOUBLED_TOKEN_ODDS,
    EXTRA_TOKEN_ODDS,
    LINE_STARTS_BEFORE_STOP,
    MAX_CONTEXT_NAMES,
    MAX_TOKEN_CHANGES,
    MIN_KEYWORD_SIMILARITY,
    MISSPELT_TOKEN_ODDS,
    NGRAM_WEIGHTS,
    ODDS_SOFTNESS,
    STRAY_TOKEN_ODDS,
    TOKEN_DISTANCE_FACTOR,
    TOKENS_AFTER_STOP,
    TOKENS_BEFORE_STOP,
    WRONG_TOKEN_ODDS,
)

LINE_END = "\n"
"""The end of a line is a token, because it may end a statement."""
WORD = re.compile(r"[^\W\d]\w*|[$#@]?[\w$]+")
BEFORE_REGEX = re.compile(r"[(,=:\[!&|?{};+\-*%<>~^]$|^(?:return|typeof|case|in|of|=>)$|^\n$")
"""Tokens after which a slash begins a regular expression and not a division."""
STRING = r""""(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'"""
TEMPLATE_PIECE = re.compile(r"(?:\\.|\$(?!\{)|[^`\\$])*(?:`|\$\{)", re.DOTALL)
"""A piece of a template string, up to its end or to an expression in it."""
REGEX = re.compile(r"/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/[a-z]*")


@dataclass(frozen=True, kw_only=True)
class SourceToken:
    """A token of a source.

    Attributes:
        kind: `word`, `number`, `string`, `sign` or `end`; keywords are signs.
        text: The text in the source.
        row: Its line, from 0; the first one if it has several.
        start: Where it begins in that line, in characters.
    """

    kind: str
    text: str
    row: int
    start: int

    @property
    def end(self) -> int:
        """Where it ends in the same line, in characters."""
        return self.start + len(self.text)


@dataclass(frozen=True, kw_only=True)
class Lexer:
    """Splits sources of one language into tokens.

    Attributes:
        known: The keywords and signs of the language.
    """

    known: frozenset[str]

    @property
    def pattern(self) -> re.Pattern[str]:
        """The pattern of one token, with a group for each kind."""
        return _pattern(self.known)

    def tokens(self, text: str) -> list[SourceToken]:
        """Return all tokens but comments, as far as a source that does not parse has them."""
        found: list[SourceToken] = []
        at = row = begins = 0
        open_braces: list[int] = []  # open braces in the expression of each open template string
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
        """Return the kind and the text of the token at an offset."""
        if text[at] == "`" or (text[at] == "}" and open_braces and not open_braces[-1]):
            piece = TEMPLATE_PIECE.match(text, at + 1)
            if piece is not None:
                open_braces[-1:] = [] if text[at] == "}" else open_braces[-1:]
                if piece[0].endswith("{"):
                    open_braces.append(0)
                return "string", text[at] + piece[0]
        if text[at] == "/" and (not found or BEFORE_REGEX.search(found[-1].text)):
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


CLOSING_SIGNS, OPENING_SIGNS = (",", ";", ")", "]", "."), ("(", "[", "!", "~", "...", ".")
"""Signs before which, and after which, no space is written."""
WORD_CHARACTER = re.compile(r"[\w$]")


class TokenModel:
    """How often tokens follow each other.

    Args:
        sources: The tokens of some sources.
    """

    def __init__(self, sources: Sequence[Sequence[SourceToken]]) -> None:
        self._kinds: tuple[Counter[tuple[str, ...]], ...] = (Counter(), Counter(), Counter())
        self._before: tuple[Counter[tuple[str, ...]], ...] = (Counter(), Counter(), Counter())
        self._texts: Counter[str] = Counter()
        self._pairs: Counter[tuple[str, str]] = Counter()
        self._sizes: Counter[str] = Counter()
        for tokens in sources:
            kinds = [LINE_END, LINE_END, *map(token_class, tokens)]
            texts = [LINE_END, LINE_END, *(token.text for token in tokens)]
            for at in range(2, len(kinds)):
                for size in range(3):
                    self._kinds[size][tuple(kinds[at - size : at + 1])] += 1
                    self._before[size][tuple(kinds[at - size : at])] += 1
                self._texts[texts[at]] += 1
                self._pairs[texts[at - 1], texts[at]] += 1
                self._sizes[kinds[at]] += 1

    def log_likelihood(self, tokens: Sequence[tuple[str, str]], start: int) -> float:
        """Return the log-likelihood of tokens from an index on; each is its class and its text."""
        return sum(math.log(self._odds(tokens, at)) for at in range(start, len(tokens)))

    def unigram_odds(self, token: SourceToken) -> float:
        """Return how likely a token is anywhere."""
        whole = sum(self._sizes.values()) + 1
        return 0.7 * self._texts[token.text] / whole + 0.3 / 200

    def knows(self, text: str) -> bool:
        """Return whether a text appears as a token in the sources."""
        return self._texts[text] > 0

    def _odds(self, tokens: Sequence[tuple[str, str]], at: int) -> float:
        kinds = [kind for kind, _ in tokens[max(0, at - 2) : at + 1]]
        odds = NGRAM_WEIGHTS[3] / 100
        for size, weight in zip((2, 1, 0), NGRAM_WEIGHTS, strict=False):
            if len(kinds) > size and (counts := self._before[size][tuple(kinds[len(kinds) - 1 - size : -1])]):
                odds += weight * self._kinds[size][tuple(kinds[len(kinds) - 1 - size :])] / counts
        kind, text = tokens[at]
        if kind == text:
            return odds
        odds *= (self._texts[text] + 0.2) / (self._sizes[kind] + 10)
        before = tokens[at - 1][1] if at else LINE_END
        counts = self._texts[before]
        return 0.6 * odds + (0.4 * self._pairs[before, text] / counts if counts else 0.0)


def token_class(token: SourceToken) -> str:
    """Return the class of a token: its text for keywords and signs, else its kind."""
    return token.text if token.kind in ("sign", "end") else token.kind


def rewrite_by_token_model(
    lines: list[str], stop: ParseStop, lexer: Lexer, others: Sequence[Sequence[SourceToken]]
) -> Iterator[LineRewrite]:
    """Yield rewrites that insert, delete or replace one token near the stop, the likeliest first.

    Args:
        lines: The lines of the source.
        stop: Where parsing stopped.
        lexer: The tokens of the language.
        others: The tokens of other sources of the project.
    """
    tokens = lexer.tokens("\n".join(lines))
    row, column = stop.line - 1, stop.column
    here = next((n for n, t in enumerate(tokens) if (t.row, t.end) > (row, column)), len(tokens))
    calm = [token for token in tokens if not row - 1 <= token.row <= row]
    habits = TokenModel([calm, *others])
    near = [t for t in tokens if abs(t.row - row) <= CONTEXT_ROWS and t.kind in ("word", "number")]
    counts = Counter(token.text for token in near)
    spoken = {token.text: token.kind for token in near if counts[token.text]}
    names = {text: spoken[text] for text, _ in counts.most_common(MAX_CONTEXT_NAMES)}
    rewrites: list[tuple[float, LineRewrite]] = []
    places = {
        at: TOKEN_DISTANCE_FACTOR ** abs(here - at)
        for at in range(max(0, here - TOKENS_BEFORE_STOP), min(len(tokens), here + TOKENS_AFTER_STOP) + 1)
    }
    for at, token in enumerate(tokens[:here]):
        if row - LINE_STARTS_BEFORE_STOP <= token.row and (not at or tokens[at - 1].kind == "end"):
            places.setdefault(
                at, TOKEN_DISTANCE_FACTOR**TOKENS_BEFORE_STOP
            )  # the first token of a line may be far from where it fails
    for at, share in places.items():
        for logs, number, text, note in _changes(lines, tokens, at, habits, lexer, names):
            weight = share / (1 + math.exp(-logs / ODDS_SOFTNESS))
            rewrites.append((weight, rewrite_line(lines, number, text, note, weight)))
    rewrites.sort(key=lambda pair: -pair[0])
    yield from (rewrite for _, rewrite in rewrites[:MAX_TOKEN_CHANGES])


def _changes(
    lines: list[str],
    tokens: Sequence[SourceToken],
    at: int,
    habits: TokenModel,
    lexer: Lexer,
    names: dict[str, str],
) -> Iterator[tuple[float, int, str, str]]:
    """Yield changes at one token: log odds, line number, the new line, and a note."""
    first = max(0, at - 2)
    pairs = [(token_class(token), token.text) for token in tokens[first : at + 3]]
    before, rest = pairs[: at - first], pairs[at - first :]
    here = tokens[at] if at < len(tokens) else None
    usual = [(known, known) for known in lexer.known] + [(kind, name) for name, kind in names.items()]

    def gain(new: list[tuple[str, str]], rest: list[tuple[str, str]], old: float, odds: float) -> float:
        return habits.log_likelihood([*before, *new, *rest], len(before)) - old + math.log(odds)

    old = habits.log_likelihood(pairs, len(before))
    number, place = (here.row, here.start) if here is not None else (len(lines) - 1, len(lines[-1]))
    line = lines[number]
    if at and (here is None or here.kind == "end") and tokens[at - 1].row == number:
        place = tokens[at - 1].end  # before a comment
    for kind, text in usual:
        put = _place_token(line, place, place, text)
        yield gain([(kind, text)], rest, old, 1.0), number, put, f"{text} is missing"
    if here is None or here.kind == "end" or "\n" in here.text:
        return
    twice = here.text in [text for _, text in (*before[-1:], *rest[1:2])]
    is_stray = here.kind == "sign" and here.text not in lexer.known
    chance = habits.unigram_odds(here)
    odds = STRAY_TOKEN_ODDS if is_stray else DOUBLED_TOKEN_ODDS if twice else EXTRA_TOKEN_ODDS * chance
    yield gain([], rest[1:], old, odds), number, _remove_token(line, here), f"{here.text} is superfluous"
    is_odd = here.kind == "word" and not habits.knows(here.text)
    alike = similar_keywords(here.text, lexer.known) if is_odd else []
    for kind, text in usual:
        if text != here.text:
            odds = MISSPELT_TOKEN_ODDS if text in alike else WRONG_TOKEN_ODDS * chance
            put = _place_token(line, here.start, here.end, text)
            yield gain([(kind, text)], rest[1:], old, odds), number, put, f"{here.text} becomes {text}"


def similar_keywords(word: str, known: Sequence[str] | frozenset[str]) -> list[str]:
    """Return keywords that a word may be a slip for: of the same letters, or nearly so."""
    folded = word.lower()
    same = [one for one in known if sorted(one.lower()) == sorted(folded) and len(one) > 1]
    close = get_close_matches(folded, sorted(known), 3, MIN_KEYWORD_SIMILARITY)
    return list(dict.fromkeys([*same, *(one for one in close if _is_slip(folded, one))]))


def _is_slip(word: str, meant: str) -> bool:
    """Return whether little more than a letter differs."""
    common = sum(block.size for block in SequenceMatcher(None, word, meant).get_matching_blocks())
    return max(len(word), len(meant)) - common <= 1 + len(meant) // 6


def _place_token(line: str, start: int, end: int, text: str) -> str:
    """Return a line with a token in place of a span, with blanks where words would join."""
    before, following = line[:start], line[end:]
    if start == end and before.strip() and before.endswith(" "):
        before, following = before.rstrip(), following.lstrip()
        left = "" if text in CLOSING_SIGNS else " "
        return f"{before}{left}{text}{'' if text in OPENING_SIGNS else ' '}{following}"
    glued = WORD_CHARACTER.match(before[-1:] or " ") is not None and WORD_CHARACTER.match(text) is not None
    follows = WORD_CHARACTER.match(text[-1]) is not None and WORD_CHARACTER.match(following) is not None
    return f"{before}{' ' * glued}{text}{' ' * follows}{following}"


def _remove_token(line: str, token: SourceToken) -> str:
    """Return a line without a token and the blanks around it."""
    before, following = line[: token.start], line[token.end :]
    if not before.strip() or following[:1] != " ":
        return f"{before.rstrip() if before.strip() else before}{following}"
    before, following = before.rstrip(), following.lstrip()
    return f"{before}{'' if following[:1] in ',;)]' or before[-1:] in '([' else ' '}{following}"
