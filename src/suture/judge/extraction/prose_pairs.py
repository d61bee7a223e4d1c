"""Finding inputs with results that a statement shows without a call, for Python.

Examples are `3661 becomes '1:01:01'`, `for [1, 2] it returns 3`, `returns True for 'abba'`, and tables. A pair becomes
an example only where one reading is possible. Every other pair is reported, so that the user can write it as a
call.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from suture.judge.extraction.literal_calls import (
    VALUE_END_RE,
    WORD_LITERALS,
    evaluate_literal,
    is_literal,
    list_literal_ends,
)
from suture.judge.tuning import MAX_EXAMPLE_CALLS, MAX_LITERAL_ENDS, MAX_NAMED_INPUT_CHARS
from suture.project.python_source.parsing import PARSE_FAULTS

VERBS = r"(?:should\s+|must\s+|will\s+)?(?:return|give|yield|produce|output)s?"
ARROW_RE = re.compile(
    r"(?<![\w=-])(?:==>|->|=>|→|⇒|➞|⟹|(?:should\s+|must\s+|will\s+)?becomes?\b|turns\s+into\b|is\s+turned\s+into\b"
    rf"|maps\s+to\b|is\s+mapped\s+to\b|results\s+in\b|evaluates\s+to\b|{VERBS}\b)[ \t]*(?=[`\"'\[({{\-\dTFNtfn])"
)
"""Matches what separates an input from its result."""
TURNS_RE = re.compile(r"\b(?:turns|converts|transforms|maps)\s+(?=[`\"'\[({\-\dTFN])")
"""Matches what precedes an input that `into` or `to` separates from its result."""
INTO_RE = re.compile(r"`?\s+(?:into|to)\s+")
GIVEN_RE = re.compile(
    r"\b(?:[Ff]or|[Gg]iven|[Ww]ith|[Oo]n)\s+(?:(?:the|an?|input|argument|list|string|number|value|word|text|array"
    r"|tuple|dict|sequence|range)\s+)*(?=[`\"'\[({\-\dTFN])"
)
"""Matches what precedes an input, as in `for the list [1, 2] it returns 3`."""
GIVEN_RESULT_RE = re.compile(
    r"`?,?\s+(?:(?:it|this|that|you get|the\s+(?:function|result|output|answer|return value)|`?\w+`?)\s+)?"
    rf"(?:{VERBS}|(?:should\s+|must\s+|will\s+)?(?:be|is))\s+(?=[`\"'\[({{\-\dTFN])"
)
RETURNS_RE = re.compile(rf"\b{VERBS}\s+(?=[`\"'\[({{\-\dTFN])")
"""Matches what precedes a result that comes before its input, as in `returns True for 'abba'`."""
FOR_INPUT_RE = re.compile(
    r"`?\s+(?:for|on|when\s+given|if\s+given|given)\s+(?:(?:the|an?|input|argument|list|string|number|value|word|text"
    r"|array|tuple|dict)\s+)*(?=[`\"'\[({\-\dTFN])"
)
AND_RE = re.compile(r"`?,?\s+and\s+(?=[`\"'\[({\-\dTFN])")
OPENING_RE = re.compile(
    r"(?:^|\n|[.;:!?(]|\be\.g\.,?|\b(?:[Ee]xamples?|instance|[Ss]o|[Tt]hus|[Hh]ence|like|as|[Ii]nput|where|means?|that)\b:?,?)"
    r"\s*(?:[-*+•][ ]+|\d+[.)][ ]+)?`?$"
)
"""Matches what may precede the input of a pair: the beginning of a line or sentence, or a word that opens an
example."""
MAX_OPENING_CHARS = 30
"""Characters before an input in which its opening must begin. Chosen by judgement; not measured."""
CHAIN_RE = re.compile(r"^[^,;.\n]*?(?:->|=>|→|⇒)")
"""The next arrow of a chain such as `a -> b -> c`, which shows the steps of a path and no result."""
NEXT_PAIR_RE = re.compile(r"`?[ \t]*[,;][ \t]*(?:and[ \t]+|or[ \t]+)?`?[\"'\[({\-\dTFN]")
CONTAINER_RE = re.compile(
    r"\b(?:lists?|arrays?|tuples?|dict\w*|sets?|sequences?|iterables?|elements?|items?|matri\w+|rows?)\b",
    re.IGNORECASE,
)
"""Words that say that a function may take a container, so that a single value may be one of its items."""
NUMBERS_RE = re.compile(r"\b(?:numbers|integers|values|each|every|all)\b", re.IGNORECASE)
"""Words that announce a container of numbers."""
TABLE_ROW_RE = re.compile(r"^[ \t]*\|(?P<cells>.*)\|[ \t]*$")
TABLE_RULE_RE = re.compile(r"^[ \t]*\|(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*$")
RESULT_HEADERS = ("output", "result", "return", "expected", "answer", "gives", "becomes")
INPUT_HEADERS = ("input", "argument", "given", "call")


@dataclass(frozen=True, kw_only=True)
class ProsePair:
    """An input and its result, as some text shows them.

    Attributes:
        start: Position in the text.
        text: The words of the text.
        inputs: Sources of the input's values; empty if the pair could not be read.
        result: Source of the result.
        is_row: Whether each input is one argument, as in a row of a table.
    """

    start: int
    text: str
    inputs: tuple[str, ...] = ()
    result: str = ""
    is_row: bool = False


def find_prose_pairs(text: str) -> list[ProsePair]:
    """Return the pairs in some text, in order; of pairs that overlap, the first."""
    found = [*_find_arrows(text), *_find_turned(text), *_find_given(text), *_find_returned(text)]
    pairs: list[ProsePair] = []
    end = -1
    for pair in sorted(found, key=lambda pair: (pair.start, -len(pair.text))):
        if pair.start >= end:
            pairs.append(pair)
            end = pair.start + len(pair.text)
    return pairs


def _find_arrows(text: str) -> Iterator[ProsePair]:
    """Yield pairs such as `4 -> 'IV'` and `3661 becomes '1:01:01'`; further ones may follow after a comma."""
    chained_at = -1  # where the previous pair ends
    for sign in islice(ARROW_RE.finditer(text), MAX_EXAMPLE_CALLS):
        start = _find_input_start(text, sign.start(), chained_at)
        if start is None:
            continue
        source = text[start : sign.start()].strip().strip("`")
        pair = _read_pair(text, start, source, sign.end())
        if CHAIN_RE.search(
            pair.text[sign.end() - start :] + text[start + len(pair.text) :][:MAX_OPENING_CHARS]
        ):
            continue
        chained_at = pair.start + len(pair.text)
        yield pair


def _find_input_start(text: str, end: int, chained_at: int) -> int | None:
    """Return where the literal begins that ends at a position; `None` if nothing opens an example there."""
    line_start = text.rfind("\n", 0, end) + 1
    tries = 0
    for start in range(end - 1, max(line_start, end - MAX_NAMED_INPUT_CHARS) - 1, -1):
        if text[start] not in "\"'[({-0123456789TFN":
            continue
        before = text[max(0, start - MAX_OPENING_CHARS) : start]
        is_chained = (
            chained_at >= 0 and re.fullmatch(r"`?[,;]?\s*(?:and\s+)?`?", text[chained_at:start]) is not None
        )
        if not (is_chained or OPENING_RE.search(before)):
            continue
        if _parse_literal(text[start:end].strip().strip("`")) is not None:
            return start
        tries += 1
        if tries == MAX_LITERAL_ENDS:
            break
    return None


def _find_turned(text: str) -> Iterator[ProsePair]:
    """Yield pairs such as `turns 'a b' into 'a-b'`."""
    for opening in islice(TURNS_RE.finditer(text), MAX_EXAMPLE_CALLS):
        value = _read_value_before(text, opening.end(), INTO_RE)
        if value is not None:
            source, separator = value
            yield _read_pair(text, opening.start(), source, separator.end())


def _find_given(text: str) -> Iterator[ProsePair]:
    """Yield pairs such as `for [1, 2] it returns 3`."""
    for opening in islice(GIVEN_RE.finditer(text), MAX_EXAMPLE_CALLS):
        value = _read_value_before(text, opening.end(), GIVEN_RESULT_RE)
        if value is not None:
            source, separator = value
            yield _read_pair(text, opening.start(), source, separator.end())


def _find_returned(text: str) -> Iterator[ProsePair]:
    """Yield pairs such as `returns True for 'abba' and False for 'abc'`."""
    for opening in islice(RETURNS_RE.finditer(text), MAX_EXAMPLE_CALLS):
        start, position = opening.start(), opening.end()
        while (value := _read_value_before(text, position, FOR_INPUT_RE)) is not None:
            result, separator = value
            argument = _read_value(text, separator.end())
            if argument is None:
                yield ProsePair(start=start, text=_rest_of_sentence(text, start))
                break
            source, end = argument
            yield ProsePair(start=start, text=text[start:end], inputs=(source,), result=result)
            following = AND_RE.match(text, end)
            if following is None:
                break
            start = position = following.end()


def _read_pair(text: str, start: int, source: str, position: int) -> ProsePair:
    """Return the pair of an input and the result at a position; without inputs if there is no clear result."""
    value = _read_value(text, position)
    literal = _parse_literal(source)
    if value is None or literal is None:
        return ProsePair(start=start, text=_rest_of_sentence(text, start))
    result, end = value
    return ProsePair(start=start, text=text[start:end], inputs=(literal,), result=result)


def _read_value_before(
    text: str, position: int, separator: re.Pattern[str]
) -> tuple[str, re.Match[str]] | None:
    """Return (source, match): the literal at a position, and the separator that follows it."""
    position += text.startswith("`", position)
    for end in list_literal_ends(text, position):
        match = separator.match(text, end)
        literal = _parse_literal(text[position:end]) if match else None
        if match and literal is not None:
            return literal, match
    return None


def _read_value(text: str, position: int) -> tuple[str, int] | None:
    """Return (source, end): the literal at a position, if the text that follows lets a value end there."""
    has_quote = text.startswith("`", position)
    position += has_quote
    for end in list_literal_ends(text, position):
        behind = end + has_quote
        if has_quote and not text.startswith("`", end):
            continue
        if re.search(r"\d\.\s*$", text[position:end]):
            continue  # the dot ends the sentence and is not a decimal point
        if not (VALUE_END_RE.match(text, behind) or NEXT_PAIR_RE.match(text, behind)):
            continue
        literal = _parse_literal(text[position:end])
        if literal is not None:
            return literal, behind
    return None


def _parse_literal(source: str) -> str | None:
    """Return a literal in Python's notation; `None` if it is not a literal, or is several values without brackets."""
    source = WORD_LITERALS.get(source.strip().lower(), source.strip())
    try:
        tree = ast.parse(source, mode="eval")
        evaluate_literal(source)
    except (*PARSE_FAULTS, ValueError):
        return None
    is_enumeration = isinstance(tree.body, ast.Tuple) and not source.startswith("(")
    is_arithmetic = isinstance(tree.body, ast.BinOp)  # `1 - 2` may be a range
    return None if is_enumeration or is_arithmetic or not is_literal(tree) else ast.unparse(tree)


def _rest_of_sentence(text: str, start: int) -> str:
    """Return the text up to the end of the line or of the sentence."""
    match = re.compile(r"[.;](?:\s|$)|\n|$").search(text, start)
    return text[start : match.start() if match else len(text)].strip()


def find_table_pairs(text: str, function: str, parameters: Sequence[str] | None) -> list[ProsePair]:
    """Return the rows of the text's tables that show inputs and a result, without those that show a call.

    A table counts if its last column is headed as a result, or with the function's name. Its other columns are
    the arguments if they are headed with the parameters, or if there is one column for a single parameter.
    """
    pairs: list[ProsePair] = []
    headers: list[str] | None = None
    previous: list[str] = []
    position = 0
    for line in text.splitlines(keepends=True):
        row = TABLE_ROW_RE.match(line.rstrip("\r\n"))
        if row is None:
            headers, previous = None, []
        elif TABLE_RULE_RE.match(line.rstrip("\r\n")):
            headers = previous
        else:
            cells = [cell.strip().strip("`") for cell in row["cells"].split("|")]
            if headers is not None and _shows_results(headers, function, parameters):
                pairs.append(_read_row(line.strip(), position, headers, cells, parameters))
            previous = cells
        position += len(line)
    return [pair for pair in pairs if f"{function}(" not in pair.text]


def _shows_results(headers: Sequence[str], function: str, parameters: Sequence[str] | None) -> bool:
    *names, last = headers
    is_result = last.lower().startswith(RESULT_HEADERS) or re.match(rf"{re.escape(function)}\b", last)
    is_input = len(names) == 1 and names[0].lower().startswith(INPUT_HEADERS)
    return bool(is_result) and bool(is_input or (parameters and set(names) & set(parameters)))


def _read_row(
    text: str, position: int, headers: list[str], cells: list[str], parameters: Sequence[str] | None
) -> ProsePair:
    unread = ProsePair(start=position, text=text)
    values = [_parse_literal(cell) for cell in cells]
    literals = [value for value in values if value is not None]
    if len(cells) != len(headers) or len(cells) < 2 or len(literals) != len(cells):
        return unread
    names, arguments = headers[:-1], literals[:-1]
    if parameters is not None and set(names) == set(parameters):
        by_name = dict(zip(names, arguments, strict=True))
        arguments = [by_name[name] for name in parameters]
    elif len(names) != 1 or len(parameters or "x") != 1:
        return unread
    return ProsePair(start=position, text=text, inputs=tuple(arguments), result=literals[-1], is_row=True)


def spread_inputs(pair: ProsePair, parameters: Sequence[str] | None, text: str) -> tuple[str, ...] | None:
    """Return the arguments of the call that a pair shows; `None` if more than one reading is possible.

    Args:
        parameters: The parameters that the function requires; `None` if they are unknown.
        text: The statement, which may say that the function takes a container.
    """
    if not pair.inputs or pair.is_row:
        return pair.inputs or None
    tree = ast.parse(pair.inputs[0], mode="eval").body
    if parameters is not None and len(parameters) > 1:
        is_spread = isinstance(tree, ast.Tuple) and len(tree.elts) == len(parameters)
        return tuple(map(ast.unparse, tree.elts)) if is_spread and isinstance(tree, ast.Tuple) else None
    if isinstance(tree, ast.Tuple) and parameters is None:
        return None
    containers = (ast.List, ast.Tuple, ast.Dict, ast.Set)
    result_tree = ast.parse(pair.result, mode="eval").body
    if isinstance(tree, containers) or isinstance(result_tree, containers):
        return pair.inputs
    other_text = text.replace(pair.text, "")
    is_number = not (isinstance(tree, ast.Constant) and isinstance(tree.value, str))
    may_be_item = CONTAINER_RE.search(other_text) or (is_number and NUMBERS_RE.search(other_text))
    return None if may_be_item else pair.inputs
