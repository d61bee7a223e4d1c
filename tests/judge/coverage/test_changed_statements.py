"""The statements that a change touches."""

from __future__ import annotations

import pytest

from suture.judge.coverage.coverage_run import find_touched_statements

CODE = """\
def read(text):
    try:
        return int(text)
    except ValueError:
        return None


@cached
def kind(value):
    match value:
        case 0:
            return "none"
        case _:
            return "some"
"""


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("except ValueError", "except KeyError", [4]),
        ("case 0:", "case 1:", [11]),
        ("@cached", "@kept", [8]),
        ("return int(text)", "return float(text)", [3]),
        ("    try:", "    try:  # perhaps", [2]),
    ],
)
def test_a_change_of_a_statements_head_touches_that_statement(old: str, new: str, lines: list[int]) -> None:
    assert old in CODE
    touched = find_touched_statements(CODE, CODE.replace(old, new))
    assert [spot.start for spot in touched] == lines


def test_an_except_with_its_body_on_one_line_is_two_statements() -> None:
    before = "try:\n    f()\nexcept KeyError: pass\n"
    assert [spot.start for spot in find_touched_statements(before, before.replace("pass", "g()"))] == [3, 3]
