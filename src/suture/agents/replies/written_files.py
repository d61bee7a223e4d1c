"""Files in a reply to a writing task: the requested module, and the other files of the reply."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from suture.agents.replies.edit_blocks import is_creatable
from suture.agents.replies.fenced_blocks import CodeBlock
from suture.agents.roles.coder import WriteBrief
from suture.errors import MalformedReply
from suture.project.python_source.imports import loaded_files
from suture.project.python_source.parsing import parse_module
from suture.project.python_source.splicing import preserves_definitions, top_level_names
from suture.project.python_source.statements import (
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

BAD_CODE_WORDS = re.compile(r"\b(?:wrong|incorrect\w*|bugg?y?|broken|mistaken?|naive)\b", re.IGNORECASE)
GOOD_CODE_WORDS = re.compile(r"\b(?:fix\w*|correct|corrected|instead|right)\b", re.IGNORECASE)
"""Before a block, `BAD_CODE_WORDS` mark code that the reply shows for contrast, unless one of these words
follows."""


def choose_module(blocks: Sequence[CodeBlock], brief: WriteBrief) -> str:
    """Return the text of the requested module.

    Raises:
        MalformedReply: No block defines the entry point.
    """
    ranked = sorted(blocks, key=_is_bad_example)
    chosen = next((block for block in ranked if _defines(block, brief)), None)
    if chosen is not None:
        return _add_definitions(chosen, [block for block in blocks if block is not chosen], brief)
    for block in ranked:
        if (body := complete_stub(block.code, brief.statement)) is not None:
            return strip_examples(body)
    joined = strip_examples("\n".join(block.code for block in blocks))
    if brief.entry_point in defined_names(joined):
        return joined
    return _fallback_module(ranked, brief)


def _fallback_module(blocks: Sequence[CodeBlock], brief: WriteBrief) -> str:
    """Return code about which a verdict tells more than a refusal of the reply."""
    entry = brief.entry_point
    for block in blocks:
        if (
            not is_valid_python(block.code)
            and entry
            and re.search(rf"\bdef {re.escape(entry)}\b", block.code)
        ):
            return block.code
    others = [
        b for b in blocks if _is_code(b, brief) and (not brief.requires_entry_point or _has_method(b, entry))
    ]
    if others:
        return _add_definitions(others[0], [block for block in blocks if block is not others[0]], brief)
    if entry is None:
        return strip_examples(blocks[0].code)
    raise MalformedReply(f"the reply does not define {entry!r}")


def _is_bad_example(block: CodeBlock) -> bool:
    return bool(BAD_CODE_WORDS.search(block.line_before) and not GOOD_CODE_WORDS.search(block.line_before))


def _is_code(block: CodeBlock, brief: WriteBrief) -> bool:
    """Return whether a block defines anything but tests or examples of the module."""
    tree = parse_module(block.code)
    if tree is None or _uses_module(tree, brief.module):
        return False
    return any(isinstance(node, Definition) for node in tree.body)


def _defines(block: CodeBlock, brief: WriteBrief) -> bool:
    tree = parse_module(block.code)
    if tree is None or _uses_module(tree, brief.module):
        return False
    if brief.entry_point is None:
        return _is_code(block, brief)
    return any(brief.entry_point in bound_names(node) for node in tree.body)


def _uses_module(tree: ast.Module, module: str) -> bool:
    """Return whether it imports from the module to be written, as tests and examples do."""
    own = ".".join(PurePosixPath(module).with_suffix("").parts)
    return any(isinstance(node, ast.ImportFrom) and node.module == own for node in tree.body)


def _has_method(block: CodeBlock, name: str | None) -> bool:
    tree = parse_module(block.code)
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)] if tree else []
    return any(name in bound_names(inner) for owner in classes for inner in owner.body)


def _add_definitions(chosen: CodeBlock, others: Sequence[CodeBlock], brief: WriteBrief) -> str:
    """Return the chosen block with what other blocks and the stub define for it."""
    code = chosen.code
    tree = parse_module(code)
    needed = read_names([tree]) - defined_names(code) if tree else frozenset()
    extra = ""
    for other in others:
        names = defined_names(other.code)
        helps = has_only_imports(other.code) or _is_code(other, brief)
        if helps and names & needed and brief.entry_point not in names:
            extra += other.code if has_only_imports(other.code) else f"{other.code}\n\n"
            needed -= names
    code = insert_after_preamble(code, strip_examples(extra)) if extra else code
    return strip_examples(add_rest_of_stub(code, brief.statement))


def add_rest_of_stub(code: str, stub: str) -> str:
    """Add the imports and helpers of the stub that the code omits.

    Args:
        code: A module that the model wrote.
        stub: Python with a signature and a docstring, as in the task's statement; or any other text.
    """
    tree, wanted = _stub_definition(stub)
    if tree is None:
        return code
    have = defined_names(code)
    given = [n for n in tree.body if n is not wanted and (names := bound_names(n)) and not names & have]
    missing = "\n".join(ast.get_source_segment(stub, node) or "" for node in given)
    return insert_after_preamble(code, missing) if missing else code


def complete_stub(code: str, stub: str) -> str | None:
    """Put code as the body under the signature of the stub's last function.

    Returns:
        The module; `None` if there is no stub, or the code does not look like a body: indented, or with a
        `return` outside any function.
    """
    tree, wanted = _stub_definition(stub)
    alone = parse_module(textwrap.dedent(code))
    looks_like_body = code[:1].isspace() or (alone is not None and any(_loose_returns(alone)))
    if tree is None or isinstance(wanted, ast.ClassDef) or not looks_like_body:
        return None
    body = textwrap.dedent(code) if alone is not None else code
    joined = f"{stub.rstrip()}\n{reindent(body, '    ')}"
    return joined if is_valid_python(joined) else None


def _stub_definition(stub: str) -> tuple[ast.Module | None, ast.stmt | None]:
    tree = parse_module(stub)
    definitions = [node for node in tree.body if isinstance(node, Definition)] if tree else []
    return (tree, definitions[-1]) if definitions else (None, None)


def _loose_returns(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Return | ast.Yield):
            yield child
        elif not isinstance(child, Definition | ast.Lambda):
            yield from _loose_returns(child)


SHELL_LABELS = frozenset(
    ("bash", "cmd", "console", "output", "powershell", "sh", "shell", "stdout", "terminal", "zsh")
)
"""Labels of blocks that show how a file is used."""


def collect_written_files(
    blocks: Sequence[CodeBlock], data: Sequence[CodeBlock], brief: WriteBrief
) -> dict[str, str]:
    """Return the files of a reply, path -> text.

    Args:
        blocks: Its blocks of code.
        data: Its other blocks, such as JSON.
        brief: What was requested.

    Raises:
        MalformedReply: A required file is missing, or a file is not Python.
    """
    if not brief.allows_several_files:
        text = choose_module(blocks, brief)
        return {brief.module: text, **_imported_by(text, blocks, brief)}
    files = _strip_common_folder(
        _named_files(blocks) | _named_files([block for block in data if _is_data(block)]), brief
    )
    unnamed = [block for block in blocks if block.path is None]
    if not files.keys() & {brief.module, _as_package(brief.module)} and (unnamed or not files):
        files = {brief.module: choose_module(unnamed or blocks, brief), **files}
    missing = [path for path in brief.other_modules if not files.keys() & {path, _as_package(path)}]
    if missing:
        raise MalformedReply(f"the reply holds no {', '.join(missing)}")
    broken = [path for path, text in files.items() if path.endswith(".py") and not is_valid_python(text)]
    if broken:
        raise MalformedReply(f"the reply's {', '.join(broken)} is no Python")
    entry = brief.entry_point
    if entry and brief.requires_entry_point and not any(entry in _names_in(text) for text in files.values()):
        raise MalformedReply(f"the reply does not define {entry!r}")
    return files


def find_surplus_files(
    blocks: Iterable[CodeBlock], written: Mapping[str, str], known: Collection[str] = ()
) -> tuple[str, ...]:
    """Return the names of files in a reply that are not used; sorted.

    Args:
        blocks: All blocks of the reply.
        written: The files made from it, path -> text.
        known: Paths of files that the model saw: it may have quoted them.
    """
    paths = (*written, *known)
    names = frozenset[str]().union(*map(_names_in, written.values()))
    found = set()
    for block in blocks:
        path = block.path
        if (
            path is None
            or not block.code.strip()
            or fence_label(block) in SHELL_LABELS
            or _is_bad_example(block)
        ):
            continue
        is_there = any(path == one or one.endswith(f"/{path}") or path.endswith(f"/{one}") for one in paths)
        held = _names_in(block.code)
        if not is_there and not (held and held <= names):
            found.add(path)
    return tuple(sorted(found))


def _named_files(blocks: Iterable[CodeBlock]) -> dict[str, str]:
    """Return the blocks that name a file; of two, the later wins if it contains all of the other."""
    files: dict[str, str] = {}
    for block in blocks:
        path = block.path
        if path is None or _is_bad_example(block) or not is_creatable(path, ()) or not block.code.strip():
            continue
        before = files.get(path)
        if before is None or preserves_definitions(block.code, before) or not is_valid_python(before):
            files[path] = block.code
    return files


def _is_data(block: CodeBlock) -> bool:
    return not (block.path or ".py").endswith(".py") and fence_label(block) not in SHELL_LABELS


def fence_label(block: CodeBlock) -> str:
    """Return the word after the fence of a block."""
    return block.info.strip(" {.").lower().partition(" ")[0]


def _strip_common_folder(files: Mapping[str, str], brief: WriteBrief) -> dict[str, str]:
    """Return the files without a folder that the model put around all of them."""
    wanted = next((path for path in brief.modules if path not in files), brief.module)
    around = [path.removesuffix(wanted) for path in files if path.endswith(f"/{wanted}")]
    if len(around) != 1 or not all(path.startswith(around[0]) for path in files):
        return dict(files)
    return {path.removeprefix(around[0]): text for path, text in files.items()}


def _as_package(module: str) -> str:
    return f"{module.removesuffix('.py')}/__init__.py"


def _names_in(text: str) -> frozenset[str]:
    return top_level_names(text)


def _imported_by(text: str, blocks: Sequence[CodeBlock], brief: WriteBrief) -> dict[str, str]:
    """Return the other files of a reply that the module imports."""
    others = {
        path: code
        for path, code in _named_files(blocks).items()
        if path != brief.module and is_valid_python(code)
    }
    loaded = loaded_files({**others, brief.module: text}, [brief.module])
    return {path: code for path, code in others.items() if path in loaded}
