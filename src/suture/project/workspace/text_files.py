"""Between a file's bytes and the text that a model reads and writes, without changing the file's habits."""

from __future__ import annotations

import codecs
import posixpath
import tokenize
from collections.abc import Mapping
from io import BytesIO

from suture.errors import UsageError
from suture.project.workspace.line_matching import common_ranges


def text_of(content: bytes) -> str:
    """A file as text: no byte order mark, lines end with a line feed, undecodable bytes as surrogates.

    The encoding is UTF-8 unless the file is not and declares another one as Python source does (PEP 263).
    """
    return content.decode(_encoding_of(content), "surrogateescape").replace("\r\n", "\n")


def overlay_candidate(files: Mapping[str, bytes], candidate: Mapping[str, str]) -> dict[str, bytes]:
    """A candidate's files over the project's own.

    A file keeps its encoding, its byte order mark, its line endings (line by line where they are mixed) and
    whether it ends with a newline; text that says what the file says leaves it as it is, to the byte.

    Args:
        files: Path -> content.
        candidate: Path -> text, such as `Candidate.files`.

    Raises:
        UsageError: A path leaves the project.
    """
    result = dict(files)
    for name, text in candidate.items():
        path = posixpath.normpath(name)
        if posixpath.isabs(path) or path in (".", "..") or path.startswith("../") or "\0" in path:
            raise UsageError(f"the path {name!r} is not inside the project")
        result[path] = _bytes_of(text, files.get(path, b""))
    return result


def _bytes_of(text: str, original: bytes) -> bytes:
    if original and text == text_of(original):
        return original
    text = text.replace("\r\n", "\n")
    before = original.decode(_encoding_of(original), "surrogateescape")
    if before and not before.endswith("\n"):
        text = text.removesuffix("\n")
    elif text and not text.endswith("\n"):
        text += "\n"
    return _encoded(_with_line_endings(text, before), _encoding_of(original))


def _encoding_of(content: bytes) -> str:
    if content.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    try:
        content.decode("utf-8")
        return "utf-8"
    except UnicodeDecodeError:
        pass
    try:
        declared, _ = tokenize.detect_encoding(BytesIO(content).readline)
        content.decode(declared)
    except (SyntaxError, UnicodeDecodeError, LookupError):
        return "utf-8"
    return declared


def _encoded(text: str, encoding: str) -> bytes:
    try:
        return text.encode(encoding, "surrogateescape")
    except UnicodeEncodeError:
        # A character that the file's encoding lacks, or half a surrogate pair from a model: in a Python
        # string the escape means the same character.
        return text.encode(encoding, "backslashreplace")


def _with_line_endings(text: str, before: str) -> str:
    windows = before.count("\r\n")
    if windows == 0:
        return text
    usual = "\r\n" if 2 * windows >= before.count("\n") else "\n"
    lines = text.split("\n")
    endings = [usual] * (len(lines) - 1)
    if windows < before.count("\n"):
        old_lines = before.split("\n")
        plain = [line.removesuffix("\r") for line in old_lines]
        for start, end, other, _ in common_ranges(plain, lines):
            for line in range(start, end):
                at = other + line - start
                if at < len(endings) and line < len(old_lines) - 1:
                    endings[at] = "\r\n" if old_lines[line].endswith("\r") else "\n"
    return "".join(line + ending for line, ending in zip(lines, [*endings, ""], strict=True))
