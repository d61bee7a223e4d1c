"""Lines that are indented too little or too much."""

from __future__ import annotations

from collections.abc import Iterator

from suture.mutation.syntax_repair.source_lines import (
    LineRewrite,
    ParseStop,
    get_indent,
    indent_unit,
    nearby_lines,
    strip_comment,
)

OUTSIDE_MESSAGES = ("outside function", "outside loop", "not properly in loop", "outside async function")
INDENTATION_MESSAGES = ("indent", "expected 'except'", *OUTSIDE_MESSAGES)


def rewrite_indentation(lines: list[str], stop: ParseStop) -> Iterator[LineRewrite]:
    """Yield other indentations of the line where parsing stopped, alone and with its neighbours."""
    number = stop.line - 1
    if "\t" in "".join(map(get_indent, lines)):
        for width in (4, 8):
            text = {n: line.expandtabs(width) if get_indent(line) else line for n, line in enumerate(lines)}
            yield LineRewrite(lines=text, note=f"tabs become {width} spaces", weight=0.9)
    is_reported = any(word in stop.message for word in INDENTATION_MESSAGES)
    if number >= len(lines) or not (is_reported or stop.message == "invalid syntax"):
        return
    weight = 1.0 if is_reported else 0.3
    before = next(iter(nearby_lines(lines, number, back=1)[1:]), None)
    unit = indent_unit(lines)
    for target, share in _target_indents(lines, number, before, unit):
        for block, part in _line_groups(lines, number):
            moved = _shift_lines(lines, block, get_indent(lines[number]), target)
            note = f"line {number + 1}: {len(block)} line(s) at column {len(target)}"
            yield LineRewrite(lines=moved, note=note, weight=weight * share * part)
    if before is not None and strip_comment(lines[before]).endswith(":") and is_reported:
        deeper = get_indent(lines[before]) + unit
        note = f"line {before + 1}: its block is empty"
        yield LineRewrite(lines={before: f"{lines[before]}\n{deeper}pass"}, note=note, weight=0.15)
    if before is not None and "unexpected indent" in stop.message:
        yield from _shift_earlier_lines(lines, number, before)


def _target_indents(
    lines: list[str], number: int, before: int | None, unit: str
) -> Iterator[tuple[str, float]]:
    """Yield indentations that a line could have, each with its weight."""
    own = get_indent(lines[number])
    if before is not None and strip_comment(lines[before]).endswith(":"):
        yield get_indent(lines[before]) + unit, 1.0
    seen: list[str] = []
    for earlier in range(number - 1, -1, -1):
        indent = get_indent(lines[earlier])
        if lines[earlier].strip() and indent not in seen:
            seen.append(indent)
    nearest = sorted(seen, key=lambda indent: abs(len(indent) - len(own)))
    for place, indent in enumerate(nearest[:6]):
        if indent != own:
            yield indent, 0.9 - 0.1 * place
    yield own + unit, 0.4


def _line_groups(lines: list[str], number: int) -> Iterator[tuple[list[int], float]]:
    """Yield groups of lines that may be shifted together, each with its weight."""
    own = len(get_indent(lines[number]))
    deeper, level, paragraph = [number], [number], [number]
    for later in range(number + 1, len(lines)):
        if lines[later].strip() and len(get_indent(lines[later])) <= own:
            break
        deeper.append(later)
    for later in range(number + 1, len(lines)):
        if lines[later].strip() and len(get_indent(lines[later])) < own:
            break
        level.append(later)
    for later in range(number + 1, len(lines)):
        if not lines[later].strip():
            break
        paragraph.append(later)
    rest = list(range(number, len(lines)))
    shares = ((level, 1.0), (deeper, 0.9), ([number], 0.85), (paragraph, 0.5), (rest, 0.6))
    seen: list[list[int]] = []
    for block, share in shares:
        filled_lines = [n for n in block if lines[n].strip()]
        if filled_lines not in seen:
            seen.append(filled_lines)
            yield filled_lines, share


def _shift_lines(lines: list[str], block: list[int], own: str, target: str) -> dict[int, str]:
    """Return line number -> text, with lines shifted as the first of them is."""
    shift = len(target) - len(own)
    moved = {}
    for number in block:
        indent, text = get_indent(lines[number]), lines[number].lstrip()
        if number == block[0]:
            moved[number] = target + text
        elif shift >= 0:
            moved[number] = (target[:1] or " ") * shift + indent + text
        else:
            moved[number] = indent[: max(0, len(indent) + shift)] + text
    return moved


def _shift_earlier_lines(lines: list[str], number: int, before: int) -> Iterator[LineRewrite]:
    """Indent the lines before instead, as far back as they have the same indentation."""
    own, wrong = get_indent(lines[number]), get_indent(lines[before])
    block = []
    for earlier in range(before, -1, -1):
        if lines[earlier].strip() and get_indent(lines[earlier]) != wrong:
            break
        block.append(earlier)
        if lines[earlier].strip():
            moved = {n: own + lines[n].lstrip() for n in block if lines[n].strip()}
            note = f"line {earlier + 1}: {len(moved)} line(s) at column {len(own)}"
            yield LineRewrite(lines=moved, note=note, weight=0.5)
