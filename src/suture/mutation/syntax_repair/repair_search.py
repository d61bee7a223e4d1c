"""A beam search for changes that make a source parse."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from suture.mutation import tuning
from suture.mutation.syntax_repair.brackets_and_quotes import rewrite_brackets, rewrite_strings
from suture.mutation.syntax_repair.python_rewrites import (
    rewrite_assignments,
    rewrite_colons,
    rewrite_foreign_syntax,
    rewrite_keywords,
    rewrite_tokens,
)
from suture.mutation.syntax_repair.source_lines import (
    LineRewrite,
    ParseStop,
    find_python_stop,
    rewrite_indentation,
)

RewriteFamily = Callable[[list[str], ParseStop], Iterator[LineRewrite]]
"""Yields rewrites of a source's lines near the position where parsing stopped."""
PYTHON_FAMILIES: tuple[RewriteFamily, ...] = (
    rewrite_foreign_syntax,
    rewrite_keywords,
    rewrite_colons,
    rewrite_assignments,
    rewrite_strings,
    rewrite_brackets,
    rewrite_indentation,
    rewrite_tokens,
)
TOKENIZER_MESSAGES = (
    "unterminated", "invalid decimal", "unmatched", "closing", "'", "unindent", "inconsistent", "invalid non",
)  # fmt: skip
"""Beginnings of messages of CPython's tokenizer.

CPython reports such an error before it parses any statement. So the line of the message does not show how far
parsing would get.
"""


@dataclass(frozen=True, kw_only=True)
class ParsableText:
    """A version of a broken source that parses.

    Attributes:
        label: The changes that led to it, in a few words.
        score: How likely its author meant it, in (0, 1].
    """

    text: str
    label: str
    score: float


@dataclass(frozen=True, kw_only=True)
class _State:
    """A version of the source that does not parse yet.

    Attributes:
        notes: The changes that led to it, each in a few words.
        score: How likely these changes are, in (0, 1].
    """

    lines: tuple[str, ...]
    stop: ParseStop
    notes: tuple[str, ...]
    score: float


@dataclass(frozen=True, kw_only=True)
class SyntaxReader:
    """How the sources of a language are parsed and rewritten.

    Attributes:
        find_stop: Returns where parsing a source stops; `None` if it parses.
        families: Yield the rewrites to try there.
        locate_exactly: Takes a source and its stop, and returns a more exact stop. It is slow, so it is called only for
            the likeliest sources of a round. `None` if `find_stop` is exact.
        few_results: The number of parsable sources with which the search ends without another round.
    """

    find_stop: Callable[[str], ParseStop | None]
    families: tuple[RewriteFamily, ...]
    locate_exactly: Callable[[str, ParseStop], ParseStop] | None = None
    few_results: int = tuning.FEW_PYTHON_RESULTS

    def locate(self, states: list[_State], end_s: float) -> list[_State]:
        """Return states with exact positions, as many as fit before `end_s` of the monotonic clock."""
        if self.locate_exactly is None:
            return states
        located: list[_State] = []
        for state in sorted(states, key=lambda state: -state.score)[: tuning.MAX_EXACT_STOPS]:
            if located and time.monotonic() > end_s:
                break
            stop = self.locate_exactly("\n".join(state.lines), state.stop)
            located.append(replace(state, stop=stop))
        return located


PYTHON_READER = SyntaxReader(find_stop=find_python_stop, families=PYTHON_FAMILIES)


def generate_rewrites(
    lines: list[str], stop: ParseStop, families: tuple[RewriteFamily, ...] = PYTHON_FAMILIES
) -> Iterator[LineRewrite]:
    """Yield rewrites near the position where parsing stopped; of rewrites with the same result only the first."""
    seen: set[tuple[tuple[int, str], ...]] = set()
    for family in families:
        for rewrite in family(lines, stop):
            key = tuple(sorted(rewrite.lines.items()))
            if key not in seen and any(lines[number] != text for number, text in rewrite.lines.items()):
                seen.add(key)
                yield rewrite


def find_parsable_texts(
    text: str, *, seconds: float = 5.0, reader: SyntaxReader = PYTHON_READER
) -> list[ParsableText]:
    """Return sources that parse and differ little from one that does not, the likeliest first.

    Args:
        text: The source; the result is empty if it parses.
        seconds: Wall-clock seconds, after which what has been found is returned.
    """
    return _BeamSearch(text, reader, time.monotonic() + seconds).run()


class _BeamSearch:
    """One search.

    In each round, all sources of the beam are rewritten. Those in which the parser gets furthest are the beam of the
    next round.
    """

    def __init__(self, text: str, reader: SyntaxReader, end_s: float) -> None:
        self._reader, self._end_s = reader, end_s
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self._lines = tuple(text.replace("\r\n", "\n").split("\n"))
        self._parsable: dict[str, ParsableText] = {}
        self._seen: set[str] = set()
        self._is_over = False

    def run(self) -> list[ParsableText]:
        """Return the parsable sources, the likeliest first."""
        stop = self._reader.find_stop("\n".join(self._lines))
        if stop is None:
            return []
        start = _State(lines=self._lines, stop=stop, notes=(), score=1.0)
        beam = self._reader.locate([start], self._end_s)
        is_last_round = False
        for _ in range(tuning.MAX_DEPTH):
            next_states = [state for base in beam for state in self._expand(base)]
            # Fewer changes are likelier meant, so that one more round after the first result is enough.
            has_enough = is_last_round or len(self._parsable) >= self._reader.few_results
            if self._is_over or (self._parsable and has_enough):
                break
            is_last_round = bool(self._parsable)
            beam = _select_beam(self._reader.locate(next_states, self._end_s))
        texts = sorted(self._parsable.values(), key=lambda parsable: -round(parsable.score, 6))
        return texts[: tuning.MAX_RESULTS]

    def _expand(self, state: _State) -> Iterator[_State]:
        """Parse all rewrites of a state; yield those in which the parser gets further."""
        if self._is_over:
            return
        rewrites = generate_rewrites(list(state.lines), state.stop, self._reader.families)
        for rewrite in sorted(rewrites, key=lambda rewrite: -rewrite.weight):
            lines = list(state.lines)
            for number, line in rewrite.lines.items():
                lines[number] = line
            text = "\n".join(lines)
            if text in self._seen:
                continue
            self._seen.add(text)
            score, notes = state.score * rewrite.weight, (*state.notes, rewrite.note)
            stop = self._reader.find_stop(text)
            if stop is None:
                final = text.replace("\n", self._newline)
                self._parsable[text] = ParsableText(text=final, label="; ".join(notes), score=score)
            elif _is_further(state.stop, stop):
                new_lines = tuple(text.split("\n"))
                yield _State(lines=new_lines, stop=stop, notes=notes, score=score * tuning.CHANGE_FACTOR)
            if len(self._seen) >= tuning.MAX_PARSED_TEXTS or time.monotonic() > self._end_s:
                self._is_over = True
                return


def _is_further(before: ParseStop, after: ParseStop) -> bool:
    """Return whether parsing stops later than before; another message counts as progress too."""
    return (after.line, after.column) > (before.line, before.column) or after.message != before.message


def _select_beam(states: list[_State]) -> list[_State]:
    """Return the states in which parsing gets furthest, a few of each stop.

    States with a message of CPython's tokenizer come last, because their stop does not show how far they get.
    """
    states.sort(key=lambda s: (s.stop.message.startswith(TOKENIZER_MESSAGES), -s.stop.line, -s.score))
    counts: Counter[tuple[int, str]] = Counter()
    selected = []
    for state in states:
        key = (state.stop.line, state.stop.message)
        counts[key] += 1
        if counts[key] <= tuning.MAX_EQUAL_STOPS:
            selected.append(state)
    return selected[: tuning.BEAM_WIDTH]
