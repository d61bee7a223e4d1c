"""Read the search/replace blocks of a reply, and apply them: a block that does not match once is an error."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from suture.agents.replies.fenced_blocks import OPENING_FENCE, named_path
from suture.agents.tuning import MAX_QUOTED_CHARS
from suture.errors import EditDoesNotApply
from suture.project.python_source.parsing import require_few_blocks

HEAD = re.compile(r"^<{5,9} ?SEARCH\s*$")
DIVIDER = re.compile(r"^={5,9}\s*$")
TAIL = re.compile(r"^>{5,9} ?REPLACE\s*$")


@dataclass(frozen=True, kw_only=True)
class EditBlock:
    """Lines to find, and lines to put in their place.

    Attributes:
        number: Its number among the blocks of the reply, from 1.
        path: The file that this block, or one before it, names.
        search: Whole lines without the last newline; empty to create a file.
    """

    number: int
    path: str | None
    search: str
    replace: str

    def make_error(self, why: str) -> EditDoesNotApply:
        """Return the error that this block does not apply."""
        where = f" ({self.path})" if self.path else ""
        return EditDoesNotApply(f"edit block {self.number}{where}: {why}")


def split_edits(text: str) -> tuple[list[EditBlock], str]:
    """Return `(blocks, rest)`: the search/replace blocks of a reply, and its text without them."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    blocks: list[EditBlock] = []
    rest: list[str] = []
    path: str | None = None
    start = 0
    while start < len(lines):
        if not HEAD.match(lines[start]):
            rest.append(lines[start])
            start += 1
            continue
        path = _take_path_above(rest) or path
        below = range(start + 1, len(lines))
        end = next((n for n in below if TAIL.match(lines[n]) or HEAD.match(lines[n])), start)
        block = EditBlock(number=len(blocks) + 1, path=path, search="", replace="")
        if not TAIL.match(lines[end]):
            raise block.make_error("it has no end: a line `>>>>>>> REPLACE` is missing")
        dividers = [n for n in range(start + 1, end) if DIVIDER.match(lines[n])]
        if len(dividers) != 1:
            raise block.make_error(f"it has {len(dividers)} lines `=======` instead of one")
        require_few_blocks(len(blocks))
        search = "\n".join(lines[start + 1 : dividers[0]])
        blocks.append(replace(block, search=search, replace="\n".join(lines[dividers[0] + 1 : end])))
        start = end + 1
    return blocks, "\n".join(rest)


def _take_path_above(above: list[str]) -> str | None:
    """Return the path in the last line above a block, or above its fence, and remove that line."""
    filled = [number for number, line in enumerate(above) if line.strip()]
    if not filled:
        return None
    fence = OPENING_FENCE.match(above[filled[-1]])
    if fence is not None:
        return named_path(above[filled[-2]] if len(filled) > 1 else "", fence[3])
    path = named_path(above[filled[-1]], "")
    if path is not None:
        del above[filled[-1]]
    return path


def apply_edits(
    blocks: Sequence[EditBlock], files: Mapping[str, str], taken: Collection[str] | None
) -> dict[str, str]:
    """Apply blocks one after the other to files, and return the changed and new files: path -> text.

    `taken` holds all paths of the project; it is `None` if no file may be created.
    """
    changed: dict[str, str] = {}
    for block in blocks:
        path = _find_file(block, {**files, **changed}, taken)
        changed[path] = _apply_block(block, changed.get(path, files.get(path, "")))
    return {path: text for path, text in changed.items() if files.get(path) != text}


def _find_file(block: EditBlock, files: Mapping[str, str], taken: Collection[str] | None) -> str:
    if block.path is None:
        if len(files) == 1:
            return next(iter(files))
        raise block.make_error("it names no file: write its path in the line above")
    if block.path in files:
        return block.path
    similar = [path for path in files if path.endswith(f"/{block.path}") or block.path.endswith(f"/{path}")]
    if len(similar) == 1:
        return similar[0]
    if taken is None or block.path in taken:
        raise block.make_error(f"it may change only {', '.join(files)}")
    if block.search or not is_creatable(block.path, taken):
        raise block.make_error("there is no such file; one is made by a block whose SEARCH is empty")
    return block.path


def _apply_block(block: EditBlock, text: str) -> str:
    if not block.search:
        if text.strip():
            raise block.make_error("its SEARCH is empty, but the file is not")
        return block.replace + "\n"
    newline = "\r\n" if "\r\n" in text else "\n"
    lines, search_lines = text.split(newline), block.search.split("\n")
    starts = _find_lines(search_lines, lines)
    if len(starts) != 1:
        # The first line with a text; if all are blank, the last one.
        first = next(line.strip() for line in search_lines if line.strip() or line is search_lines[-1])
        count = f"stands {len(starts)} times in" if starts else "is not in"
        hint = "" if starts else _describe_near_match(search_lines, lines)
        raise block.make_error(
            f"its SEARCH text, from {first[:MAX_QUOTED_CHARS]!r} on, {count} the file{hint}"
        )
    replacement = block.replace.split("\n") if block.replace else []
    return newline.join([*lines[: starts[0]], *replacement, *lines[starts[0] + len(search_lines) :]])


def _find_lines(search_lines: Sequence[str], lines: Sequence[str]) -> list[int]:
    """Return the indices at which the lines contain the search lines."""
    return [n for n in range(len(lines)) if lines[n : n + len(search_lines)] == search_lines]


def _describe_near_match(search_lines: Sequence[str], lines: Sequence[str]) -> str:
    """Return where the text occurs with other indentation; the right indentation is not guessed."""
    starts = _find_lines([line.strip() for line in search_lines], [line.strip() for line in lines])
    if len(starts) != 1:
        return ""
    return f"; line {starts[0] + 1} is that with other blanks: {lines[starts[0]][:MAX_QUOTED_CHARS]!r}"


def is_creatable(path: str, taken: Collection[str]) -> bool:
    """Return whether a path is free, inside the project, and not hidden."""
    parts = PurePosixPath(path).parts
    is_plain = bool(parts) and "/".join(parts) == path and not any(part.startswith(".") for part in parts)
    folders = {str(parent) for parent in PurePosixPath(path).parents}
    return is_plain and not any(
        taken_path == path or taken_path in folders or taken_path.startswith(f"{path}/")
        for taken_path in taken
    )
