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

from suture.core.records import Check
from suture.judge.extraction.assert_checks import deduplicate_checks, make_check
from suture.judge.extraction.doctest_examples import extract_doctests
from suture.judge.extraction.program_plans import find_stated_functions
from suture.judge.extraction.prose_literals import evaluate_literal, find_call, find_literal, is_literal
from suture.judge.tuning import MAX_EXAMPLE_CALLS, MAX_NAMED_INPUT_CHARS, MAX_QUOTE_CHARS
from suture.project.python_source.parsing import PARSE_FAULTS

RESULT_SIGN_RE = re.compile(
    r"[ \t]*(?:\#|//)?[ \t]*(?P<sign>==>|==|=>|->|➞|→|⇒|⟹|=|:|\|"
    r"|(?:should |must |will )?(?:return|equal|be|give|yield|evaluate to|output)s?(?:\s+to)?\b|is\b)[ \t]*"
)
"""What stands between a call and its result, such as `# => `, `returns ` or the bar of a table."""
WEAK_SIGNS = ("=", ":", "is", "be")
"""Signs that often stand in a statement that is no example, such as `f(2) = 1 for all x`."""
INPUT_RE = re.compile(r"\bInputs?\s*:\s*(?P<input>.*?)\s*\bOutputs?\s*:[ \t]*", re.DOTALL)
"""Named inputs up to their result, as in `Input: x = 1 Output: 3`."""
FOR_SENTENCE_RE = re.compile(r"\bFor\s+(?P<input>\w+\s*=[^\n]*?),?\s+the\s+(?:[^\n]*?\s)?should\s+be\s+")
"""Named inputs up to their result, as in `For x = 1, the output should be 3`."""
DEF_RE = re.compile(r"\bdef[ \t]+$")
"""What stands before a name that is defined and not called."""
MAX_DEF_CHARS = 20
"""Characters before a name in which its `def` must begin. Chosen by judgement; not measured."""


@dataclass(frozen=True, kw_only=True)
class Example:
    """One example.

    Attributes:
        start: Position of the call in the text.
        weak: Whether only one of `WEAK_SIGNS` stands between the call and the expected value.
    """

    start: int
    call: str
    expected: str
    weak: bool = False


def extract_examples(text: str, entry_point: str | None = None) -> tuple[Check, ...]:
    """Return the examples in a docstring or a statement as checks of provenance `visible`.

    The function reads `>>>` examples, asserts, and prose such as `f(1, 2) == 3`, `f(1, 2) -> 3`, `f(1, 2)
    returns 3`, `F(1).g() == 3`, a table cell `f(1, 2) | 3`, `Input: x = 1 Output: 3`, `For x = 1 the output
    should be 3`.

    Args:
        text: The docstring, the stub or the statement.
        entry_point: The function that the examples call; by default the last `def` in the text.
    """
    functions = find_stated_functions(text)
    if entry_point is None:
        stubs = re.findall(r"^\s*(?:async\s+)?def\s+(\w+)\s*\(", text, re.MULTILINE)
        entry_point = stubs[-1] if stubs else None
    callable_names = functions | {entry_point} if entry_point else functions
    checks, prose = extract_doctests(text, entry_point, frozenset(callable_names))
    examples = [*_find_calls(prose, entry_point), *_find_named_inputs(prose, text, entry_point)]
    for example in _drop_outliers(sorted(examples, key=lambda example: example.start)):
        checks.append((example.start, make_check(f"assert {example.call} == {example.expected}", "visible")))
    return deduplicate_checks(check for _, check in sorted(checks, key=lambda pair: pair[0]))


def _find_calls(text: str, entry_point: str | None) -> Iterator[Example]:
    name = re.escape(entry_point) if entry_point else r"[A-Za-z_]\w*"
    for match in islice(re.finditer(rf"(?<![\w.]){name}[ ]?\(", text), MAX_EXAMPLE_CALLS):
        shown_call = _read_call(text, match.start())
        if shown_call is None or not _is_plain_call(shown_call.call):
            continue
        if shown_call.sign == "|":
            literal = _read_last_cell(text, shown_call.result_start)
        else:
            literal = find_literal(text, shown_call.result_start, shown_call.closing)
        if literal:
            call = " ".join(ast.unparse(shown_call.call).split("\n"))
            weak = shown_call.sign in WEAK_SIGNS
            yield Example(start=match.start(), call=call, expected=literal[0], weak=weak)


def _read_last_cell(text: str, start: int) -> tuple[str, int] | None:
    """Return the literal that fills the last cell of a table row; `None` if other cells follow."""
    cell, bar, rest = text[start:].partition("\n")[0].partition("|")
    value = cell.strip().removesuffix("`")
    return find_literal(value, 0) if bar and not rest.strip() else None


@dataclass(frozen=True, kw_only=True)
class _ShownCall:
    """A call in a text that is followed by a sign of a result.

    Attributes:
        sign: The sign or the last word before the result, such as `->` or `returns`.
        result_start: The position of the result.
        closing: The backtick that must follow the result; empty if none must.
    """

    call: ast.Call
    sign: str
    result_start: int
    closing: str


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
    parameters = _find_parameters(text, entry_point)
    for pattern in (INPUT_RE, FOR_SENTENCE_RE):
        for match in pattern.finditer(prose):
            literal = find_literal(prose, match.end())
            source = match["input"] if len(match["input"]) <= MAX_NAMED_INPUT_CHARS else ""
            call = _read_whole_call(source, entry_point)
            if call is None and source and parameters is not None:
                values = _read_inputs(source, parameters)
                call = f"{entry_point}({', '.join(values)})" if values is not None else None
            if literal and call is not None:
                yield Example(start=match.start(), call=call, expected=literal[0])


def _read_whole_call(text: str, entry_point: str) -> str | None:
    """Return the text without backticks if it is a plain call of the entry point and nothing else."""
    source = text.strip().strip("`")
    call_and_end = find_call(source, 0) if re.match(rf"{re.escape(entry_point)}\(", source) else None
    if call_and_end is None:
        return None
    call, end = call_and_end
    return source if end == len(source) and _is_plain_call(call) else None


def find_unread_examples(text: str, entry_point: str | None) -> tuple[str, ...]:
    """Return the texts that look like examples of the entry point but became no check.

    Args:
        text: The statement.
        entry_point: The function or class that examples call; without one the result is empty.
    """
    if entry_point is None:
        return ()
    _, prose = extract_doctests(text, entry_point, frozenset({entry_point}))
    read_positions = {example.start for example in _find_calls(prose, entry_point)}
    unread: list[str] = []
    for match in islice(re.finditer(rf"(?<![\w.]){re.escape(entry_point)}[ ]?\(", prose), MAX_EXAMPLE_CALLS):
        shown_call = _read_call(prose, match.start())
        if shown_call is None or match.start() in read_positions or shown_call.sign in (*WEAK_SIGNS, "|"):
            continue
        if _is_plain_call(shown_call.call):  # `f(x) == 3` is a statement about every x, not an example
            line = prose[match.start() :].partition("\n")[0]
            unread.append(line if len(line) <= MAX_QUOTE_CHARS else f"{line[:MAX_QUOTE_CHARS]}...")
    return tuple(dict.fromkeys(unread))


def _find_parameters(text: str, entry_point: str | None) -> list[str] | None:
    """Return the parameters that the entry point requires, in order; `None` without a stub in the text."""
    match = re.search(rf"^[ \t]*def\s+{re.escape(entry_point or ' ')}\s*\(", text, re.MULTILINE)
    end = text.find(":\n", match.end()) if match else -1
    while match and end >= 0:
        try:
            tree = ast.parse(text[match.start() : end + 1].strip() + " ...")
        except SyntaxError:
            end = text.find(":\n", end + 1)
            continue
        stub = tree.body[0]
        if isinstance(stub, ast.FunctionDef) and not (stub.args.kwonlyargs or stub.args.vararg):
            arguments = [argument.arg for argument in (*stub.args.posonlyargs, *stub.args.args)]
            return arguments[: len(arguments) - len(stub.args.defaults)]
        return None
    return None


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
    """Return the examples without doubtful ones, if their results are of several kinds.

    `f(2) = 1` among lists is mathematics, and `("a")` among tuples is a slip.
    """
    kinds = {_get_result_kind(example.expected) for example in examples} - {"None"}
    if len(kinds) <= 1:
        return examples
    return [
        example
        for example in examples
        if not example.weak
        and not (example.expected[0] == "(" and _get_result_kind(example.expected) != "tuple")
    ]


def _get_result_kind(source: str) -> str:
    try:
        value = evaluate_literal(source)
    except ValueError:
        return "None"
    if isinstance(value, (bool, int, float, complex)):
        return "number"
    return "None" if value is None else type(value).__name__
