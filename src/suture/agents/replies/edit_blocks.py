"""Search/replace blocks of a reply, applied strictly: one that does not match once is an error."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
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
        replace: The replacement.
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
    """Return the search/replace blocks of a reply, and the rest of the reply.

    Raises:
        EditDoesNotApply: A block has no end, or not exactly one divider.
    """
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    blocks: list[EditBlock] = []
    rest: list[str] = []
    path: str | None = None
    at = 0
    while at < len(lines):
        if not HEAD.match(lines[at]):
            rest.append(lines[at])
            at += 1
            continue
        path = _take_path_above(rest) or path
        end = next((n for n in range(at + 1, len(lines)) if TAIL.match(lines[n]) or HEAD.match(lines[n])), at)
        block = EditBlock(number=len(blocks) + 1, path=path, search="", replace="")
        if not TAIL.match(lines[end]):
            raise block.make_error("it has no end: a line `>>>>>>> REPLACE` is missing")
        dividers = [n for n in range(at + 1, end) if DIVIDER.match(lines[n])]
        if len(dividers) != 1:
            raise block.make_error(f"it has {len(dividers)} lines `=======` instead of one")
        search, replace = lines[at + 1 : dividers[0]], lines[dividers[0] + 1 : end]
        require_few_blocks(len(blocks))
        blocks.append(
            EditBlock(number=block.number, path=path, search="\n".join(search), replace="\n".join(replace))
        )
        at = end + 1
    return blocks, "\n".join(rest)


def _take_path_above(above: list[str]) -> str | None:
    """Return the path in the last line above a block, or above its fence, and remove that line."""
    place = len(above) - 1
    while place >= 0 and not above[place].strip():
        place -= 1
    if place < 0:
        return None
    fence = OPENING_FENCE.match(above[place])
    if fence is None:
        path = named_path(above[place], "")
        if path is not None:
            del above[place]
        return path
    before = next((line for line in reversed(above[:place]) if line.strip()), "")
    return named_path(before, fence[3])


def apply_edits(
    blocks: Sequence[EditBlock], files: Mapping[str, str], taken: Collection[str] | None
) -> dict[str, str]:
    """Apply blocks one after the other, and return the changed and new files, path -> text.

    Args:
        blocks: The blocks in the order of the reply.
        files: The files that may be changed.
        taken: All paths of the project; `None` if no file may be created.

    Raises:
        EditDoesNotApply: A block names no file that may be changed, or its text does not occur exactly once.
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
    ends = [path for path in files if path.endswith(f"/{block.path}") or block.path.endswith(f"/{path}")]
    if len(ends) == 1:
        return ends[0]
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
    lines, wanted = text.split(newline), block.search.split("\n")
    places = [n for n in range(len(lines)) if lines[n : n + len(wanted)] == wanted]
    if len(places) != 1:
        first = next(line.strip() for line in wanted if line.strip() or line is wanted[-1])
        found = f"stands {len(places)} times in" if places else "is not in"
        near = "" if places else _describe_near_match(lines, wanted)
        raise block.make_error(
            f"its SEARCH text, from {first[:MAX_QUOTED_CHARS]!r} on, {found} the file{near}"
        )
    new = block.replace.split("\n") if block.replace else []
    return newline.join([*lines[: places[0]], *new, *lines[places[0] + len(wanted) :]])


def _describe_near_match(lines: Sequence[str], wanted: Sequence[str]) -> str:
    """Return where the text occurs with other indentation; the right indentation is not guessed."""
    bare, sought = [line.strip() for line in lines], [line.strip() for line in wanted]
    places = [n + 1 for n in range(len(bare)) if bare[n : n + len(sought)] == sought]
    if len(places) != 1:
        return ""
    return f"; line {places[0]} is that with other blanks: {lines[places[0] - 1][:MAX_QUOTED_CHARS]!r}"


def is_creatable(path: str, taken: Collection[str]) -> bool:
    """Return whether a path is free, inside the project, and not hidden."""
    parts = PurePosixPath(path).parts
    inside = bool(parts) and "/".join(parts) == path and not any(part.startswith(".") for part in parts)
    holders = {str(parent) for parent in PurePosixPath(path).parents}
    return inside and not any(
        other == path or other in holders or other.startswith(f"{path}/") for other in taken
    )
