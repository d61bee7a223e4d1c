"""Applying the diffs that Suture writes, forwards and backwards."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suture.project.workspace import DiffDoesNotApply, apply_diff, unified_diff

NAMES = st.sampled_from(["a.py", "pkg/b c.py", 'q"u.py', "back\\slash", "empty", "a/b/a/b", "b/x b/x"])
LINES = st.sampled_from(
    [b"x\n", b"y\n", b"\n", b"- x\n", b"+++ b\n", b"@@ -1 +1 @@\n", b"\xff\r\n", b"\x0c\n"]
)
CONTENT = st.builds(lambda lines, end: b"".join([*lines, end]), st.lists(LINES), st.sampled_from([b"", b"z"]))
TREES = st.dictionaries(NAMES, CONTENT, max_size=3)


@given(before=TREES, after=TREES)
def test_a_diff_applies_to_the_files_it_was_made_from(
    before: dict[str, bytes], after: dict[str, bytes]
) -> None:
    assert apply_diff(before, unified_diff(before, after)) == after


@given(before=TREES, after=TREES)
def test_a_diff_can_be_reverted(before: dict[str, bytes], after: dict[str, bytes]) -> None:
    assert apply_diff(after, unified_diff(before, after), reverse=True) == before


BEFORE = {"a.py": b"1\n2\n3\n4\n5\n6\n7\n8\n9\n"}
DIFF = unified_diff(BEFORE, {"a.py": b"1\n2\n3\n4\nfive\n6\n7\n8\n9\n"})


@pytest.mark.parametrize(
    ("files", "diff"),
    [
        ({"a.py": b"1\n2\n3\n4\n50\n6\n7\n8\n9\n"}, DIFF),
        ({"a.py": b"0\n" + BEFORE["a.py"]}, DIFF),  # fits one line further down
        ({}, DIFF),
        (BEFORE, DIFF + "something else\n"),
        (BEFORE, "something else\n" + DIFF),
        (BEFORE, DIFF.replace("a/a.py", "a/../a.py")),
        (BEFORE, DIFF.replace("-2,7", "-1,7")),
        (BEFORE, DIFF.replace("+five", "+five\n+six")),
        (BEFORE, DIFF + DIFF),
    ],
)
def test_a_diff_that_does_not_fit_is_refused(files: dict[str, bytes], diff: str) -> None:
    with pytest.raises(DiffDoesNotApply):
        apply_diff(files, diff)
