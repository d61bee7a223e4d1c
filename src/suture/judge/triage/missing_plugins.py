"""Plugins of pytest that tests need and that are missing: they bring fixtures, marks, ways to run a test."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from suture.project.workspace import is_test_file, text_of

FIXTURE_RE = re.compile(r"^FixtureLookupError: \('(?P<name>\w+)', <")
MARK_RE = re.compile(r"^(?:Failed: )?'(?P<name>\w+)' not found in `markers` configuration option")
ASYNC_RE = re.compile(r"^Failed: async def functions are not natively supported")
MADE_RE = re.compile(
    r"fixture\b[^\n]*\n(?:(?!\s*(?:async )?def )[^\n]*\n){0,8}\s*(?:async )?def (?P<name>\w+)"
)
"""A function below what makes it a fixture."""
INSTALL = "install it where the test command's python looks"


def missing_plugin(exception: str, files: Mapping[str, bytes]) -> tuple[str, str] | None:
    """Why a test cannot run without a plugin, and what to do about it; `None` for any other failure.

    Args:
        exception: Type and message, as in a counterexample.
        files: The project's files, path -> content: it may itself be what brings the fixture or the mark.
    """
    if ASYNC_RE.match(exception):
        why = "it is an `async def`, and no pytest plugin that is installed runs it"
        return (
            why,
            "install the one that it is written for, such as pytest-asyncio, or set it up for this test",
        )
    if match := FIXTURE_RE.match(exception):
        name = match["name"]
        why = f"nothing brings the fixture {name!r}: the pytest plugin that does is not installed"
        return None if _is_own_fixture(name, files) else (why, INSTALL)
    if match := MARK_RE.match(exception):
        name = match["name"]
        why = f"nothing registers the mark {name!r}: the pytest plugin that does is not installed"
        own = any(re.search(rf"['\"]{name}\b", text) for text in _code(files))
        return None if own else (why, f"{INSTALL}, or name the mark among pytest's `markers`")
    return None


def is_of_plugin(exception: str) -> bool:
    """Whether an exception tells of something that a plugin brings.

    Args:
        exception: As for `missing_plugin`.
    """
    return any(told.match(exception) for told in (FIXTURE_RE, MARK_RE, ASYNC_RE))


def without_test(exception: str) -> str:
    """An exception without the name of the test that wanted a fixture: equal ones are looked into once."""
    return exception.partition(" for <")[0] if FIXTURE_RE.match(exception) else exception


def _is_own_fixture(name: str, files: Mapping[str, bytes]) -> bool:
    """Whether the project itself brings it, or something of nearly that name: then its code may be wrong.

    Tests and `conftest.py` use what plugins bring, so that there only a definition counts.
    """
    if any(re.search(rf"\b{name}\b", text) for text in _code(files)):
        return True
    texts = [text_of(content) for path, content in files.items() if path.endswith(".py")]
    made = {match["name"] for text in texts for match in MADE_RE.finditer(text)}
    given = re.compile(rf"^\s*{name}\s*=|\bname\s*=\s*['\"]{name}['\"]", re.MULTILINE)
    return bool(get_close_matches(name, made, n=1, cutoff=0.8)) or any(map(given.search, texts))


def _code(files: Mapping[str, bytes]) -> Iterator[str]:
    """The texts that are no tests."""
    yield from (text_of(c) for path, c in files.items() if path.endswith(".py") and not is_test_file(path))
