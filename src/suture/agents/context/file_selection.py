"""Select the files of a project that the coder sees, those most likely at fault first.

In Python these are the suspicious files, then those that the tests import. In other languages they are the
files that the output of the tests names.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from suture.agents.tuning import MAX_SELECTED_CHARS
from suture.core.records import Counterexample, Language
from suture.errors import UsageError
from suture.project.languages import LANGUAGES, is_source
from suture.project.python_source.parsing import parse_module
from suture.project.workspace import decode_text


def select_suspicious_files(
    files: Mapping[str, bytes],
    facts: Iterable[Counterexample],
    closed: Container[str],
    located: Sequence[str] = (),
) -> dict[str, str]:
    """Return the Python files most likely at fault, most likely first: path -> text.

    Args:
        files: The whole project with the failing candidate's changes.
        facts: The counterexamples of the candidate.
        closed: Paths of files that must not change, and so are not shown.
        located: Files that fault localisation points at, the most suspicious first.

    Raises:
        UsageError: There is no file that could be shown and changed.
    """
    texts = {
        path: text for path, content in files.items() if (text := _python_text(path, content)) is not None
    }
    editable = {path for path in texts if path not in closed}
    named = [path for path in (*located, *(fact.file for fact in facts)) if path in editable]
    tests = [path for path in texts if path not in editable]
    imported = _find_imported_files(tests, texts)
    ranked = dict.fromkeys([*named, *(path for path in imported if path in editable), *sorted(editable)])
    if not ranked:
        raise UsageError(
            "no file can be repaired: each is protected, or is not text in the encoding that it declares",
            remedy="save the source as UTF-8, or declare its encoding as in `# -*- coding: latin-1 -*-`",
        )
    with_content = {path: texts[path] for path in ranked if not _is_empty_package(path, texts[path])}
    return _take_while_fitting(MAX_SELECTED_CHARS, with_content or {path: texts[path] for path in ranked})


def _is_empty_package(path: str, text: str) -> bool:
    # An empty `__init__.py` is as it should be. Another empty file may be the one to write.
    return PurePosixPath(path).name == "__init__.py" and not text.strip()


def _python_text(path: str, content: bytes) -> str | None:
    if not path.endswith(".py"):
        return None
    text = decode_text(content)
    return text if is_encodable(text) else None


def is_encodable(text: str) -> bool:
    """Return whether a text can be part of a prompt: bytes that are not text cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _take_while_fitting(limit: int, texts: Mapping[str, str]) -> dict[str, str]:
    """Return as many whole files as fit into `limit` characters; the first one in any case."""
    shown: dict[str, str] = {}
    for path, text in texts.items():
        if not shown or sum(map(len, shown.values())) + len(text) <= limit:
            shown[path] = text
    return shown


def _find_imported_files(starts: Iterable[str], texts: Mapping[str, str]) -> list[str]:
    """Return the files that the starting files import, directly or not, breadth first."""
    found = list(starts)
    for path in found:
        found.extend(target for target in _imports(path, texts) if target not in found)
    return found


def _imports(path: str, texts: Mapping[str, str]) -> list[str]:
    tree = parse_module(texts[path])
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
    return [target for module in modules if (target := _find_module_file(module, texts))]


def _package(path: str, level: int) -> str:
    if not level:
        return ""
    parents = PurePosixPath(path).parts[:-1]
    return ".".join(parents[: len(parents) - level + 1])


def _find_module_file(module: str, texts: Mapping[str, str]) -> str | None:
    """Return the project's file of a module, whichever folder (`src/`, or the root) is on the import path."""
    stem = module.replace(".", "/")
    endings = (f"{stem}.py", f"{stem}/__init__.py")
    matches = [path for path in texts for ending in endings if path == ending or path.endswith(f"/{ending}")]
    return min(matches, key=len, default=None) if stem else None


def select_named_files(
    files: Mapping[str, bytes], output: str, closed: Container[str], language: Language
) -> dict[str, str]:
    """Return the files most likely at fault, most likely first: path -> text.

    Files that the output names with a line number come first, then those that the output or the tests
    mention.

    Args:
        files: The whole project with the failing candidate's changes.
        output: What the test command printed.
        closed: Paths of files that must not change, and so are not shown.
        language: The language of the files.

    Raises:
        UsageError: There is no file that could be shown and changed.
    """
    source = {path: decode_text(content) for path, content in files.items() if is_source(path, language)}
    editable = [path for path, text in source.items() if path not in closed and is_encodable(text)]
    if not editable:
        raise UsageError(
            f"no {LANGUAGES[language].label} file can be repaired: each is protected, or is not UTF-8"
        )
    tests = "\n".join(text for path, text in source.items() if path in closed)

    def rank(path: str) -> tuple[bool, bool, bool, bool, str]:
        named = re.search(rf"(?<![\w.-]){re.escape(path)}:\d", output) is not None
        stem = re.compile(rf"(?<![\w-]){re.escape(PurePosixPath(path).stem)}(?![\w-])")
        beside = any(
            PurePosixPath(test).parent == PurePosixPath(path).parent for test in source if test in closed
        )
        return (not named, not stem.search(output), not stem.search(tests), not beside, path)

    ranked = sorted(editable, key=rank)
    return _take_while_fitting(MAX_SELECTED_CHARS, {path: source[path] for path in ranked})
