"""Apply the reply to a repair: decide which block changes which file, and how much of it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence

from suture.agents.replies.change_reading import read_change
from suture.agents.replies.fenced_blocks import CodeBlock, TextEdit, UnusablePart
from suture.agents.replies.reply_scanning import scan_reply
from suture.agents.roles.coder import RepairBrief
from suture.errors import EditDoesNotApply, MalformedReply, UnchangedCode
from suture.models import Reply
from suture.project.python_source.module_definitions import preserves_definitions, top_level_names
from suture.project.python_source.parsing import limit_parsing_work, parse_module
from suture.project.python_source.splicing import splice
from suture.project.python_source.statement_edits import is_valid_python, strip_examples
from suture.project.workspace import is_creatable

CHUNK_START = re.compile(r"^(?=[^\s#)\]}])", re.MULTILINE)
"""Where a top-level statement begins in a file that does not parse."""


def read_edited_files(reply: Reply, brief: RepairBrief) -> dict[str, str] | None:
    """Return the files that a reply with edits changes or creates; `None` if it holds only blocks of code.

    Edits are search/replace blocks, diffs, patches and the inputs of edit tools.

    Raises:
        EditDoesNotApply: A part of the reply does not apply. Nothing is used then, because a change must be complete.
        MalformedReply: The edits change nothing.
    """
    parts = limit_parsing_work(scan_reply)(reply.text)
    if not any(isinstance(part, TextEdit | UnusablePart) for part in parts):
        return None
    return read_repaired_files(reply, brief)


def read_repaired_files(reply: Reply, brief: RepairBrief) -> dict[str, str]:
    """Return the files that a reply in any form changes or creates.

    Raises:
        EditDoesNotApply: A part of the reply does not apply. Nothing is used then, because a change must be complete.
        MalformedReply: The reply holds no change.
    """
    is_cut = reply.finish == "length"
    editable = {**brief.other_files, **brief.files}
    change = read_change(
        reply.text,
        editable,
        shown=brief.files,
        protected=frozenset(brief.project or ()) - editable.keys(),
        may_create=brief.project is not None,
        is_cut=is_cut,
    )
    if any(problem.code == "incomplete" for problem in change.problems) and is_cut:
        raise MalformedReply(
            "the reply was cut short before the code was complete", remedy="raise model.max_tokens"
        )
    if change.problems:
        raise EditDoesNotApply(change.render_problems())
    if not change.files:
        raise UnchangedCode("the reply changes none of the files")
    return change.files


def apply_repair(blocks: Sequence[CodeBlock], brief: RepairBrief) -> dict[str, str]:
    """Return the files that a reply of code blocks changes or creates."""
    changed: dict[str, str] = {}
    fault: MalformedReply | None = None
    for path, original in brief.files.items():
        codes = [_dedent_method(block.code) for block in blocks if _find_target(block, brief.files) == path]
        for code in _drop_examples(codes, original):
            try:
                if _merge(original, code, brief.entry_point) != original:  # The block is not a quotation.
                    changed[path] = _merge(changed.get(path, original), code, brief.entry_point)
            except MalformedReply as merge_fault:
                fault = merge_fault
    changed = {path: text for path, text in changed.items() if text != brief.files[path]}
    changed |= _find_new_files(blocks, brief, changes_files=bool(changed))
    if not changed:
        raise fault or UnchangedCode("the reply changes none of the files")
    return changed


def _find_new_files(
    blocks: Sequence[CodeBlock], brief: RepairBrief, *, changes_files: bool
) -> dict[str, str]:
    """Return named, complete files that the project lacks.

    A new file may consist of known definitions only if the reply changes other files too, because code may have
    moved out of those. If it changes none, such a block is known code under a wrong name.
    """
    known_names = frozenset[str]().union(*map(top_level_names, brief.files.values()))
    new_files: dict[str, str] = {}
    for block in blocks:
        if brief.project is None or block.path is None or _find_target(block, brief.files) is not None:
            continue
        names = top_level_names(block.code)
        is_new_code = bool(names) and (changes_files or not names <= known_names)
        is_complete = block.is_closed and is_valid_python(block.code)
        if is_new_code and is_complete and is_creatable(block.path, brief.project):
            new_files[block.path] = block.code
    return new_files


def _dedent_method(code: str) -> str:
    """Return a method that was quoted with its indentation, moved to the left margin."""
    dedented = textwrap.dedent(code)
    return dedented if not is_valid_python(code) and is_valid_python(dedented) else code


def _find_target(block: CodeBlock, files: Mapping[str, str]) -> str | None:
    """Return the file that a block names, else the one whose names it defines."""
    if block.path is not None:
        if block.path in files:
            return block.path
        similar = [p for p in files if p.endswith(f"/{block.path}") or block.path.endswith(f"/{p}")]
        if len(similar) == 1:
            return similar[0]
        # A wrong name over a whole known file is a mistake; over anything else it is another file.
        contained = [
            path
            for path, text in files.items()
            if top_level_names(text) and preserves_definitions(block.code, text)
        ]
        return contained[0] if len(contained) == 1 else None
    if len(files) == 1:
        return next(iter(files))
    names = top_level_names(block.code)
    shared_counts = {path: len(names & top_level_names(text)) for path, text in files.items()}
    best = max(shared_counts, key=lambda path: shared_counts[path], default=None)
    if best is not None and shared_counts[best]:
        return best
    empty = [path for path, text in files.items() if not text.strip()]
    return empty[0] if names and len(empty) == 1 else None


def _drop_examples(codes: Sequence[str], original: str) -> list[str]:
    """Drop blocks that are not part of the file (broken code, usage examples), if others are."""
    valid = [code for code in codes if is_valid_python(code)] or list(codes)
    names = _all_names(original)
    return [code for code in valid if _all_names(code) & names] or valid


def _all_names(code: str) -> frozenset[str]:
    """Return a module's names, including those of its classes' members."""
    tree = parse_module(code)
    members = (member for node in (tree.body if tree else ()) for member in getattr(node, "body", ()))
    return top_level_names(code) | {name for m in members if (name := getattr(m, "name", None))}


def _merge(original: str, code: str, entry_point: str | None) -> str:
    """Replace the whole file, or only the definitions that the code contains."""
    names = top_level_names(code)
    if is_valid_python(original):
        is_whole = preserves_definitions(code, original)
    else:  # A file that does not parse as a whole can still be read piece by piece.
        is_whole = all(top_level_names(chunk) <= names for chunk in _split_chunks(original))
    # Invalid code cannot be spliced. If it has all definitions of the file, it replaces the file, and its verdict
    # tells the model about the syntax error.
    if is_whole or (not is_valid_python(code) and top_level_names(original) <= names):
        return strip_examples(code) if entry_point else code
    spliced = splice(original, code) if is_valid_python(original) else _replace_chunks(original, code)
    if spliced is None:
        lost = ", ".join(sorted(top_level_names(original) - names)) or "parts of the file"
        raise MalformedReply(f"the reply is not the whole file: it leaves out {lost}")
    return spliced


def _replace_chunks(original: str, code: str) -> str | None:
    """Replace definitions as text in a file that does not parse."""
    parts: list[str] = []
    is_replaced = False
    for chunk in _split_chunks(original):
        names = top_level_names(chunk)
        if not (names and names <= top_level_names(code) and preserves_definitions(code, chunk)):
            parts.append(chunk)
        elif not is_replaced:
            parts.append(code.rstrip("\n") + "\n\n\n")
            is_replaced = True
    joined = "".join(parts).rstrip() + "\n"
    return joined if is_replaced and is_valid_python(joined) else None


def _split_chunks(text: str) -> list[str]:
    """Split source that does not parse into top-level pieces, decorators together with their definitions."""
    chunks: list[str] = []
    is_decorated = False
    for piece in CHUNK_START.split(text):
        if is_decorated:
            chunks[-1] += piece
        else:
            chunks.append(piece)
        is_decorated = piece.startswith("@")
    return chunks
