"""A reply in any usual form becomes the contents of files, and nothing in it is lost."""

from __future__ import annotations

import pytest
from agents.reply_table import PROJECT, PROTECTED, REPLIES, SHOWN, ReplyCase

from suture.agents.replies.change_reading import read_change


@pytest.mark.parametrize("case", REPLIES, ids=lambda case: case.name)
def test_a_reply_changes_exactly_these_files(case: ReplyCase) -> None:
    change = read_change(case.reply, PROJECT, shown=SHOWN, protected=PROTECTED)

    assert [problem.code for problem in change.problems] == list(case.problems)
    assert change.files == case.files
    assert sorted(part.code for part in change.ignored) == sorted(case.ignored)
