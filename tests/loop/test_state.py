"""Encoding of the state: what is read is written in the same form."""

from __future__ import annotations

import json

from suture.loop.policy.attempts import Attempt
from suture.loop.state import (
    encode_attempts,
    initial_state,
    judged_attempts,
    proposed_attempts,
    with_judged_attempts,
)

# As a checkpoint stores them: fields with their default are not there.
WITHOUT_A_CANDIDATE = {
    **{"candidate": "", "blob": "", "origin": "", "round": 1, "start": 1, "depth": 0, "label": ""},
    **{"fault": "malformed", "fault_message": "'no code'"},
}
THE_CODE_AS_IT_IS = {
    **{"candidate": "c0", "blob": "b0", "verdict": "v0", "label": "the code as it is", "origin": "user"},
    **{"round": -1, "start": -1, "depth": 0, "passed": 1, "failed": 2, "regressed": 0, "signature": "s"},
}
RANKED = {
    **THE_CODE_AS_IT_IS,
    **{"candidate": "c1", "origin": "repair", "parent": "c0", "round": 0, "depth": 1, "fingerprint": "f"},
    **{"rank": 2, "sent_back": True, "confidence": 0.4, "advised_strategy": "guard", "rejected": True},
}


def test_attempts_are_read_without_their_default_fields() -> None:
    state = initial_state("run")
    state["proposals"] = [WITHOUT_A_CANDIDATE]
    state["judged"] = [THE_CODE_AS_IT_IS, RANKED]
    (nothing,) = proposed_attempts(state)
    assert (nothing.fault, nothing.fault_message, nothing.blob) == ("malformed", "'no code'", "")
    base, repair = judged_attempts(state)
    assert (base.origin, base.rank, base.confidence, base.solved) == ("user", None, 1.0, False)
    assert (repair.rank, repair.sent_back, repair.advised_strategy, repair.rejected) == (
        2,
        True,
        "guard",
        True,
    )


def test_attempts_come_back_from_the_state_as_they_went_in() -> None:
    attempt = Attempt(candidate="c", origin="sample", round=0, start=0, rank=1, advised_strategy="minimal")
    state = with_judged_attempts(initial_state("run"), [attempt])
    assert judged_attempts(json.loads(json.dumps(state))) == (attempt,)
    assert encode_attempts(judged_attempts(state)) == state["judged"]
