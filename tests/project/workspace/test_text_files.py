"""Text of files and candidates: encodings, line ends and paths are preserved."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suture.errors import UsageError
from suture.project.workspace import decode_text, overlay_candidate

pieces = st.lists(
    st.sampled_from([b"a", b"b", b"\n", b"\r\n", b"\r", b"\xff", b"\xef\xbb\xbf", b"\xc3\xa9", b" "])
)


def overlay(original: bytes, text: str) -> bytes:
    return overlay_candidate({"f": original}, {"f": text})["f"]


@given(pieces.map(b"".join))
def test_unchanged_text_leaves_the_bytes_unchanged(content: bytes) -> None:
    assert overlay(content, decode_text(content)) == content


@pytest.mark.parametrize(
    ("original", "text", "result"),
    [
        (b"x\r\ny\r\n", "x\nz\n", b"x\r\nz\r\n"),
        (b"x\r\ny\r\n", "x\r\nz\r\n", b"x\r\nz\r\n"),
        (b"x\ny\n", "x\r\nz\r\n", b"x\nz\n"),
        (b"\xef\xbb\xbfx\n", "y\n", b"\xef\xbb\xbfy\n"),
        (b"\xef\xbb\xbfx\r\n", "y\nz\n", b"\xef\xbb\xbfy\r\nz\r\n"),
        (b"x", "y\n", b"y"),
        (b"x\n", "y", b"y\n"),
        (b"x\r\ny", "x\nz\n", b"x\r\nz"),
        (b"", "y", b"y\n"),
        (b"x\n", "", b""),
        (b"a\r\nb\nc\r\n", "a\nb\nnew\nc\n", b"a\r\nb\nnew\r\nc\r\n"),
        (
            b"# coding: latin-1\nx = '\xe9'\n",
            "# coding: latin-1\ny = 'é'\n",
            b"# coding: latin-1\ny = '\xe9'\n",
        ),
        (
            b"# coding: latin-1\nx = '\xe9'\n",
            "# coding: latin-1\ny = '→'\n",
            b"# coding: latin-1\ny = '\\u2192'\n",
        ),
        (b"caf\xe9\nx\n", "caf\udce9\ny\n", b"caf\xe9\ny\n"),
        (b"x\n", "'\ud83d'\n", b"'\\ud83d'\n"),
    ],
)
def test_a_changed_file_keeps_its_encoding_and_line_ends(original: bytes, text: str, result: bytes) -> None:
    assert overlay(original, text) == result


def test_decoded_text_has_line_feeds_and_no_byte_order_mark() -> None:
    assert decode_text(b"\xef\xbb\xbfx\r\n\xc3\xa9\r\n") == "x\né\n"
    assert decode_text(b"# coding: latin-1\n'\xe9'\n") == "# coding: latin-1\n'é'\n"
    assert decode_text(b"# coding: nonsense\n\xe9") == "# coding: nonsense\n\udce9"


def test_files_that_the_candidate_omits_are_kept() -> None:
    files = {"a": b"\x00\xff", "b": b"1\n"}
    assert overlay_candidate(files, {"b": "2\n", "new/c.py": "3"}) == {
        "a": b"\x00\xff",
        "b": b"2\n",
        "new/c.py": b"3\n",
    }
    assert files == {"a": b"\x00\xff", "b": b"1\n"}


def test_a_path_is_normalised() -> None:
    assert overlay_candidate({"a.py": b"1\n"}, {"./pkg/../a.py": "2\n"}) == {"a.py": b"2\n"}


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "..", ".", "", "a\0b"])
def test_a_path_that_leaves_the_project_is_refused(path: str) -> None:
    with pytest.raises(UsageError, match="not inside the project"):
        overlay_candidate({}, {path: "x"})
