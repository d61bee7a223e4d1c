"""Readers of the events that a run has recorded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from suture.core.ledger import Event, find_run, read_ledger

__all__ = ["read_event_data", "read_events"]


def read_events(home: Path, run_id: str = "last") -> tuple[Event, ...]:
    """Return the events of a run below a home folder."""
    return tuple(read_ledger(find_run(home, run_id).ledger_path).events)


def read_event_data(home: Path, kind: str, run_id: str = "last") -> list[Mapping[str, Any]]:
    """Return the data of the events of one kind."""
    return [event.data for event in read_events(home, run_id) if event.kind == kind]
