"""A `.env` file is parsed like in a shell, but without substitution."""

from __future__ import annotations

import pytest

from suture.core.settings.setting_sources import parse_dotenv
from suture.errors import UsageError


def parse(text: str) -> dict[str, str]:
    return parse_dotenv(text, lambda name: name != "THEIRS")


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=b", "b"),
        ("A = b ", "b"),
        ("export A=b", "b"),
        ("  A=b", "b"),
        ("A=", ""),
        ("A=b c", "b c"),
        ("A=b # comment", "b"),
        ("A=b#c", "b#c"),
        ("A= # comment", ""),
        ("A='b # c'", "b # c"),
        ('A="b # c" # comment', "b # c"),
        (r'A="b\nc\"d\$e\\f"', 'b\nc"d$e\\f'),
        (r"A='b\nc'", r"b\nc"),
        ('A="two\nlines"', "two\nlines"),
        ("A=$HOME/x", "$HOME/x"),
        ("A=b\r", "b"),
        ("A=b=c", "b=c"),
        ("A=it's", "it's"),
    ],
)
def test_a_line_is_read_like_in_a_shell_without_substitution(line: str, value: str) -> None:
    assert parse(line + "\nLAST=x\n") == {"A": value, "LAST": "x"}


def test_the_last_value_of_a_name_wins() -> None:
    assert parse("A=1\nA=2") == {"A": "2"}


@pytest.mark.parametrize(
    "line", ["no equals sign", "1A=b", "# A=b", "=b", "", "THEIRS='open", "A-B=c", "[section]"]
)
def test_lines_for_other_programs_are_skipped(line: str) -> None:
    assert parse(line + "\nLAST=x\n") == {"LAST": "x"}


@pytest.mark.parametrize("line", ["A='open", 'A="open', "A='b'c"])
def test_an_unclosed_quote_in_a_suture_value_is_an_error(line: str) -> None:
    with pytest.raises(UsageError, match=r"\.env: the value of A has an opening quote"):
        parse(line)
