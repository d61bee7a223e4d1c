"""Rewrites lines that are indented too little or too much."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import takewhile

from suture.mutation.syntax_repair.source_lines import (
    LineRewrite,
    ParseStop,
    get_indent,
    indent_unit,
    nearby_lines,
    strip_comment,
)

OUTSIDE_MESSAGES = ("outside function", "outside loop", "not properly in loop", "outside async function")
"""Parts of CPython's messages about a statement that is not inside a function or loop."""
INDENTATION_MESSAGES = ("indent", "expected 'except'", *OUTSIDE_MESSAGES)
"""Parts of CPython's messages about a line that is probably indented wrongly."""


def rewrite_indentation(lines: list[str], stop: ParseStop) -> Iterator[LineRewrite]:
    """Yield other indentations of the line where parsing stopped, alone and together with lines next to it."""
    number = stop.line - 1
    if "\t" in "".join(map(get_indent, lines)):
        for width in (4, 8):
            text = {n: line.expandtabs(width) if get_indent(line) else line for n, line in enumerate(lines)}
            yield LineRewrite(lines=text, note=f"tabs become {width} spaces", weight=0.9)
    is_reported = any(word in stop.message for word in INDENTATION_MESSAGES)
    if number >= len(lines) or not (is_reported or stop.message == "invalid syntax"):
        return
    weight = 1.0 if is_reported else 0.3
    previous = next(iter(nearby_lines(lines, number, back=1)[1:]), None)
    unit = indent_unit(lines)
    for target, indent_share in _target_indents(lines, number, previous, unit):
        for group, group_share in _line_groups(lines, number):
            shifted = _shift_lines(lines, group, target)
            note = f"line {number + 1}: {len(group)} line(s) at column {len(target)}"
            yield LineRewrite(lines=shifted, note=note, weight=weight * indent_share * group_share)
    if previous is not None and strip_comment(lines[previous]).endswith(":") and is_reported:
        deeper = get_indent(lines[previous]) + unit
        note = f"line {previous + 1}: its block is empty"
        yield LineRewrite(lines={previous: f"{lines[previous]}\n{deeper}pass"}, note=note, weight=0.15)
    if previous is not None and "unexpected indent" in stop.message:
        yield from _shift_earlier_lines(lines, number, previous)


def _target_indents(
    lines: list[str], number: int, previous: int | None, unit: str
) -> Iterator[tuple[str, float]]:
    """Yield `(indentation, weight)` for the indentations that a line could have."""
    current = get_indent(lines[number])
    if previous is not None and strip_comment(lines[previous]).endswith(":"):
        yield get_indent(lines[previous]) + unit, 1.0
    earlier_lines = (lines[earlier] for earlier in range(number - 1, -1, -1))
    indents = dict.fromkeys(get_indent(line) for line in earlier_lines if line.strip())
    nearest = sorted(indents, key=lambda indent: abs(len(indent) - len(current)))
    for rank, indent in enumerate(nearest[:6]):  # six is chosen by judgement
        if indent != current:
            yield indent, 0.9 - 0.1 * rank
    yield current + unit, 0.4


def _line_groups(lines: list[str], number: int) -> Iterator[tuple[list[int], float]]:
    """Yield `(line numbers, weight)` for groups of lines that may be shifted together.

    All groups begin with the line `number`. Empty lines are left out.
    """
    indent = len(get_indent(lines[number]))

    def lines_until(is_end: Callable[[str], bool]) -> list[int]:
        later = range(number + 1, len(lines))
        return [number, *takewhile(lambda other: not is_end(lines[other]), later)]

    rest_of_block = lines_until(lambda line: bool(line.strip()) and len(get_indent(line)) < indent)
    with_block = lines_until(lambda line: bool(line.strip()) and len(get_indent(line)) <= indent)
    paragraph = lines_until(lambda line: not line.strip())
    rest_of_file = lines_until(lambda line: False)
    groups = (rest_of_block, with_block, [number], paragraph, rest_of_file)
    weights: dict[tuple[int, ...], float] = {}
    for group, weight in zip(groups, (1.0, 0.9, 0.85, 0.5, 0.6), strict=True):
        weights.setdefault(tuple(other for other in group if lines[other].strip()), weight)
    for filled_lines, weight in weights.items():
        yield list(filled_lines), weight


def _shift_lines(lines: list[str], group: list[int], target: str) -> dict[int, str]:
    """Return line number -> new text, with all lines shifted as far as the first one."""
    shift = len(target) - len(get_indent(lines[group[0]])) if group else 0
    shifted = {}
    for number in group:
        indent, text = get_indent(lines[number]), lines[number].lstrip()
        if number == group[0]:
            shifted[number] = target + text
        elif shift >= 0:
            shifted[number] = (target[:1] or " ") * shift + indent + text
        else:
            shifted[number] = indent[: max(0, len(indent) + shift)] + text
    return shifted


def _shift_earlier_lines(lines: list[str], number: int, previous: int) -> Iterator[LineRewrite]:
    """Indent the lines before a line as the line itself, as far back as they have the same indentation."""
    target, old_indent = get_indent(lines[number]), get_indent(lines[previous])
    group = []
    for earlier in range(previous, -1, -1):
        if not lines[earlier].strip():
            continue
        if get_indent(lines[earlier]) != old_indent:
            break
        group.append(earlier)
        shifted = {other: target + lines[other].lstrip() for other in group}
        note = f"line {earlier + 1}: {len(shifted)} line(s) at column {len(target)}"
        yield LineRewrite(lines=shifted, note=note, weight=0.5)
