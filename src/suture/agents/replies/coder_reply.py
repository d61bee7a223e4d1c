"""Imports that a reply had no place for: where it was begun at a signature, none could stand in front."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterator, Mapping

from suture.agents.replies.edit_blocks import split_edits
from suture.agents.replies.fenced_blocks import Block, fenced_blocks
from suture.agents.replies.repaired_files import mended_files
from suture.agents.replies.written_files import surplus_of, written_files
from suture.agents.roles.coder import RepairBrief, WriteBrief
from suture.errors import EditDoesNotApply, MalformedReply
from suture.models import Reply
from suture.project.python_source.parsing import bounded, parsed
from suture.project.python_source.statements import (
    is_open_ended,
    lines_of,
    parses,
    put_in_front,
    read_names,
    sound_prefix,
)

HOMES = {
    "collections": "Counter OrderedDict defaultdict deque namedtuple",
    "copy": "deepcopy",
    "dataclasses": "dataclass field",
    "datetime": "timedelta",
    "decimal": "Decimal",
    "fractions": "Fraction",
    "functools": "cache cmp_to_key lru_cache partial reduce wraps",
    "heapq": "heapify heappop heappush nlargest nsmallest",
    "itertools": "accumulate chain combinations groupby permutations product zip_longest",
    "math": "ceil comb factorial floor gcd isqrt prod sqrt",
    "typing": "Any Callable Dict Generator Iterable Iterator List Optional Sequence Set Tuple Union",
}
"""Names that mean one thing wherever they stand without an import, by the module that they are of."""
OTHERWISE = frozenset(
    {"antigravity", "concurrent", "datetime", "email", "http", "importlib", "this", "urllib", "xml"}
)
"""Names of modules that mean little by themselves: a part of them is wanted, or nothing at all."""
HOME_OF = {name: module for module, names in HOMES.items() for name in names.split()}


def with_known_imports(code: str, before: str = "") -> str:
    """The module with an import for each name that it reads, nothing in it binds, and everybody knows.

    Args:
        code: The module.
        before: What it was, where it was there: names that it read already are not the reply's.
    """
    tree, old = parsed(code), parsed(before)
    if tree is None or _imports_all(tree):
        return code
    bound = {*_bound(tree), *dir(builtins), *(read_names([old]) if old is not None else ())}
    modules = (
        {name for name in _asked_for_something(tree) if name in sys.stdlib_module_names} - bound - OTHERWISE
    )
    names = {name for name in read_names([tree]) if name in HOME_OF} - bound
    lines = [f"import {name}" for name in sorted(modules)]
    lines += [f"from {HOME_OF[name]} import {name}" for name in sorted(names)]
    return put_in_front(code, "\n".join(lines) + "\n") if lines else code


def _imports_all(tree: ast.Module) -> bool:
    """Whether any name may come from elsewhere."""
    return any(isinstance(node, ast.alias) and node.name == "*" for node in ast.walk(tree))


def _asked_for_something(tree: ast.Module) -> Iterator[str]:
    """Names of which an attribute is read, as `math` in `math.pi`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield node.value.id


def _bound(tree: ast.Module) -> Iterator[str]:
    """Names that anything in the module binds, in whichever scope."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name


CIRCLES = 6
LONGEST_CIRCLE = 4
"""Lines; a table of a program's own is seldom so much alike."""
STARTS = ("def ", "class ", "import ", "from ", "@", "async ")


@bounded
def files_from_reply(reply: Reply, brief: WriteBrief | RepairBrief) -> dict[str, str]:
    """The files that a reply asks to write.

    Raises:
        MalformedReply: There is no code in it, or not the code that was asked for.
        EditDoesNotApply: A search/replace block in it has no one place.
    """
    edits, text = split_edits(reply.text) if isinstance(brief, RepairBrief) else ([], reply.text)
    blocks = [block for block in fenced_blocks(text) if block.may_be_code]
    cut = reply.finish == "length"
    sound = [_sound(block, cut=cut) for block in (blocks if blocks or edits else _unfenced(reply))]
    sound = [block for block in sound if block.code.strip()]
    if not sound and not edits:
        why = "was cut short before the code was complete" if cut else "holds no code"
        raise MalformedReply(f"the reply {why}", remedy="raise model.max_tokens" if cut else "")
    if isinstance(brief, WriteBrief):
        data = [block for block in fenced_blocks(text) if not block.may_be_code]
        files = written_files(sound, data, brief)
    else:
        files = mended_files(sound, brief, edits)
    if not reply.begun:
        return files
    given = brief.files if isinstance(brief, RepairBrief) else {}
    return {path: with_known_imports(text, given.get(path, "")) for path, text in files.items()}


@bounded
def surplus_in_reply(
    reply: Reply, brief: WriteBrief | RepairBrief, files: Mapping[str, str]
) -> tuple[str, ...]:
    """The names of the files that a reply holds beside those that were made of it; sorted.

    Args:
        reply: The model's.
        brief: What it answers.
        files: What `files_from_reply` made of it.
    """
    known = tuple(brief.files) if isinstance(brief, RepairBrief) else ()
    text = split_edits(reply.text)[1] if isinstance(brief, RepairBrief) else reply.text
    return surplus_of(fenced_blocks(text), files, known)


def breaks_off(reply: Reply) -> bool:
    """Whether a reply was cut before its code was whole; where only words are missing it was not."""
    if reply.finish != "length":
        return False
    try:
        edits, text = split_edits(reply.text)
        blocks = [block for block in bounded(fenced_blocks)(text) if block.may_be_code]
    except EditDoesNotApply:
        return True
    except MalformedReply:  # whoever wrote it would write more of the same
        return False
    return not (edits or blocks) or any(not block.closed for block in blocks)


def stops_inside(reply: Reply) -> bool:
    """Whether a begun reply was ended by a line at the margin, in a text or a bracket that is still open."""
    if not reply.begun or reply.finish != "stop":
        return False
    last = next(reversed(fenced_blocks(reply.text)), None)
    return last is not None and not last.closed and bounded(is_open_ended)(last.code)


def goes_in_circles(text: str) -> bool:
    """Whether a text ends in the same few lines over and over: a model that will not find its end."""
    lines = [line.strip() for line in lines_of(text) if line.strip()][:-1]  # the last one may be half
    ends = (lines[-period * CIRCLES :] for period in range(1, LONGEST_CIRCLE + 1))
    return any(
        len(end) == period * CIRCLES and end[:period] * CIRCLES == end for period, end in enumerate(ends, 1)
    )


def _unfenced(reply: Reply) -> list[Block]:
    """The longest run of lines that is code, in a reply without fences."""
    lines = lines_of(reply.text)
    starts = [number for number, line in enumerate(lines) if line.startswith(STARTS)]
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
    return Block(code=sound_prefix(block.code), path=block.path, closed=False, before=block.before)
