"""`suture doctor`: what is there, what is missing, and how to get it."""

from __future__ import annotations

from suture.cli.faults import reports_faults
from suture.cli.options import Debug, Json, Set

__all__ = ["doctor"]


@reports_faults
def doctor(assignments: Set = None, as_json: Json = False, debug: Debug = False) -> None:
    """Say what is there, what is missing, and how to get it."""
