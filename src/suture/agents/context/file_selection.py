"""Which files of a project the coder is shown, the likeliest at fault first.

In Python those under suspicion, then what the tests import; in other languages what the output names.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from suture.core.records import Counterexample, Language
from suture.errors import UsageError
from suture.project.languages import LANGUAGES, is_source
from suture.project.python_source.parsing import parsed
from suture.project.workspace import text_of

MAX_SHOWN_CHARS = 12_000
"""About 3,500 tokens of code; more does not help a small model."""


def suspect_files(
    files: Mapping[str, bytes],
    facts: Iterable[Counterexample],
    closed: Container[str],
    located: Sequence[str] = (),
) -> dict[str, str]:
    """The Python files most likely at fault, most likely first, as text.

    Args:
        files: The whole project as the failing candidate has it.
        facts: Its counterexamples.
        closed: Paths of files that may not be changed, and so are not shown.
        located: Files that a fault localisation points at, the most suspicious first.

    Raises:
        UsageError: There is no file that could be shown and changed.
    """
    texts = {
        path: text for path, content in files.items() if (text := _python_text(path, content)) is not None
    }
    mine = {path for path in texts if path not in closed}
    named = [path for path in (*located, *(fact.file for fact in facts)) if path in mine]
    tests = [path for path in texts if path not in mine]
    reached = _reachable(tests, texts)
    ranked = dict.fromkeys([*named, *(path for path in reached if path in mine), *sorted(mine)])
    if not ranked:
        raise UsageError(
            "no file can be mended: each is protected, or is no text in the encoding that it declares",
            remedy="save the source as UTF-8, or declare its encoding as in `# -*- coding: latin-1 -*-`",
        )
    telling = {path: texts[path] for path in ranked if not _is_blank_package(path, texts[path])}
    return _within(MAX_SHOWN_CHARS, telling or {path: texts[path] for path in ranked})


def _is_blank_package(path: str, text: str) -> bool:
    # An empty `__init__.py` is as it should be; another empty file may be the one to write.
    return PurePosixPath(path).name == "__init__.py" and not text.strip()


def _python_text(path: str, content: bytes) -> str | None:
    if not path.endswith(".py"):
        return None
    text = text_of(content)
    try:
        text.encode()
    except UnicodeEncodeError:
        return None  # bytes that are no text cannot be put into a prompt
    return text


def _within(limit: int, texts: Mapping[str, str]) -> dict[str, str]:
    """As many whole files as fit; the first always does, for a task cut in the middle is no task."""
    shown: dict[str, str] = {}
    for path, text in texts.items():
        if not shown or sum(map(len, shown.values())) + len(text) <= limit:
            shown[path] = text
    return shown


def _reachable(starts: Iterable[str], texts: Mapping[str, str]) -> list[str]:
    """Files that the starting files import, breadth first."""
    found = list(starts)
    for path in found:
        found.extend(target for target in _imports(path, texts) if target not in found)
    return found


def _imports(path: str, texts: Mapping[str, str]) -> list[str]:
    tree = parsed(texts[path])
    if tree is None:
        return []
    modules: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            package = _package(path, node.level)
            base = ".".join(part for part in (package, node.module) if part)
            modules += [base, *(f"{base}.{alias.name}".lstrip(".") for alias in node.names)]
    return [target for module in modules if (target := _file_of(module, texts))]


def _package(path: str, level: int) -> str:
    if not level:
        return ""
    parents = PurePosixPath(path).parts[:-1]
    return ".".join(parents[: len(parents) - level + 1])


def _file_of(module: str, texts: Mapping[str, str]) -> str | None:
    """The project's file of a module, whatever folder is on its path (`src/`, or the root)."""
    stem = module.replace(".", "/")
    endings = (f"{stem}.py", f"{stem}/__init__.py")
    matches = [path for path in texts for ending in endings if path == ending or path.endswith(f"/{ending}")]
    return min(matches, key=len, default=None) if stem else None


def named_files(
    files: Mapping[str, bytes], output: str, closed: Container[str], language: Language
) -> dict[str, str]:
    """The files most likely at fault, most likely first, as text; as many whole ones as a prompt should hold.

    First those that the output names with a line, then those that it or the tests name at all.

    Args:
        files: The whole project as the failing candidate has it.
        output: What the test command printed.
        closed: Paths of files that may not be changed, and so are not shown.
        language: Of the files.

    Raises:
        UsageError: There is no file that could be shown and changed.
    """
    source = {path: text_of(content) for path, content in files.items() if is_source(path, language)}
    mine = [path for path, text in source.items() if path not in closed and _is_text(text)]
    if not mine:
        raise UsageError(
            f"no {LANGUAGES[language].label} file can be mended: each is protected, or is no UTF-8"
        )
    tests = "\n".join(text for path, text in source.items() if path in closed)

    def rank(path: str) -> tuple[bool, bool, bool, bool, str]:
        named = re.search(rf"(?<![\w.-]){re.escape(path)}:\d", output) is not None
        stem = re.compile(rf"(?<![\w-]){re.escape(PurePosixPath(path).stem)}(?![\w-])")
        beside = any(
            PurePosixPath(test).parent == PurePosixPath(path).parent for test in source if test in closed
        )
        return (not named, not stem.search(output), not stem.search(tests), not beside, path)

    shown: dict[str, str] = {}
    for path in sorted(mine, key=rank):
        if not shown or sum(map(len, shown.values())) + len(source[path]) <= MAX_SHOWN_CHARS:
            shown[path] = source[path]
    return shown


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
