"""Progress on stderr while a run goes on: what just happened, what it cost, what is left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

from suture.cli.telling import describe_spend, tell
from suture.cli.terminal import console, printable
from suture.ledger import spend_of
from suture.records import Event

if TYPE_CHECKING:
    from suture.settings import BudgetSettings

__all__ = ["Progress"]

WAITING = {
    "run.started": "preparing the checks",
    "task.prepared": "checking the code as it is",
    "decided": "asking the model",
    "model.called": "checking",
    "candidate.proposed": "checking",
    "candidate.checked": "deciding",
}
"""What goes on after an event, for the line that a terminal shows until the next one."""
TOLD_AT_THE_END = "run.finished"


class Progress:
    """Called with each event of a run; a context manager, because a terminal gets a moving line too.

    Args:
        budget: The limits, for telling what is left.
    """

    def __init__(self, budget: BudgetSettings) -> None:
        self._limits = budget.model_dump()
        self._events: list[Event] = []
        self._console = console(stderr=True)
        self._status = self._console.status("starting")

    def __enter__(self) -> Progress:
        if self._console.is_terminal:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._status.stop()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Without the moving line, so that the user can be asked something."""
        self._status.stop()
        yield
        if self._console.is_terminal:
            self._status.start()

    @property
    def events(self) -> tuple[Event, ...]:
        """What has happened so far."""
        return tuple(self._events)

    def __call__(self, event: Event) -> None:
        """Say what happened."""
        self._events.append(event)
        line = tell(event)
        if line is not None and event.kind != TOLD_AT_THE_END:
            self._console.print(printable(line))
        if event.kind == "candidate.checked":
            self._console.print(f"  spent {self._spent(event)}", style="dim")
        if event.kind in WAITING:
            self._status.update(f"{WAITING[event.kind]} ({self._spent(event)})")

    def _spent(self, event: Event) -> str:
        return describe_spend(spend_of(self._events, now_s=event.time_s), self._limits)
