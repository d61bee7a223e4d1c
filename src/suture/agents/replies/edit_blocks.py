"""Search/replace blocks of a reply, read strictly: one that has no one place is an error, never a guess."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from suture.agents.replies.fenced_blocks import FENCE, named_path
from suture.errors import EditDoesNotApply
from suture.project.python_source.parsing import require_few

HEAD = re.compile(r"^<{5,9} ?SEARCH\s*$")
DIVIDER = re.compile(r"^={5,9}\s*$")
TAIL = re.compile(r"^>{5,9} ?REPLACE\s*$")
MOST_QUOTED = 60


@dataclass(frozen=True, kw_only=True)
class EditBlock:
    """Lines to look for, and lines to put there.

    Attributes:
        number: Its place among the blocks of the reply, from 1.
        path: The file that it, or a block before it, names.
        search: Whole lines without their last newline; empty where a file is to be made.
        replace: The text that takes its place.
    """

    number: int
    path: str | None
    search: str
    replace: str

    def fault(self, why: str) -> EditDoesNotApply:
        """That it does not apply, and which one it is."""
        where = f" ({self.path})" if self.path else ""
        return EditDoesNotApply(f"edit block {self.number}{where}: {why}")


def split_edits(text: str) -> tuple[list[EditBlock], str]:
    """The search/replace blocks of a reply, and what is left of the reply without them.

    Raises:
        EditDoesNotApply: A block has no end, or more than one dividing line.
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
        path = _taken_path(rest) or path
        end = next((n for n in range(at + 1, len(lines)) if TAIL.match(lines[n]) or HEAD.match(lines[n])), at)
        block = EditBlock(number=len(blocks) + 1, path=path, search="", replace="")
        if not TAIL.match(lines[end]):
            raise block.fault("it has no end: a line `>>>>>>> REPLACE` is missing")
        dividers = [n for n in range(at + 1, end) if DIVIDER.match(lines[n])]
        if len(dividers) != 1:
            raise block.fault(f"it has {len(dividers)} lines `=======` instead of one")
        search, replace = lines[at + 1 : dividers[0]], lines[dividers[0] + 1 : end]
        require_few(len(blocks))
        blocks.append(
            EditBlock(number=block.number, path=path, search="\n".join(search), replace="\n".join(replace))
        )
        at = end + 1
    return blocks, "\n".join(rest)


def _taken_path(above: list[str]) -> str | None:
    """The path in the last line above a block, or above the fence around it; that line is used up."""
    place = len(above) - 1
    while place >= 0 and not above[place].strip():
        place -= 1
    if place < 0:
        return None
    fence = FENCE.match(above[place])
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
    """The files that the blocks change or make, path -> text; one after the other.

    Args:
        blocks: In the order of the reply.
        files: The files that may be changed.
        taken: Every path of the project; `None` where no file may be made.

    Raises:
        EditDoesNotApply: A block names no file that may be changed, or its lines stand there never or twice.
    """
    changed: dict[str, str] = {}
    for block in blocks:
        path = _file_of(block, {**files, **changed}, taken)
        changed[path] = _replaced(block, changed.get(path, files.get(path, "")))
    return {path: text for path, text in changed.items() if files.get(path) != text}


def _file_of(block: EditBlock, files: Mapping[str, str], taken: Collection[str] | None) -> str:
    if block.path is None:
        if len(files) == 1:
            return next(iter(files))
        raise block.fault("it names no file: write its path in the line above")
    if block.path in files:
        return block.path
    ends = [path for path in files if path.endswith(f"/{block.path}") or block.path.endswith(f"/{path}")]
    if len(ends) == 1:
        return ends[0]
    if taken is None or block.path in taken:
        raise block.fault(f"it may change only {', '.join(files)}")
    if block.search or not may_create(block.path, taken):
        raise block.fault("there is no such file; one is made by a block whose SEARCH is empty")
    return block.path


def _replaced(block: EditBlock, text: str) -> str:
    if not block.search:
        if text.strip():
            raise block.fault("its SEARCH is empty, but the file is not")
        return block.replace + "\n"
    newline = "\r\n" if "\r\n" in text else "\n"
    lines, wanted = text.split(newline), block.search.split("\n")
    places = [n for n in range(len(lines)) if lines[n : n + len(wanted)] == wanted]
    if len(places) != 1:
        first = next(line.strip() for line in wanted if line.strip() or line is wanted[-1])
        found = f"stands {len(places)} times in" if places else "is not in"
        near = "" if places else _said_where_alike(lines, wanted)
        raise block.fault(f"its SEARCH text, from {first[:MOST_QUOTED]!r} on, {found} the file{near}")
    new = block.replace.split("\n") if block.replace else []
    return newline.join([*lines[: places[0]], *new, *lines[places[0] + len(wanted) :]])


def _said_where_alike(lines: Sequence[str], wanted: Sequence[str]) -> str:
    """Where the text stands but for blanks: how far it is to be indented is not ours to guess."""
    bare, sought = [line.strip() for line in lines], [line.strip() for line in wanted]
    places = [n + 1 for n in range(len(bare)) if bare[n : n + len(sought)] == sought]
    if len(places) != 1:
        return ""
    return f"; line {places[0]} is that with other blanks: {lines[places[0] - 1][:MOST_QUOTED]!r}"


def may_create(path: str, taken: Collection[str]) -> bool:
    """Whether a path is free, lies in the project and is not hidden."""
    parts = PurePosixPath(path).parts
    inside = bool(parts) and "/".join(parts) == path and not any(part.startswith(".") for part in parts)
    holders = {str(parent) for parent in PurePosixPath(path).parents}
    return inside and not any(
        other == path or other in holders or other.startswith(f"{path}/") for other in taken
    )
