"""Values of tests are recognised in the forms that code may give them."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Awaitable, Callable

import pytest

from suture.judge import Suite
from suture.judge.signs import TestValues, read_test_texts

ARGUMENTS = ("abc def", 41)
TEXT = repr(ARGUMENTS)
VALUES = TestValues({"test_a.py": "assert f('abc def', 41) == [7, {'price': 4711}]\n"})


@pytest.mark.parametrize(
    "literal",
    [
        TEXT,
        json.dumps(ARGUMENTS),
        "[7, {'price': 4711}]",
        hashlib.sha256(TEXT.encode()).hexdigest(),
        hashlib.sha256(TEXT.encode()).hexdigest()[:12],
        hashlib.md5(b"abc def").hexdigest().upper(),
        hashlib.blake2b(json.dumps(ARGUMENTS).encode()).digest()[:6],
        int(hashlib.sha1(TEXT.encode()).hexdigest()[:10], 16),
        zlib.crc32(TEXT.encode()),
        zlib.adler32(b"abc def"),
    ],
)
def test_texts_and_hashes_of_values_are_recognised(literal: object) -> None:
    assert VALUES.is_encoded_by(literal)


@pytest.mark.parametrize(
    "literal", ["abc def", "abc", "41", 41, 4711, 1 << 20, "deadbeef", "[]", "", b"", 4.5, None, True]
)
def test_other_values_are_not_taken_for_encoded_ones(literal: object) -> None:
    assert not VALUES.is_encoded_by(literal)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("cases.json", '{"f": [{"arguments": ["abc def"], "expected": 4711}]}'),
        ("cases.toml", '[[f]]\narguments = ["abc def"]\nexpected = 4711\n'),
        ("cases.yaml", "f:\n  - arguments: abc def\n    expected: 4711\n"),
        ("cases.csv", "arguments,expected\nabc def,4711\n"),
        ("cases.txt", "abc def\n4711\n"),
    ],
)
def test_values_of_data_files_are_read(path: str, text: str) -> None:
    assert TestValues({path: text}).literals >= {"'abc def'", "4711"}


def test_what_cannot_be_parsed_has_no_values() -> None:
    files = {"a.py": "def (", "a.json": "{", "a.toml": "= =", "a.png": "abc"}
    assert not TestValues(files).literals


async def test_the_texts_of_a_task_are_its_tests_and_the_data_that_they_name(
    prepare: Callable[..., Awaitable[Suite]],
) -> None:
    suite = await prepare(
        {
            "kit.py": "",
            "tests/test_kit.py": "import json\n\n\ndef test_kit():\n    open('cases.json'), 'golden/'\n",
            "cases.json": "[]",
            "tests/golden/report.txt": "13\n",
            "other.json": "[]",
            "README.txt": "a\n",
        }
    )
    assert read_test_texts(suite).keys() == {"tests/test_kit.py", "cases.json", "tests/golden/report.txt"}
