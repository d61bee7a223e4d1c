"""Texts of strangers that would keep a parser busy."""

from __future__ import annotations

import pytest

from suture.plain_files import parse_toml


@pytest.mark.parametrize("part", ["a", '"a"', "'a'", '"a\\"b"', "'a\\'"])
def test_a_key_of_very_many_parts_is_refused(part: str) -> None:
    assert parse_toml(".".join([part] * 31) + " = 1")
    with pytest.raises(ValueError, match="more than 32 parts"):
        parse_toml(".".join([part] * 33) + " = 1")


def test_a_text_of_escaped_quotes_is_read_at_once() -> None:
    # Looked at from each of its quotes to the end, it would take hours: the limit of time would end it.
    assert parse_toml("text = '" + '"\\' * 200_000 + "'") == {"text": '"\\' * 200_000}
    with pytest.raises(ValueError, match="string"):
        parse_toml('"\\' * 200_000)
