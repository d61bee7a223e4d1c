"""Edits of source code, and mutants, which are made of edits. All other bytes of the source stay as they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Edit:
    """A span of a source and the string that replaces it.

    The search breaks ties by a hash of the `repr` of edits, so that renaming a field changes its order.

    Attributes:
        start: Offset of the first byte in the UTF-8 source.
        end: Offset after the last replaced byte; equal to `start` for an insertion.
        text: The replacement.
    """

    start: int
    end: int
    text: str


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One small change of one file.

    Attributes:
        edits: The edits, in order and without overlap.
        line: The first line that it changes, counted from 1.
        prior: How likely such a change is a repair before any test has run, in (0, 1].
        label: The change in a few words, such as `line 4: < becomes <=`.
        in_function_body: Whether all of it is in a function body, so that no module must be reimported.
    """

    edits: tuple[Edit, ...]
    operator: OperatorName
    line: int
    prior: float
    label: str
    in_function_body: bool = True


def encode_source(text: str) -> bytes:
    """Return the UTF-8 bytes in which the offsets of edits are counted; lone surrogates are kept."""
    return text.encode("utf-8", "surrogatepass")


def decode_source(raw: bytes) -> str:
    """Decode bytes that `encode_source` has made."""
    return raw.decode("utf-8", "surrogatepass")


def apply_edits(source: str, edits: Iterable[Edit]) -> str:
    """Return a source with edits applied.

    Args:
        source: The source in which the edits' offsets were counted.
        edits: Edits without overlap, in any order.
    """
    raw = encode_source(source)
    for edit in sorted(edits, key=lambda e: (e.start, e.end), reverse=True):
        raw = raw[: edit.start] + encode_source(edit.text) + raw[edit.end :]
    return decode_source(raw)


def trim_edit(edit: Edit, source: bytes) -> Edit:
    """Return the same edit without the equal parts at its start and end, so that equal changes are equal edits.

    Args:
        source: The UTF-8 bytes in which its offsets were counted.
    """
    old, new = source[edit.start : edit.end], encode_source(edit.text)
    if old[:1] != new[:1] and old[-1:] != new[-1:]:
        return edit
    prefix = common_prefix(old, new)
    while prefix and (_is_inside_character(old, prefix) or _is_inside_character(new, prefix)):
        prefix -= 1
    old, new = old[prefix:], new[prefix:]
    suffix = common_prefix(old[::-1], new[::-1])
    while suffix and (
        _is_inside_character(old, len(old) - suffix) or _is_inside_character(new, len(new) - suffix)
    ):
        suffix -= 1
    text = decode_source(new[: len(new) - suffix])
    return Edit(start=edit.start + prefix, end=edit.end - suffix, text=text)


def common_prefix(left: bytes, right: bytes) -> int:
    """Return the length of the common prefix of two byte strings, by bisection."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _is_inside_character(raw: bytes, offset: int) -> bool:
    """Return whether an offset splits a UTF-8 character."""
    return offset < len(raw) and raw[offset] & 0xC0 == 0x80


def compute_line_edits(before: str, after: str) -> tuple[Edit, ...]:
    """Return the edits of whole lines that turn one source into another."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(encode_source(line)))
    return tuple(
        Edit(start=starts[first], end=starts[last], text="".join(new[left:right]))
        for tag, first, last, left, right in SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        if tag != "equal"
    )


Piece = tuple[int | None, bytes]
"""`(offset, bytes)` of a piece of an edited source. The offset is in the original source; `None` if the piece is
new."""


def compose_edits(first: Iterable[Edit], second: Iterable[Edit], source: str) -> tuple[Edit, ...]:
    """Return edits of a source that do the same as two successive sets of edits.

    Args:
        first: Edits of the source.
        second: Edits of the source that the first ones produce.
    """
    raw = encode_source(source)
    pieces = _edit_pieces(first, [(0, raw)], len(raw))
    size = sum(len(text) for _, text in pieces)
    composed, copied_to, inserted = [], 0, b""
    for start, text in (*_edit_pieces(second, pieces, size), (len(raw), b"")):
        if start is None:
            inserted += text
            continue
        if inserted or start > copied_to:
            composed.append(trim_edit(Edit(start=copied_to, end=start, text=decode_source(inserted)), raw))
        copied_to, inserted = start + len(text), b""
    return tuple(edit for edit in composed if edit.start < edit.end or edit.text)


def _edit_pieces(edits: Iterable[Edit], pieces: Sequence[Piece], size: int) -> list[Piece]:
    """Return the pieces of a source of `size` bytes after some edits."""
    result: list[Piece] = []
    copied_to = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        result += [*_slice_pieces(pieces, copied_to, edit.start), (None, encode_source(edit.text))]
        copied_to = edit.end
    return [*result, *_slice_pieces(pieces, copied_to, size)]


def _slice_pieces(pieces: Sequence[Piece], first: int, last: int) -> Iterator[Piece]:
    """Yield the pieces between two offsets of the source that the pieces make up."""
    offset = 0
    for start, text in pieces:
        left, right = max(0, first - offset), max(0, last - offset)
        if left < min(right, len(text)):
            yield (None if start is None else start + left), text[left:right]
        offset += len(text)


def edits_overlap(left: Iterable[Edit], right: Iterable[Edit]) -> bool:
    """Return whether two sets of edits touch the same bytes, or insert at the same offset."""
    spans = [(edit.start, edit.end) for edit in right]
    return any(edit.start <= end and start <= edit.end for edit in left for start, end in spans)


@dataclass(frozen=True, kw_only=True)
class EditLocation:
    """A statement without its blocks, by byte offsets in its source.

    Attributes:
        start: Where it begins, in Python with its first line.
        end: Where its head ends: at its first block, or at its end.
        statement_end: Where the whole statement ends.
        is_handler: Whether it is the head of an `except` clause.
    """

    start: int
    end: int
    statement_end: int
    in_function: bool
    is_handler: bool

    def contains(self, edits: Sequence[Edit]) -> bool:
        """Return whether all edits of a change are inside the statement's head."""
        return all(self.start <= edit.start and edit.end <= self.end for edit in edits)


def select_smallest(locations: Iterable[EditLocation], edits: Sequence[Edit]) -> EditLocation | None:
    """Return the smallest location that holds all edits of a change; `None` if they span several."""
    holding = (location for location in locations if location.contains(edits))
    return min(holding, key=lambda location: location.end - location.start, default=None)


OperatorName = Literal[
    "undefined_name", "unknown_attribute", "import_name",
    "comparison", "boolean_operator", "negation", "condition", "returned_condition",
    "arithmetic_operator", "operand", "sign_change", "off_by_one", "constant", "expected_value",
    "missing_term",
    "missing_concatenation",
    "variable", "attribute", "attribute_or_name", "called_name", "subscript_key", "sequence_part",
    "arguments", "missing_argument", "wrap_in_call", "unwrap_call", "accumulation", "initial_value",
    "generator", "return_value",
    "delete_statement", "move_statement", "change_block", "loop_control", "elif",
    "guard", "fill_container", "missing_assignment", "missing_return", "copied_statement",
    "iteration", "bare_return", "final_return", "missing_initialisation", "early_loop_return",
    "append_element",
    "exception_class", "mutable_default",
    "reused_value", "reused_argument", "decorator", "empty_iteration",
    "sibling_expression",
    "truth_test", "regular_expression", "conversion",
    "similar_name", "accepted_class", "handled_exception",
]  # fmt: skip
"""The operators for Python are applied to a node in this order.

Where two of them make the same edit with the same weight, the earlier one keeps it.
"""
