"""Which block of a reply changes which file of a repair, and how far."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence

from suture.agents.replies.edit_blocks import EditBlock, apply_edits, may_create
from suture.agents.replies.fenced_blocks import Block
from suture.agents.roles.coder import RepairBrief
from suture.errors import MalformedReply
from suture.project.python_source.parsing import parsed
from suture.project.python_source.splicing import covers, promised_names, splice
from suture.project.python_source.statements import parses, without_demo

CHUNK_START = re.compile(r"^(?=[^\s#)\]}])", re.MULTILINE)


def mended_files(
    blocks: Sequence[Block], brief: RepairBrief, edits: Sequence[EditBlock] = ()
) -> dict[str, str]:
    """The files that a reply changes or makes, path -> text.

    Args:
        blocks: Its blocks of code. Beside edits, those count that name a file without an edit.
        brief: The repair that was asked for.
        edits: Its search/replace blocks.

    Raises:
        MalformedReply: They change nothing, or cannot be put into the files without losing code.
        EditDoesNotApply: An edit has no one place.
    """
    edited = apply_edits(edits, brief.files, brief.project)
    blocks = [block for block in blocks if block.path is not None] if edits else blocks
    changed: dict[str, str] = {}
    fault: MalformedReply | None = None
    for path, original in brief.files.items():
        meant = [_flush(block.code) for block in blocks if _target(block, brief.files) == path]
        for code in _blocks_of_file(meant, original) if path not in edited else ():
            try:
                if _merged(original, code, brief.entry_point) != original:  # the old code, shown once more
                    changed[path] = _merged(changed.get(path, original), code, brief.entry_point)
            except MalformedReply as why:
                fault = why
    changed = {path: text for path, text in changed.items() if text != brief.files[path]}
    if edits and fault is not None:
        raise fault  # half of a change in several files is none
    changed |= _new_files(blocks, brief, beside=bool(changed or edited)) | edited
    if not changed:
        raise fault or MalformedReply("the reply changes none of the files")
    return changed


def _new_files(blocks: Sequence[Block], brief: RepairBrief, *, beside: bool) -> dict[str, str]:
    """Files that the project does not have: named, whole, and more than our own code under a wrong name.

    Args:
        blocks: The fenced blocks of the reply.
        brief: The repair that was asked for.
        beside: Whether the reply changes other files: then code may have moved out of them.
    """
    ours = frozenset[str]().union(*map(promised_names, brief.files.values()))
    made: dict[str, str] = {}
    for block in blocks:
        if brief.project is None or block.path is None or _target(block, brief.files) is not None:
            continue
        names = promised_names(block.code)
        defines_new = bool(names) and (beside or not names <= ours)
        if defines_new and block.closed and parses(block.code) and may_create(block.path, brief.project):
            made[block.path] = block.code
    return made


def _flush(code: str) -> str:
    """A method as it stood in its class, moved to the left margin."""
    moved = textwrap.dedent(code)
    return moved if not parses(code) and parses(moved) else code


def _target(block: Block, files: Mapping[str, str]) -> str | None:
    """The file a block means: the one it names, else the one whose names it defines."""
    if block.path is not None:
        if block.path in files:
            return block.path
        named = [p for p in files if p.endswith(f"/{block.path}") or block.path.endswith(f"/{p}")]
        if len(named) == 1:
            return named[0]
        # Another name over a whole file of ours is a slip; over anything else it is another file.
        whole = [path for path, text in files.items() if promised_names(text) and covers(block.code, text)]
        return whole[0] if len(whole) == 1 else None
    if len(files) == 1:
        return next(iter(files))
    names = promised_names(block.code)
    shared = {path: len(names & promised_names(text)) for path, text in files.items()}
    best = max(shared, key=lambda path: shared[path], default=None)
    if best is not None and shared[best]:
        return best
    blank = [path for path, text in files.items() if not text.strip()]
    return blank[0] if names and len(blank) == 1 else None


def _blocks_of_file(codes: Sequence[str], original: str) -> list[str]:
    """Without blocks that are no part of the file, where others are: broken ones, examples of use."""
    sound = [code for code in codes if parses(code)] or list(codes)
    names = _all_names(original)
    return [code for code in sound if _all_names(code) & names] or sound


def _all_names(code: str) -> frozenset[str]:
    """Own names of a module, those of its classes' members among them."""
    tree = parsed(code)
    members = (inner for node in (tree.body if tree else ()) for inner in getattr(node, "body", ()))
    return promised_names(code) | {name for m in members if (name := getattr(m, "name", None))}


def _merged(original: str, code: str, entry_point: str | None) -> str:
    """A whole file replaces the file; a part of it replaces its namesakes, and the rest stays.

    Raises:
        MalformedReply: It is a part, and has no one place in the file.
    """
    if _is_whole(code, original) or (not parses(code) and promised_names(original) <= promised_names(code)):
        return without_demo(code) if entry_point else code
    spliced = splice(original, code) if parses(original) else _patched_chunks(original, code)
    if spliced is None:
        lost = ", ".join(sorted(promised_names(original) - promised_names(code))) or "parts of the file"
        raise MalformedReply(f"the reply is not the whole file: it leaves out {lost}")
    return spliced


def _is_whole(code: str, original: str) -> bool:
    if parses(original):
        return covers(code, original)
    # What does not parse as a whole still names its constants piece by piece.
    named = frozenset[str]().union(*map(promised_names, _chunks(original)))
    return named <= promised_names(code)


def _patched_chunks(original: str, code: str) -> str | None:
    """A file that does not parse, with each of its definitions that the code holds too replaced as text."""
    parts: list[str] = []
    done = False
    for chunk in _chunks(original):
        names = promised_names(chunk)
        if names and names <= promised_names(code) and covers(code, chunk):
            parts += [] if done else [code.rstrip("\n") + "\n\n\n"]
            done = True
        else:
            parts.append(chunk)
    joined = "".join(parts).rstrip() + "\n"
    return joined if done and parses(joined) else None


def _chunks(text: str) -> list[str]:
    """Top-level pieces of a text that does not parse, decorators together with what they decorate."""
    chunks: list[str] = []
    decorated = False
    for piece in CHUNK_START.split(text):
        if decorated:
            chunks[-1] += piece
        else:
            chunks.append(piece)
        decorated = piece.startswith("@")
    return chunks
