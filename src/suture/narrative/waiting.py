"""How to answer a run that waits for a person."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the command line's help loads this, and the types of events are dozens
    from suture.ledger.kinds import ReviewStage


def waiting_lines(run: str, stage: ReviewStage) -> Iterator[str]:
    """What to type, for stderr.

    Args:
        run: Its id.
        stage: Before what it waits.
    """
    yield f"see what it asks: suture review {run}"
    if stage == "distinguish":
        yield f"answer it:        suture resume {run} --answer first   (or second, neither, or unsure)"
        return
    yield f"answer it:        suture resume {run} --answer approve   (or reject, or abort)"
    yield f'                  suture resume {run} --hint "..."       (go on, and tell the model this)'
    yield f"                  suture resume {run} --edit FILE        (your own candidate in its place)"
