"""Fold long lines for a narrow terminal, keeping commands and paths in one piece."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

COMMAND = re.compile(r"[(`]?suture [a-z]+(?: [^`;) ]+)*")
"""A command in a message: it extends to the line's end, a backtick, a bracket, a semicolon or two blanks."""
LABEL = re.compile(r" *\S{1,8} {2,}(?=\S)")
"""A label column at the start of a line, such as the time of a step."""
HANGING_INDENT = 2
"""Blanks before the continuation of a folded line."""
MAX_PADDED_CELL = 40
"""Padding limit without a terminal, where nothing is folded: one long cell must not push a column out of
sight. Chosen by judgement; not measured."""
MIN_COLUMNS = 20
"""A narrower terminal is not readable anyway, so nothing is folded. Chosen by judgement; not measured."""


def fold_line(text: str, columns: int, hanging: int | None = None) -> list[str]:
    """Split a line into lines that fit; a command, path or word that is too long gets its own line.

    Args:
        text: The line; its leading blanks indent the following lines too.
        columns: The width of the terminal in characters.
        hanging: Indentation of the following lines; by default the second column, or two more blanks.
    """
    if cell_width(text) <= columns or columns < MIN_COLUMNS:
        return [text]
    indent = len(text) - len(text.lstrip(" "))
    if hanging is None:
        label = LABEL.match(text)
        hanging = label.end() if label else indent + HANGING_INDENT
    lines, line, is_command_line = [], " " * indent, False
    for blanks, unit in _units(text[indent:]):
        is_empty = not line.strip()
        if not is_empty and (is_command_line or cell_width(line) + len(blanks) + cell_width(unit) > columns):
            lines.append(line)
            line, is_empty = " " * hanging, True
            # A command that is copied from the screen must not be followed by other words.
            is_command_line = " " in unit
        else:
            is_command_line = False
        line += unit if is_empty else f"{blanks}{unit}"
        if is_command_line and cell_width(line) > columns:
            *complete_lines, line = _fold_command(line, columns)
            lines += complete_lines
    return [*lines, line]


def _fold_command(command: str, columns: int) -> Iterator[str]:
    """Yield a command on several lines with backslashes, so that it can be copied into a shell."""
    indent = len(command) - len(command.lstrip(" "))
    line = " " * indent
    for option in re.split(r" (?=-)", command.strip()):
        # 3: the blank before the option, and the blank and the backslash after it
        if line.strip() and cell_width(line) + cell_width(option) + 3 > columns:
            yield f"{line} \\"
            line = " " * (indent + HANGING_INDENT)
        line += f" {option}" if line.strip() else option
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
    widths = [max(map(cell_width, column)) for column in zip(*cells, strict=True)]
    if columns is None:
        widths = [min(width, MAX_PADDED_CELL) for width in widths]
        return ["  ".join(map(_padded, row, widths)).rstrip() for row in cells]
    if _total(widths) > columns:
        min_widths = [
            max((cell_width(word) for cell in column for word in cell.split()), default=0)
            for column in zip(*cells, strict=True)
        ]
        if _total(min_widths) > columns:
            return [line for row in cells for line in _stack_cells(row, columns)]
        while _total(widths) > columns:  # narrow the widest column that can become narrower
            shrinkable = [width if width > min_widths[i] else 0 for i, width in enumerate(widths)]
            widths[shrinkable.index(max(shrinkable))] -= 1
    return [line for row in cells for line in _fold_row(row, widths)]


def _fold_row(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    cells = [_fold_cell(cell, width) for cell, width in zip(row, widths, strict=True)]
    for parts in zip_longest(*cells, fillvalue=""):
        yield "  ".join(map(_padded, parts, widths)).rstrip()


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cell_width(text))


def _stack_cells(row: Sequence[str], columns: int) -> list[str]:
    """Return a row that fits no table on several lines, broken between cells."""
    lines = [row[0]]
    for cell in filter(None, row[1:]):
        extended_line = f"{lines[-1]}  {cell}"
        if cell_width(extended_line) <= columns:
            lines[-1] = extended_line
        else:
            lines.append(f"    {cell}")
    # 6: two blanks more than the cells below the first one
    return [part for line in lines for part in fold_line(line, columns, 6)]


def _fold_cell(text: str, width: int) -> list[str]:
    """Return the lines of a cell; no word is longer than its width."""
    if cell_width(text) <= width:
        return [text]
    lines = [""]
    for word in text.split():
        extended_line = f"{lines[-1]} {word}".strip()
        if cell_width(extended_line) <= width:
            lines[-1] = extended_line
        else:
            lines.append(word)
    return [line for line in lines if line] or [""]


def _total(widths: Sequence[int]) -> int:
    """Return the width of a table with two blanks between its columns."""
    return sum(widths) + 2 * (len(widths) - 1)


def _units(text: str) -> Iterator[tuple[str, str]]:
    """Yield what must not be broken, each with the blanks before it: commands and single words."""
    blanks, start = "", 0
    while start < len(text):
        if text[start] == " ":
            blanks += " "
            start += 1
            continue
        command = COMMAND.match(text, start)
        end = command.end() if command else start
        while end < len(text) and text[end] != " ":
            end += 1
        yield blanks, text[start:end]
        blanks, start = "", end


def cell_width(text: str) -> int:
    """Return how many columns a text takes on a terminal; a Chinese character takes two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
