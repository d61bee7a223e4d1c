"""Find the lines that an edit replaces, although a model may have copied them with other white space.

The search goes from strict to tolerant. It stops at the first way of comparing that finds a place, and only a
single place is taken. What a tolerant search finds keeps its own white space: the replacement is indented as
the file is, and the lines that the edit does not change stay as they are in the file.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from suture.agents.replies.edit_problems import EditFault, NumberedLine, ProblemCode
from suture.agents.tuning import MAX_COMPARED_LINES, MAX_NEAREST_LINES

COMMENT = r"(?:#|//|--|/\*|<!--|;|%|\{/\*)"
LEFT_OUT = (
    r"(?:rest|remainder|remaining|existing|unchanged|previous|omitted|other|same|keep|code"
    r"|imports|methods|functions)"
)
ELIDING_COMMENT = re.compile(
    rf"^\s*{COMMENT}\s*(?:\[|\(|\{{)?\s*(?:\.{{3}}|…)\s*(?:\)|\]|\}})?\s*(?:\*/\}}?|-->)?\s*$"
    rf"|^\s*{COMMENT}\s*[\[({{]?\s*(?:\.{{3}}|…)\s*[\[({{]?\s*(?:the\s+)?{LEFT_OUT}\b"
    rf"|^\s*{COMMENT}\s*[\[({{]?\s*(?:the\s+)?(?:rest|remainder)\s+of\s+(?:the\s+|your\s+|this\s+)?"
    r"(?:file|code|class|function|method|module|implementation|logic|body|component|script|content)\b"
    rf"|^\s*{COMMENT}\s*[\[({{]?\s*(?:keep\s+)?(?:the\s+)?(?:existing|remaining|unchanged|previous|omitted|other)\s+"
    r"(?:\w+\s+){0,2}?(?:code|lines|methods?|functions?|imports?|content|implementation|logic|tests?)\s*"
    r"(?:here\b|(?:remains?|stays?|is|are)\b.*|(?:unchanged|omitted|as\s+is|as\s+before)\b.*|\.{3}|…)?"
    r"\s*[\])}]?\s*(?:\*/\}?|-->)?\s*$"
    rf"|^\s*{COMMENT}\s*[\[({{]?\s*(?:same\s+as\s+(?:before|above)|unchanged|omitted\s+for\s+brevity)\s*[\])}}]?\s*"
    r"(?:\*/\}?|-->)?\s*$",
    re.IGNORECASE,
)
"""A comment that stands for code which the model left out: `# ... existing code ...`, `// rest of the file`."""
ELISION = re.compile(rf"^\s*(?:\.{{3}}|…|\[\.{{3}}\])\s*$|{ELIDING_COMMENT.pattern}", re.IGNORECASE)
"""An eliding comment, or a line that consists of `...`, which may also be code."""
LINE_NUMBER = re.compile(r"^\s*\d{1,6}(?:\t|: ?| ?\| ?|  )")
SMART_SIGNS = str.maketrans(
    {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "-",
     "\u2212": "-", "\u2026": "...", "\u00a0": " "}
)  # fmt: skip
"""Typographic signs that a model may put in place of those in the file, or the other way round."""


@dataclass(frozen=True, kw_only=True)
class DiffHunk:
    """The old and new lines of one replacement.

    Attributes:
        old: The text to find; empty to insert `new` before `line`, or at the end of an empty or new file.
        new: The text that takes its place.
        line: The number of the first line, from 1, as the reply has it; it may be wrong.
        sections: Lines above the text, such as the `class` and the `def` around it, from the outermost.
        may_be_part: Whether the text need not consist of whole lines.
        everywhere: Whether each occurrence is replaced.
        is_at_end: Whether the text is at the end of the file.
        variants: Other readings of the same lines, which are tried in turn if this one is not in the file.
    """

    old: str
    new: str
    line: int | None = None
    sections: tuple[str, ...] = ()
    may_be_part: bool = False
    everywhere: bool = False
    is_at_end: bool = False
    variants: tuple[DiffHunk, ...] = ()


@dataclass(frozen=True)
class _Place:
    """Lines of a file: the index of the first one, and of the one after the last."""

    start: int
    end: int


@dataclass(frozen=True)
class _Lines:
    """The lines of a hunk."""

    old: list[str]
    new: list[str]


def apply_hunks(hunks: Sequence[DiffHunk], text: str) -> str:
    """Return a file's source with all hunks applied, one after the other.

    Raises:
        EditFault: One of them does not apply.
    """
    shift = 0  # Lines that the hunks so far have added; the numbers of the next ones count without them.
    for hunk in hunks:
        _require_complete(hunk, text)
        before = text.count("\n")
        shifted = hunk if hunk.line is None else replace(hunk, line=max(1, hunk.line + shift))
        text = _apply_hunk(shifted, text)
        shift += text.count("\n") - before
    return text


def _require_complete(hunk: DiffHunk, text: str) -> None:
    """Check that the new lines elide nothing that the old lines have."""
    known = {line.strip() for line in (*hunk.old.split("\n"), *text.split("\n"))}
    for line in hunk.new.split("\n"):
        if ELIDING_COMMENT.match(line) and line.strip() not in known:
            raise EditFault("elided", quote=line.strip())


def are_applied(hunks: Sequence[DiffHunk], original: str, text: str) -> bool:
    """Return whether a file already has the results of hunks that would apply to its original."""
    try:
        apply_hunks(hunks, original)
    except EditFault:
        return False
    return all(hunk.new.strip() and _as_lines(hunk.new) in _as_lines(text) for hunk in hunks)


def _as_lines(text: str) -> str:
    return "\n" + text.strip("\n") + "\n"


def _apply_hunk(hunk: DiffHunk, text: str) -> str:
    if not hunk.old:
        return _insert(hunk, text)
    if hunk.everywhere and hunk.old in text:
        return text.replace(hunk.old, hunk.new)
    if hunk.may_be_part and text.count(hunk.old) == 1:
        return text.replace(hunk.old, hunk.new)
    lines = text.split("\n")
    for variant in (hunk, *hunk.variants, *_without_line_numbers(hunk)):
        places, compare = _find_places(variant, lines)
        place = _choose_place(variant, places, lines)
        if place is not None and compare is not None:
            parts = _split(variant)
            found = lines[place.start : place.end]
            new = parts.new if compare is _as_is else _fit_to_file(parts, found, compare)
            if new is not None:
                return "\n".join([*lines[: place.start], *new, *lines[place.end :]])
    raise _make_fault(hunk, lines)


def _without_line_numbers(hunk: DiffHunk) -> Iterator[DiffHunk]:
    """Yield a hunk without the line numbers that a model copied from a numbered listing, if each line has one."""
    texts = [line for line in hunk.old.split("\n") if line.strip()]
    if texts and all(LINE_NUMBER.match(line) for line in texts):
        old, new = (
            "\n".join(LINE_NUMBER.sub("", line) for line in text.split("\n")) for text in (hunk.old, hunk.new)
        )
        yield replace(hunk, old=old, new=new, variants=())


def _insert(hunk: DiffHunk, text: str) -> str:
    """Insert lines before a line of a file, or make the content of an empty one."""
    new = hunk.new if hunk.new.endswith("\n") or not hunk.new else f"{hunk.new}\n"
    if not text.strip():
        return new
    if hunk.line is None and not hunk.sections:
        if hunk.is_at_end:
            return text + ("" if text.endswith("\n") else "\n") + new
        raise EditFault("file_exists")
    lines = text.split("\n")
    line_count = len(lines) - (not lines[-1])
    index = (hunk.line or 1) - 1
    if hunk.line is None:
        spans = _find_sections(hunk.sections, lines)
        if len(spans) != 1:
            code: ProblemCode = "text_repeats" if spans else "text_not_found"
            raise EditFault(code, quote=hunk.sections[-1].strip(), count=len(spans))
        index = spans[0].start + 1
    if index > line_count:
        raise EditFault("line_out_of_range", count=line_count)
    above = "\n".join([*lines[:index], ""]) if index else ""
    if index == line_count and text and not text.endswith("\n"):
        return f"{text}\n{new.removesuffix(chr(10))}"
    return above + new + "\n".join(lines[index:])


def _as_is(line: str) -> str:
    return line


def _without_trailing_blanks(line: str) -> str:
    return line.rstrip()


def _without_blanks_around(line: str) -> str:
    return line.strip()


def _with_plain_signs(line: str) -> str:
    return re.sub(r"\s+", " ", line.translate(SMART_SIGNS).strip())


COMPARISONS: tuple[Callable[[str], str], ...] = (
    _as_is,
    _without_trailing_blanks,
    _without_blanks_around,
    _with_plain_signs,
)
"""Functions that return what is compared of each line, from strict to tolerant."""


def _split(hunk: DiffHunk) -> _Lines:
    """Return the lines of a hunk, without a final newline that both of its strings have."""
    old, new = hunk.old, hunk.new
    if old.endswith("\n") and (new.endswith("\n") or not new):
        old, new = old.removesuffix("\n"), new.removesuffix("\n")
    elif old.endswith("\n"):
        old = old.removesuffix("\n")
    is_removed = not hunk.new
    return _Lines(old.split("\n"), [] if is_removed else new.split("\n"))


def _find_places(hunk: DiffHunk, lines: Sequence[str]) -> tuple[list[_Place], Callable[[str], str] | None]:
    """Return the places that fit at the strictest comparison with any, and that comparison."""
    old = _split(hunk).old
    if not any(line.strip() for line in old):
        places = list(_equal_runs(old, lines))
        return places, _as_is if places else None
    for compare in COMPARISONS:
        compared = [compare(line) for line in lines]
        places = list(_equal_runs([compare(line) for line in old], compared))
        if places:
            return places, compare
    for compare in COMPARISONS[1:]:
        places = list(_equal_texts(old, lines, compare))
        if places:
            return places, compare
    return [], None


def _equal_runs(old: Sequence[str], lines: Sequence[str]) -> Iterator[_Place]:
    """Yield the places at which the lines follow each other as they are."""
    size = len(old)
    for start in range(len(lines) - size + 1):
        if lines[start] == old[0] and list(lines[start : start + size]) == list(old):
            yield _Place(start, start + size)


def _equal_texts(old: Sequence[str], lines: Sequence[str], compare: Callable[[str], str]) -> Iterator[_Place]:
    """Yield the places where the non-blank lines follow each other, ignoring blank lines between them."""
    wanted = [compare(line) for line in old if line.strip()]
    numbers = [number for number, line in enumerate(lines) if line.strip()]
    texts = [compare(lines[number]) for number in numbers]
    for place in _equal_runs(wanted, texts):
        yield _Place(numbers[place.start], numbers[place.end - 1] + 1)


def _choose_place(hunk: DiffHunk, places: Sequence[_Place], lines: Sequence[str]) -> _Place | None:
    """Return the place that is meant: the only one, the one in the section, or the one clearly next to the line."""
    if hunk.sections and len(places) > 1:
        spans = _find_sections(hunk.sections, lines)
        inside = [p for p in places if any(span.start <= p.start < span.end for span in spans)]
        places = inside or places
    if hunk.is_at_end and len(places) > 1:
        return places[-1]
    if len(places) > 1 and hunk.line is not None:
        line = hunk.line - 1
        nearest, second = sorted(places, key=lambda place: abs(place.start - line))[:2]
        # The line numbers of a model are off by a few lines. A place counts as meant if the next one is four
        # times as far away. Chosen by judgement; not measured.
        if 4 * abs(nearest.start - line) < abs(second.start - line):
            return nearest
    return places[0] if len(places) == 1 else None


def _find_sections(sections: Sequence[str], lines: Sequence[str]) -> list[_Place]:
    """Return where the innermost section is: from its line up to the next one with no more indentation."""
    spans = [_Place(0, len(lines))]
    for section in sections:
        starts = [
            n
            for span in spans
            for n in range(span.start, span.end)
            if lines[n].strip().startswith(section.strip())
        ]
        exact = [n for n in starts if lines[n].strip() == section.strip()]
        spans = [_Place(n, _find_section_end(n, lines)) for n in exact or starts]
    return spans


def _find_section_end(start: int, lines: Sequence[str]) -> int:
    width = len(_margin(lines[start]))
    below = range(start + 1, len(lines))
    return next((n for n in below if lines[n].strip() and len(_margin(lines[n])) <= width), len(lines))


def _fit_to_file(parts: _Lines, found: Sequence[str], compare: Callable[[str], str]) -> list[str] | None:
    """Return the new lines with the white space of the file; `None` if their indentation cannot be determined.

    The lines that the edit does not change stay as they are in the file, with the blank lines between them.
    """
    margins = _map_margins(parts.old, found)
    if margins is None:
        return None
    old = [line for line in parts.old if line.strip()]
    numbers = [number for number, line in enumerate(found) if line.strip()]
    unchanged = _pair_unchanged(old, [line for line in parts.new if line.strip()], compare)
    fitted: list[str] = []
    blanks: list[str] = []
    text_index, before = 0, -1  # `before` is the number of the file's line that was copied last.
    for line in _strip_blank_edges(parts, found):
        if not line.strip():
            blanks.append("")
            continue
        number = numbers[unchanged[text_index]] if text_index in unchanged else -1
        is_next = number >= 0 and before >= 0 and not any(found[n].strip() for n in range(before + 1, number))
        fitted += list(found[before + 1 : number]) if is_next else blanks
        moved = found[number] if number >= 0 else _move(line, margins)
        if moved is None:
            return None
        fitted.append(moved)
        blanks, before, text_index = [], number, text_index + 1
    return fitted + blanks


def _strip_blank_edges(parts: _Lines, found: Sequence[str]) -> list[str]:
    """Return the new lines without the blank lines around them that the old lines have, but the file does not."""
    old, new = list(parts.old), list(parts.new)
    for end in (0, -1):
        while old and not old[end].strip() and (not found or found[end].strip()):
            old.pop(end)
            if new and not new[end].strip():
                new.pop(end)
    return new


def _pair_unchanged(old: Sequence[str], new: Sequence[str], compare: Callable[[str], str]) -> dict[int, int]:
    """Return the index of the old line for the index of each new line that is equal, with its indentation."""
    old_keys, new_keys = ([(_margin(line), compare(line)) for line in lines] for lines in (old, new))
    matcher = difflib.SequenceMatcher(None, old_keys, new_keys, autojunk=False)
    return {block.b + n: block.a + n for block in matcher.get_matching_blocks() for n in range(block.size)}


def _margin(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _map_margins(old: Sequence[str], found: Sequence[str]) -> dict[str, str] | None:
    """Return the file's indentation for each indentation of the old lines; `None` if one maps to several."""
    margins: dict[str, str] = {}
    texts = [line for line in old if line.strip()]
    found_texts = [line for line in found if line.strip()]
    for line, counterpart in zip(texts, found_texts, strict=False):
        if margins.setdefault(_margin(line), _margin(counterpart)) != _margin(counterpart):
            return None
    return margins


def _move(line: str, margins: dict[str, str]) -> str | None:
    """Return a line with the indentation that the file has in place of its own."""
    margin, text = _margin(line), line.lstrip()
    if not text:
        return ""
    if margin in margins:
        return margins[margin] + text
    for known in sorted(margins, key=len, reverse=True):
        moved = margins[known]
        if known and known == moved:
            return line
        if margin.startswith(known) and moved.strip(" ") == "" and margin.strip(" ") == "":
            return moved + margin[len(known) :] + text
        if margin.startswith(known) and known and moved and set(moved) == {"\t"}:
            unit, rest = len(known) // len(moved), len(margin) - len(known)
            if unit and len(known) % len(moved) == 0 and rest % unit == 0:
                return moved + "\t" * (rest // unit) + text
    shallow = min(margins, key=len, default="")
    if shallow.endswith(margin) and margins.get(shallow, "").endswith(shallow[len(margin) :]):
        kept = len(margins[shallow]) - (len(shallow) - len(margin))
        return margins[shallow][:kept] + text
    return None


def _make_fault(hunk: DiffHunk, lines: Sequence[str]) -> EditFault:
    old = _split(hunk).old
    quote = next((line.strip() for line in old if line.strip()), "")
    places, _ = _find_places(hunk, lines)
    if len(places) > 1:
        numbers = [place.start for place in places[:MAX_NEAREST_LINES]]
        return EditFault("text_repeats", quote=quote, count=len(places), nearest=_number(numbers, lines))
    if any(ELISION.match(line) and line not in lines for line in old):
        return EditFault("elided", quote=quote)
    return EditFault("text_not_found", quote=quote, nearest=find_nearest_lines(old, lines))


def _number(indices: Sequence[int], lines: Sequence[str]) -> list[NumberedLine]:
    return [NumberedLine(number=index + 1, text=lines[index]) for index in indices]


def find_nearest_lines(old: Sequence[str], lines: Sequence[str]) -> list[NumberedLine]:
    """Return the lines of a file that most resemble the given ones, and one line around them; empty if none do."""
    stripped = [line.strip() for line in lines]
    counts = Counter(stripped)
    texts: dict[str, int] = {}
    for offset, line in enumerate(old):
        if line.strip():
            texts.setdefault(line.strip(), offset)
    close = {text: text for text in texts if text in counts}
    if not close:  # `difflib` is slow, so only the longest lines are compared.
        for text in sorted(texts, key=len, reverse=True)[:MAX_COMPARED_LINES]:
            close |= dict.fromkeys(difflib.get_close_matches(text, counts, n=3, cutoff=0.6), text)
    votes: dict[int, float] = {}
    for index, line in enumerate(stripped):
        if line in close:
            # A line that is often in the file says little about the place.
            start = index - texts[close[line]]
            votes[start] = votes.get(start, 0.0) + len(line) / counts[line]
    if not votes:
        return []
    start = max(votes, key=lambda index: (votes[index], -index))
    first = max(0, start - 1)
    last = min(len(lines), start + len(old) + 1, first + MAX_NEAREST_LINES)
    return _number(range(first, max(last, first + 1)), lines)
