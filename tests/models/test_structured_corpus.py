"""The corpus of malformed replies: each is read with its intended meaning, or refused."""

from __future__ import annotations

import json

import pytest

from models.bad_replies import BAD_REPLIES, BadReply
from suture.models.structured_output.reply_parsing import UnreadableReply, parse_reply

SALVAGED = [bad for bad in BAD_REPLIES if bad.expected is not None]


@pytest.mark.parametrize("bad", BAD_REPLIES, ids=lambda bad: bad.id)
def test_a_bad_reply_is_read_as_meant_or_refused(bad: BadReply) -> None:
    if bad.expected is None:
        with pytest.raises(UnreadableReply) as refused:
            parse_reply(bad.text, bad.type_)
        assert str(refused.value)
        return

    assert parse_reply(bad.text, bad.type_) == bad.expected


@pytest.mark.parametrize("bad", BAD_REPLIES, ids=lambda bad: bad.id)
def test_only_valid_json_is_read_without_salvage(bad: BadReply) -> None:
    try:
        value = parse_reply(bad.text, bad.type_, salvage=False)
    except UnreadableReply:
        return
    json.loads(bad.text)
    assert value == bad.expected


def test_the_corpus_has_its_documented_size() -> None:
    assert (len(BAD_REPLIES), len(SALVAGED)) == (118, 64)  # docs/models.md says so
    assert len({bad.id for bad in BAD_REPLIES}) == len(BAD_REPLIES)
    assert len({bad.text for bad in BAD_REPLIES}) == len(BAD_REPLIES)
