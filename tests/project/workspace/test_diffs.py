"""Diffs that git and patch apply, forwards and backwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suture.project.workspace import unified_diff

Files = Mapping[str, bytes]


def write_files(root: Path, files: Files) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)


def read_files(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


def apply_with(before: Files, diff: str, tool: list[str]) -> dict[str, bytes]:
    """Return the files after a real tool has applied the diff to `before`."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_files(root, before)
        child = subprocess.run(
            tool,
            cwd=root,
            # Inside a repository, git would skip files that are not part of it.
            env={**os.environ, "GIT_CEILING_DIRECTORIES": str(root.parent)},
            input=diff.encode("utf-8", "surrogateescape"),
            capture_output=True,
            check=False,
        )
        assert child.returncode == 0, child.stderr.decode() + diff
        return read_files(root)


GIT = ["git", "apply", "--whitespace=nowarn", "-"]
PATCH = ["patch", "-p1", "--silent", "--binary"]

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
needs_patch = pytest.mark.skipif(shutil.which("patch") is None, reason="patch is not installed")

CASES: dict[str, tuple[Files, Files]] = {
    "a line": ({"a.py": b"x = 1\ny = 2\n"}, {"a.py": b"x = 1\ny = 3\n"}),
    "far apart": (
        {"a": b"".join(b"%d\n" % n for n in range(99))},
        {"a": b"0\n" + b"".join(b"%d\n" % n for n in range(2, 98))},
    ),
    "newline at the end goes": ({"a": b"x\n"}, {"a": b"x"}),
    "newline at the end comes": ({"a": b"x"}, {"a": b"x\n"}),
    "no newline in either": ({"a": b"x\ny"}, {"a": b"z\ny"}),
    "windows": ({"a": b"x\r\ny\r\n"}, {"a": b"x\r\nz\r\n"}),
    "to windows": ({"a": b"x\ny\n"}, {"a": b"x\r\ny\r\n"}),
    "other line ends": ({"a": b"x\x0cy\x1cz\n\xc2\x85\n\r"}, {"a": b"x\x0cy\x1cw\n\xc2\x85\n\r"}),
    "latin-1": ({"a": b"caf\xe9\nx\n"}, {"a": b"caf\xe9\ny\n"}),
    "lines that look like a diff": (
        {"a": b"--- a\n+++ b\n@@ -1 +1 @@\n"},
        {"a": b"--- a\n+++ c\n@@ -1 +1 @@\n"},
    ),
    "new file": ({"a": b"x\n"}, {"a": b"x\n", "deep/er/new.py": b"print()\n"}),
    "new file without newline": ({}, {"n": b"x"}),
    "new empty file": ({"a": b"x\n"}, {"a": b"x\n", "pkg/__init__.py": b""}),
    "deleted file": ({"a": b"x\n", "b": b"y"}, {"b": b"y"}),
    "deleted empty file": ({"a": b"", "b": b"y"}, {"b": b"y"}),
    "emptied": ({"a": b"x\ny\n"}, {"a": b""}),
    "filled": ({"a": b""}, {"a": b"x\n"}),
    "blank lines": ({"a": b"\n\n\n"}, {"a": b"\n\nx\n\n"}),
    "names": (
        {"with space.py": b"1\n", "é 你.py": b"1\n", 'quo"te.py': b"1\n", "back\\slash": b"1\n"},
        {"with space.py": b"2\n", "é 你.py": b"2\n", 'quo"te.py': b"2\n", "back\\slash": b"2\n"},
    ),
    "several": ({"a": b"1\n", "b": b"1\n", "c": b"1\n"}, {"a": b"2\n", "b": b"1\n", "d": b"1\n"}),
}


@needs_git
@pytest.mark.parametrize("case", CASES)
def test_git_applies_and_reverts_the_diff(case: str) -> None:
    before, after = CASES[case]
    assert apply_with(before, unified_diff(before, after), GIT) == after
    assert apply_with(after, unified_diff(before, after), [*GIT[:-1], "--reverse", "-"]) == before
    assert apply_with(after, unified_diff(after, before), GIT) == before


@needs_patch
@pytest.mark.parametrize(
    "case", [case for case in CASES if case != "names"]
)  # patch quotes names differently
def test_patch_applies_the_diff(case: str) -> None:
    before, after = CASES[case]
    assert apply_with(before, unified_diff(before, after), PATCH) == after


lines = st.lists(
    st.sampled_from([b"", b"a", b"b", b"-x", b"+x", b" x", b"\\ y", b"\r", b"\xff"]), max_size=12
)
contents = st.builds(lambda body, end: b"\n".join(body) + end, lines, st.sampled_from([b"", b"\n"]))


@needs_git
@settings(max_examples=40, deadline=None)
@given(before=contents, after=contents)
def test_git_applies_any_diff(before: bytes, after: bytes) -> None:
    diff = unified_diff({"f": before}, {"f": after})
    if before == after:
        assert diff == ""
    else:
        assert apply_with({"f": before}, diff, GIT) == {"f": after}


def test_equal_files_have_no_diff() -> None:
    assert unified_diff({"a": b"x"}, {"a": b"x"}) == ""
    assert unified_diff({}, {}) == ""


def test_a_diff_has_the_format_of_git() -> None:
    diff = unified_diff({"a.py": b"x = 1\ny = 2"}, {"a.py": b"x = 1\ny = 3\n", "b.py": b""})
    assert diff == (
        "diff --git a/a.py b/a.py\n"
        "--- a/a.py\n"
        "+++ b/a.py\n"
        "@@ -1,2 +1,2 @@\n"
        " x = 1\n"
        "-y = 2\n"
        "\\ No newline at end of file\n"
        "+y = 3\n"
        "diff --git a/b.py b/b.py\n"
        "new file mode 100644\n"
        "index 0000000..e69de29\n"
    )
