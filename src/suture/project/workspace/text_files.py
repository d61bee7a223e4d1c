"""Convert between a file's bytes and the text that a model reads and writes, and preserve the file's format."""

from __future__ import annotations

import codecs
import posixpath
import tokenize
from collections.abc import Collection, Mapping
from io import BytesIO
from pathlib import PurePosixPath

from suture.errors import UsageError
from suture.project.workspace.line_matching import common_ranges


def decode_text(content: bytes) -> str:
    """Return a file as text, without a byte order mark and with line feeds as line ends.

    The encoding is UTF-8. Only a file that is not valid UTF-8 may declare another one as Python source does
    (PEP 263). Undecodable bytes become surrogates.
    """
    return content.decode(_detect_encoding(content), "surrogateescape").replace("\r\n", "\n")


def overlay_candidate(files: Mapping[str, bytes], candidate: Mapping[str, str]) -> dict[str, bytes]:
    """Return the project's files with a candidate's files in place of their originals.

    A file keeps its encoding, its byte order mark, its line endings (line by line, if they are mixed) and the
    presence of a final newline. A file whose content does not change keeps all its bytes.

    Args:
        files: Path -> content.
        candidate: Path -> text, such as `Candidate.files`.

    Raises:
        UsageError: A path is outside of the project.
    """
    result = dict(files)
    for name, text in candidate.items():
        path = posixpath.normpath(name)
        if leaves_project(path):
            raise UsageError(f"the path {name!r} is not inside the project")
        result[path] = _encode_like(text, files.get(path, b""))
    return result


def leaves_project(path: str) -> bool:
    """Return whether a normalised path names nothing inside of the folder to which it is relative."""
    return posixpath.isabs(path) or path in (".", "..") or path.startswith("../") or "\0" in path


def _encode_like(text: str, original: bytes) -> bytes:
    """Return a string in the format of an original file: its encoding, line endings and final newline."""
    if original and text == decode_text(original):
        return original
    text = text.replace("\r\n", "\n")
    original_text = original.decode(_detect_encoding(original), "surrogateescape")
    if original_text and not original_text.endswith("\n"):
        text = text.removesuffix("\n")
    elif text and not text.endswith("\n"):
        text += "\n"
    return _encode(restore_line_endings(text, original_text), _detect_encoding(original))


def _detect_encoding(content: bytes) -> str:
    """Return the encoding of a file; UTF-8 if its content fits no declared one."""
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


def _encode(text: str, encoding: str) -> bytes:
    try:
        return text.encode(encoding, "surrogateescape")
    except UnicodeEncodeError:
        # The file's encoding lacks a character, or a model wrote a lone surrogate. In a Python string, the
        # escape means the same character.
        return text.encode(encoding, "backslashreplace")


def restore_line_endings(text: str, original_text: str) -> str:
    """Return a string with the line endings of an original: unchanged lines keep theirs, others get the commonest."""
    crlf_count = original_text.count("\r\n")
    if crlf_count == 0:
        return text
    usual_ending = "\r\n" if 2 * crlf_count >= original_text.count("\n") else "\n"
    lines = text.split("\n")
    endings = [usual_ending] * (len(lines) - 1)
    if crlf_count < original_text.count("\n"):
        old_lines = original_text.split("\n")
        old_texts = [line.removesuffix("\r") for line in old_lines]
        for start, end, new_start, _ in common_ranges(old_texts, lines):
            for line in range(start, end):
                index = new_start + line - start
                if index < len(endings) and line < len(old_lines) - 1:
                    endings[index] = "\r\n" if old_lines[line].endswith("\r") else "\n"
    return "".join(line + ending for line, ending in zip(lines, [*endings, ""], strict=True))


def is_creatable(path: str, taken: Collection[str]) -> bool:
    """Return whether a path is free, inside the project, and not hidden."""
    parts = PurePosixPath(path).parts
    is_plain = bool(parts) and "/".join(parts) == path and not any(part.startswith(".") for part in parts)
    folders = {str(parent) for parent in PurePosixPath(path).parents}
    return is_plain and not any(
        taken_path == path or taken_path in folders or taken_path.startswith(f"{path}/")
        for taken_path in taken
    )
