"""Which tokens a language's own sources have side by side: how likely a change of one of them is meant.

A broken source is taken for one that lost a token, got one, or got another instead (a noisy channel): a
change is as likely as the text that it makes, by the project's own tokens, times the odds of that slip.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher, get_close_matches

from suture.mutation.syntax_repair.source_lines import LineRewrite, rewrite_line
from suture.mutation.syntax_repair.stopped import ParseStop
from suture.mutation.syntax_repair.lexer import END, Lexer, SourceToken

BACK, ON = 14, 3
"""Tokens before the one at which reading stopped, and behind it, that are looked at."""
HEADS = 2
"""Lines before it whose first token is looked at, however far that is."""
FAR = 0.93
"""What each token between leaves of a change's weight."""
ADDED, INSTEAD = 0.5, 0.2
"""Odds of a slip, where a lost token is 1, times those of the token that stands there: one too many, one for
another."""
DOUBLED, STRAY, MISSPELT = 0.2, 0.5, 0.5
"""The same of a token that stands there twice, is none of the language, or is spelt like another."""
ALIKE = 0.6
ENDING, OPENING = (",", ";", ")", "]", "."), ("(", "[", "!", "~", "...", ".")
"""Signs before which, and behind which, no space is written."""
GROWING = re.compile(r"[\w$]")
NEAR_ROWS, MOST_NAMES = 30, 60
MOST = 2500
"""Changes of one place, at most."""
SOFT = 4.0
ORDERS = (0.55, 0.3, 0.12, 0.03)
"""Weights of three tokens, two, one, and of none."""


class Habits:
    """How often tokens stand side by side.

    Args:
        sources: The tokens of sources.
    """

    def __init__(self, sources: Sequence[Sequence[SourceToken]]) -> None:
        self._kinds: tuple[Counter[tuple[str, ...]], ...] = (Counter(), Counter(), Counter())
        self._before: tuple[Counter[tuple[str, ...]], ...] = (Counter(), Counter(), Counter())
        self._texts: Counter[str] = Counter()
        self._pairs: Counter[tuple[str, str]] = Counter()
        self._sizes: Counter[str] = Counter()
        for tokens in sources:
            kinds = [END, END, *map(token_class, tokens)]
            texts = [END, END, *(token.text for token in tokens)]
            for at in range(2, len(kinds)):
                for size in range(3):
                    self._kinds[size][tuple(kinds[at - size : at + 1])] += 1
                    self._before[size][tuple(kinds[at - size : at])] += 1
                self._texts[texts[at]] += 1
                self._pairs[texts[at - 1], texts[at]] += 1
                self._sizes[kinds[at]] += 1

    def logs_of(self, tokens: Sequence[tuple[str, str]], start: int) -> float:
        """The logarithm of how likely tokens are from one on, each its kind and text."""
        return sum(math.log(self._odds(tokens, at)) for at in range(start, len(tokens)))

    def alone(self, token: SourceToken) -> float:
        """How likely it is that somebody writes a token, wherever it is."""
        whole = sum(self._sizes.values()) + 1
        return 0.7 * self._texts[token.text] / whole + 0.3 / 200

    def knows(self, text: str) -> bool:
        """Whether it stands anywhere else."""
        return self._texts[text] > 0

    def _odds(self, tokens: Sequence[tuple[str, str]], at: int) -> float:
        kinds = [kind for kind, _ in tokens[max(0, at - 2) : at + 1]]
        odds = ORDERS[3] / 100
        for size, weight in zip((2, 1, 0), ORDERS, strict=False):
            if len(kinds) > size and (seen := self._before[size][tuple(kinds[len(kinds) - 1 - size : -1])]):
                odds += weight * self._kinds[size][tuple(kinds[len(kinds) - 1 - size :])] / seen
        kind, text = tokens[at]
        if kind == text:
            return odds
        odds *= (self._texts[text] + 0.2) / (self._sizes[kind] + 10)
        before = tokens[at - 1][1] if at else END
        seen = self._texts[before]
        return 0.6 * odds + (0.4 * self._pairs[before, text] / seen if seen else 0.0)


def token_class(token: SourceToken) -> str:
    """A token of a language stands for itself, others for their kind."""
    return token.text if token.kind in ("sign", "end") else token.kind


def rewrite_by_token_model(
    lines: list[str], stop: ParseStop, lexis: Lexer, others: Sequence[Sequence[SourceToken]]
) -> Iterator[LineRewrite]:
    """One token more, less or another, at the stop or before it.

    Args:
        lines: The source's.
        stop: Where reading stopped.
        lexis: The language's tokens.
        others: Those of other sources of the project.
    """
    tokens = lexis.tokens("\n".join(lines))
    row, column = stop.line - 1, stop.column
    here = next((n for n, t in enumerate(tokens) if (t.row, t.end) > (row, column)), len(tokens))
    calm = [token for token in tokens if not row - 1 <= token.row <= row]
    habits = Habits([calm, *others])
    near = [t for t in tokens if abs(t.row - row) <= NEAR_ROWS and t.kind in ("word", "number")]
    counts = Counter(token.text for token in near)
    spoken = {token.text: token.kind for token in near if counts[token.text]}
    names = {text: spoken[text] for text, _ in counts.most_common(MOST_NAMES)}
    made: list[tuple[float, LineRewrite]] = []
    places = {at: FAR ** abs(here - at) for at in range(max(0, here - BACK), min(len(tokens), here + ON) + 1)}
    for at, token in enumerate(tokens[:here]):
        if row - HEADS <= token.row and (not at or tokens[at - 1].kind == "end"):
            places.setdefault(at, FAR**BACK)  # what a line begins with may be far from where it fails
    for at, share in places.items():
        for logs, number, text, note in _changes(lines, tokens, at, habits, lexis, names):
            weight = share / (1 + math.exp(-logs / SOFT))
            made.append((weight, rewrite_line(lines, number, text, note, weight)))
    made.sort(key=lambda pair: -pair[0])
    yield from (rewrite for _, rewrite in made[:MOST])


def _changes(
    lines: list[str],
    tokens: Sequence[SourceToken],
    at: int,
    habits: Habits,
    lexis: Lexer,
    names: dict[str, str],
) -> Iterator[tuple[float, int, str, str]]:
    """Changes at one token: logarithm of the odds, line, its text, and a note."""
    first = max(0, at - 2)
    pairs = [(token_class(token), token.text) for token in tokens[first : at + 3]]
    before, rest = pairs[: at - first], pairs[at - first :]
    here = tokens[at] if at < len(tokens) else None
    usual = [(known, known) for known in lexis.known] + [(kind, name) for name, kind in names.items()]

    def gain(new: list[tuple[str, str]], rest: list[tuple[str, str]], old: float, odds: float) -> float:
        return habits.logs_of([*before, *new, *rest], len(before)) - old + math.log(odds)

    old = habits.logs_of(pairs, len(before))
    number, place = (here.row, here.start) if here is not None else (len(lines) - 1, len(lines[-1]))
    line = lines[number]
    if at and (here is None or here.kind == "end") and tokens[at - 1].row == number:
        place = tokens[at - 1].end  # before a comment
    for kind, text in usual:
        put = _put(line, place, place, text)
        yield gain([(kind, text)], rest, old, 1.0), number, put, f"{text} is missing"
    if here is None or here.kind == "end" or "\n" in here.text:
        return
    twice = here.text in [text for _, text in (*before[-1:], *rest[1:2])]
    is_stray = here.kind == "sign" and here.text not in lexis.known
    chance = habits.alone(here)
    odds = STRAY if is_stray else DOUBLED if twice else ADDED * chance
    yield gain([], rest[1:], old, odds), number, _without(line, here), f"{here.text} is too much"
    is_odd = here.kind == "word" and not habits.knows(here.text)
    alike = similar(here.text, lexis.known) if is_odd else []
    for kind, text in usual:
        if text != here.text:
            odds = MISSPELT if text in alike else INSTEAD * chance
            put = _put(line, here.start, here.end, text)
            yield gain([(kind, text)], rest[1:], old, odds), number, put, f"{here.text} becomes {text}"


def similar(word: str, known: Sequence[str] | frozenset[str]) -> list[str]:
    """Words that one may be a slip for: of the same letters, or nearly so."""
    folded = word.lower()
    same = [one for one in known if sorted(one.lower()) == sorted(folded) and len(one) > 1]
    close = get_close_matches(folded, sorted(known), 3, ALIKE)
    return list(dict.fromkeys([*same, *(one for one in close if _is_slip(folded, one))]))


def _is_slip(word: str, meant: str) -> bool:
    """Whether little more than a letter differs."""
    kept = sum(block.size for block in SequenceMatcher(None, word, meant).get_matching_blocks())
    return max(len(word), len(meant)) - kept <= 1 + len(meant) // 6


def _put(line: str, start: int, end: int, text: str) -> str:
    """A token at a place of a line, with space where words would grow together."""
    before, behind = line[:start], line[end:]
    if start == end and before.strip() and before.endswith(" "):
        before, behind = before.rstrip(), behind.lstrip()
        left = "" if text in ENDING else " "
        return f"{before}{left}{text}{'' if text in OPENING else ' '}{behind}"
    glued = GROWING.match(before[-1:] or " ") is not None and GROWING.match(text) is not None
    follows = GROWING.match(text[-1]) is not None and GROWING.match(behind) is not None
    return f"{before}{' ' * glued}{text}{' ' * follows}{behind}"


def _without(line: str, token: SourceToken) -> str:
    """A line without a token, and without the space that stood around it."""
    before, behind = line[: token.start], line[token.end :]
    if not before.strip() or behind[:1] != " ":
        return f"{before.rstrip() if before.strip() else before}{behind}"
    before, behind = before.rstrip(), behind.lstrip()
    return f"{before}{'' if behind[:1] in ',;)]' or before[-1:] in '([' else ' '}{behind}"
