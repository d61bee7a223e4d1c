"""A mutant as edits of a text: what is not edited keeps its form to the byte."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher


@dataclass(frozen=True, kw_only=True)
class Edit:
    """A stretch of a source and what stands there instead.

    Attributes:
        start: Offset in the UTF-8 bytes of the source.
        end: Offset behind the last byte that goes; equal to `start` for an insertion.
        text: What comes in its place.
    """

    start: int
    end: int
    text: str


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One small change of one file.

    Attributes:
        edits: What changes, in order and apart from each other.
        operator: Which operator made it, such as `comparison`.
        line: The line that it changes first, counted from 1.
        prior: How likely such a change is a repair, before any test has run; in (0, 1].
        label: The change in a few words, such as `line 4: < becomes <=`.
        in_body: Whether all of it lies in the body of a function, so that no module has to be imported anew.
    """

    edits: tuple[Edit, ...]
    operator: str
    line: int
    prior: float
    label: str
    in_function_body: bool = True


def apply_edits(source: str, edits: Iterable[Edit]) -> str:
    """A source with edits made.

    Args:
        source: The text that the edits' offsets were counted in.
        edits: Apart from each other, in any order.
    """
    raw = source.encode("utf-8", "surrogatepass")
    for edit in sorted(edits, key=lambda e: (e.start, e.end), reverse=True):
        raw = raw[: edit.start] + edit.text.encode("utf-8", "surrogatepass") + raw[edit.end :]
    return raw.decode("utf-8", "surrogatepass")


def trim_edit(edit: Edit, source: bytes) -> Edit:
    """The same edit without what it only puts back, so that two ways to say it are one.

    Args:
        edit: An edit.
        source: The UTF-8 bytes that its offsets were counted in.
    """
    old, new = source[edit.start : edit.end], edit.text.encode("utf-8", "surrogatepass")
    if old[:1] != new[:1] and old[-1:] != new[-1:]:
        return edit
    first = _shared(old, new)
    while first and (_inside(old, first) or _inside(new, first)):
        first -= 1
    old, new = old[first:], new[first:]
    last = _shared(old[::-1], new[::-1])
    while last and (_inside(old, len(old) - last) or _inside(new, len(new) - last)):
        last -= 1
    return Edit(
        start=edit.start + first,
        end=edit.end - last,
        text=new[: len(new) - last].decode("utf-8", "surrogatepass"),
    )


def _shared(one: bytes, other: bytes) -> int:
    """How many bytes two texts begin with alike."""
    least, most = 0, min(len(one), len(other))
    while least < most:
        middle = (least + most + 1) // 2
        if one[least:middle] == other[least:middle]:
            least = middle
        else:
            most = middle - 1
    return least


def _inside(raw: bytes, at: int) -> bool:
    """Whether an offset lies within a character."""
    return at < len(raw) and raw[at] & 0xC0 == 0x80


def compute_line_edits(before: str, after: str) -> tuple[Edit, ...]:
    """The edits of whole lines that make one source of another."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line.encode("utf-8", "surrogatepass")))
    return tuple(
        Edit(start=starts[first], end=starts[last], text="".join(new[left:right]))
        for tag, first, last, left, right in SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        if tag != "equal"
    )


def compose_edits(first: Iterable[Edit], then: Iterable[Edit], source: str) -> tuple[Edit, ...]:
    """The edits of a source that do what two steps do.

    Args:
        first: Edits of the source.
        then: Edits of the text that those make.
        source: The source.
    """
    raw = source.encode("utf-8", "surrogatepass")
    pieces = _pieces(first, [(0, raw)], len(raw))
    size = sum(len(text) for _, text in pieces)
    found, at, new = [], 0, b""
    for start, text in (*_pieces(then, pieces, size), (len(raw), b"")):
        if start is None:
            new += text
            continue
        if new or start > at:
            found.append(trim_edit(Edit(start=at, end=start, text=new.decode("utf-8", "surrogatepass")), raw))
        at, new = start + len(text), b""
    return tuple(edit for edit in found if edit.start < edit.end or edit.text)


Piece = tuple[int | None, bytes]
"""A stretch of a text, and where in the source it stands; `None` where it is new."""


def _pieces(edits: Iterable[Edit], pieces: Sequence[Piece], size: int) -> list[Piece]:
    """A text of pieces with edits made: of so many bytes, before them."""
    found: list[Piece] = []
    at = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        found += [*_cut(pieces, at, edit.start), (None, edit.text.encode("utf-8", "surrogatepass"))]
        at = edit.end
    return [*found, *_cut(pieces, at, size)]


def _cut(pieces: Sequence[Piece], first: int, last: int) -> Iterator[Piece]:
    """What lies between two offsets of a text of pieces."""
    at = 0
    for start, text in pieces:
        left, right = max(0, first - at), max(0, last - at)
        if left < min(right, len(text)):
            yield (None if start is None else start + left), text[left:right]
        at += len(text)


def edits_overlap(one: Iterable[Edit], other: Iterable[Edit]) -> bool:
    """Whether two sets of edits touch the same bytes, or insert at the same place."""
    spans = [(e.start, e.end) for e in other]
    return any(e.start <= end and start <= e.end for e in one for start, end in spans)
