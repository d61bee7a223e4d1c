"""Collect the files in a reply to a writing task: the requested module, and the other files of the reply."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from suture.agents.replies.fenced_blocks import SHELL_LABELS, CodeBlock, fenced_blocks
from suture.agents.replies.reply_scanning import remove_edits
from suture.agents.roles.coder import RepairBrief, WriteBrief
from suture.errors import MalformedReply
from suture.models import Reply
from suture.project.python_source.module_definitions import preserves_definitions, top_level_names
from suture.project.python_source.parsing import limit_parsing_work, loaded_files, parse_module
from suture.project.python_source.statement_edits import (
    Definition,
    bound_names,
    defined_names,
    has_only_imports,
    insert_after_preamble,
    is_valid_python,
    read_names,
    reindent,
    strip_examples,
)
from suture.project.workspace import is_creatable

BAD_CODE_WORDS = re.compile(r"\b(?:wrong|incorrect\w*|bugg?y?|broken|mistaken?|naive)\b", re.IGNORECASE)
GOOD_CODE_WORDS = re.compile(r"\b(?:fix\w*|correct|corrected|instead|right)\b", re.IGNORECASE)
"""In the line before a block, `BAD_CODE_WORDS` mark code that the reply shows for contrast, unless the line has
one of these words too."""


def _choose_module(blocks: Sequence[CodeBlock], brief: WriteBrief) -> str:
    """Return the source of the requested module.

    These are tried in turn: a block that defines the entry point, a block that is the body of the given stub, all
    blocks together, and code without the entry point.
    """
    ranked = sorted(blocks, key=_is_bad_example)
    chosen = next((block for block in ranked if _defines_entry_point(block, brief)), None)
    if chosen is not None:
        return _add_definitions(chosen, blocks, brief)
    for block in ranked:
        if (module := _complete_stub(block.code, brief.statement)) is not None:
            return strip_examples(module)
    joined = strip_examples("\n".join(block.code for block in blocks))
    if brief.entry_point in defined_names(joined):
        return joined
    return _fallback_module(ranked, brief)


def _fallback_module(blocks: Sequence[CodeBlock], brief: WriteBrief) -> str:
    """Return code without the entry point, if its verdict tells the model more than a refusal of the reply."""
    entry = brief.entry_point
    for block in blocks:
        defines_entry = entry and re.search(rf"\bdef {re.escape(entry)}\b", block.code)
        if defines_entry and not is_valid_python(block.code):
            return block.code
    for block in blocks:
        if _is_code(block, brief) and (not brief.requires_entry_point or _has_method(block, entry)):
            return _add_definitions(block, blocks, brief)
    if entry is None:
        return strip_examples(blocks[0].code)
    raise MalformedReply(f"the reply does not define {entry!r}")


def _is_bad_example(block: CodeBlock) -> bool:
    return bool(BAD_CODE_WORDS.search(block.line_before) and not GOOD_CODE_WORDS.search(block.line_before))


def _code_statements(block: CodeBlock, brief: WriteBrief) -> list[ast.stmt]:
    """Return the statements of a block; none if it imports from the module, as tests and examples do."""
    tree = parse_module(block.code)
    module = ".".join(PurePosixPath(brief.module).with_suffix("").parts)
    body = tree.body if tree is not None else []
    is_usage = any(isinstance(node, ast.ImportFrom) and node.module == module for node in body)
    return [] if is_usage else body


def _is_code(block: CodeBlock, brief: WriteBrief) -> bool:
    """Return whether a block defines anything but tests or examples of the module."""
    return any(isinstance(node, Definition) for node in _code_statements(block, brief))


def _defines_entry_point(block: CodeBlock, brief: WriteBrief) -> bool:
    if brief.entry_point is None:
        return _is_code(block, brief)
    return any(brief.entry_point in bound_names(node) for node in _code_statements(block, brief))


def _has_method(block: CodeBlock, name: str | None) -> bool:
    tree = parse_module(block.code)
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)] if tree else []
    return any(name in bound_names(member) for owner in classes for member in owner.body)


def _add_definitions(chosen: CodeBlock, blocks: Sequence[CodeBlock], brief: WriteBrief) -> str:
    """Return the chosen block with what the other blocks and the stub define for it."""
    code = chosen.code
    tree = parse_module(code)
    needed = read_names([tree]) - defined_names(code) if tree else frozenset()
    additions = ""
    for block in blocks:
        if block is chosen:
            continue
        names = defined_names(block.code)
        is_imports = has_only_imports(block.code)
        is_usable = is_imports or _is_code(block, brief)
        if is_usable and names & needed and brief.entry_point not in names:
            additions += block.code if is_imports else f"{block.code}\n\n"
            needed -= names
    code = insert_after_preamble(code, strip_examples(additions)) if additions else code
    return strip_examples(_add_rest_of_stub(code, brief.statement))


def _add_rest_of_stub(code: str, statement: str) -> str:
    """Add the imports and helpers that the code omits, if the statement is Python with a stub."""
    tree, stub = _parse_stub(statement)
    if tree is None:
        return code
    defined = defined_names(code)
    omitted = [n for n in tree.body if n is not stub and (names := bound_names(n)) and not names & defined]
    sources = "\n".join(ast.get_source_segment(statement, node) or "" for node in omitted)
    return insert_after_preamble(code, sources) if sources else code


def _complete_stub(code: str, statement: str) -> str | None:
    """Return the statement's stub with the code as its body; `None` if the code does not look like a body.

    A body is indented, or has a `return` outside any function.
    """
    tree, stub = _parse_stub(statement)
    dedented = textwrap.dedent(code)
    dedented_tree = parse_module(dedented)
    looks_like_body = code[:1].isspace() or (dedented_tree is not None and _has_loose_return(dedented_tree))
    if tree is None or isinstance(stub, ast.ClassDef) or not looks_like_body:
        return None
    body = dedented if dedented_tree is not None else code
    module = f"{statement.rstrip()}\n{reindent(body, '    ')}"
    return module if is_valid_python(module) else None


def _parse_stub(statement: str) -> tuple[ast.Module | None, ast.stmt | None]:
    """Return `(module, its last definition)`; `(None, None)` if the statement is not Python with one."""
    tree = parse_module(statement)
    definitions = [node for node in tree.body if isinstance(node, Definition)] if tree else []
    return (tree, definitions[-1]) if definitions else (None, None)


def _has_loose_return(node: ast.AST) -> bool:
    """Return whether there is a `return` or `yield` outside any function, class or lambda."""
    return any(
        isinstance(child, ast.Return | ast.Yield)
        or (not isinstance(child, Definition | ast.Lambda) and _has_loose_return(child))
        for child in ast.iter_child_nodes(node)
    )


def collect_written_files(
    blocks: Sequence[CodeBlock], data: Sequence[CodeBlock], brief: WriteBrief
) -> dict[str, str]:
    """Return the files of a reply from its blocks of code and its blocks of data, such as JSON: path -> text."""
    if not brief.allows_several_files:
        text = _choose_module(blocks, brief)
        return {brief.module: text, **_imported_by(text, blocks, brief)}
    # A block of data belongs to a file only if it names one. Without a path it counts as Python, which is not data.
    data_files = [
        block
        for block in data
        if not (block.path or ".py").endswith(".py") and fence_label(block) not in SHELL_LABELS
    ]
    files = _strip_common_folder(_named_files(blocks) | _named_files(data_files), brief)
    unnamed = [block for block in blocks if block.path is None]
    if not files.keys() & {brief.module, _as_package(brief.module)} and (unnamed or not files):
        files = {brief.module: _choose_module(unnamed or blocks, brief), **files}
    missing = [path for path in brief.other_modules if not files.keys() & {path, _as_package(path)}]
    if missing:
        raise MalformedReply(f"the reply holds no {', '.join(missing)}")
    broken = [path for path, text in files.items() if path.endswith(".py") and not is_valid_python(text)]
    if broken:
        raise MalformedReply(f"the reply's {', '.join(broken)} is no Python")
    entry = brief.entry_point
    if entry and brief.requires_entry_point and not any(entry in top_level_names(t) for t in files.values()):
        raise MalformedReply(f"the reply does not define {entry!r}")
    return files


@limit_parsing_work
def surplus_files_in_reply(
    reply: Reply, brief: WriteBrief | RepairBrief, files: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the paths in a reply that `files_from_reply` (whose result is `files`) did not use; sorted."""
    text, used_paths = reply.text, tuple(files)
    if isinstance(brief, RepairBrief):
        text, used_paths = remove_edits(text), (*files, *brief.files)  # It may quote the files that it saw.
    used_names = frozenset[str]().union(*map(top_level_names, files.values()))
    surplus = set()
    for block in fenced_blocks(text):
        path = block.path
        is_example = fence_label(block) in SHELL_LABELS or _is_bad_example(block)
        if path is None or not block.code.strip() or is_example:
            continue
        is_used_path = any(
            path == used or used.endswith(f"/{path}") or path.endswith(f"/{used}") for used in used_paths
        )
        names = top_level_names(block.code)
        if not is_used_path and not (names and names <= used_names):
            surplus.add(path)
    return tuple(sorted(surplus))


def _named_files(blocks: Iterable[CodeBlock]) -> dict[str, str]:
    """Return the blocks that name a file; of two, the later wins if it contains all of the other."""
    files: dict[str, str] = {}
    for block in blocks:
        path = block.path
        if path is None or _is_bad_example(block) or not is_creatable(path, ()) or not block.code.strip():
            continue
        earlier = files.get(path)
        if earlier is None or preserves_definitions(block.code, earlier) or not is_valid_python(earlier):
            files[path] = block.code
    return files


def fence_label(block: CodeBlock) -> str:
    """Return the word after the fence of a block, with a path that is joined to it, as in `sh:run.sh`."""
    return block.info.strip(" {.").lower().partition(" ")[0]


def _strip_common_folder(files: Mapping[str, str], brief: WriteBrief) -> dict[str, str]:
    """Return the files without a folder that the model put around all of them."""
    required = next((path for path in brief.modules if path not in files), brief.module)
    folders = [path.removesuffix(required) for path in files if path.endswith(f"/{required}")]
    if len(folders) != 1 or not all(path.startswith(folders[0]) for path in files):
        return dict(files)
    return {path.removeprefix(folders[0]): text for path, text in files.items()}


def _as_package(module: str) -> str:
    return f"{module.removesuffix('.py')}/__init__.py"


def _imported_by(text: str, blocks: Sequence[CodeBlock], brief: WriteBrief) -> dict[str, str]:
    """Return the other files of a reply that the module imports."""
    others = {
        path: code
        for path, code in _named_files(blocks).items()
        if path != brief.module and is_valid_python(code)
    }
    loaded = loaded_files({**others, brief.module: text}, [brief.module])
    return {path: code for path, code in others.items() if path in loaded}
