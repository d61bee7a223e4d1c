"""What other roles than the coder have contributed to a run so far, as the state keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from suture.loop.state import LoopState
from suture.records import from_plain


@dataclass(frozen=True, kw_only=True)
class Aids:
    """Contributions of helpers.

    Attributes:
        plan: The blob of the planner's `Plan`; empty where there is none.
        generated: The blob of the tests that testers wrote; empty for none.
        deciding: The blob of those that are trusted enough to decide; empty for none.
        lessons: What the summariser draws from the run.
        remarks: Candidate -> what the debugger and the critic say of it.
        read: Names of what was done about a candidate and is not done again, such as `critic:<hash>`.
    """

    plan: str = ""
    generated: str = ""
    deciding: str = ""
    lessons: tuple[str, ...] = ()
    remarks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    read: tuple[str, ...] = ()


def aids_of(state: LoopState) -> Aids:
    """What the state holds of them."""
    return from_plain(Aids, state["aids"])
