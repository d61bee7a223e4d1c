"""Show the functions that may be at fault, with what a reader needs around them, and name what is left out."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from suture.agents.context.code_units import CodeUnit
from suture.agents.context.fault_localisation import CONSTRUCTORS, RankedCode
from suture.core.records import Language
from suture.project.languages import LANGUAGES
from suture.project.python_source.statement_edits import split_lines

BACKTICKS = re.compile(r"`+")
BYTES_PER_TOKEN = 3.0
"""UTF-8 bytes of code per token, on the low side: the tokenizers of GPT-4 and Qwen make 3.3 to 4 of Python, JavaScript
and Go."""
# All limits are chosen by judgement on ten bug-fix commits and are not measured.
MAX_WHOLE_FILE_TOKENS = 700
"""Maximum tokens of a file that is shown whole because it has one of the most suspicious functions."""
WHOLE_FILE_SHARE = 0.7
"""Share of a file's lines from which an excerpt is replaced by the whole file."""
MAX_UNIT_LINES = 100
"""Maximum lines of a function that is shown whole; of a longer one, the surroundings of the suspicious lines are
shown."""
SURROUNDING_LINES = 25
MAX_WINDOWS = 3
MAX_VALUE_LINES = 12
"""Maximum lines of a constant that is shown with a function that uses it; a longer one is only named."""
MIN_SCORE_SHARE = 0.22
"""Minimum share of the highest score with which a function is shown."""
FIRST_TOKENS = 600
"""Tokens of shown functions after which only functions with `MIN_FURTHER_SHARE` of the highest score are shown."""
MIN_FURTHER_SHARE = 0.6
"""Minimum share of the highest score for a function that is shown after `FIRST_TOKENS`."""
MIN_SHOWN_UNITS = 2
"""Number of functions that are shown however long they are."""
MAX_SHOWN_UNITS = 8
MAX_NAMED_UNITS = 8
MAX_CALLERS = 3
"""Callers that are named for each of the most suspicious functions."""


@dataclass
class CodeExcerpts:
    """The code excerpts that a prompt shows.

    Attributes:
        texts: Path -> excerpt, or the whole file; the most suspicious file first.
        whole: The paths of files that are shown whole.
        shown: The functions that are shown, the most suspicious first.
        others: Functions that may be involved and are not shown.
        notes: Sentences that say what the excerpts leave out.
    """

    texts: dict[str, str] = field(default_factory=dict)
    whole: set[str] = field(default_factory=set)
    shown: list[CodeUnit] = field(default_factory=list)
    others: list[CodeUnit] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def estimate_tokens(text: str) -> int:
    """Return an estimate, on the high side, of the tokens in code or in prose about it."""
    return math.ceil(len(text.encode("utf-8", "surrogatepass")) / BYTES_PER_TOKEN)


def fence(text: str, label: str = "") -> str:
    """Return a string as a fenced block, with a fence longer than any run of backticks in the string."""
    longest = max(map(len, BACKTICKS.findall(text)), default=0)
    marks = "`" * max(3, longest + 1)
    body = text.strip("\n")
    return f"{marks}{label}\n{body}\n{marks}"


def cut_section(text: str, max_tokens: int) -> str:
    """Return a section of a prompt without its last lines if it is too long; a line says how many are left out."""
    if estimate_tokens(text) <= max_tokens:
        return text
    lines = text.split("\n")
    kept = list(lines)
    while kept and estimate_tokens("\n".join(kept)) > max_tokens:
        kept = kept[: len(kept) * 9 // 10] if len(kept) > 20 else kept[:-1]
    openings = [line for line in kept if line.startswith("```")]
    if len(openings) % 2:
        kept.append("`" * (len(openings[-1]) - len(openings[-1].lstrip("`"))))
    return "\n".join(
        [*kept, f"({len(lines) - len(kept)} more lines are not shown: ask for them with read_file)"]
    )


def make_excerpts(
    ranked: RankedCode,
    units_by_path: Mapping[str, Sequence[CodeUnit]],
    texts: Mapping[str, str],
    language: Language,
    max_tokens: int,
) -> CodeExcerpts:
    """Return the suspicious functions whole, as many as the limit allows, the most suspicious first."""
    excerpts = CodeExcerpts()
    lines_by_path = {path: split_lines(text) for path, text in texts.items()}
    chosen: dict[str, set[int]] = {}
    left_tokens = max_tokens
    units = ranked.ordered()
    highest = ranked.scores[units[0]] if units else 0.0
    for unit in units:
        lines = lines_by_path[unit.path]
        numbers, note = _lines_for(unit, units_by_path[unit.path], ranked.lines.get(unit.path, ()))
        new = numbers - chosen.get(unit.path, set())
        tokens = _count(sorted(new), lines)
        is_first = len(excerpts.shown) < MIN_SHOWN_UNITS or max_tokens - left_tokens + tokens <= FIRST_TOKENS
        min_share = MIN_SCORE_SHARE if is_first else MIN_FURTHER_SHARE
        is_suspicious = ranked.scores[unit] >= min_share * highest
        has_room = len(excerpts.shown) < MAX_SHOWN_UNITS and (tokens <= left_tokens or not excerpts.shown)
        if not is_suspicious or not has_room:
            excerpts.others.append(unit)
            continue
        chosen.setdefault(unit.path, set()).update(numbers)
        left_tokens -= tokens
        excerpts.shown.append(unit)
        if note and note not in excerpts.notes:
            excerpts.notes.append(note)
    comment = LANGUAGES[language].line_comment
    likely_paths = {unit.path for unit in excerpts.shown[:MIN_SHOWN_UNITS]}
    for path, numbers in chosen.items():
        lines = lines_by_path[path]
        numbers = numbers | _context_lines(path, excerpts.shown, units_by_path[path])
        extra_tokens = estimate_tokens(texts[path]) - _count(sorted(numbers), lines)
        is_small = path in likely_paths and estimate_tokens(texts[path]) <= MAX_WHOLE_FILE_TOKENS
        if (is_small or len(numbers) >= WHOLE_FILE_SHARE * len(lines)) and extra_tokens <= max(
            left_tokens, 0
        ):
            excerpts.texts[path] = texts[path]
            excerpts.whole.add(path)
            left_tokens -= extra_tokens
        else:
            excerpts.texts[path] = "".join(render_lines(sorted(numbers), lines, comment))
    excerpts.others = [unit for unit in excerpts.others if not _is_visible(unit, chosen, excerpts.whole)]
    return excerpts


def _count(numbers: Iterable[int], lines: Sequence[str]) -> int:
    return estimate_tokens("".join(lines[number - 1] for number in numbers if number <= len(lines)))


def _is_visible(unit: CodeUnit, chosen: Mapping[str, set[int]], whole: set[str]) -> bool:
    return unit.path in whole or unit.first in chosen.get(unit.path, ())


def _lines_for(unit: CodeUnit, units: Sequence[CodeUnit], suspicious: Sequence[int]) -> tuple[set[int], str]:
    """Return the lines to show for a function, and a note about the others.

    Of a class whose methods are functions of their own, the header and the values are shown.
    """
    numbers = {line for header in unit.headers for line in header}
    last = unit.last
    if unit.kind == "class":
        members = [other for other in units if other.owner == unit.name and other.kind == "function"]
        last = min([member.first - 1 for member in members], default=unit.last)
    length = last - unit.first + 1
    if length <= MAX_UNIT_LINES:
        return numbers | set(range(unit.first, last + 1)), ""
    inside = [line for line in suspicious if unit.first <= line <= last][:MAX_WINDOWS]
    near = {
        number
        for line in inside or [unit.first + SURROUNDING_LINES]
        for number in range(line - SURROUNDING_LINES, line + SURROUNDING_LINES + 1)
        if unit.first <= number <= last
    }
    near |= set(range(unit.first, unit.first + 3))
    note = f"{length - len(near)} more lines of `{unit.name}` are not shown: ask for them with read_file"
    return numbers | near, note


def _context_lines(path: str, shown: Sequence[CodeUnit], units: Sequence[CodeUnit]) -> set[int]:
    """Return the lines of the imports and short constants that the shown functions of a file use."""
    used = {name for unit in shown if unit.path == path for name in unit.names}
    numbers: set[int] = set()
    for unit in units:
        is_used = bool(unit.binds & used) or (unit.kind == "value" and unit.short_name in used)
        is_package = unit.kind == "import" and not unit.headers and unit.first == units[0].first
        if unit.owner or not (is_used or is_package) or unit.kind not in ("import", "value"):
            continue
        if unit.kind == "import" or unit.last - unit.first < MAX_VALUE_LINES:
            numbers |= set(range(unit.first, unit.last + 1))
    return numbers


def render_lines(numbers: Sequence[int], lines: Sequence[str], comment: str) -> Iterator[str]:
    """Yield some lines of a file; a comment stands for a gap inside a class or a function.

    Args:
        numbers: Sorted line numbers, from 1.
        comment: The sign of a line comment in the language.
    """
    shown = [number for number in numbers if number <= len(lines)]
    previous = shown[0] - 1 if shown else 0
    for number in shown:
        line = lines[number - 1]
        if number > previous + 1:
            is_gap = any(hidden.strip() for hidden in lines[previous : number - 1])
            margin = line[: len(line) - len(line.lstrip())]
            # Between imports, and inside a long one, a gap needs no mark.
            follows_import = is_gap and _is_import(lines[previous - 1])
            if is_gap and margin and not follows_import:
                yield f"{margin}{comment} ...\n"
            elif not (follows_import and (margin or _is_import(line))) and line.strip() != ")":
                yield "\n"
        yield line if line.endswith("\n") else f"{line}\n"
        previous = number


def _is_import(line: str) -> bool:
    return line.startswith(("import ", "from "))


def find_callers(
    shown: Sequence[CodeUnit], units_by_path: Mapping[str, Sequence[CodeUnit]]
) -> dict[str, list[CodeUnit]]:
    """Return the names of the most suspicious functions -> functions that call them and are not shown."""
    callers: dict[str, list[CodeUnit]] = {}
    # The callers of a constructor are everywhere, so they say nothing.
    for target in [u for u in shown[:3] if u.kind == "function" and u.short_name not in CONSTRUCTORS]:
        units = [
            unit
            for units in units_by_path.values()
            for unit in units
            if unit.kind == "function" and target.short_name in unit.calls and unit not in shown
        ]
        units.sort(key=lambda unit: unit.path != target.path)
        if units:
            callers.setdefault(target.short_name, units[:MAX_CALLERS])
    return callers


def name_units(units: Sequence[CodeUnit]) -> str:
    """Return the names of functions with their first lines, file by file."""
    by_path: dict[str, list[str]] = {}
    for unit in units:
        by_path.setdefault(unit.path, []).append(f"`{unit.name}` {unit.first}")
    return "; ".join(f"{path}: {', '.join(names)}" for path, names in by_path.items())
