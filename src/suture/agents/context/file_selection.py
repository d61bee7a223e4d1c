"""Select the files of a project that the coder sees, those most likely at fault first, and cut long ones.

In Python these are the suspicious files, then those that the tests import. In other languages they are the
files that the output of the tests names.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from suture.agents import tuning
from suture.core.records import Counterexample, Language
from suture.errors import UsageError
from suture.project.languages import LANGUAGES, is_source
from suture.project.python_source.parsing import first_line, parse_module
from suture.project.python_source.statement_edits import Definition, split_lines
from suture.project.workspace import decode_text


def select_suspicious_files(
    files: Mapping[str, bytes],
    facts: Iterable[Counterexample],
    protected: Container[str],
    located: Sequence[str] = (),
) -> dict[str, str]:
    """Return the Python files most likely at fault, most likely first: path -> text.

    Args:
        protected: Paths of files that must not change, and so are not shown.
        located: Files that fault localisation points at, the most suspicious first.

    Raises:
        UsageError: There is no file that could be shown and changed.
    """
    texts = {path: decode_text(content) for path, content in files.items() if path.endswith(".py")}
    texts = {path: text for path, text in texts.items() if is_encodable(text)}
    editable = {path for path in texts if path not in protected}
    suspicious = [path for path in (*located, *(fact.file for fact in facts)) if path in editable]
    tests = [path for path in texts if path not in editable]
    imported = _find_imported_files(tests, texts)
    ranked = dict.fromkeys([*suspicious, *(path for path in imported if path in editable), *sorted(editable)])
    if not ranked:
        raise UsageError(
            "no file can be repaired: each is protected, or is not text in the encoding that it declares",
            remedy="save the source as UTF-8, or declare its encoding as in `# -*- coding: latin-1 -*-`",
        )
    # An empty `__init__.py` is complete. Any other empty file may be the one to write.
    candidates = [path for path in ranked if PurePosixPath(path).name != "__init__.py" or texts[path].strip()]
    return _take_while_fitting({path: texts[path] for path in candidates or ranked})


def is_encodable(text: str) -> bool:
    """Return whether a string can be part of a prompt: undecodable bytes cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _take_while_fitting(texts: Mapping[str, str]) -> dict[str, str]:
    """Return as many whole files as fit into `MAX_SELECTED_CHARS`; the first one in any case."""
    selected: dict[str, str] = {}
    for path, text in texts.items():
        if not selected or sum(map(len, selected.values())) + len(text) <= tuning.MAX_SELECTED_CHARS:
            selected[path] = text
    return selected


def _find_imported_files(starts: Iterable[str], texts: Mapping[str, str]) -> list[str]:
    """Return the files that the starting files import, directly or not, breadth first."""
    reached = list(starts)
    for path in reached:  # The list grows while it is read.
        reached.extend(target for target in _imports(path, texts) if target not in reached)
    return reached


def _imports(path: str, texts: Mapping[str, str]) -> list[str]:
    tree = parse_module(texts[path])
    if tree is None:
        return []
    modules: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parents = PurePosixPath(path).parts[:-1] if node.level else ()
            package = ".".join(parents[: len(parents) - node.level + 1])
            base = ".".join(part for part in (package, node.module) if part)
            modules += [base, *(f"{base}.{alias.name}".lstrip(".") for alias in node.names)]
    return [target for module in modules if (target := _find_module_file(module, texts))]


def _find_module_file(module: str, texts: Mapping[str, str]) -> str | None:
    """Return the project's file of a module, whichever folder (`src/`, or the root) is on the import path."""
    stem = module.replace(".", "/")
    endings = (f"{stem}.py", f"{stem}/__init__.py")
    matches = [path for path in texts for ending in endings if path == ending or path.endswith(f"/{ending}")]
    return min(matches, key=len, default=None) if stem else None


def select_named_files(
    files: Mapping[str, bytes], output: str, protected: Container[str], language: Language
) -> dict[str, str]:
    """Return the files most likely at fault, most likely first: path -> text.

    Files that the output names with a line number come first, then those that the output or the tests
    mention.

    Args:
        output: What the test command printed, or a bug report.
        protected: Paths of files that must not change, and so are not shown.

    Raises:
        UsageError: There is no file that could be shown and changed.
    """
    source = {path: decode_text(content) for path, content in files.items() if is_source(path, language)}
    editable = [path for path, text in source.items() if path not in protected and is_encodable(text)]
    if not editable:
        raise UsageError(
            f"no {LANGUAGES[language].label} file can be repaired: each is protected, or is not UTF-8"
        )
    tests = {path: text for path, text in source.items() if path in protected}
    test_folders = {PurePosixPath(path).parent for path in tests}
    test_text = "\n".join(tests.values())

    def rank(path: str) -> tuple[bool, bool, bool, bool, str]:
        has_line_in_output = re.search(rf"(?<![\w.-]){re.escape(path)}:\d", output) is not None
        stem = re.compile(rf"(?<![\w-]){re.escape(PurePosixPath(path).stem)}(?![\w-])")
        is_beside_test = PurePosixPath(path).parent in test_folders
        return (
            not has_line_in_output,
            not stem.search(output),
            not stem.search(test_text),
            not is_beside_test,
            path,
        )

    return _take_while_fitting({path: source[path] for path in sorted(editable, key=rank)})


def make_excerpt(text: str, suspicious: Sequence[int]) -> str | None:
    """Return the suspicious parts of a long file; a comment line stands for each part that is left out.

    It is `None` if the file is short, or has no suspicious line: such a file is shown whole.

    Args:
        suspicious: Suspicious lines, counted from 1, the most suspicious first.
    """
    tree = parse_module(text) if len(text) > tuning.MAX_WHOLE_FILE_CHARS else None
    if tree is None:
        return None
    lines = split_lines(text)
    selected: set[int] = set()
    for line in suspicious:
        part = _lines_around(tree, line, lines)
        if part and (not selected or _size(selected | part, lines) <= tuning.MAX_EXCERPT_CHARS):
            selected |= part
    if not selected:
        return None
    imports = {n for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom) for n in _lines(node)}
    return "".join(_render_lines(sorted(selected | imports), lines))


def _lines_around(tree: ast.Module, line: int, lines: Sequence[str]) -> set[int]:
    """Return the numbers of the lines to show for a suspicious line: its function, or its surroundings."""
    definitions = _definitions_around(tree.body, line)
    function = next((node for node in definitions if not isinstance(node, ast.ClassDef)), None)
    if function is not None:
        classes = definitions[: definitions.index(function)]
        function_lines = _header_lines(classes) | set(_lines(function))
        if _size(function_lines, lines) <= tuning.MAX_EXCERPT_FUNCTION_CHARS:
            return function_lines
    start = max(1, line - tuning.SURROUNDING_LINES)
    near = set(range(start, min(line + tuning.SURROUNDING_LINES, len(lines)) + 1))
    return near | _header_lines(definitions) if line in near else set()


def _definitions_around(body: Iterable[ast.stmt], line: int) -> list[Definition]:
    """Return the classes and functions that hold a line, the outermost first."""
    for node in body:
        if isinstance(node, Definition) and line in _lines(node):
            return [node, *_definitions_around(node.body, line)]
    return []


def _header_lines(definitions: Iterable[Definition]) -> set[int]:
    return {n for node in definitions for n in range(first_line(node), first_line(node.body[0]))}


def _lines(node: ast.stmt) -> range:
    return range(first_line(node), (node.end_lineno or node.lineno) + 1)


def _size(numbers: Iterable[int], lines: Sequence[str]) -> int:
    return sum(len(lines[number - 1]) for number in numbers)


def _render_lines(numbers: Sequence[int], lines: Sequence[str]) -> Iterator[str]:
    previous = 0
    for number in [*numbers, len(lines) + 1]:
        next_line = lines[number - 1] if number <= len(lines) else ""
        if number > previous + 1:
            margin = next_line[: len(next_line) - len(next_line.lstrip())]
            yield f"{margin}# ... {number - previous - 1} lines are not shown here\n"
        yield next_line
        previous = number
