"""Extracting the examples in a docstring or a statement as checks, for Python.

Only a call with a plain value becomes a check; nothing is guessed. An example that misreads the statement
would send every repair in the wrong direction.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from suture.core.records import Check
from suture.judge.extraction.doctest_examples import (
    RAISED_BY_HELPER,
    deduplicate_checks,
    extract_doctests,
    find_parameters,
    find_requested_functions,
    make_check,
)
from suture.judge.extraction.literal_calls import evaluate_literal, find_call, find_literal, is_literal
from suture.judge.extraction.prose_pairs import find_prose_pairs, find_table_pairs, spread_inputs
from suture.judge.tuning import MAX_EXAMPLE_CALLS, MAX_NAMED_INPUT_CHARS, MAX_QUOTE_CHARS
from suture.project.python_source.parsing import PARSE_FAULTS

RESULT_SIGN_RE = re.compile(
    r"[ \t]*(?:\#|//)?[ \t]*(?P<sign>==>|==|=>|->|➞|→|⇒|⟹|=|:|\|"
    r"|(?:should |must |will )?(?:return|equal|be|give|yield|evaluate to|output)s?(?:\s+to)?\b|is\b)[ \t]*"
)
"""Matches what separates a call from its result, such as `# => `, `returns ` or the bar of a table."""
CALL_RE = re.compile(r"(?<![\w.])([A-Za-z_]\w*)[ ]?\(")
RAISES_RE = re.compile(
    r"[ \t]*(?:should |must |will )?(?:raise|throw)s?[ ](?:an?[ ])?`?"
    r"(\w*(?:Error|Exception|Interrupt|Iteration|Exit))\b"
)
"""Matches what follows a call that must fail; the group is the exception."""
WEAK_SIGNS = ("=", ":", "is", "be")
"""Signs that are often in a statement that is not an example, such as `f(2) = 1 for all x`."""
LONE_WORD_RE = re.compile(r"[A-Za-z]+[ \t]*(?:[.,;]|$)", re.MULTILINE)
"""A result in words, as in `half(4) is two.`: it looks like an example, and cannot be read as one."""
INPUT_RE = re.compile(r"\bInputs?\s*:\s*(?P<input>.*?)\s*\bOutputs?\s*:[ \t]*", re.DOTALL)
"""Named inputs up to their result, as in `Input: x = 1 Output: 3`."""
FOR_SENTENCE_RE = re.compile(r"\bFor\s+(?P<input>\w+\s*=[^\n]*?),?\s+the\s+(?:[^\n]*?\s)?should\s+be\s+")
"""Named inputs up to their result, as in `For x = 1, the output should be 3`."""
DEF_RE = re.compile(r"\bdef[ \t]+$")
"""Matches what precedes a name that is defined and not called."""
MAX_KIND_DEPTH = 4
"""Levels of nested containers that are compared. Chosen by judgement; not measured."""
MAX_DEF_CHARS = 20
"""Characters before a name in which its `def` must begin. Chosen by judgement; not measured."""


@dataclass(frozen=True, kw_only=True)
class Example:
    """One example.

    Attributes:
        start: Position of the call in the text.
        name: The function.
        expected: Source of the result, or of the exception's name.
        weak: Whether only one of `WEAK_SIGNS` is between the call and the expected value, or there is no call at all.
        raises: Whether the call must raise an exception.
        inferred: The words of the text if they show no call; else empty.
    """

    start: int
    name: str
    call: str
    expected: str
    weak: bool = False
    raises: bool = False
    inferred: str = ""


@dataclass(frozen=True, kw_only=True)
class Unread:
    """A passage that looks like an example and becomes no check, because it is doubtful."""

    start: int
    text: str


@dataclass(frozen=True, kw_only=True)
class StatementExamples:
    """The examples of a text.

    Attributes:
        checks: The checks that they became, of provenance `visible`.
        inferred: Ids of the checks whose call the text does not show, as in `3661 becomes '1:01:01'`.
        unread: The passages that look like examples and became no check.
    """

    checks: tuple[Check, ...] = ()
    inferred: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def extract_examples(text: str, entry_point: str | None = None) -> tuple[Check, ...]:
    """Return the examples in a docstring or a statement as checks, as `read_examples` does."""
    return read_examples(text, entry_point).checks


def find_unread_examples(text: str, entry_point: str | None) -> tuple[str, ...]:
    """Return the passages that look like examples but became no check; none without an entry point."""
    return read_examples(text, entry_point).unread if entry_point is not None else ()


def read_examples(text: str, entry_point: str | None = None) -> StatementExamples:
    """Read the examples in a docstring or a statement, of every function that it asks for.

    Examples are `>>>` prompts, asserts, and prose such as `f(1, 2) == 3`, `f(1, 2) -> 3`, `f(1, 2) returns 3`,
    `f(0) raises ValueError`, `F(1).g() == 3`, a table cell `f(1, 2) | 3`, `Input: x = 1 Output: 3`, `For x = 1
    the output should be 3`, `1 becomes 3`, `for 1 it returns 3`, `returns 3 for 1`, and rows of tables.

    Args:
        text: The docstring, the stub or the statement.
        entry_point: The function that most examples call; by default the last `def` in the text.
    """
    if entry_point is None:
        stubs = re.findall(r"^\s*(?:async\s+)?def\s+(\w+)\s*\(", text, re.MULTILINE)
        entry_point = stubs[-1] if stubs else None
    functions = find_requested_functions(text, entry_point) if entry_point is not None else None
    doctests = extract_doctests(text, functions)
    checks, prose = doctests.checks, doctests.rest
    calls = [*_find_calls(prose, functions), *_find_named_inputs(prose, text, entry_point)]
    pairs = list(_read_pairs(prose, entry_point, functions, calls))
    examples = [part for part in (*calls, *pairs) if isinstance(part, Example)]
    unread = [
        *doctests.unread,
        *((part.start, part.text) for part in (*calls, *pairs) if isinstance(part, Unread)),
    ]
    inferred: list[str] = []
    kept = _drop_outliers(sorted(examples, key=lambda example: example.start))
    for example in kept:
        check = _make_example_check(example)
        checks.append((example.start, check))
        if example.inferred:
            inferred.append(check.id)
    unread += [
        (example.start, example.inferred) for example in examples if example.inferred and example not in kept
    ]
    return StatementExamples(
        checks=deduplicate_checks(check for _, check in sorted(checks, key=lambda pair: pair[0])),
        inferred=tuple(dict.fromkeys(inferred)),
        unread=tuple(dict.fromkeys(_shorten(text) for _, text in sorted(unread))),
    )


def _make_example_check(example: Example) -> Check:
    if example.raises:
        program = f"assert raised_by(lambda: {example.call}) == {example.expected}"
        return make_check(program, "visible", setup=[RAISED_BY_HELPER], name=program)
    return make_check(f"assert {example.call} == {example.expected}", "visible")


def _shorten(text: str) -> str:
    line = text.partition("\n")[0]
    return line if len(line) <= MAX_QUOTE_CHARS else f"{line[:MAX_QUOTE_CHARS]}..."


def _find_calls(text: str, functions: frozenset[str] | None) -> Iterator[Example | Unread]:
    """Yield the calls in some text that show their results; those of other functions are never examples."""
    for match in islice(CALL_RE.finditer(text), MAX_EXAMPLE_CALLS):
        shown_call = _read_call(text, match.start())
        if shown_call is None or not _is_plain_call(shown_call.call):
            continue  # `f(x) == 3` is a statement about every x, and not an example
        if shown_call.sign == "|":
            literal = _read_last_cell(text, shown_call.result_start)
        elif shown_call.exception:
            literal = repr(shown_call.exception), shown_call.result_start
        else:
            literal = find_literal(text, shown_call.result_start, shown_call.closing)
        is_requested = functions is None or match[1] in functions
        is_weak = shown_call.sign in WEAK_SIGNS
        if literal and is_requested:
            yield Example(
                start=match.start(),
                name=match[1],
                call=" ".join(ast.unparse(shown_call.call).split("\n")),
                expected=literal[0],
                weak=is_weak,
                raises=bool(shown_call.exception),
            )
        elif is_weak and is_requested and (lone_word := LONE_WORD_RE.match(text, shown_call.result_start)):
            yield Unread(start=match.start(), text=text[match.start() : lone_word.end()].rstrip(" .,;"))
        elif not is_weak and shown_call.sign != "|" and (literal or is_requested):
            yield Unread(start=match.start(), text=text[match.start() :].partition("\n")[0])


def _read_pairs(
    prose: str, entry_point: str | None, functions: frozenset[str] | None, calls: list[Example | Unread]
) -> Iterator[Example | Unread]:
    """Yield the examples that show an input and its result without a call."""
    if entry_point is None or functions is None:
        return
    called = {call.name for call in calls if isinstance(call, Example)}
    others = [name for name in functions - {entry_point} if re.search(rf"\b{re.escape(name)}\s*\(", prose)]
    shown = [call for call in calls if isinstance(call, Example) and call.name == entry_point]
    parameters = find_parameters(prose, entry_point)
    for pair in (*find_prose_pairs(prose), *find_table_pairs(prose, entry_point, parameters)):
        if any(pair.start <= call.start < pair.start + len(pair.text) for call in calls):
            continue  # it is part of a call, or shows one
        inputs = spread_inputs(pair, parameters, prose)
        is_doubtful = bool(called - {entry_point}) or bool(others)
        if inputs is None or is_doubtful or not _resembles(inputs, shown):
            yield Unread(start=pair.start, text=pair.text)
        else:
            call = f"{entry_point}({', '.join(inputs)})"
            yield Example(
                start=pair.start,
                name=entry_point,
                call=call,
                expected=pair.result,
                weak=True,
                inferred=pair.text,
            )


def _resembles(inputs: tuple[str, ...], shown: list[Example]) -> bool:
    """Whether the inputs of a pair are as many and of the same kinds as the arguments of a shown call, if any."""
    kinds = [_describe_kind(evaluate_literal(value)) for value in inputs]
    for example in shown:
        call = ast.parse(example.call, mode="eval").body
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and not call.keywords:
            values = [evaluate_literal(ast.unparse(argument)) for argument in call.args]
            shown_kinds = [_describe_kind(value) for value in values]
            if len(shown_kinds) != len(kinds) or not all(map(_are_alike, kinds, shown_kinds)):
                return False
    return True


def _describe_kind(value: Any) -> tuple[str, ...]:
    """Return the kind of a value, and then the kinds of its first items, such as `("list", "list", "number")`."""
    kinds: list[str] = []
    while len(kinds) < MAX_KIND_DEPTH:
        is_number = isinstance(value, (int, float, complex)) and not isinstance(value, bool)
        kinds.append("number" if is_number else type(value).__name__)
        if not isinstance(value, (list, tuple, set, frozenset, dict)) or not value:
            break
        value = next(iter(value))
    return tuple(kinds)


def _are_alike(kinds: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Whether two kinds agree as far as both are known: an empty list has no items to compare."""
    return all(kind == other for kind, other in zip(kinds, others, strict=False))


def _read_last_cell(text: str, start: int) -> tuple[str, int] | None:
    """Return the literal that fills the last cell of a table row; `None` if other cells follow."""
    cell, bar, rest = text[start:].partition("\n")[0].partition("|")
    value = cell.strip().removesuffix("`")
    return find_literal(value, 0) if bar and not rest.strip() else None


@dataclass(frozen=True, kw_only=True)
class _ShownCall:
    """A call that is followed by a sign of a result.

    Attributes:
        sign: The sign or the last word before the result, such as `->` or `returns`.
        result_start: The position of the result.
        closing: The backtick that must follow the result; empty if none must.
        exception: The exception that the call must raise; empty if it must return something.
    """

    call: ast.Call
    sign: str
    result_start: int
    closing: str = ""
    exception: str = ""


def _read_call(text: str, start: int) -> _ShownCall | None:
    """Return the call at a position; `None` if there is none, or if no sign of a result follows."""
    if DEF_RE.search(text, max(0, start - MAX_DEF_CHARS), start):
        return None
    call_and_end = find_call(text, start)
    if call_and_end is None:
        return None
    call, end = call_and_end
    has_opening = text[start - 1 : start] == "`"
    has_closing = has_opening and text.startswith("`", end)
    if failure := RAISES_RE.match(text, end + has_closing):
        return _ShownCall(call=call, sign="raises", result_start=failure.end(), exception=failure[1])
    sign_match = RESULT_SIGN_RE.match(text, end + has_closing)
    if sign_match is None:
        return None
    sign = sign_match["sign"].split()[-1]
    line_start = text.rfind("\n", 0, start) + 1
    if sign == "|" and not text[line_start:start].lstrip().startswith("|"):
        return None
    result_start = sign_match.end()
    result_has_opening = text.startswith("`", result_start)
    return _ShownCall(
        call=call,
        sign=sign,
        result_start=result_start + result_has_opening,
        closing="`" if result_has_opening or (has_opening and not has_closing) else "",
    )


def _is_plain_call(call: ast.Call) -> bool:
    if isinstance(call.func, ast.Attribute):  # a method of the entry point's result
        return (
            isinstance(call.func.value, ast.Call)
            and _is_plain_call(call.func.value)
            and _has_plain_values(call)
        )
    if not isinstance(call.func, ast.Name) or hasattr(builtins, call.func.id):
        return False
    return _has_plain_values(call)


def _has_plain_values(call: ast.Call) -> bool:
    values = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg)]
    return len(values) == len(call.args) + len(call.keywords) and all(is_literal(value) for value in values)


def _find_named_inputs(prose: str, text: str, entry_point: str | None) -> Iterator[Example]:
    """Yield the examples that name their inputs, such as `Input: x = 1 Output: 3`."""
    if entry_point is None:
        return
    parameters = find_parameters(text, entry_point)
    for pattern in (INPUT_RE, FOR_SENTENCE_RE):
        for match in pattern.finditer(prose):
            literal = find_literal(prose, match.end())
            source = match["input"] if len(match["input"]) <= MAX_NAMED_INPUT_CHARS else ""
            call = _read_whole_call(source, entry_point)
            if call is None and source and parameters is not None:
                values = _read_inputs(source, parameters)
                call = f"{entry_point}({', '.join(values)})" if values is not None else None
            if literal and call is not None:
                yield Example(start=match.start(), name=entry_point, call=call, expected=literal[0])


def _read_whole_call(text: str, entry_point: str) -> str | None:
    """Return the text without backticks if it is a plain call of the entry point and nothing else."""
    source = text.strip().strip("`")
    call_and_end = find_call(source, 0) if re.match(rf"{re.escape(entry_point)}\(", source) else None
    if call_and_end is None:
        return None
    call, end = call_and_end
    return source if end == len(source) and _is_plain_call(call) else None


def _read_inputs(text: str, parameters: list[str]) -> list[str] | None:
    """Return the values of `a = 1, b = 2`, or of a single value, in the order of the parameters."""
    single = find_literal(text, 0)
    if single and single[1] == len(text):
        return [single[0]] if len(parameters) == 1 else None
    values: dict[str, str] = {}
    position = 0
    while position < len(text):
        name = re.compile(r"[\s,]*(\w+)\s*[=:]\s*").match(text, position)
        if name is None or name[1] in values:
            return None
        end = next(_list_value_ends(text, name.end()), None)
        if end is None:
            return None
        values[name[1]] = text[name.end() : end].strip()
        position = end
    return [values[name] for name in parameters] if set(values) == set(parameters) else None


def _list_value_ends(text: str, start: int) -> Iterator[int]:
    """Yield the positions where a literal ends before the next `name =`, the end of the line or of the text."""
    for match in re.compile(r",\s*\w+\s*[=:]|\n|$").finditer(text, start):
        source = text[start : match.start()].strip()
        try:
            if source and is_literal(ast.parse(source, mode="eval")):
                yield match.start()
        except PARSE_FAULTS:
            continue


def _drop_outliers(examples: list[Example]) -> list[Example]:
    """Return the examples without doubtful ones, where the results of one function are of several kinds.

    `f(2) = 1` among lists is mathematics, and `("a")` among tuples is a typing error.
    """
    kinds: dict[str, set[str]] = {}
    for example in examples:
        if not example.raises:
            kinds.setdefault(example.name, set()).add(_get_result_kind(example.expected))
    return [
        example
        for example in examples
        if example.raises or len(kinds[example.name] - {"None"}) <= 1 or not _is_doubtful(example)
    ]


def _is_doubtful(example: Example) -> bool:
    is_bracketed_value = example.expected[0] == "(" and _get_result_kind(example.expected) != "tuple"
    return example.weak or is_bracketed_value


def _get_result_kind(source: str) -> str:
    try:
        value = evaluate_literal(source)
    except ValueError:
        return "None"
    if isinstance(value, (bool, int, float, complex)):
        return "number"
    return "None" if value is None else type(value).__name__
