"""Lines that stand too far to the left or to the right."""

from __future__ import annotations

from collections.abc import Iterator

from suture.mutation.syntax_repair.source_lines import LineRewrite, strip_comment, get_indent, nearby_lines, indent_unit
from suture.mutation.syntax_repair.stopped import ParseStop

OUTSIDE = ("outside function", "outside loop", "not properly in loop", "outside async function")
SAYS = ("indent", "expected 'except'", *OUTSIDE)


def rewrite_indentation(lines: list[str], stop: ParseStop) -> Iterator[LineRewrite]:
    """Other indentations of the line at which reading stopped, alone and with the lines that go with it."""
    number = stop.line - 1
    if "\t" in "".join(map(get_indent, lines)):
        for width in (4, 8):
            text = {n: line.expandtabs(width) if get_indent(line) else line for n, line in enumerate(lines)}
            yield LineRewrite(lines=text, note=f"tabs become {width} spaces", weight=0.9)
    is_said = any(word in stop.message for word in SAYS)
    if number >= len(lines) or not (is_said or stop.message == "invalid syntax"):
        return
    weight = 1.0 if is_said else 0.3
    before = next(iter(nearby_lines(lines, number, back=1)[1:]), None)
    unit = indent_unit(lines)
    for target, share in _targets(lines, number, before, unit):
        for block, part in _blocks(lines, number):
            moved = _moved(lines, block, get_indent(lines[number]), target)
            note = f"line {number + 1}: {len(block)} line(s) at column {len(target)}"
            yield LineRewrite(lines=moved, note=note, weight=weight * share * part)
    if before is not None and strip_comment(lines[before]).endswith(":") and is_said:
        deeper = get_indent(lines[before]) + unit
        note = f"line {before + 1}: its block is empty"
        yield LineRewrite(lines={before: f"{lines[before]}\n{deeper}pass"}, note=note, weight=0.15)
    if before is not None and "unexpected indent" in stop.message:
        yield from _earlier(lines, number, before)


def _targets(lines: list[str], number: int, before: int | None, unit: str) -> Iterator[tuple[str, float]]:
    """Indentations that a line could have: a step in where a block begins, else those before it."""
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


def _blocks(lines: list[str], number: int) -> Iterator[tuple[list[int], float]]:
    """A line alone; with what stands deeper; with all that is no further left; to the next empty line."""
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
        kept = [n for n in block if lines[n].strip()]
        if kept not in seen:
            seen.append(kept)
            yield kept, share


def _moved(lines: list[str], block: list[int], own: str, target: str) -> dict[int, str]:
    """Lines shifted as the first of them is."""
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


def _earlier(lines: list[str], number: int, before: int) -> Iterator[LineRewrite]:
    """The line is right and those before it stand too far left, as far back as they stand there."""
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
