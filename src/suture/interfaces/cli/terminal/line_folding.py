"""Long lines for a narrow terminal: broken between words, with what is to be copied in one piece."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

COMMAND = re.compile(r"[(`]?suture [a-z]+(?: [^`;) ]+)*")
"""A command as our lines name it: to the line's end, a backtick, a bracket, a semicolon or two blanks."""
LABEL = re.compile(r" *\S{1,8} {2,}(?=\S)")
"""A column of its own at the start of a line, such as the time of a step."""
HANGING = 2
"""Blanks before the rest of a line that was folded."""
MOST_PADDED = 40
"""Where nothing folds, as through a pipe: one long cell would move a column out of everybody's sight."""
LEAST_COLUMNS = 20
"""Narrower than this is no terminal that anybody reads on."""


def fold_line(text: str, columns: int, hanging: int | None = None) -> list[str]:
    """One line as lines that fit; a command, a path or a word that is longer has a line of its own.

    Args:
        text: The line; blanks at its start are where the lines below it hang.
        columns: How many characters fit.
        hanging: By how much lines below the first are indented; else as the second column, or two more.
    """
    if _width(text) <= columns or columns < LEAST_COLUMNS:
        return [text]
    lead = len(text) - len(text.lstrip(" "))
    column = LABEL.match(text)
    hangs = column.end() if column else lead + HANGING
    below = " " * (hangs if hanging is None else hanging)
    lines, line, alone = [], " " * lead, False
    for blanks, unit in _units(text[lead:]):
        empty = not line.strip()
        if not empty and (alone or _width(line) + len(blanks) + _width(unit) > columns):
            lines.append(line)
            line, empty = below, True
            # What is copied from the screen must not end in words that follow it.
            alone = " " in unit
        else:
            alone = False
        line += unit if empty else f"{blanks}{unit}"
        if alone and _width(line) > columns:
            *whole, line = _continued(line, columns)
            lines += whole
    return [*lines, line]


def _continued(command: str, columns: int) -> Iterator[str]:
    """A command on several lines, as a shell reads it when it is copied."""
    lead = len(command) - len(command.lstrip(" "))
    line = " " * lead
    for word in re.split(r" (?=-)", command.strip()):
        if line.strip() and _width(line) + _width(word) + 3 > columns:
            yield f"{line} \\"
            line = " " * (lead + HANGING)
        line += f" {word}" if line.strip() else word
    yield line


def fold_table(cells: Sequence[Sequence[str]], columns: int | None) -> list[str]:
    """Rows as aligned columns, two blanks apart; where that is too wide, cells fold, and then rows.

    Args:
        cells: The rows, each as long as the first.
        columns: How many characters fit; `None` for any number: each row is one line then, and a cell that is
            far longer than others moves the rest of its own row alone.
    """
    if not cells:
        return []
    widths = [max(map(_width, column)) for column in zip(*cells, strict=True)]
    if columns is None:
        widths = [min(width, MOST_PADDED) for width in widths]
        return ["  ".join(map(_padded, row, widths)).rstrip() for row in cells]
    if _total(widths) > columns:
        least = [
            max((_width(word) for cell in column for word in cell.split()), default=0)
            for column in zip(*cells, strict=True)
        ]
        if _total(least) > columns:
            return [line for row in cells for line in _stacked(row, columns)]
        while _total(widths) > columns:
            room = [width if width > least[i] else 0 for i, width in enumerate(widths)]
            widths[room.index(max(room))] -= 1
    return [line for row in cells for line in _row(row, widths)]


def _row(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    columns = [_cell(cell, width) for cell, width in zip(row, widths, strict=True)]
    for number in range(max(map(len, columns))):
        parts = [column[number] if number < len(column) else "" for column in columns]
        yield "  ".join(map(_padded, parts, widths)).rstrip()


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))


def _stacked(row: Sequence[str], columns: int) -> list[str]:
    """A row that no table fits, on lines of its own that end between cells."""
    lines = [row[0]]
    for cell in filter(None, row[1:]):
        longer = f"{lines[-1]}  {cell}"
        if _width(longer) <= columns:
            lines[-1] = longer
        else:
            lines.append(f"    {cell}")
    return [part for line in lines for part in fold_line(line, columns, 6)]


def _cell(text: str, width: int) -> list[str]:
    """A cell's lines; its words are no longer than its width."""
    lines = [""]
    if _width(text) <= width:
        return [text]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if _width(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return [line for line in lines if line] or [""]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + 2 * (len(widths) - 1)


def _units(text: str) -> Iterator[tuple[str, str]]:
    """What may not be broken, each with the blanks before it: commands, and other words."""
    blanks, place = "", 0
    while place < len(text):
        if text[place] == " ":
            blanks += " "
            place += 1
            continue
        found = COMMAND.match(text, place)
        end = found.end() if found else place
        while end < len(text) and text[end] != " ":
            end += 1
        yield blanks, text[place:end]
        blanks, place = "", end


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
