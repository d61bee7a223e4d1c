"""Extracting the examples in a docstring or a statement as checks.

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

LEADS_TO = re.compile(
    r"[ \t]*(?:\#|//)?[ \t]*(?P<word>==>|==|=>|->|➞|→|⇒|⟹|=|:|\|"
    r"|(?:should |must |will )?(?:return|equal|be|give|yield|evaluate to|output)s?(?:\s+to)?\b|is\b)[ \t]*"
)
WEAK = ("=", ":", "is", "be")
INPUT_RE = re.compile(r"\bInputs?\s*:\s*(?P<given>.*?)\s*\bOutputs?\s*:[ \t]*", re.DOTALL)
FOR_RE = re.compile(r"\bFor\s+(?P<given>\w+\s*=[^\n]*?),?\s+the\s+(?:[^\n]*?\s)?should\s+be\s+")
DEFINES = re.compile(r"\bdef[ \t]+$")


@dataclass(frozen=True, kw_only=True)
class Example:
    """One example and its position in the text."""

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
    known = functions | {entry_point} if entry_point else functions
    checks, prose = extract_doctests(text, entry_point, frozenset(known))
    found = sorted(
        (*_calls(prose, entry_point), *_named_inputs(prose, text, entry_point)), key=lambda e: e.start
    )
    for example in _consistent(found):
        checks.append((example.start, make_check(f"assert {example.call} == {example.expected}", "visible")))
    return deduplicate_checks(check for _, check in sorted(checks, key=lambda pair: pair[0]))


def _calls(text: str, entry_point: str | None) -> Iterator[Example]:
    name = re.escape(entry_point) if entry_point else r"[A-Za-z_]\w*"
    for match in islice(re.finditer(rf"(?<![\w.]){name}[ ]?\(", text), MAX_EXAMPLE_CALLS):
        found = _call_with_result(text, match.start())
        if found is None or not _plain_call(found[0]):
            continue
        call, word, start, close = found
        literal = _last_cell(text, start) if word == "|" else find_literal(text, start, close)
        if literal:
            shown = " ".join(ast.unparse(call).split("\n"))
            yield Example(start=match.start(), call=shown, expected=literal[0], weak=word in WEAK)


def _last_cell(text: str, start: int) -> tuple[str, int] | None:
    """Return the literal that fills the last cell of a table row; `None` if other cells follow."""
    cell, bar, rest = text[start:].partition("\n")[0].partition("|")
    value = cell.strip().removesuffix("`")
    return find_literal(value, 0) if bar and not rest.strip() else None


def _call_with_result(text: str, start: int) -> tuple[ast.Call, str, int, str] | None:
    """Return the call at a position, the word before its result, the result's start, and the closing text."""
    if DEFINES.search(text, max(0, start - 20), start):
        return None
    found = find_call(text, start)
    if found is None:
        return None
    call, end = found
    opened = text[start - 1 : start] == "`"
    closed = opened and text.startswith("`", end)
    leads = LEADS_TO.match(text, end + closed)
    if leads is None:
        return None
    word = leads["word"].split()[-1]
    if word == "|" and not text[text.rfind("\n", 0, start) + 1 : start].lstrip().startswith("|"):
        return None
    at = leads.end()
    in_code = text.startswith("`", at)
    return call, word, at + in_code, "`" if in_code or (opened and not closed) else ""


def _plain_call(call: ast.Call) -> bool:
    if isinstance(call.func, ast.Attribute):  # a method of the entry point's result
        return isinstance(call.func.value, ast.Call) and _plain_call(call.func.value) and _plain_values(call)
    if not isinstance(call.func, ast.Name) or hasattr(builtins, call.func.id):
        return False
    return _plain_values(call)


def _plain_values(call: ast.Call) -> bool:
    values = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg)]
    return len(values) == len(call.args) + len(call.keywords) and all(is_literal(value) for value in values)


def _named_inputs(text: str, whole: str, entry_point: str | None) -> Iterator[Example]:
    if entry_point is None:
        return
    parameters = _parameters(whole, entry_point)
    for pattern in (INPUT_RE, FOR_RE):
        for match in pattern.finditer(text):
            literal = find_literal(text, match.end())
            given = match["given"] if len(match["given"]) <= MAX_NAMED_INPUT_CHARS else ""
            call = _whole_call(given, entry_point)
            if call is None and given and parameters is not None:
                values = _inputs(given, parameters)
                call = f"{entry_point}({', '.join(values)})" if values is not None else None
            if literal and call is not None:
                yield Example(start=match.start(), call=call, expected=literal[0])


def _whole_call(given: str, entry_point: str) -> str | None:
    """Return the text if it is a plain call of the entry point and nothing else."""
    text = given.strip().strip("`")
    found = find_call(text, 0) if re.match(rf"{re.escape(entry_point)}\(", text) else None
    return text if found is not None and found[1] == len(text) and _plain_call(found[0]) else None


def find_unread_examples(text: str, entry_point: str | None) -> tuple[str, ...]:
    """Return the texts that look like examples of the entry point but became no check.

    Args:
        text: The statement.
        entry_point: The function or class that examples call; without one the result is empty.
    """
    if entry_point is None:
        return ()
    _, prose = extract_doctests(text, entry_point, frozenset({entry_point}))
    read = {example.start for example in _calls(prose, entry_point)}
    found: list[str] = []
    for match in islice(re.finditer(rf"(?<![\w.]){re.escape(entry_point)}[ ]?\(", prose), MAX_EXAMPLE_CALLS):
        call = _call_with_result(prose, match.start())
        if call is None or match.start() in read or call[1] in (*WEAK, "|"):
            continue
        if _plain_call(call[0]):  # `f(x) == 3` is a statement about every x, not an example
            line = prose[match.start() :].partition("\n")[0]
            found.append(line if len(line) <= MAX_QUOTE_CHARS else f"{line[:MAX_QUOTE_CHARS]}...")
    return tuple(dict.fromkeys(found))


def _parameters(text: str, entry_point: str | None) -> list[str] | None:
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


def _inputs(given: str, parameters: list[str]) -> list[str] | None:
    """Return the values of `a = 1, b = 2`, or of a single value, in the order of the parameters."""
    lone = find_literal(given, 0)
    if lone and lone[1] == len(given):
        return [lone[0]] if len(parameters) == 1 else None
    values: dict[str, str] = {}
    position = 0
    while position < len(given):
        name = re.compile(r"[\s,]*(\w+)\s*[=:]\s*").match(given, position)
        if name is None or name[1] in values:
            return None
        end = next((e for e in _value_ends(given, name.end())), None)
        if end is None:
            return None
        values[name[1]] = given[name.end() : end].strip()
        position = end
    return [values[name] for name in parameters] if set(values) == set(parameters) else None


def _value_ends(given: str, start: int) -> Iterator[int]:
    for match in re.compile(r",\s*\w+\s*[=:]|\n|$").finditer(given, start):
        source = given[start : match.start()].strip()
        try:
            if source and is_literal(ast.parse(source, mode="eval")):
                yield match.start()
        except PARSE_FAULTS:
            continue


def _consistent(examples: list[Example]) -> list[Example]:
    """Drop outliers: `f(2) = 1` among lists is mathematics, and `("a")` among tuples is a slip."""
    kinds = {kind for example in examples if (kind := _kind(example.expected)) != "None"}
    if len(kinds) <= 1:
        return examples
    return [
        example
        for example in examples
        if not example.weak and not (example.expected[0] == "(" and _kind(example.expected) != "tuple")
    ]


def _kind(source: str) -> str:
    try:
        value = evaluate_literal(source)
    except ValueError:
        return "None"
    if isinstance(value, (bool, int, float, complex)):
        return "number"
    return "None" if value is None else type(value).__name__
