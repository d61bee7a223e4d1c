"""The mean log probability of a check's lines."""

from __future__ import annotations

import pytest

from suture.agents.replies.generated_checks import mean_logprob
from suture.models import Reply

TOKENS = {
    "```py": -3.0,
    "thon\n": -3.0,
    "assert f(": -0.5,
    "1) ==": -0.1,
    " 2\n": -0.3,
    "assert f(2) == 9": -2.0,
}
REPLY = Reply(text="".join(TOKENS), tokens=tuple(TOKENS), logprobs=tuple(TOKENS.values()))


def test_the_mean_covers_only_the_lines_of_the_check() -> None:
    assert mean_logprob("assert f(1) == 2\n", REPLY) == pytest.approx(-0.3)
    assert mean_logprob("import random\nassert f(2) == 9\n", REPLY) == pytest.approx(-2.0)
    assert mean_logprob("assert f(1) == 2\nassert f(2) == 9\n", REPLY) == pytest.approx(-2.9 / 4)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(text=REPLY.text),
        Reply(text=REPLY.text, logprobs=REPLY.logprobs),
        Reply(text="x", tokens=("x",), logprobs=(-1.0,)),
    ],
)
def test_missing_log_probabilities_give_none(reply: Reply) -> None:
    assert mean_logprob("assert f(1) == 2\n", reply) is None
