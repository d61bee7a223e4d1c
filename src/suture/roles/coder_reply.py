"""From the coder's reply to files, however untidy the reply is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from suture.errors import MalformedReply
from suture.models import Reply
from suture.roles.coder import RepairBrief, WriteBrief
from suture.roles.fenced import Block, fenced_blocks
from suture.roles.python_code import (
    complete_from_stub,
    defined_names,
    only_imports,
    parses,
    sound_prefix,
    splice_definitions,
    without_demo,
)

__all__ = ["files_from_reply"]


def files_from_reply(reply: Reply, brief: WriteBrief | RepairBrief) -> dict[str, str]:
    """The files that a reply asks to write.

    Raises:
        MalformedReply: There is no code in it, or not the code that was asked for.
    """
    blocks = fenced_blocks(reply.text) or _unfenced(reply)
    cut = reply.finish == "length"
    sound = [block for block in (_sound(block, cut=cut) for block in blocks) if block.code.strip()]
    if not sound:
        why = "was cut short before the code was complete" if cut else "holds no code"
        raise MalformedReply(f"the reply {why}", remedy="raise model.max_tokens" if cut else "")
    if isinstance(brief, WriteBrief):
        return {brief.module: _written(sound, brief)}
    return _mended(sound, brief)


def _unfenced(reply: Reply) -> list[Block]:
    """The longest run of lines that is code, in a reply without fences."""
    lines = reply.text.splitlines(keepends=True)
    starts = [
        n
        for n, line in enumerate(lines)
        if line.startswith(("def ", "class ", "import ", "from ", "@", "async "))
    ]
    for start in starts[:1]:
        for end in range(len(lines), start, -1):
            code = "".join(lines[start:end])
            if parses(code):
                return [Block(code=code)]
    if not starts and reply.text.startswith((" ", "\t")):
        return [Block(code=reply.text)]
    return []


def _sound(block: Block, *, cut: bool) -> Block:
    if block.closed or (parses(block.code) and not cut):
        return block
    return Block(code=sound_prefix(block.code), path=block.path, closed=False)


def _written(blocks: Sequence[Block], brief: WriteBrief) -> str:
    completed = [without_demo(complete_from_stub(block.code, brief.statement)) for block in blocks]
    entry = brief.entry_point
    fitting = [code for code in completed if entry is None or entry in defined_names(code)]
    if fitting:
        # The first one that fits: later blocks are examples of use, or a second thought without the imports.
        chosen = next((code for code in fitting if defined_names(code)), fitting[0])
        return "".join([*(b.code for b in blocks[: completed.index(chosen)] if only_imports(b.code)), chosen])
    joined = without_demo("\n".join(block.code for block in blocks))
    if entry in defined_names(joined):
        return joined
    broken = [code for code in completed if not parses(code) and entry and f"def {entry}" in code]
    if broken:
        return broken[0]  # a syntax error is a candidate: its verdict tells the model what is wrong
    raise MalformedReply(f"the reply does not define {entry!r}")


def _mended(blocks: Sequence[Block], brief: RepairBrief) -> dict[str, str]:
    changed: dict[str, str] = {}
    for block in blocks:
        path = _target(block, brief.files)
        if path is not None:
            now = changed.get(path, brief.files[path])
            changed[path] = _merged(now, block.code, brief.entry_point)
    changed = {path: text for path, text in changed.items() if text != brief.files[path]}
    if not changed:
        raise MalformedReply("the reply changes none of the files")
    return changed


def _target(block: Block, files: Mapping[str, str]) -> str | None:
    """The file a block means: the one it names, else the one whose names it defines."""
    if block.path in files:
        return block.path
    named = [path for path in files if block.path and path.endswith(f"/{block.path}")]
    if len(named) == 1:
        return named[0]
    if len(files) == 1:
        return next(iter(files))
    names = defined_names(block.code)
    shared = {path: len(names & defined_names(text)) for path, text in files.items()}
    best = max(shared, key=lambda path: shared[path])
    return best if shared[best] else None


def _merged(original: str, code: str, entry_point: str | None) -> str:
    """A whole file replaces the file; a few of its functions replace their namesakes."""
    kept = defined_names(original) - {"annotations"}
    if kept <= defined_names(code) or not parses(original):
        return without_demo(code) if entry_point else code
    spliced = splice_definitions(original, code)
    return spliced if spliced is not None else code
