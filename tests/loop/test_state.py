"""Attempts are encoded in the state and decoded to equal values."""

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

# Attempts as a checkpoint stores them: fields with default values are omitted.
FAILED_ATTEMPT = {
    "candidate": "",
    "blob": "",
    "origin": "",
    "round": 1,
    "start": 1,
    "depth": 0,
    "label": "",
    "fault": "malformed",
    "fault_message": "'no code'",
}
UNCHANGED_CODE = {
    "candidate": "c0",
    "blob": "b0",
    "verdict": "v0",
    "label": "the code as it is",
    "origin": "user",
    "round": -1,
    "start": -1,
    "depth": 0,
    "passed": 1,
    "failed": 2,
    "regressed": 0,
    "signature": "s",
}
RANKED_REPAIR = {
    **UNCHANGED_CODE,
    "candidate": "c1",
    "origin": "repair",
    "parent": "c0",
    "round": 0,
    "depth": 1,
    "fingerprint": "f",
    "rank": 2,
    "sent_back": True,
    "confidence": 0.4,
    "advised_strategy": "guard",
    "rejected": True,
}


def test_attempts_are_decoded_without_their_default_fields() -> None:
    state = initial_state("run")
    state["proposals"] = [FAILED_ATTEMPT]
    state["judged"] = [UNCHANGED_CODE, RANKED_REPAIR]
    (failed_attempt,) = proposed_attempts(state)

    assert (failed_attempt.fault, failed_attempt.fault_message, failed_attempt.blob) == (
        "malformed",
        "'no code'",
        "",
    )
    base, repair = judged_attempts(state)
    assert (base.origin, base.rank, base.confidence, base.solved) == ("user", None, 1.0, False)
    assert (repair.rank, repair.sent_back, repair.advised_strategy, repair.rejected) == (
        2,
        True,
        "guard",
        True,
    )


def test_encoded_attempts_are_decoded_to_equal_attempts() -> None:
    attempt = Attempt(candidate="c", origin="sample", round=0, start=0, rank=1, advised_strategy="minimal")
    state = with_judged_attempts(initial_state("run"), [attempt])
    assert judged_attempts(json.loads(json.dumps(state))) == (attempt,)
    assert encode_attempts(judged_attempts(state)) == state["judged"]
