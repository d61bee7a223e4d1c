"""Write what a failing test saw: the message, the frames, the input, and where expected and actual values differ."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice

from suture.agents.context.code_excerpts import fence
from suture.agents.context.failure_causes import FailureCause, is_whole_run, list_tests
from suture.core.records import CodeFrame, Counterexample
from suture.core.text_excerpts import shorten_pair
from suture.project.python_source.parsing import PARSE_FAULTS
from suture.project.python_source.statement_edits import split_lines
from suture.project.workspace import is_test_file

# All limits are chosen by judgement and are not measured.
MAX_INLINE_CHARS = 100
"""Maximum characters of two values that are shown in one line. Longer ones are shown one below the other, with the
place where they differ."""
MAX_VALUE_CHARS = 500
MAX_MESSAGE_CHARS = 1600
MAX_CALL_CHARS = 300
MAX_LINE_CHARS = 160
MAX_INPUT_CHARS = 400
MAX_SHOWN_INPUTS = 8
MAX_SHOWN_FRAMES = 8
MAX_DIFF_LINES = 40
MAX_LISTED_TESTS = 5
MAX_OTHER_CASES = 3
PART_LEAD_CHARS = 30
PART_CHARS = 70
COMPARED_NAMES = re.compile(r"(?:assert |self\.assert\w+\()(\w+)(?: == |, )(\w+)\b(?![\w.(\[])")
"""A comparison of two variables; their values are shown as the expected and the actual one."""


def render_cause(cause: FailureCause, texts: Mapping[str, str], label: str) -> str:
    """Return a cause as a paragraph of Markdown.

    Args:
        texts: Path -> text of the project's files, for the lines of the frames.
        label: What the paragraph begins with, such as `Cause 1`.
    """
    fact = cause.fact
    fact = fact if fact.call else replace(fact, call=_find_failing_line(fact, texts))
    parts = [f"**{label}: `{fact.check_id}`**", *_render_failure(fact)]
    if inputs := _render_inputs(fact):
        parts.append(inputs)
    # For a whole run, the output follows, which has the frames.
    if not is_whole_run(cause.outcomes[0]) and (frames := _render_frames(fact, texts)):
        parts.append(frames)
    others = cause.outcomes[1:]
    for outcome in others[:MAX_OTHER_CASES]:
        other = outcome.counterexample
        if other is not None:
            same = replace(other, exception="") if other.exception == fact.exception else other
            parts.append(f"- `{other.check_id}`, the same: {render_short_fact(same)}")
    if len(others) > MAX_OTHER_CASES:
        rest = [outcome.check_id for outcome in others[MAX_OTHER_CASES:]]
        parts.append(f"- the same cause: {list_tests(rest, MAX_LISTED_TESTS)}")
    return "\n".join(parts)


def _find_failing_line(fact: Counterexample, texts: Mapping[str, str]) -> str:
    """Return the line of the test that failed; empty if it is not known."""
    frame = next((frame for frame in fact.frames if is_test_file(frame.file)), None)
    return _read_line(frame, texts) if frame is not None else ""


def _read_line(frame: CodeFrame, texts: Mapping[str, str]) -> str:
    lines = split_lines(texts.get(frame.file, ""))
    return "".join(lines[frame.line - 1 : frame.line]).strip()[:MAX_LINE_CHARS]


def render_short_fact(fact: Counterexample) -> str:
    """Return a fact in one line, with the first difference of long values in it."""
    call = f"`{_shorten(fact.call, MAX_CALL_CHARS)}` " if fact.call else ""
    inputs = ", ".join(f"{name} = {_shorten(value, 80)}" for name, value in islice(fact.inputs.items(), 3))
    given = f" (with {inputs})" if inputs else ""
    if fact.exception:
        return f"{call}raised {_shorten(fact.exception, MAX_CALL_CHARS)}{given}"
    if not fact.expected and not fact.actual:
        return f"{call}failed{given}"
    actual, expected = shorten_pair(fact.actual or "a wrong result", fact.expected, MAX_INLINE_CHARS)
    wanted = f", expected {expected}" if expected else ""
    return f"{call}gave {actual}{wanted}{given}"


def _render_failure(fact: Counterexample) -> list[str]:
    call = f"`{_shorten(fact.call, MAX_CALL_CHARS)}`" if fact.call else "the test"
    if fact.exception:
        message = fact.message.strip()
        lines = [f"{call} raised {_shorten(fact.exception, MAX_MESSAGE_CHARS)}"]
        # The exception holds the first line of the message; the others follow.
        if "\n" in message or (message and message.split("\n")[0] not in fact.exception):
            lines = [f"{call} failed:", fence(_shorten(message, MAX_MESSAGE_CHARS))]
        if fact.expected:
            lines.append(f"expected: {_shorten(fact.expected, MAX_VALUE_CHARS)}")
        return lines
    if fact.expected or fact.actual:
        return _render_comparison(fact, call)
    return [f"{call} failed"] + ([fence(_shorten(fact.message, MAX_MESSAGE_CHARS))] if fact.message else [])


def _render_comparison(fact: Counterexample, call: str) -> list[str]:
    """Return expected and actual value: in one line, as a diff of lines, or one below the other."""
    expected, actual = fact.expected, fact.actual
    if not actual:
        return [f"{call} failed, expected {expected}", *([fence(fact.message)] if fact.message else [])]
    if len(expected) + len(actual) <= 2 * MAX_INLINE_CHARS:
        return [f"{call} gave {actual}, expected {expected}"]
    if diff := _render_line_diff(expected, actual):
        return [f"{call} gave another text than expected (`-` expected, `+` actual):", fence(diff, "diff")]
    shown_expected, shown_actual = shorten_pair(expected, actual, MAX_VALUE_CHARS)
    lines = [call, f"  gave     {shown_actual}", f"  expected {shown_expected}"]
    parts = shorten_pair(expected, actual, PART_CHARS, PART_LEAD_CHARS)
    if expected != actual:
        lines.append(f"  they part here: expected `{parts[0]}`, got `{parts[1]}`")
    return lines


def _render_line_diff(expected: str, actual: str) -> str:
    """Return the differing lines of two multi-line strings; empty if the values are not multi-line strings."""
    texts = [_read_text(value) for value in (expected, actual)]
    if not all(text is not None and "\n" in text.rstrip("\n") for text in texts):
        return ""
    old, new = (str(text).splitlines() for text in texts)
    if old == new:  # they differ in the characters that end their lines
        return ""
    lines = list(difflib.unified_diff(old, new, lineterm="", n=3))[2:]
    if any(line.startswith(("-", "+")) and line.rstrip() != line for line in lines):
        lines = [f"{line[0]}{line[1:]!r}" if line[:1] in ("-", "+") else line for line in lines]
    hidden = len(lines) - MAX_DIFF_LINES
    return "\n".join(lines[:MAX_DIFF_LINES]) + (f"\n... {hidden} more lines differ" if hidden > 0 else "")


def _read_text(value: str) -> str | None:
    """Return the string that a literal denotes. A value that is not a literal may be the string itself."""
    if value[:1] not in ("'", '"'):
        return value if "\n" in value else None
    try:
        text = ast.literal_eval(value)
    except PARSE_FAULTS:
        return None
    return text if isinstance(text, str) else None


def _render_inputs(fact: Counterexample) -> str:
    compared = {_strip(fact.expected), _strip(fact.actual)}
    names = COMPARED_NAMES.match(fact.call) if fact.expected and fact.actual else None
    operands = names.groups() if names is not None else ()
    inputs = [
        (name, value)
        for name, value in fact.inputs.items()
        if name not in operands and _strip(value) not in compared
    ]
    shown = [f"{name} = {_shorten(value, MAX_INPUT_CHARS)}" for name, value in inputs[:MAX_SHOWN_INPUTS]]
    if not shown:
        return ""
    return "Input: " + (", ".join(shown) if sum(map(len, shown)) <= 160 else "\n  " + "\n  ".join(shown))


def _strip(value: str) -> str:
    """Return a value without blanks at its ends, which a test may strip before it compares."""
    text = _read_text(value)
    return text.strip() if text is not None else value


def _render_frames(fact: Counterexample, texts: Mapping[str, str]) -> str:
    """Return the frames inside the project, innermost first, each with its line of code."""
    if len(fact.frames) == 1 and fact.call:
        return f"  at {fact.frames[0].file}:{fact.frames[0].line}"
    lines = []
    for frame in list(reversed(fact.frames))[:MAX_SHOWN_FRAMES]:
        where = f" in {frame.function}" if frame.function else ""
        lines.append(f"  {frame.file}:{frame.line}{where}: {_read_line(frame, texts)}".rstrip(": "))
    if not lines:
        return f"  at {fact.file}:{fact.line}" if fact.file and fact.line else ""
    return "Frames, innermost first:\n" + "\n".join(lines)


def _shorten(text: str, max_chars: int) -> str:
    if len(text) <= max_chars:
        return text
    head, tail = max_chars * 2 // 3, max_chars // 3
    return f"{text[:head]} ... {len(text) - head - tail} characters are cut ... {text[-tail:]}"
