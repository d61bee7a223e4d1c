"""Extracting calls with their results from a text of another language than Python as checks.

Only a call whose arguments and result are literals becomes a check. As in `prose_examples.py`, nothing is
guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from suture.core.records import Check, Provenance
from suture.judge.extraction.assert_checks import deduplicate_checks, make_check
from suture.judge.tuning import MAX_EXAMPLE_CALLS, MAX_EXPRESSION_CHARS, MAX_LITERAL_ENDS, MAX_QUOTE_CHARS
from suture.project.languages import CallDriver, JsonPlus

ARROW = " => "
RESULT_SIGNS = r"==>|===?|=>|->|→|⇒|➞"
MODAL = r"(?:should |must |will )?"
RESULT_VERBS = rf"{MODAL}(?:return|equal|give|yield|evaluate to|[Oo]utput|resolve to)s?(?:[ ]to)?\b"
THROWS = re.compile(rf"{MODAL}(?:throw|panic|raise|reject)s?\b(?:[ ](?:with )?an?\b)?[ ]?`?(\w*)")
RESULT_LEAD = re.compile(
    rf"`?\)*;?[ \t]*(?P<remark>(?://|\#)[ \t]*)?"
    rf"(?P<word>(?:{RESULT_SIGNS}|{RESULT_VERBS}):?|(?={THROWS.pattern}))?[ \t]*`?"
    r"(?:an?[ ](?=error\b))?"
)
"""What stands between a call and its result: `// => `, `returns `, a bare sign, or a sentence that it fails.
"""
PROMPT = re.compile(r"(?:^|\n)[ \t]*(?:\*|//)?[ \t]*>{1,3}[ \t]*$")
"""What stands before a call in an interactive session, where the result is on the line below."""
LINE_BELOW = re.compile(r";?[ \t]*\n[ \t]*(?:\*|//)?[ \t]*")
"""The text from the end of a call to the start of the line below."""
WRAPPER = re.compile(
    r"(?:assert\.(?P<assert>\w+)|(?P<expect>expect)|assert|console\.\w+|fmt\.\w+)\("
    r"[ \t]*(?P<later>(?:async[ ])?(?:\(\)[ ]*=>|function[ ]*\(\))[ ]*\{?[ ]*(?:return[ ])?)?$"
)
"""What surrounds a call: an assert, an `expect`, a print; `later` if the call is made inside a function."""
OPERAND_BEFORE = re.compile(r"(?:[\w)\]][ \t]*[-+*/%&|<>?]|!)[ \t]*$")
"""What stands before a call that is only an operand, so that the text behind it is not the call's result."""
THROWN = re.compile(r"\s*;?\s*\}?\s*(?:,\s*(\w+))?\s*[,)]")
"""What follows a call inside `assert.throws`: the expected error, if one is named."""
CONDITION = re.compile(r"\b(?:if|while)[ \t]*\([ \t]*$")
"""What stands before a call in a condition, behind which no result is shown."""
DENIED = re.compile(r"[ \t]*===?(?!=|[ \t]*false\b)[^\n]*(?://|#)[^\n]*\bfalse\b")
"""A comparison with a comment that says that it does not hold."""
NEXT = re.compile(r"\s*,\s*")
EQUAL = ("equal", "strictEqual", "deepEqual", "deepStrictEqual")
FAILS = ("throws", "rejects")
EXPECTED = re.compile(r"\)\s*\.(?:resolves\.)?to(?:Be|Equal|StrictEqual)\(\s*")
EXPECTED_TO_FAIL = re.compile(r"\}?\s*\)\s*\.(?:rejects\.)?toThrow(?:Error)?\((\w*)")
AFTER_RESULT = re.compile(
    r"[ \t]*`?[ \t]*(?:$|\n|//|#|\*/|\(|--|\||[.;!)](?:[\s;`)]|$)|,?[ ](?:and|but|because|since|for|when)\b"
    r"|,[ \t]*(?:`?\w+\(|['\"]))"
)
"""What may follow a literal that is a whole result and not the beginning of an expression."""


@dataclass(frozen=True, kw_only=True)
class CallExample:
    """One call and its expected result.

    Attributes:
        call: The call as it stands in the text.
        args: The arguments.
        awaits: Whether the result is what a promise resolves to.
        expected: The expected result; the expected error if the call must fail.
        result: The result as it stands in the text.
        fails: Whether the call must fail.
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
        return f"{'await ' if self.awaits else ''}{self.call}{ARROW}{self.result}"


def extract_calls(
    text: str,
    name: str,
    driver: CallDriver,
    provenance: Provenance = "visible",
    *,
    awaits: bool = False,
) -> tuple[Check, ...]:
    """Return the calls of a function that a text shows with their results, as checks.

    The function reads `f(1) === 2`, `f(1) // => 2`, `f(1) returns 2`, `f(1) throws RangeError`, results below
    `> f(1)`, and asserts of `node:assert`, Jest and Vitest.

    Args:
        text: A statement, or code.
        name: The function's name.
        driver: Reads the literals of the language.
        provenance: Who shows the calls.
        awaits: Whether the function is known to return promises.
    """
    found = (call for call in _calls(text, name, driver, awaits=awaits) if isinstance(call, CallExample))
    return deduplicate_checks(make_check(call.source, provenance) for call in found)


def find_unread_calls(text: str, name: str, driver: CallDriver) -> tuple[str, ...]:
    """Return the texts that look like examples of a function but became no check."""
    found = [call for call in _calls(text, name, driver, awaits=False) if isinstance(call, str)]
    return tuple(dict.fromkeys(found))


def parse_call(source: str, name: str, driver: CallDriver) -> CallExample | None:
    """Return the call in a check's source; `None` if there is not exactly one."""
    calls = [
        call for call in _calls(source.strip(), name, driver, awaits=False) if isinstance(call, CallExample)
    ]
    return calls[0] if len(calls) == 1 else None


def _calls(text: str, name: str, driver: CallDriver, *, awaits: bool) -> Iterator[CallExample | str]:
    for match in islice(re.finditer(rf"(?<![\w.$]){re.escape(name)}[ ]?\(", text), MAX_EXAMPLE_CALLS):
        end = _closing_bracket(text, match.end() - 1)
        args = driver.read_literals(text[match.end() : end - 1]) if end is not None else None
        if end is None or args is None:
            continue
        before = text[max(0, match.start() - 80) : match.start()]
        awaited = re.search(r"\bawait[ ]+$", before)
        before = before[: awaited.start()] if awaited else before
        wrapper = WRAPPER.search(before)
        if wrapper is None and OPERAND_BEFORE.search(before):
            continue
        call = CallExample(
            call=_one_line(text[match.start() : end]), args=args, awaits=awaits or awaited is not None
        )
        yield from _with_result(text, end, call, before, wrapper, driver)


def _with_result(
    text: str,
    end: int,
    call: CallExample,
    before: str,
    wrapper: re.Match[str] | None,
    driver: CallDriver,
) -> Iterator[CallExample | str]:
    if wrapper and (wrapper["later"] or wrapper["assert"] in FAILS):
        failing = EXPECTED_TO_FAIL.match(text, end) if wrapper["expect"] else None
        thrown = failing or (THROWN.match(text, end) if wrapper["assert"] in FAILS else None)
        if thrown is not None:
            yield _failing(call, thrown[1] or "", driver)
        return
    start = _start_of_result(text, end, before, wrapper)
    if start is None:
        return
    at, says_so = start
    if CONDITION.search(before):
        return
    if DENIED.match(text, end):
        yield _line_of(call, text, end)
        return
    if fails := THROWS.match(text, at):
        yield _failing(call, fails[1] if fails[1].endswith(("Error", "Exception")) else "", driver)
        return
    value = _value_at(text, at, driver)
    if value is not None:
        expected, shown = value
        yield CallExample(call=call.call, args=call.args, awaits=call.awaits, expected=expected, result=shown)
    elif says_so:
        yield _line_of(call, text, end)


def _line_of(call: CallExample, text: str, end: int) -> str:
    line = call.call + text[end : end + 2 * MAX_QUOTE_CHARS].partition("\n")[0]
    return line if len(line) <= MAX_QUOTE_CHARS else f"{line[:MAX_QUOTE_CHARS]}..."


def _failing(call: CallExample, name: str, driver: CallDriver) -> CallExample:
    return CallExample(
        call=call.call,
        args=call.args,
        awaits=call.awaits,
        expected=["error", name or None, None],
        result=f"{driver.raises} {name}".strip(),
        fails=True,
    )


def _start_of_result(
    text: str, end: int, before: str, wrapper: re.Match[str] | None
) -> tuple[int, bool] | None:
    """Return where the result begins, and whether the text before it announces a result."""
    if wrapper and (wrapper["expect"] or wrapper["assert"]):
        lead = EXPECTED if wrapper["expect"] else NEXT if wrapper["assert"] in EQUAL else None
        match = lead.match(text, end) if lead else None
        return (match.end(), True) if match else None
    below = LINE_BELOW.match(text, end)
    if below and PROMPT.search(before):
        return below.end(), True
    leads = RESULT_LEAD.match(text, end)
    if leads is None or (leads["word"] is None and not leads["remark"]):
        return None
    return leads.end(), leads["word"] is not None


def _value_at(text: str, start: int, driver: CallDriver) -> tuple[JsonPlus, str] | None:
    """Return the longest literal at a position that ends where a sentence, a line or a statement ends."""
    for end in islice(
        (end for end in _result_ends(text, start) if AFTER_RESULT.match(text, end)), MAX_LITERAL_ENDS
    ):
        shown = text[start:end].strip()
        values = driver.read_literals(shown) if shown else None
        if values and (len(values) == 1 or driver.statically_typed):
            return values[0] if len(values) == 1 else ["results", list(values)], _one_line(shown)
    return None


def _result_ends(text: str, start: int) -> list[int]:
    """Return the positions outside brackets and quotes up to the end of the line or bracket, last first."""
    return [at for at, depth in _depths(text, start) if depth == 0][::-1]


def _closing_bracket(text: str, opening: int) -> int | None:
    """Return the position behind the bracket that closes the one at a position."""
    return next((at for at, depth in _depths(text, opening) if depth == 0), None)


def _depths(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Yield each position outside quotes with the number of brackets that are open there."""
    depth, quote, skip = 0, "", False
    for at in range(start, min(len(text), start + MAX_EXPRESSION_CHARS)):
        char = text[at]
        if skip or (quote and char == "\\"):
            skip = not skip
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
            yield at + 1, depth


def _one_line(text: str) -> str:
    return text if "`" in text else " ".join(re.split(r"\s*\n\s*", text))
