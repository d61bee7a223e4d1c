"""A reply as the files that it holds, and the names of those that nothing was made of."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from suture.agents.coding.coder import WriteBrief
from suture.agents.coding.writing import CALLED_RIGHT, CALLED_WRONG, written_module
from suture.agents.replies.edit_blocks import may_create
from suture.agents.replies.fenced import Block
from suture.errors import MalformedReply
from suture.project.python_source.inventory import covers, promised_names
from suture.project.python_source.module_paths import loaded_files
from suture.project.python_source.python_code import parses

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


def _is_called_wrong(block: Block) -> bool:
    return bool(CALLED_WRONG.search(block.before) and not CALLED_RIGHT.search(block.before))


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
