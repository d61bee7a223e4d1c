"""Fold long lines for a narrow terminal, keeping commands and paths in one piece."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

COMMAND = re.compile(r"[(`]?suture [a-z]+(?: [^`;) ]+)*")
"""A command in a message: it extends to the line's end, a backtick, a bracket, a semicolon or two blanks."""
LABEL = re.compile(r" *\S{1,8} {2,}(?=\S)")
"""A label column at the start of a line, such as the time of a step."""
HANGING_INDENT = 2
"""Blanks before the continuation of a folded line."""
MAX_PADDED_CELL = 40
"""Padding limit without a terminal, where nothing is folded: one long cell must not push a column out of
sight."""
MIN_COLUMNS = 20
"""A narrower terminal is not readable anyway, so nothing is folded."""


def fold_line(text: str, columns: int, hanging: int | None = None) -> list[str]:
    """Split a line into lines that fit; a command, path or word that is too long gets its own line.

    Args:
        text: The line; its leading blanks indent the following lines too.
        columns: The width of the terminal in characters.
        hanging: Indentation of the following lines; by default the second column, or two more blanks.
    """
    if _width(text) <= columns or columns < MIN_COLUMNS:
        return [text]
    lead = len(text) - len(text.lstrip(" "))
    column = LABEL.match(text)
    hangs = column.end() if column else lead + HANGING_INDENT
    below = " " * (hangs if hanging is None else hanging)
    lines, line, alone = [], " " * lead, False
    for blanks, unit in _units(text[lead:]):
        empty = not line.strip()
        if not empty and (alone or _width(line) + len(blanks) + _width(unit) > columns):
            lines.append(line)
            line, empty = below, True
            # A command that is copied from the screen must not be followed by other words.
            alone = " " in unit
        else:
            alone = False
        line += unit if empty else f"{blanks}{unit}"
        if alone and _width(line) > columns:
            *whole, line = _continued(line, columns)
            lines += whole
    return [*lines, line]


def _continued(command: str, columns: int) -> Iterator[str]:
    """Yield a command on several lines with backslashes, so that it can be copied into a shell."""
    lead = len(command) - len(command.lstrip(" "))
    line = " " * lead
    for word in re.split(r" (?=-)", command.strip()):
        if line.strip() and _width(line) + _width(word) + 3 > columns:
            yield f"{line} \\"
            line = " " * (lead + HANGING_INDENT)
        line += f" {word}" if line.strip() else word
    yield line


def fold_table(cells: Sequence[Sequence[str]], columns: int | None) -> list[str]:
    """Return rows as aligned columns; if they are too wide, fold cells, and then whole rows.

    Args:
        cells: The rows, all of the same length.
        columns: The width of the terminal in characters; with `None` each row is one line, and a very long
            cell shifts only its own row.
    """
    if not cells:
        return []
    widths = [max(map(_width, column)) for column in zip(*cells, strict=True)]
    if columns is None:
        widths = [min(width, MAX_PADDED_CELL) for width in widths]
        return ["  ".join(map(_padded, row, widths)).rstrip() for row in cells]
    if _total(widths) > columns:
        least = [
            max((_width(word) for cell in column for word in cell.split()), default=0)
            for column in zip(*cells, strict=True)
        ]
        if _total(least) > columns:
            return [line for row in cells for line in _stacked(row, columns)]
        while _total(widths) > columns:
            slack = [width if width > least[i] else 0 for i, width in enumerate(widths)]
            widths[slack.index(max(slack))] -= 1
    return [line for row in cells for line in _row(row, widths)]


def _row(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    columns = [_cell(cell, width) for cell, width in zip(row, widths, strict=True)]
    for number in range(max(map(len, columns))):
        parts = [column[number] if number < len(column) else "" for column in columns]
        yield "  ".join(map(_padded, parts, widths)).rstrip()


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))


def _stacked(row: Sequence[str], columns: int) -> list[str]:
    """Return a row that fits no table on several lines, broken between cells."""
    lines = [row[0]]
    for cell in filter(None, row[1:]):
        longer = f"{lines[-1]}  {cell}"
        if _width(longer) <= columns:
            lines[-1] = longer
        else:
            lines.append(f"    {cell}")
    return [part for line in lines for part in fold_line(line, columns, 6)]


def _cell(text: str, width: int) -> list[str]:
    """Return the lines of a cell; no word is longer than its width."""
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
    """Yield what must not be broken, each with the blanks before it: commands and single words."""
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
