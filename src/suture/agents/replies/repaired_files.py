"""Application of a repair reply: which block changes which file, and how much of it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence

from suture.agents.replies.edit_blocks import EditBlock, apply_edits, is_creatable
from suture.agents.replies.fenced_blocks import CodeBlock
from suture.agents.roles.coder import RepairBrief
from suture.errors import MalformedReply
from suture.project.python_source.parsing import parse_module
from suture.project.python_source.splicing import preserves_definitions, splice, top_level_names
from suture.project.python_source.statements import is_valid_python, strip_examples

CHUNK_START = re.compile(r"^(?=[^\s#)\]}])", re.MULTILINE)


def apply_repair(
    blocks: Sequence[CodeBlock], brief: RepairBrief, edits: Sequence[EditBlock] = ()
) -> dict[str, str]:
    """Return the files that a reply changes or creates, path -> text.

    Args:
        blocks: Its code blocks. If there are edits, only blocks that name a file without an edit count.
        brief: The requested repair.
        edits: Its search/replace blocks.

    Raises:
        MalformedReply: The reply changes nothing, or cannot be merged without losing code.
        EditDoesNotApply: An edit does not match exactly one place.
    """
    edited = apply_edits(edits, brief.files, brief.project)
    blocks = [block for block in blocks if block.path is not None] if edits else blocks
    changed: dict[str, str] = {}
    fault: MalformedReply | None = None
    for path, original in brief.files.items():
        meant = [_dedent_method(block.code) for block in blocks if _target(block, brief.files) == path]
        for code in _blocks_of_file(meant, original) if path not in edited else ():
            try:
                if _merged(original, code, brief.entry_point) != original:  # not just the old code quoted
                    changed[path] = _merged(changed.get(path, original), code, brief.entry_point)
            except MalformedReply as why:
                fault = why
    changed = {path: text for path, text in changed.items() if text != brief.files[path]}
    if edits and fault is not None:
        raise fault  # a change of several files must be complete
    changed |= _new_files(blocks, brief, beside=bool(changed or edited)) | edited
    if not changed:
        raise fault or MalformedReply("the reply changes none of the files")
    return changed


def _new_files(blocks: Sequence[CodeBlock], brief: RepairBrief, *, beside: bool) -> dict[str, str]:
    """Return named, complete files that the project lacks, and that are not known code misnamed.

    Args:
        blocks: The fenced blocks of the reply.
        brief: The requested repair.
        beside: Whether the reply changes other files too, so that code may have moved out of them.
    """
    ours = frozenset[str]().union(*map(top_level_names, brief.files.values()))
    made: dict[str, str] = {}
    for block in blocks:
        if brief.project is None or block.path is None or _target(block, brief.files) is not None:
            continue
        names = top_level_names(block.code)
        defines_new = bool(names) and (beside or not names <= ours)
        if (
            defines_new
            and block.is_closed
            and is_valid_python(block.code)
            and is_creatable(block.path, brief.project)
        ):
            made[block.path] = block.code
    return made


def _dedent_method(code: str) -> str:
    """Return a method that was quoted with its indentation, moved to the left margin."""
    moved = textwrap.dedent(code)
    return moved if not is_valid_python(code) and is_valid_python(moved) else code


def _target(block: CodeBlock, files: Mapping[str, str]) -> str | None:
    """Return the file that a block names, else the one whose names it defines."""
    if block.path is not None:
        if block.path in files:
            return block.path
        named = [p for p in files if p.endswith(f"/{block.path}") or block.path.endswith(f"/{p}")]
        if len(named) == 1:
            return named[0]
        # A wrong name over a whole known file is a mistake; over anything else it is another file.
        whole = [
            path
            for path, text in files.items()
            if top_level_names(text) and preserves_definitions(block.code, text)
        ]
        return whole[0] if len(whole) == 1 else None
    if len(files) == 1:
        return next(iter(files))
    names = top_level_names(block.code)
    shared = {path: len(names & top_level_names(text)) for path, text in files.items()}
    best = max(shared, key=lambda path: shared[path], default=None)
    if best is not None and shared[best]:
        return best
    blank = [path for path, text in files.items() if not text.strip()]
    return blank[0] if names and len(blank) == 1 else None


def _blocks_of_file(codes: Sequence[str], original: str) -> list[str]:
    """Drop blocks that are not part of the file (broken code, usage examples), if others are."""
    sound = [code for code in codes if is_valid_python(code)] or list(codes)
    names = _all_names(original)
    return [code for code in sound if _all_names(code) & names] or sound


def _all_names(code: str) -> frozenset[str]:
    """Return a module's names, including those of its classes' members."""
    tree = parse_module(code)
    members = (inner for node in (tree.body if tree else ()) for inner in getattr(node, "body", ()))
    return top_level_names(code) | {name for m in members if (name := getattr(m, "name", None))}


def _merged(original: str, code: str, entry_point: str | None) -> str:
    """Replace the whole file, or only the definitions that the code contains.

    Raises:
        MalformedReply: The code is a part without a unique place in the file.
    """
    if _is_whole(code, original) or (
        not is_valid_python(code) and top_level_names(original) <= top_level_names(code)
    ):
        return strip_examples(code) if entry_point else code
    spliced = splice(original, code) if is_valid_python(original) else _replace_chunks(original, code)
    if spliced is None:
        lost = ", ".join(sorted(top_level_names(original) - top_level_names(code))) or "parts of the file"
        raise MalformedReply(f"the reply is not the whole file: it leaves out {lost}")
    return spliced


def _is_whole(code: str, original: str) -> bool:
    if is_valid_python(original):
        return preserves_definitions(code, original)
    # A file that does not parse as a whole can still be read piece by piece.
    named = frozenset[str]().union(*map(top_level_names, _chunks(original)))
    return named <= top_level_names(code)


def _replace_chunks(original: str, code: str) -> str | None:
    """Replace definitions as text in a file that does not parse."""
    parts: list[str] = []
    done = False
    for chunk in _chunks(original):
        names = top_level_names(chunk)
        if names and names <= top_level_names(code) and preserves_definitions(code, chunk):
            parts += [] if done else [code.rstrip("\n") + "\n\n\n"]
            done = True
        else:
            parts.append(chunk)
    joined = "".join(parts).rstrip() + "\n"
    return joined if done and is_valid_python(joined) else None


def _chunks(text: str) -> list[str]:
    """Split a text that does not parse into top-level pieces, decorators together with their definitions."""
    chunks: list[str] = []
    decorated = False
    for piece in CHUNK_START.split(text):
        if decorated:
            chunks[-1] += piece
        else:
            chunks.append(piece)
        decorated = piece.startswith("@")
    return chunks
