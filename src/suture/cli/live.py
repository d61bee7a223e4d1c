"""What a terminal shows while a run goes on: phase, candidates with their scores, spend, lessons."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rich.spinner import Spinner
from rich.text import Text

from suture.cli.telling import describe_spend
from suture.cli.terminal import printable
from suture.ledger import spend_of

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

    from suture.records import Event

__all__ = ["LiveView"]

PHASES = {
    "run.started": "preparing the checks",
    "task.prepared": "checking the code as it is",
    "triage.finished": "deciding",
    "search.started": "searching for a repair without a model",
    "search.finished": "judging what the search found",
    "decided": "asking the model",
    "budget.reserved": "asking the model",
    "model.called": "reading the reply",
    "candidate.proposed": "checking",
    "candidate.checked": "checking",
    "review.asked": "waiting for you",
    "review.answered": "going on",
}
"""What goes on after an event, until the next one."""
CANDIDATES_SHOWN = 5
LESSONS_SHOWN = 3


class LiveView:
    """The run as it stands; told each event, and drawn anew by whoever shows it. No line of it ever wraps.

    Args:
        limits: What the run may use, by the names of the budget's settings.
    """

    def __init__(self, limits: Mapping[str, float | None]) -> None:
        self._limits = limits
        self._events: list[Event] = []
        self._phase = "starting"
        self._round = 0
        self._best = ""
        self._candidates: dict[str, tuple[str, int, int]] = {}
        self._lessons: tuple[str, ...] = ()
        self._spinner = Spinner("dots")
        self.widths: tuple[int, ...] = ()
        """Cells of each line that was drawn last."""

    def tell(self, event: Event) -> None:
        """Take one event in; one with other fields than expected changes nothing."""
        self._events.append(event)
        self._phase = PHASES.get(event.kind, self._phase)
        with contextlib.suppress(KeyError, TypeError, ValueError):  # of an older or a newer version
            self._take(event.kind, event.data)

    def _take(self, kind: str, data: Mapping[str, Any]) -> None:
        if kind == "decided":
            self._round, self._best = int(data["round"]), data["best"] or ""
            if data["moves"][0]["kind"] == "stop":
                self._phase = "proving the result" if data["moves"][0]["outcome"] == "healed" else "ending"
        elif kind == "candidate.checked":
            self._candidates.pop(data["candidate"], None)
            passed, total = int(data["passed"]), int(data["passed"]) + int(data["failed"])
            self._candidates[data["candidate"]] = (str(data["label"]), passed, total)
        elif kind == "lessons.drawn":
            self._lessons = tuple(map(_lesson, data["lessons"]))

    def spent(self, now_s: float | None = None) -> str:
        """What was used and of how much."""
        return describe_spend(spend_of(self._events, now_s=now_s), self._limits)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = max(1, options.max_width - 1)  # a full last column would make some terminals wrap
        lines = list(self._lines(console.get_time()))[: max(1, options.size.height - 2)]
        for line in lines:
            line.no_wrap = True
            line.truncate(width, overflow="ellipsis")
        self.widths = tuple(line.cell_len for line in lines)
        yield Text("\n").join(lines)

    def _lines(self, now: float) -> Iterator[Text]:
        turning = self._spinner.render(now)
        mark = turning if isinstance(turning, Text) else Text("*")
        yield Text.assemble(mark, " ", (self._phase, "bold"), f" · round {self._round + 1}")
        for name, (label, passed, total) in list(self._candidates.items())[-CANDIDATES_SHOWN:]:
            style = "green" if total and passed == total else "yellow" if passed else "red"
            best = " (best)" if name == self._best else ""
            score = f"{passed}/{total}" if total else "unchecked"
            yield Text.assemble("  ", (f"{score:>9}", style), f"  {name[:8]}  {printable(label)}{best}")
        yield Text(f"  spent {self.spent(time.time() if self._running else None)}", style="dim")
        yield from (Text(f"  lesson: {printable(lesson)}", style="dim") for lesson in self._lessons)

    @property
    def _running(self) -> bool:
        return bool(self._events) and self._events[-1].kind != "review.asked"


def _lesson(lesson: Any) -> str:
    return str(lesson["text"] if isinstance(lesson, Mapping) else lesson)
