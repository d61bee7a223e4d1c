"""Which block of a reply is the module that was asked for, and what must stand with it."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from suture.agents.replies.edit_blocks import may_create
from suture.agents.replies.fenced_blocks import Block
from suture.agents.roles.coder import WriteBrief
from suture.errors import MalformedReply
from suture.project.python_source.imports import loaded_files
from suture.project.python_source.parsing import parsed
from suture.project.python_source.splicing import covers, promised_names
from suture.project.python_source.statements import (
    Definition,
    defined_names,
    indented,
    names_of,
    only_imports,
    parses,
    put_in_front,
    read_names,
    without_demo,
)

CALLED_WRONG = re.compile(r"\b(?:wrong|incorrect\w*|bugg?y?|broken|mistaken?|naive)\b", re.IGNORECASE)
CALLED_RIGHT = re.compile(r"\b(?:fix\w*|correct|corrected|instead|right)\b", re.IGNORECASE)
"""Words in front of a block by which a reply shows bad code, for contrast; and those that take that back."""


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


def with_rest_of_stub(code: str, stub: str) -> str:
    """Put in front of `code` the imports and helpers that the stub gives and the code leaves out.

    Args:
        code: A module that the model wrote.
        stub: Python with a signature and a docstring, as in the task's statement; or any other text.
    """
    tree, wanted = _wanted(stub)
    if tree is None:
        return code
    have = defined_names(code)
    given = [n for n in tree.body if n is not wanted and (names := names_of(n)) and not names & have]
    missing = "\n".join(ast.get_source_segment(stub, node) or "" for node in given)
    return put_in_front(code, missing) if missing else code


def body_under_stub(code: str, stub: str) -> str | None:
    """Put the body of the stub's last function under its signature.

    Returns:
        The module; `None` where there is no stub, or the code does not look like a body: indented, or with a
        `return` that belongs to no function.
    """
    tree, wanted = _wanted(stub)
    alone = parsed(textwrap.dedent(code))
    looks_like_body = code[:1].isspace() or (alone is not None and any(_loose_returns(alone)))
    if tree is None or isinstance(wanted, ast.ClassDef) or not looks_like_body:
        return None
    body = textwrap.dedent(code) if alone is not None else code
    joined = f"{stub.rstrip()}\n{indented(body, '    ')}"
    return joined if parses(joined) else None


def _wanted(stub: str) -> tuple[ast.Module | None, ast.stmt | None]:
    tree = parsed(stub)
    definitions = [node for node in tree.body if isinstance(node, Definition)] if tree else []
    return (tree, definitions[-1]) if definitions else (None, None)


def _loose_returns(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Return | ast.Yield):
            yield child
        elif not isinstance(child, Definition | ast.Lambda):
            yield from _loose_returns(child)


SHELL = frozenset(
    ("bash", "cmd", "console", "output", "powershell", "sh", "shell", "stdout", "terminal", "zsh")
)
"""Labels of blocks that show how a file is used, and are none."""


def written_files(blocks: Sequence[Block], data: Sequence[Block], brief: WriteBrief) -> dict[str, str]:
    """The files of a reply, path -> text.

    Args:
        blocks: Its blocks of code.
        data: Its other blocks, such as JSON.
        brief: What was asked for.

    Raises:
        MalformedReply: It lacks what must be there, or a file of it is no Python.
    """
    if not brief.several:
        text = written_module(blocks, brief)
        return {brief.module: text, **_imported_by(text, blocks, brief)}
    files = _under_root(_named(blocks) | _named([block for block in data if _is_data(block)]), brief)
    unnamed = [block for block in blocks if block.path is None]
    if not files.keys() & {brief.module, _as_package(brief.module)} and (unnamed or not files):
        files = {brief.module: written_module(unnamed or blocks, brief), **files}
    missing = [path for path in brief.beside if not files.keys() & {path, _as_package(path)}]
    if missing:
        raise MalformedReply(f"the reply holds no {', '.join(missing)}")
    broken = [path for path, text in files.items() if path.endswith(".py") and not parses(text)]
    if broken:
        raise MalformedReply(f"the reply's {', '.join(broken)} is no Python")
    entry = brief.entry_point
    if entry and brief.name_is_certain and not any(entry in _names_in(text) for text in files.values()):
        raise MalformedReply(f"the reply does not define {entry!r}")
    return files


def surplus_of(
    blocks: Iterable[Block], written: Mapping[str, str], known: Collection[str] = ()
) -> tuple[str, ...]:
    """The files of a reply that nothing was made of, by the names that it gives them; sorted.

    Args:
        blocks: All of its blocks.
        written: The files that were made of it, path -> text.
        known: Paths of files that were shown to the model: it may have quoted them.
    """
    paths = (*written, *known)
    names = frozenset[str]().union(*map(_names_in, written.values()))
    found = set()
    for block in blocks:
        path = block.path
        if path is None or not block.code.strip() or label_of(block) in SHELL or _is_called_wrong(block):
            continue
        is_there = any(path == one or one.endswith(f"/{path}") or path.endswith(f"/{one}") for one in paths)
        held = _names_in(block.code)
        if not is_there and not (held and held <= names):
            found.add(path)
    return tuple(sorted(found))


def _named(blocks: Iterable[Block]) -> dict[str, str]:
    """The blocks that say which file they are; of two for one the later, where it holds all of the other."""
    files: dict[str, str] = {}
    for block in blocks:
        path = block.path
        if path is None or _is_called_wrong(block) or not may_create(path, ()) or not block.code.strip():
            continue
        before = files.get(path)
        if before is None or covers(block.code, before) or not parses(before):
            files[path] = block.code
    return files


def _is_data(block: Block) -> bool:
    return not (block.path or ".py").endswith(".py") and label_of(block) not in SHELL


def label_of(block: Block) -> str:
    """The word behind the fence of a block."""
    return block.info.strip(" {.").lower().partition(" ")[0]


def _under_root(files: Mapping[str, str], brief: WriteBrief) -> dict[str, str]:
    """The files without the folder that a model put around all of them."""
    wanted = next((path for path in brief.modules if path not in files), brief.module)
    around = [path.removesuffix(wanted) for path in files if path.endswith(f"/{wanted}")]
    if len(around) != 1 or not all(path.startswith(around[0]) for path in files):
        return dict(files)
    return {path.removeprefix(around[0]): text for path, text in files.items()}


def _as_package(module: str) -> str:
    return f"{module.removesuffix('.py')}/__init__.py"


def _names_in(text: str) -> frozenset[str]:
    return promised_names(text)


def _imported_by(text: str, blocks: Sequence[Block], brief: WriteBrief) -> dict[str, str]:
    """The other files of a reply that the module cannot be imported without."""
    others = {path: code for path, code in _named(blocks).items() if path != brief.module and parses(code)}
    loaded = loaded_files({**others, brief.module: text}, [brief.module])
    return {path: code for path, code in others.items() if path in loaded}
