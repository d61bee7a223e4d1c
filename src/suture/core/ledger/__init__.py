"""The record of a run: append-only events, the budget computed from them, and blobs by content hash.

The package keeps no other state: what is not in the run folder did not happen. Interfaces only read it. Each
kind of event is a class in `ledger.kinds`; no other package knows the format on disk.
"""

from suture.core.clock import SystemClock
from suture.core.ledger.budget import (
    Budget,
    GroupSpendTracker,
    Limits,
    Reservation,
    SpendTracker,
    open_reservations,
    spend_by_group,
    total_spend,
)
from suture.core.ledger.comparison import Divergence, compare_runs, normalise_text
from suture.core.ledger.event import (
    CATALOGUE,
    Event,
    Payload,
    RawPayload,
    encode_event,
    first_payload,
    last_payload,
    select_events,
    summarise_event,
)
from suture.core.ledger.ledger_writer import Ledger, current_position, in_branch_part, in_round_branch
from suture.core.ledger.reading import (
    FINAL_EVENT_KINDS,
    PAUSED_KIND,
    LedgerContents,
    LedgerReading,
    find_first_payload,
    follow_ledger,
    read_ledger,
)
from suture.core.ledger.run_folder import (
    RunFolder,
    find_run,
    list_runs,
    new_run,
    new_run_id,
    stamp_ledgers,
)
from suture.core.ledger.run_state import (
    copy_events_for_fork,
    decision_after,
    events_until,
    find_doubt,
    find_final_event,
    get_run_state,
    get_run_status,
    is_being_written,
    last_step,
    load_result,
    load_task,
)

__all__ = [
    "CATALOGUE",
    "FINAL_EVENT_KINDS",
    "PAUSED_KIND",
    "Budget",
    "Divergence",
    "Event",
    "GroupSpendTracker",
    "Ledger",
    "LedgerContents",
    "LedgerReading",
    "Limits",
    "Payload",
    "RawPayload",
    "Reservation",
    "RunFolder",
    "SpendTracker",
    "SystemClock",
    "compare_runs",
    "copy_events_for_fork",
    "current_position",
    "decision_after",
    "encode_event",
    "events_until",
    "find_doubt",
    "find_final_event",
    "find_first_payload",
    "find_run",
    "first_payload",
    "follow_ledger",
    "get_run_state",
    "get_run_status",
    "in_branch_part",
    "in_round_branch",
    "is_being_written",
    "last_payload",
    "last_step",
    "list_runs",
    "load_result",
    "load_task",
    "new_run",
    "new_run_id",
    "normalise_text",
    "open_reservations",
    "read_ledger",
    "select_events",
    "spend_by_group",
    "stamp_ledgers",
    "summarise_event",
    "total_spend",
]
