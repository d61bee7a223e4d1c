"""Which block of a reply is the module that was asked for, and what must stand with it."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from suture.errors import MalformedReply
from suture.pysource.parsing import parsed
from suture.pysource.python_code import (
    Definition,
    defined_names,
    names_of,
    only_imports,
    parses,
    read_names,
    without_demo,
)
from suture.pysource.source_lines import put_in_front
from suture.roles.coding.coder import WriteBrief
from suture.roles.coding.stubs import body_under_stub, with_rest_of_stub
from suture.roles.replies.fenced import Block

CALLED_WRONG = re.compile(r"\b(?:wrong|incorrect\w*|bugg?y?|broken|mistaken?|naive)\b", re.IGNORECASE)
CALLED_RIGHT = re.compile(r"\b(?:fix\w*|correct|corrected|instead|right)\b", re.IGNORECASE)


def written_module(blocks: Sequence[Block], brief: WriteBrief) -> str:
    """The text of the module.

    Raises:
        MalformedReply: No block defines what must be there.
    """
    ranked = sorted(blocks, key=_is_called_wrong)
    chosen = next((block for block in ranked if _defines(block, brief)), None)
    if chosen is not None:
        return _complete(chosen, [block for block in blocks if block is not chosen], brief)
    for block in ranked:
        if (body := body_under_stub(block.code, brief.statement)) is not None:
            return without_demo(body)
    joined = without_demo("\n".join(block.code for block in blocks))
    if brief.entry_point in defined_names(joined):
        return joined
    return _second_best(ranked, brief)


def _second_best(blocks: Sequence[Block], brief: WriteBrief) -> str:
    """Code that its verdict will tell more about than a refusal would."""
    entry = brief.entry_point
    for block in blocks:
        if not parses(block.code) and entry and re.search(rf"\bdef {re.escape(entry)}\b", block.code):
            return block.code
    others = [
        b for b in blocks if _is_code(b, brief) and (not brief.name_is_certain or _has_method(b, entry))
    ]
    if others:
        return _complete(others[0], [block for block in blocks if block is not others[0]], brief)
    if entry is None:
        return without_demo(blocks[0].code)
    raise MalformedReply(f"the reply does not define {entry!r}")


def _is_called_wrong(block: Block) -> bool:
    return bool(CALLED_WRONG.search(block.before) and not CALLED_RIGHT.search(block.before))


def _is_code(block: Block, brief: WriteBrief) -> bool:
    """Whether it defines anything that is not just a test or an example of the module."""
    tree = parsed(block.code)
    if tree is None or _uses_module(tree, brief.module):
        return False
    return any(isinstance(node, Definition) for node in tree.body)


def _defines(block: Block, brief: WriteBrief) -> bool:
    tree = parsed(block.code)
    if tree is None or _uses_module(tree, brief.module):
        return False
    if brief.entry_point is None:
        return _is_code(block, brief)
    return any(brief.entry_point in names_of(node) for node in tree.body)


def _uses_module(tree: ast.Module, module: str) -> bool:
    """Whether it imports from the very module that is to be written, as tests and examples do."""
    own = ".".join(PurePosixPath(module).with_suffix("").parts)
    return any(isinstance(node, ast.ImportFrom) and node.module == own for node in tree.body)


def _has_method(block: Block, name: str | None) -> bool:
    tree = parsed(block.code)
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)] if tree else []
    return any(name in names_of(inner) for owner in classes for inner in owner.body)


def _complete(chosen: Block, others: Sequence[Block], brief: WriteBrief) -> str:
    """The chosen block, with what other blocks and the stub define for it."""
    code = chosen.code
    tree = parsed(code)
    needed = read_names([tree]) - defined_names(code) if tree else frozenset()
    extra = ""
    for other in others:
        names = defined_names(other.code)
        helps = only_imports(other.code) or _is_code(other, brief)
        if helps and names & needed and brief.entry_point not in names:
            extra += other.code if only_imports(other.code) else f"{other.code}\n\n"
            needed -= names
    code = put_in_front(code, without_demo(extra)) if extra else code
    return without_demo(with_rest_of_stub(code, brief.statement))
