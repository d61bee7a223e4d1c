"""The run's record: append-only events, the budget as a fold over them, blobs by content hash.

This room keeps no state elsewhere: what is not in the run folder did not happen. Front ends only read it.
Each kind of event is a type of `ledger.kinds`; nobody else knows how it lies on disk.
"""

from suture.core.clock import SystemClock
from suture.core.ledger.budget import (
    Budget,
    Limits,
    Reservation,
    SpendFold,
    open_reservations,
    spend_by,
    spend_of,
)
from suture.core.ledger.comparison import Divergence, compare_runs, steady_text
from suture.core.ledger.event import (
    CATALOGUE,
    Event,
    Payload,
    RawPayload,
    event_as_json,
    event_in_short,
    first_of,
    last_of,
    those_of,
)
from suture.core.ledger.reading import LAST_EVENTS, PARKED, LedgerReading, follow_ledger, read_ledger
from suture.core.ledger.run_folder import RunFolder, find_run, list_runs, new_run, new_run_id
from suture.core.ledger.run_state import (
    decision_after,
    events_until,
    is_being_written,
    last_end,
    last_step,
    result_of,
    stands,
    state_of,
    taken_over,
    task_of,
)
from suture.core.ledger.writing import (
    Ledger,
    branch_of_round,
    current_place,
    part_of_branch,
)

__all__ = [
    "CATALOGUE",
    "LAST_EVENTS",
    "PARKED",
    "Budget",
    "Divergence",
    "Event",
    "Ledger",
    "LedgerReading",
    "Limits",
    "Payload",
    "RawPayload",
    "Reservation",
    "RunFolder",
    "SpendFold",
    "SystemClock",
    "branch_of_round",
    "compare_runs",
    "current_place",
    "decision_after",
    "event_as_json",
    "event_in_short",
    "events_until",
    "find_run",
    "first_of",
    "follow_ledger",
    "is_being_written",
    "last_end",
    "last_of",
    "last_step",
    "list_runs",
    "new_run",
    "new_run_id",
    "open_reservations",
    "part_of_branch",
    "read_ledger",
    "result_of",
    "spend_by",
    "spend_of",
    "stands",
    "state_of",
    "steady_text",
    "taken_over",
    "task_of",
    "those_of",
]
