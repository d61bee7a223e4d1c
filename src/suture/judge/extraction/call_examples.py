"""Calls with their results in a text of another language than Python, as checks.

Only a call whose arguments and result are literals becomes one. As in `examples.py`, nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from suture.core.records import Check, Provenance
from suture.judge.extraction.assert_checks import check_of, distinct
from suture.project.languages import CallDriver, Plus

MOST_CALLS = 200
"""Of one statement that are looked at."""
LONGEST = 2000
"""Characters in which a call that began must end."""
LONGEST_QUOTE = 60
ARROW = " => "
SIGN = r"==>|===?|=>|->|→|⇒|➞"
WILL = r"(?:should |must |will )?"
SAYS = rf"{WILL}(?:return|equal|give|yield|evaluate to|[Oo]utput|resolve to)s?(?:[ ]to)?\b"
THROWS = re.compile(rf"{WILL}(?:throw|panic|raise|reject)s?\b(?:[ ](?:with )?an?\b)?[ ]?`?(\w*)")
LEADS = re.compile(
    rf"`?\)*;?[ \t]*(?P<remark>(?://|\#)[ \t]*)?(?P<word>(?:{SIGN}|{SAYS}):?|(?={THROWS.pattern}))?[ \t]*`?"
    r"(?:an?[ ](?=error\b))?"
)
"""Between a call and its result: `// => `, `returns `, a bare sign, or a sentence that says that it fails."""
PROMPT = re.compile(r"(?:^|\n)[ \t]*(?:\*|//)?[ \t]*>{1,3}[ \t]*$")
"""In front of a call of a session: its result is on the line below."""
BELOW = re.compile(r";?[ \t]*\n[ \t]*(?:\*|//)?[ \t]*")
"""From the end of a call to the line below it."""
WRAPPER = re.compile(
    r"(?:assert\.(?P<assert>\w+)|(?P<expect>expect)|assert|console\.\w+|fmt\.\w+)\("
    r"[ \t]*(?P<later>(?:async[ ])?(?:\(\)[ ]*=>|function[ ]*\(\))[ ]*\{?[ ]*(?:return[ ])?)?$"
)
"""Around a call: an assert, an `expect`, a print; `later` where the call is made inside of a function."""
WITHIN = re.compile(r"(?:[\w)\]][ \t]*[-+*/%&|<>?]|!)[ \t]*$")
"""In front of a call that is only an operand: what stands behind it is no result of the call."""
THROWN = re.compile(r"\s*;?\s*\}?\s*(?:,\s*(\w+))?\s*[,)]")
"""Behind a call inside of `assert.throws`: the error that is expected, if one is named."""
MOST_ENDS = 40
CONDITION = re.compile(r"\b(?:if|while)[ \t]*\([ \t]*$")
"""In front of a call in a condition, behind which no result is shown."""
DENIED = re.compile(r"[ \t]*===?(?!=|[ \t]*false\b)[^\n]*(?://|#)[^\n]*\bfalse\b")
"""A comparison whose remark says that it does not hold."""
NEXT = re.compile(r"\s*,\s*")
EQUAL = ("equal", "strictEqual", "deepEqual", "deepStrictEqual")
FAILS = ("throws", "rejects")
EXPECTED = re.compile(r"\)\s*\.(?:resolves\.)?to(?:Be|Equal|StrictEqual)\(\s*")
EXPECTED_TO_FAIL = re.compile(r"\}?\s*\)\s*\.(?:rejects\.)?toThrow(?:Error)?\((\w*)")
AFTER = re.compile(
    r"[ \t]*`?[ \t]*(?:$|\n|//|#|\*/|\(|--|\||[.;!)](?:[\s;`)]|$)|,?[ ](?:and|but|because|since|for|when)\b"
    r"|,[ \t]*(?:`?\w+\(|['\"]))"
)
"""What may follow a literal, so that it is the whole result and not the beginning of an expression."""


@dataclass(frozen=True, kw_only=True)
class ShownCall:
    """One call, and what must come of it.

    Attributes:
        call: As it stands in the text.
        args: Its arguments.
        awaits: Whether what a promise resolves to is meant.
        expected: The result; of a call that must fail the error.
        result: The result as it stands in the text.
        fails: Whether it must fail.
    """

    call: str
    args: tuple[Plus, ...]
    awaits: bool = False
    expected: Plus = None
    result: str = ""
    fails: bool = False

    @property
    def source(self) -> str:
        """It as a line that `read_call` reads."""
        return f"{'await ' if self.awaits else ''}{self.call}{ARROW}{self.result}"


def calls_in(
    text: str,
    name: str,
    driver: CallDriver,
    provenance: Provenance = "visible",
    *,
    awaits: bool = False,
) -> tuple[Check, ...]:
    """The calls of a function that a text shows with their results, as checks.

    Read are `f(1) === 2`, `f(1) // => 2`, `f(1) returns 2`, `f(1) throws RangeError`, results below
    `> f(1)`, and asserts of `node:assert`, Jest and Vitest.

    Args:
        text: A statement, or code.
        name: The function.
        driver: Reads the language's literals.
        provenance: Who shows them.
        awaits: Whether the function is known to give promises.
    """
    found = (call for call in _calls(text, name, driver, awaits=awaits) if isinstance(call, ShownCall))
    return distinct(check_of(call.source, provenance) for call in found)


def unread_calls(text: str, name: str, driver: CallDriver) -> tuple[str, ...]:
    """What looks like an example of a function and became no check, as it stands in the text."""
    found = [call for call in _calls(text, name, driver, awaits=False) if isinstance(call, str)]
    return tuple(dict.fromkeys(found))


def read_call(source: str, name: str, driver: CallDriver) -> ShownCall | None:
    """The call of a check's source; `None` where it is none."""
    calls = [
        call for call in _calls(source.strip(), name, driver, awaits=False) if isinstance(call, ShownCall)
    ]
    return calls[0] if len(calls) == 1 else None


def _calls(text: str, name: str, driver: CallDriver, *, awaits: bool) -> Iterator[ShownCall | str]:
    for match in islice(re.finditer(rf"(?<![\w.$]){re.escape(name)}[ ]?\(", text), MOST_CALLS):
        end = _closing(text, match.end() - 1)
        args = driver.read(text[match.end() : end - 1]) if end is not None else None
        if end is None or args is None:
            continue
        before = text[max(0, match.start() - 80) : match.start()]
        awaited = re.search(r"\bawait[ ]+$", before)
        before = before[: awaited.start()] if awaited else before
        wrapper = WRAPPER.search(before)
        if wrapper is None and WITHIN.search(before):
            continue
        call = ShownCall(
            call=_one_line(text[match.start() : end]), args=args, awaits=awaits or awaited is not None
        )
        yield from _with_result(text, end, call, before, wrapper, driver)


def _with_result(
    text: str,
    end: int,
    call: ShownCall,
    before: str,
    wrapper: re.Match[str] | None,
    driver: CallDriver,
) -> Iterator[ShownCall | str]:
    if wrapper and (wrapper["later"] or wrapper["assert"] in FAILS):
        failing = EXPECTED_TO_FAIL.match(text, end) if wrapper["expect"] else None
        told = failing or (THROWN.match(text, end) if wrapper["assert"] in FAILS else None)
        if told is not None:
            yield _failing(call, told[1] or "", driver)
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
        yield ShownCall(call=call.call, args=call.args, awaits=call.awaits, expected=expected, result=shown)
    elif says_so:
        yield _line_of(call, text, end)


def _line_of(call: ShownCall, text: str, end: int) -> str:
    line = call.call + text[end : end + 2 * LONGEST_QUOTE].partition("\n")[0]
    return line if len(line) <= LONGEST_QUOTE else f"{line[:LONGEST_QUOTE]}..."


def _failing(call: ShownCall, name: str, driver: CallDriver) -> ShownCall:
    return ShownCall(
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
    """Where the result begins, and whether what leads to it says that it is one."""
    if wrapper and (wrapper["expect"] or wrapper["assert"]):
        lead = EXPECTED if wrapper["expect"] else NEXT if wrapper["assert"] in EQUAL else None
        match = lead.match(text, end) if lead else None
        return (match.end(), True) if match else None
    below = BELOW.match(text, end)
    if below and PROMPT.search(before):
        return below.end(), True
    leads = LEADS.match(text, end)
    if leads is None or (leads["word"] is None and not leads["remark"]):
        return None
    return leads.end(), leads["word"] is not None


def _value_at(text: str, start: int, driver: CallDriver) -> tuple[Plus, str] | None:
    """The longest literal at a place behind which a sentence, a line or a statement ends."""
    for end in islice((end for end in _ends(text, start) if AFTER.match(text, end)), MOST_ENDS):
        shown = text[start:end].strip()
        values = driver.read(shown) if shown else None
        if values and (len(values) == 1 or driver.typed):
            return values[0] if len(values) == 1 else ["results", list(values)], _one_line(shown)
    return None


def _ends(text: str, start: int) -> list[int]:
    """Places outside brackets and quotes, up to the end of the line or the bracket around; the last first."""
    return [at for at, depth in _depths(text, start) if depth == 0][::-1]


def _closing(text: str, opening: int) -> int | None:
    """Behind the bracket that closes the one at a place."""
    return next((at for at, depth in _depths(text, opening) if depth == 0), None)


def _depths(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Each place behind a character that is in no quotes, and how many brackets are open there."""
    depth, quote, skip = 0, "", False
    for at in range(start, min(len(text), start + LONGEST)):
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
