"""The state: attempts as older versions wrote them are read, and what is read is written the same."""

from __future__ import annotations

import json

from suture.loop.policy.progress import Attempt
from suture.loop.state import first_state, plain_attempts, proposals_in, tried_in, with_tried

# As Suture 0.2 kept them: fields that nothing was known of are not there.
WITHOUT_A_CANDIDATE = {
    **{"candidate": "", "blob": "", "origin": "", "round": 1, "start": 1, "depth": 0, "label": ""},
    **{"fault": "malformed", "message": "'no code'"},
}
THE_CODE_AS_IT_IS = {
    **{"candidate": "c0", "blob": "b0", "verdict": "v0", "label": "the code as it is", "origin": "user"},
    **{"round": -1, "start": -1, "depth": 0, "passed": 1, "failed": 2, "regressed": 0, "signature": "s"},
}
RANKED = {
    **THE_CODE_AS_IT_IS,
    **{"candidate": "c1", "origin": "repair", "parent": "c0", "round": 0, "depth": 1, "fingerprint": "f"},
    **{"rank": 2, "sent_back": True, "confidence": 0.4, "advised": "guard", "rejected": True},
}


def test_attempts_of_older_checkpoints_are_read() -> None:
    state = first_state("run")
    state["proposals"] = [WITHOUT_A_CANDIDATE]
    state["tried"] = [THE_CODE_AS_IT_IS, RANKED]
    (nothing,) = proposals_in(state)
    assert (nothing.fault, nothing.message, nothing.blob) == ("malformed", "'no code'", "")
    base, repair = tried_in(state)
    assert (base.origin, base.rank, base.confidence, base.solved) == ("user", None, 1.0, False)
    assert (repair.rank, repair.sent_back, repair.advised, repair.rejected) == (2, True, "guard", True)


def test_attempts_come_back_from_the_state_as_they_went_in() -> None:
    attempt = Attempt(candidate="c", origin="sample", round=0, start=0, rank=1, advised="minimal")
    state = with_tried(first_state("run"), [attempt])
    assert tried_in(json.loads(json.dumps(state))) == (attempt,)
    assert plain_attempts(tried_in(state)) == state["tried"]
