"""Read the test files that a user gives, and recognise test files by their content."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from posixpath import basename

from suture.core.safe_files import read_regular_file
from suture.errors import UsageError
from suture.loop.tuning import MAX_TEST_FILE_BYTES

AMBIGUOUS_TEST_NAMES = ("tests.py", "test.py")
"""File names that some projects use for tests and others for code that helps with testing."""
TEST_IMPORT_RE = re.compile(rb"^(?:from|import) (?:unittest|pytest|django\.test)\b", re.MULTILINE)


def read_test_file(path: Path) -> str:
    """Return the text of a test file, with Unix line endings.

    Raises:
        UsageError: The file cannot be read.
    """
    content = read_bounded_file(path)
    if content is None:
        raise UsageError(
            f"the test file {str(path)!r} cannot be read: there is no regular file",
            remedy="name a file of tests",
        )
    try:
        return content.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as fault:
        raise UsageError(
            f"the test file {str(path)!r} cannot be read: {fault}", remedy="save it as text in UTF-8"
        ) from fault


def read_bounded_file(path: Path) -> bytes | None:
    """Return the content of a file that the user named; `None` if it is not a regular file.

    Raises:
        UsageError: The file cannot be read, or is larger than `MAX_TEST_FILE_BYTES`.
    """
    try:
        content = read_regular_file(path, MAX_TEST_FILE_BYTES, follow=True)
    except OSError as fault:
        raise UsageError(
            f"{str(path)!r} cannot be read: {fault.strerror}", remedy="check its permissions"
        ) from fault
    if content is not None and len(content) > MAX_TEST_FILE_BYTES:
        raise UsageError(f"{str(path)!r} holds more than {MAX_TEST_FILE_BYTES // 2**20} MiB")
    return content


def is_pytest_source(source: str) -> bool:
    """Return whether pytest would collect a test from this source."""
    return bool(re.search(r"^\s*(async\s+)?def test|^class Test", source, re.MULTILINE))


def find_tests_by_content(files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield the paths of a project's test files that cannot be recognised by their names alone."""
    for path, content in files.items():
        if basename(path) in AMBIGUOUS_TEST_NAMES and TEST_IMPORT_RE.search(content):
            yield path
