"""A search for changes with which a source can be read: the best few at each depth go on."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from suture.mutation.syntax_repair import indentation, quotes, tokens
from suture.mutation.syntax_repair import brackets_and_quotes as brackets
from suture.mutation.syntax_repair import python_rewrites as words
from suture.mutation.syntax_repair.source_lines import LineRewrite
from suture.mutation.syntax_repair.stopped import ParseStop, find_python_stop

RewriteFamily = Callable[[list[str], ParseStop], Iterator[LineRewrite]]
FAMILIES: tuple[RewriteFamily, ...] = (
    words.rewrite_foreign_syntax,
    words.rewrite_keywords,
    words.rewrite_colons,
    words.rewrite_assignments,
    quotes.rewrite_strings,
    brackets.rewrite_brackets,
    indentation.rewrite_indentation,
    tokens.rewrite_tokens,
)


@dataclass(frozen=True, kw_only=True)
class _State:
    lines: tuple[str, ...]
    stop: ParseStop
    notes: tuple[str, ...]
    score: float


@dataclass(frozen=True, kw_only=True)
class SyntaxReader:
    """What reads a language.

    Attributes:
        stop_of: Where it stops; `None` where it reads a text to its end.
        families: What may be wrong there.
        exact: The same place told better, where that takes too long to be asked of every text: only the
            likeliest of a round are asked then.
        few: Texts with which another round is spared.
    """

    stop_of: Callable[[str], ParseStop | None]
    families: tuple[RewriteFamily, ...]
    exact: Callable[[str, ParseStop], ParseStop] | None = None
    few: int = 8

    def located(self, states: list[_State], end_s: float) -> list[_State]:
        """States that can go on, each with the place where reading stops, as far as there is time for it."""
        if self.exact is None:
            return states
        found: list[_State] = []
        for state in sorted(states, key=lambda state: -state.score)[:MOST_LOCATED]:
            if found and time.monotonic() > end_s:
                break
            found.append(replace(state, stop=self.exact("\n".join(state.lines), state.stop)))
        return found


PYTHON = SyntaxReader(stop_of=find_python_stop, families=FAMILIES)


def generate_rewrites(lines: list[str], stop: ParseStop, families: tuple[RewriteFamily, ...] = FAMILIES) -> Iterator[LineRewrite]:
    """Rewrites near the place where reading stopped, of each text the first.

    Args:
        lines: The source's lines, without their ends.
        stop: Where reading stopped.
        families: What may be wrong there.
    """
    seen: set[tuple[tuple[int, str], ...]] = set()
    for family in families:
        for rewrite in family(lines, stop):
            key = tuple(sorted(rewrite.lines.items()))
            if key not in seen and any(lines[number] != text for number, text in rewrite.lines.items()):
                seen.add(key)
                yield rewrite


BEAM = 14
"""Texts of each depth that go on."""
MOST_DEPTH = 8
"""Faults in one source."""
MOST_COMPILED = 6000
ENOUGH = 60
MOST_LOCATED = 80
"""Texts of a round whose place is told better."""
ALIKE = 4
"""Texts that go on of those that stop at one place with one word."""
OF_TOKENS = (
    "unterminated",
    "invalid decimal",
    "unmatched",
    "closing",
    "'",
    "unindent",
    "inconsistent",
    "invalid non",
)
"""What is said before any statement is read: a source without it may yet stop anywhere."""
EACH = 0.5
"""What each further change leaves of a score."""


@dataclass(frozen=True, kw_only=True)
class ParsableText:
    """A text that can be read.

    Attributes:
        text: The text.
        label: How it came out of the one that does not.
        score: How likely that is meant; in (0, 1].
    """

    text: str
    label: str
    score: float


def find_parsable_texts(text: str, *, seconds: float = 5.0, reader: SyntaxReader = PYTHON) -> list[ParsableText]:
    """Texts that can be read and differ little from one that cannot, the likeliest first.

    Args:
        text: The source; where it can be read there is nothing to do.
        seconds: Wall-clock seconds, after which what was found must do.
        reader: What reads it.
    """
    end_s = time.monotonic() + seconds
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = tuple(text.replace("\r\n", "\n").split("\n"))
    stop = reader.stop_of("\n".join(lines))
    if stop is None:
        return []
    beam = reader.located([_State(lines=lines, stop=stop, notes=(), score=1.0)], end_s)
    found: dict[str, ParsableText] = {}
    seen: set[str] = set()
    compiled, last = 0, False
    for _ in range(MOST_DEPTH):
        onward: list[_State] = []
        for state in beam:
            offered = generate_rewrites(list(state.lines), state.stop, reader.families)
            for rewrite in sorted(offered, key=lambda r: -r.weight):
                changed = list(state.lines)
                for number, new in rewrite.lines.items():
                    changed[number] = new
                whole = "\n".join(changed)
                if whole in seen:
                    continue
                seen.add(whole)
                compiled += 1
                score = state.score * rewrite.weight
                notes = (*state.notes, rewrite.note)
                after = reader.stop_of(whole)
                if after is None:
                    found[whole] = ParsableText(
                        text=whole.replace("\n", newline), label="; ".join(notes), score=score
                    )
                elif _gets_further(state.stop, after):
                    lines_now = tuple(whole.split("\n"))
                    onward.append(_State(lines=lines_now, stop=after, notes=notes, score=score * EACH))
                if compiled >= MOST_COMPILED or time.monotonic() > end_s:
                    return _best(found)
        if found and (len(found) >= reader.few or last):
            break  # fewer changes are likelier meant
        last = bool(found)
        beam = _varied(reader.located(onward, end_s))
    return _best(found)


def _gets_further(before: ParseStop, after: ParseStop) -> bool:
    return (after.line, after.column) > (before.line, before.column) or after.message != before.message


def _varied(states: list[_State]) -> list[_State]:
    """The states that get furthest, the likeliest few of each place: what is said of tokens comes first."""
    states.sort(key=lambda s: (s.stop.message.startswith(OF_TOKENS), -s.stop.line, -s.score))
    counts: Counter[tuple[int, str]] = Counter()
    kept = []
    for state in states:
        place = (state.stop.line, state.stop.message)
        counts[place] += 1
        if counts[place] <= ALIKE:
            kept.append(state)
    return kept[:BEAM]


def _best(found: dict[str, ParsableText]) -> list[ParsableText]:
    return sorted(found.values(), key=lambda readable: -round(readable.score, 6))[:ENOUGH]
