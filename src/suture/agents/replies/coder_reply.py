"""Read the files in the coder's reply, however untidy it is, and tell whether it was cut off.

A reply that was prefilled up to a signature had no place for imports; well-known ones are added.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Collection, Iterable, Iterator

from suture.agents.replies.fenced_blocks import CodeBlock, CodePart, TextEdit, UnusablePart, fenced_blocks
from suture.agents.replies.repaired_files import apply_repair, read_edited_files
from suture.agents.replies.reply_scanning import find_unfenced_code, scan_reply
from suture.agents.replies.written_files import collect_written_files
from suture.agents.roles.coder import RepairBrief, WriteBrief
from suture.agents.tuning import MAX_REPEATED_LINES, MIN_REPETITIONS
from suture.errors import MalformedReply
from suture.models import Reply
from suture.project.python_source.parsing import limit_parsing_work, parse_module
from suture.project.python_source.statement_edits import (
    complete_prefix,
    insert_after_preamble,
    is_open_ended,
    is_valid_python,
    read_names,
    split_lines,
)
from suture.project.workspace import is_creatable

WELL_KNOWN_IMPORTS = {
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
"""Module -> names that have one obvious meaning even without an import."""
AMBIGUOUS_MODULES = frozenset(
    {"antigravity", "concurrent", "datetime", "email", "http", "importlib", "this", "urllib", "xml"}
)
"""Modules whose bare name says little: a submodule may be meant, or a variable."""
MODULE_OF_NAME = {name: module for module, names in WELL_KNOWN_IMPORTS.items() for name in names.split()}


def add_known_imports(code: str, before: str = "") -> str:
    """Add an import for each well-known name that a module reads and nothing in it binds.

    Args:
        before: The module's earlier source, if any. Names that it already read get no import.
    """
    tree, old_tree = parse_module(code), parse_module(before)
    if tree is None:
        return code
    nodes = list(ast.walk(tree))
    if any(isinstance(node, ast.alias) and node.name == "*" for node in nodes):
        return code  # A star import may define any name.
    names_before = read_names([old_tree]) if old_tree is not None else frozenset()
    unavailable = {*_bound_names(tree), *dir(builtins), *names_before}
    # Names of which an attribute is read, as `math` in `math.pi`.
    owners = {n.value.id for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)}
    modules = (owners & sys.stdlib_module_names) - unavailable - AMBIGUOUS_MODULES
    names = (read_names([tree]) & MODULE_OF_NAME.keys()) - unavailable
    lines = [f"import {name}" for name in sorted(modules)]
    lines += [f"from {MODULE_OF_NAME[name]} import {name}" for name in sorted(names)]
    return insert_after_preamble(code, "\n".join(lines) + "\n") if lines else code


def _bound_names(tree: ast.Module) -> Iterator[str]:
    """Yield names that anything in the module binds, in any scope."""
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


@limit_parsing_work
def files_from_reply(reply: Reply, brief: WriteBrief | RepairBrief) -> dict[str, str]:
    """Return the files in a reply, path -> text.

    Raises:
        MalformedReply: There is no code, or not the requested code.
        EditDoesNotApply: An edit does not match exactly one place.
    """
    if isinstance(brief, RepairBrief) and (edited := read_edited_files(reply, brief)) is not None:
        return edited
    blocks = [block for block in fenced_blocks(reply.text) if block.may_be_code]
    is_cut = reply.finish == "length"
    if not blocks:
        blocks = _find_unfenced_code(reply.text)
    usable = [_complete_block(block, is_cut=is_cut) for block in blocks]
    usable = [block for block in usable if block.code.strip()]
    packages = _empty_package_files(blocks, brief)
    if not usable and packages:
        return packages
    if not usable:
        why = "was cut short before the code was complete" if is_cut else "holds no code"
        raise MalformedReply(f"the reply {why}", remedy="raise model.max_tokens" if is_cut else "")
    if isinstance(brief, WriteBrief):
        data = [block for block in fenced_blocks(reply.text) if not block.may_be_code]
        files = packages | collect_written_files(usable, data, brief)
    else:
        files = packages | apply_repair(usable, brief)
    if not reply.prefill:
        return files
    originals = brief.files if isinstance(brief, RepairBrief) else {}
    return {path: add_known_imports(text, originals.get(path, "")) for path, text in files.items()}


def _empty_package_files(blocks: Iterable[CodeBlock], brief: WriteBrief | RepairBrief) -> dict[str, str]:
    """Return the new `__init__.py` files of a reply that are empty, as such files usually are."""
    if isinstance(brief, WriteBrief):
        existing: Collection[str] | None = () if brief.allows_several_files else None
    else:
        existing = brief.project
    return {
        block.path: ""
        for block in blocks
        if existing is not None
        and block.is_closed
        and not block.code.strip()
        and block.path is not None
        and block.path.rpartition("/")[2] == "__init__.py"
        and is_creatable(block.path, existing)
    }


def is_truncated_reply(reply: Reply) -> bool:
    """Return whether a reply was cut off inside its code; missing prose does not matter."""
    if reply.finish != "length":
        return False
    try:
        parts = limit_parsing_work(scan_reply)(reply.text)
    except MalformedReply:  # More tokens would only produce more of the same.
        return False
    if any(isinstance(part, UnusablePart) and part.code == "incomplete" for part in parts):
        return True
    code = [
        part
        for part in parts
        if isinstance(part, TextEdit) or (isinstance(part, CodePart) and part.may_be_code)
    ]
    return not code or any(not part.is_closed for part in code)


def ends_inside_code(reply: Reply) -> bool:
    """Return whether a prefilled reply was stopped at the left margin inside an open string or bracket."""
    if not reply.prefill or reply.finish != "stop":
        return False
    blocks = fenced_blocks(reply.text)
    return bool(blocks) and not blocks[-1].is_closed and limit_parsing_work(is_open_ended)(blocks[-1].code)


def repeats_itself(text: str) -> bool:
    """Return whether a reply ends with the same few lines over and over, so that the model would never end it."""
    lines = [line.strip() for line in split_lines(text) if line.strip()][:-1]  # The last line may be cut off.
    for period in range(1, MAX_REPEATED_LINES + 1):
        end = lines[-period * MIN_REPETITIONS :]
        if len(end) == period * MIN_REPETITIONS and end[:period] * MIN_REPETITIONS == end:
            return True
    return False


def _find_unfenced_code(text: str) -> list[CodeBlock]:
    """Return the code of a reply without fences, or all of a reply that begins like the body of a function."""
    blocks = [CodeBlock(code=part.code) for part in find_unfenced_code(text)]
    return [CodeBlock(code=text)] if not blocks and text.startswith((" ", "\t")) else blocks


def _complete_block(block: CodeBlock, *, is_cut: bool) -> CodeBlock:
    """Return a block without the unfinished statement at the end of a cut reply."""
    if block.is_closed or (is_valid_python(block.code) and not is_cut):
        return block
    return CodeBlock(
        code=complete_prefix(block.code), path=block.path, is_closed=False, line_before=block.line_before
    )
