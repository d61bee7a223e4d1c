"""Extracting example calls with their results from text as checks, for languages other than Python.

The text is a task's statement or a user's tests. Only a call whose arguments and result are literals becomes
a check. As in `prose_examples.py`, nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from suture.core.records import Check, Provenance
from suture.judge.extraction.doctest_examples import deduplicate_checks, make_check
from suture.judge.tuning import (
    MAX_EXAMPLE_CALLS,
    MAX_EXPRESSION_CHARS,
    MAX_LITERAL_ENDS,
    MAX_QUOTE_CHARS,
    MAX_WRAPPER_CHARS,
)
from suture.project.languages import CallDriver, JsonPlus

EXAMPLE_ARROW = " => "
"""What separates the call from its result in the source of a check."""
RESULT_SIGNS = r"==>|===?|=>|->|→|⇒|➞"
MODAL_VERB = r"(?:should |must |will )?"
RESULT_VERBS = rf"{MODAL_VERB}(?:return|equal|give|yield|evaluate to|[Oo]utput|resolve to)s?(?:[ ]to)?\b"
FAILURE_SENTENCE_RE = re.compile(
    rf"{MODAL_VERB}(?:throw|panic|raise|reject)s?\b(?:[ ](?:with )?an?\b)?[ ]?`?(\w*)"
)
"""A sentence that the call fails, such as `should throw a RangeError`; the group is the error's name."""
RESULT_INTRODUCTION_RE = re.compile(
    rf"`?\)*;?[ \t]*(?P<comment>(?://|\#)[ \t]*)?"
    rf"(?P<sign>(?:{RESULT_SIGNS}|{RESULT_VERBS}):?|(?={FAILURE_SENTENCE_RE.pattern}))?[ \t]*`?"
    r"(?:an?[ ](?=error\b))?"
)
"""Matches what separates a call from its result, such as `// => `, `returns ` or `==`.

It matches the empty string before a sentence such as `throws RangeError`.
"""
PROMPT_RE = re.compile(r"(?:^|\n)[ \t]*(?:\*|//)?[ \t]*>{1,3}[ \t]*$")
"""Matches the prompt before a call in an interactive session, where the result is on the line below."""
NEXT_LINE_RE = re.compile(r";?[ \t]*\n[ \t]*(?:\*|//)?[ \t]*")
"""The text from the end of a call to the start of the line below."""
WRAPPER_RE = re.compile(
    r"(?:assert\.(?P<assert>\w+)|(?P<expect>expect)|assert|console\.\w+|fmt\.\w+)\("
    r"[ \t]*(?P<deferred>(?:async[ ])?(?:\(\)[ ]*=>|function[ ]*\(\))[ ]*\{?[ ]*(?:return[ ])?)?$"
)
"""Matches what precedes a call that is an argument: an assert, an `expect`, a print.

The group `deferred` matches if the call is inside a function, as in `assert.throws(() => f(1))`.
"""
OPERAND_RE = re.compile(r"(?:[\w)\]][ \t]*[-+*/%&|<>?]|!)[ \t]*$")
"""Matches what precedes a call that is only an operand, so that what follows the call is not its result."""
THROWN_ERROR_RE = re.compile(r"\s*;?\s*\}?\s*(?:,\s*(\w+))?\s*[,)]")
"""Matches what follows a call inside `assert.throws`; the group is the expected error, if one is named."""
CONDITION_RE = re.compile(r"\b(?:if|while)[ \t]*\([ \t]*$")
"""Matches what precedes a call in a condition, after which no result is shown."""
DENIED_COMPARISON_RE = re.compile(r"[ \t]*===?(?!=|[ \t]*false\b)[^\n]*(?://|#)[^\n]*\bfalse\b")
"""A comparison with a comment that says that it does not hold, such as `=== 2 // false`."""
COMMA_RE = re.compile(r"\s*,\s*")
"""Matches what follows a call inside `assert.equal`, before the expected value."""
EQUALITY_ASSERTS = ("equal", "strictEqual", "deepEqual", "deepStrictEqual")
"""Functions of `node:assert` that compare a call with an expected value."""
FAILURE_ASSERTS = ("throws", "rejects")
"""Functions of `node:assert` that expect a call to fail."""
EXPECT_EQUAL_RE = re.compile(r"\)\s*\.(?:resolves\.)?to(?:Be|Equal|StrictEqual)\(\s*")
"""Matches what follows a call inside `expect`, before the expected value."""
EXPECT_THROW_RE = re.compile(r"\}?\s*\)\s*\.(?:rejects\.)?toThrow(?:Error)?\((\w*)")
"""Matches what follows a call that `expect` expects to fail; the group is the error's name."""
RESULT_END_RE = re.compile(
    r"[ \t]*`?[ \t]*(?:$|\n|//|#|\*/|\(|--|\||[.;!)](?:[\s;`)]|$)|,?[ ](?:and|but|because|since|for|when)\b"
    r"|,[ \t]*(?:`?\w+\(|['\"]))"
)
"""Matches what may follow a literal that is a whole result and not the beginning of an expression."""


@dataclass(frozen=True, kw_only=True)
class CallExample:
    """An example of a call and its expected result.

    Attributes:
        call: The call as it is written in the text.
        args: The arguments as JSON-plus values (see `suture.project.languages.calling`).
        awaits: Whether the result is what a promise resolves to.
        expected: The expected result as a JSON-plus value. If the call must fail, `["error", name, None]`,
            where a name of `None` stands for any error.
        result: The result as it is written in the text.
    """

    call: str
    args: tuple[JsonPlus, ...]
    awaits: bool = False
    expected: JsonPlus = None
    result: str = ""
    fails: bool = False

    @property
    def source(self) -> str:
        """The example as a line that `parse_call` reads."""
        return f"{'await ' if self.awaits else ''}{self.call}{EXAMPLE_ARROW}{self.result}"


@dataclass(frozen=True, kw_only=True)
class UnreadCall:
    """A call that looks like an example and became no check, because its result is doubtful or not a literal."""

    text: str


def extract_calls(
    text: str, name: str, driver: CallDriver, provenance: Provenance = "visible", *, awaits: bool = False
) -> tuple[Check, ...]:
    """Return the calls of a function that some text shows with their results, as checks.

    The function reads `f(1) === 2`, `f(1) // => 2`, `f(1) returns 2`, `f(1) throws RangeError`, results below
    `> f(1)`, and asserts of `node:assert`, Jest and Vitest.

    Args:
        text: A statement, or code.
        name: The function's name.
        driver: Reads the literals of the language.
        provenance: Who shows the calls.
        awaits: Whether the function is known to return promises.
    """
    examples = _find_examples(text, name, driver, awaits=awaits)
    sources = (example.source for example in examples if isinstance(example, CallExample))
    return deduplicate_checks(make_check(source, provenance) for source in sources)


def find_unread_calls(text: str, name: str, driver: CallDriver) -> tuple[str, ...]:
    """Return the passages that look like examples of a function but became no check."""
    examples = _find_examples(text, name, driver, awaits=False)
    unread = [example.text for example in examples if isinstance(example, UnreadCall)]
    return tuple(dict.fromkeys(unread))


def parse_call(source: str, name: str, driver: CallDriver) -> CallExample | None:
    """Return the call in a check's source; `None` if there is not exactly one."""
    examples = _find_examples(source.strip(), name, driver, awaits=False)
    calls = [example for example in examples if isinstance(example, CallExample)]
    return calls[0] if len(calls) == 1 else None


def _find_examples(
    text: str, name: str, driver: CallDriver, *, awaits: bool
) -> Iterator[CallExample | UnreadCall]:
    for match in islice(re.finditer(rf"(?<![\w.$]){re.escape(name)}[ ]?\(", text), MAX_EXAMPLE_CALLS):
        end = _find_closing_bracket(text, match.end() - 1)
        args = driver.read_literals(text[match.end() : end - 1]) if end is not None else None
        if end is None or args is None:
            continue
        before = text[max(0, match.start() - MAX_WRAPPER_CHARS) : match.start()]
        await_match = re.search(r"\bawait[ ]+$", before)
        before = before[: await_match.start()] if await_match else before
        wrapper = WRAPPER_RE.search(before)
        if wrapper is None and OPERAND_RE.search(before):
            continue
        call = CallExample(
            call=_join_lines(text[match.start() : end]), args=args, awaits=awaits or await_match is not None
        )
        example = _read_example(text, end, call, before, wrapper, driver)
        if example is not None:
            yield example


def _read_example(
    text: str, end: int, call: CallExample, before: str, wrapper: re.Match[str] | None, driver: CallDriver
) -> CallExample | UnreadCall | None:
    """Return a call with the result that the text around it shows; `None` if it shows none."""
    if wrapper and (wrapper["deferred"] or wrapper["assert"] in FAILURE_ASSERTS):
        if wrapper["expect"]:
            failure = EXPECT_THROW_RE.match(text, end)
        else:
            failure = THROWN_ERROR_RE.match(text, end) if wrapper["assert"] in FAILURE_ASSERTS else None
        return None if failure is None else _make_failing_example(call, failure[1] or "", driver)
    result_start = _find_result_start(text, end, before, wrapper)
    if result_start is None or CONDITION_RE.search(before):
        return None
    start, is_announced = result_start
    if DENIED_COMPARISON_RE.match(text, end):
        return _make_unread_call(call, text, end)
    if failure := FAILURE_SENTENCE_RE.match(text, start):
        # Another word, as in `throws if the list is empty`, is not the name of an error.
        error_name = failure[1] if failure[1].endswith(("Error", "Exception")) else ""
        return _make_failing_example(call, error_name, driver)
    value = _read_value(text, start, driver)
    if value is not None:
        return replace(call, expected=value[0], result=value[1])
    return _make_unread_call(call, text, end) if is_announced else None


def _make_unread_call(call: CallExample, text: str, end: int) -> UnreadCall:
    # The length of a call is not limited, so a bit more of the text is read than will be quoted.
    line = call.call + text[end : end + 2 * MAX_QUOTE_CHARS].partition("\n")[0]
    return UnreadCall(text=line if len(line) <= MAX_QUOTE_CHARS else f"{line[:MAX_QUOTE_CHARS]}...")


def _make_failing_example(call: CallExample, error_name: str, driver: CallDriver) -> CallExample:
    return replace(
        call,
        expected=["error", error_name or None, None],
        result=f"{driver.raises} {error_name}".strip(),
        fails=True,
    )


def _find_result_start(
    text: str, end: int, before: str, wrapper: re.Match[str] | None
) -> tuple[int, bool] | None:
    """Return (start, is_announced): where the result begins, and whether the text clearly announces one.

    A mere comment after a call does not announce a result: it may be a remark.
    """
    if wrapper and (wrapper["expect"] or wrapper["assert"]):
        if wrapper["expect"]:
            match = EXPECT_EQUAL_RE.match(text, end)
        else:
            match = COMMA_RE.match(text, end) if wrapper["assert"] in EQUALITY_ASSERTS else None
        return (match.end(), True) if match else None
    next_line = NEXT_LINE_RE.match(text, end)
    if next_line and PROMPT_RE.search(before):
        return next_line.end(), True
    introduction = RESULT_INTRODUCTION_RE.match(text, end)
    if introduction is None or (introduction["sign"] is None and not introduction["comment"]):
        return None
    return introduction.end(), introduction["sign"] is not None


def _read_value(text: str, start: int, driver: CallDriver) -> tuple[JsonPlus, str] | None:
    """Return (value, source) of the longest literal at a position that ends where a statement or line ends."""
    ends = (end for end in _list_result_ends(text, start) if RESULT_END_RE.match(text, end))
    for end in islice(ends, MAX_LITERAL_ENDS):
        source = text[start:end].strip()
        values = driver.read_literals(source) if source else None
        if values and len(values) == 1:
            return values[0], _join_lines(source)
        if values and driver.statically_typed:  # a function of Go may have several results
            return ["results", list(values)], _join_lines(source)
    return None


def _list_result_ends(text: str, start: int) -> list[int]:
    """Return the positions outside brackets and quotes up to the end of the line or bracket, last first."""
    return [position for position, depth in _walk_brackets(text, start) if depth == 0][::-1]


def _find_closing_bracket(text: str, opening: int) -> int | None:
    """Return the position after the bracket that closes the one at a position."""
    return next((position for position, depth in _walk_brackets(text, opening) if depth == 0), None)


def _walk_brackets(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Yield (position, depth) after each character outside quotes; `depth` counts the open brackets."""
    depth, quote, is_escaped = 0, "", False
    for position in range(start, min(len(text), start + MAX_EXPRESSION_CHARS)):
        char = text[position]
        if is_escaped or (quote and char == "\\"):
            is_escaped = not is_escaped
            continue
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'`":
            quote = char
        elif char == "\n" and depth == 0:
            return
        else:
            depth += (char in "([{") - (char in ")]}")
        if depth < 0:
            return
        if not quote:
            yield position + 1, depth


def _join_lines(text: str) -> str:
    # A template literal keeps its line breaks.
    return text if "`" in text else " ".join(re.split(r"\s*\n\s*", text))
