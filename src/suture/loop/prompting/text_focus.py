"""Which files of a project that is not in Python the coder is shown: what the output names first."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from pathlib import PurePosixPath

from suture.errors import UsageError
from suture.languages import LANGUAGES, is_source
from suture.loop.prompting.file_focus import MAX_SHOWN_CHARS
from suture.records import Language
from suture.workspace import text_of


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
