"""A file of tests that a user gives: read, bounded, and told apart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from posixpath import basename

from suture.core.safe_files import read_plain
from suture.errors import UsageError

MOST_TEST_BYTES = 4 * 2**20
"""Of the file of tests that `suture run` is given, and of its `conftest.py`."""
LONGEST_TEST_NAME = 100
MAY_HOLD_TESTS = ("tests.py", "test.py")
"""Names under which some write their tests, and some write code that helps others to test."""
USES_TESTS = re.compile(rb"^(?:from|import) (?:unittest|pytest|django\.test)\b", re.MULTILINE)


def read_test(test: Path) -> str:
    """The text of a file of tests, with plain ends of lines.

    Raises:
        UsageError: It cannot be read.
    """
    content = read_bounded(test)
    if content is None:
        raise UsageError(
            f"the test file {str(test)!r} cannot be read: there is no regular file",
            remedy="name a file of tests",
        )
    try:
        return content.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as fault:
        raise UsageError(
            f"the test file {str(test)!r} cannot be read: {fault}", remedy="save it as text in UTF-8"
        ) from fault


def read_bounded(path: Path) -> bytes | None:
    """A file of tests, or what configures them; `None` where there is no regular file.

    Raises:
        UsageError: It cannot be read, or is longer than any such file.
    """
    try:
        content = read_plain(path, MOST_TEST_BYTES, follow=True)
    except OSError as fault:
        raise UsageError(f"{str(path)!r} cannot be read: {fault}", remedy="look at its rights") from fault
    if content is not None and len(content) > MOST_TEST_BYTES:
        raise UsageError(f"{str(path)!r} holds more than {MOST_TEST_BYTES // 2**20} MiB")
    return content


def is_pytest_source(source: str) -> bool:
    """Whether a text holds a test that pytest collects."""
    return bool(re.search(r"^\s*(async\s+)?def test|^class Test", source, re.MULTILINE))


def tests_by_content(files: Mapping[str, bytes]) -> Iterator[str]:
    """Files of tests that their names alone do not show.

    Args:
        files: A project.
    """
    for path, content in files.items():
        if basename(path) in MAY_HOLD_TESTS and USES_TESTS.search(content):
            yield path
