"""The live view of a run on a terminal: phase, candidates with their scores, spend, lessons."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rich.spinner import Spinner
from rich.text import Text

from suture.core.ledger import CATALOGUE, Payload, RawPayload, SpendTracker, kinds
from suture.interfaces.narrative.plain_text import escape_unprintable, render_label
from suture.interfaces.narrative.spend_text import describe_spend

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

    from suture.core.ledger import Event

PHASES: dict[type[Payload], str] = {
    kinds.RunStarted: "preparing the checks",
    kinds.TaskPrepared: "testing the unchanged code",
    kinds.TriageFinished: "choosing the next step",
    kinds.SearchStarted: "searching for a repair without a model",
    kinds.SearchFinished: "judging what the search found",
    kinds.MovesDecided: "asking the model",
    kinds.BudgetReserved: "the model is writing",
    kinds.ModelCalled: "reading the reply",
    kinds.CandidateProposed: "checking",
    kinds.CandidateChecked: "checking",
    kinds.ReviewAsked: "waiting for you",
    kinds.ReviewAnswered: "continuing",
}
"""What the run does after an event of this kind, until the next one."""
MAX_CANDIDATES = 5
"""Candidates that are shown, those that were checked last. Chosen by judgement; not measured."""
MAX_REPLY_LINES = 3
"""Lines that are shown of the reply that is being written. Chosen by judgement; not measured."""


class LiveView:
    """The state of a run, updated with each event and drawn repeatedly; no line of it ever wraps.

    Args:
        limits: The run's limits, keyed by the names of the budget settings.
    """

    def __init__(self, limits: Mapping[str, float | None]) -> None:
        self._limits = limits
        self._spend = SpendTracker()
        self._running = False
        """Whether the clock runs; it stops while a person is asked."""
        self._phase = "starting"
        self._round = 0
        self._best = ""
        self._candidates: dict[str, tuple[str, int, int]] = {}
        """Candidate -> `(label, passing checks, all checks)`, in the order of the last check."""
        self._lessons: tuple[str, ...] = ()
        self._partial_replies: dict[int, tuple[str, int]] = {}
        """Number of a reply that is being written -> `(text, token count)` so far."""
        self._spinner = Spinner("dots")
        self.widths: tuple[int, ...] = ()
        """Width in cells of each line as last drawn."""

    def update(self, event: Event) -> None:
        """Apply one event; an event that this version cannot read changes nothing."""
        self._spend.add([event])
        self._running = not isinstance(event.payload, kinds.ReviewAsked)
        self._phase = PHASES.get(CATALOGUE.get(event.kind, RawPayload), self._phase)
        match event.payload:
            case kinds.MovesDecided() as decided:
                self._round, self._best = decided.round, decided.best or ""
                move = decided.moves[0]
                if move.kind == "stop":
                    self._phase = "certifying the result" if move.outcome == "healed" else "ending"
            case kinds.CandidateChecked() as checked:
                self._candidates.pop(checked.candidate, None)
                total = checked.passed + checked.failed
                self._candidates[checked.candidate] = (render_label(checked.label), checked.passed, total)
            case kinds.LessonsDrawn(lessons=lessons):
                self._lessons = lessons

    def update_reply(self, reply: int, text: str | None) -> None:
        """Show the text so far of a reply; each call adds one token, and `None` ends the reply."""
        if text is None:
            self._partial_replies.pop(reply, None)
        else:
            token_count = self._partial_replies.get(reply, ("", 0))[1] + 1
            self._partial_replies[reply] = (text, token_count)

    def spend_text(self, now_s: float | None = None) -> str:
        """Return what was used and the limits."""
        return describe_spend(self._spend.spend(now_s), self._limits)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = max(1, options.max_width - 1)  # some terminals wrap when the last column is used
        # A view as high as the screen could not be erased; two rows are left free.
        lines = list(self._lines(console.get_time()))[: max(1, options.size.height - 2)]
        for line in lines:
            line.no_wrap = True
            line.truncate(width, overflow="ellipsis")
        self.widths = tuple(line.cell_len for line in lines)
        yield Text("\n").join(lines)

    def _lines(self, now: float) -> Iterator[Text]:
        frame = self._spinner.render(now)
        mark = frame if isinstance(frame, Text) else Text("*")
        tokens = sum(count for _, count in self._partial_replies.values())
        written = f" · {tokens} tokens" if tokens else ""
        yield Text.assemble(mark, " ", (self._phase, "bold"), f" · round {self._round + 1}{written}")
        # Of several replies, show the one that started first.
        reply = next((text for text, _ in self._partial_replies.values()), "")
        reply_lines = [line for line in reply.splitlines() if line.strip()][-MAX_REPLY_LINES:]
        yield from (Text(f"  | {escape_unprintable(line)}", style="dim") for line in reply_lines)
        for name, (label, passed, total) in list(self._candidates.items())[-MAX_CANDIDATES:]:
            style = "green" if total and passed == total else "yellow" if passed else "red"
            best = " (best)" if name == self._best else ""
            score = f"{passed}/{total}" if total else "unchecked"
            yield Text.assemble(
                "  ", (f"{score:>9}", style), escape_unprintable(f"  {name[:8]}  {label}{best}")
            )
        yield Text(f"  spent {self.spend_text(time.time() if self._running else None)}", style="dim")
        yield from (Text(f"  lesson: {escape_unprintable(lesson)}", style="dim") for lesson in self._lessons)
