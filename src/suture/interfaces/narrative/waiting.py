"""How to answer a run that waits for a person."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the command line's help loads this, and the types of events are dozens
    from suture.core.ledger.kinds import ReviewStage


def waiting_lines(run: str, stage: ReviewStage) -> Iterator[str]:
    """What to type, for stderr."""
    yield f"See what it asks: suture review {run}"
    if stage == "distinguish":
        yield f"Answer it: suture resume {run} --answer first   (or second, neither, or unsure)"
        return
    yield f"Answer it: suture resume {run} --answer approve   (or reject, or abort)"
    yield f'Tell the model something: suture resume {run} --hint "..."'
    if stage not in ("test", "safety"):
        yield f"Put your own code in its place: suture resume {run} --edit FILE"
