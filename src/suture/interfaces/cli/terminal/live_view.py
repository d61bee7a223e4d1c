"""The live view of a run on a terminal: phase, candidates with their scores, spend, lessons."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.spinner import Spinner
from rich.text import Text

from suture.core.ledger import CATALOGUE, Payload, RawPayload, SpendTracker, SystemClock, kinds
from suture.interfaces.narrative.plain_text import escape_unprintable, render_label
from suture.interfaces.narrative.search_text import describe_best_edit
from suture.interfaces.narrative.spend_text import describe_spend, limits_without_model
from suture.interfaces.narrative.wording import PHASE_TEXTS

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

    from suture.core.ledger import Event
    from suture.search.search_records import SearchProgress

PHASES: dict[type[Payload], str] = {
    kinds.RunStarted: "preparing the checks",
    kinds.TaskPrepared: "testing the unchanged code",
    kinds.TriageFinished: "choosing the next step",
    kinds.SearchStarted: "searching for a repair without a model",
    kinds.SearchFinished: "judging what the search found",
    kinds.MovesDecided: "asking the model",
    kinds.BudgetReserved: "the model reads the task",
    kinds.ModelCalled: "reading the reply",
    kinds.CandidateProposed: "checking",
    kinds.CandidateChecked: "checking",
    kinds.ReviewAsked: "waiting for you",
    kinds.ReviewAnswered: "continuing",
}
"""What the run does after an event of this kind, until the next one."""
CERTIFYING = PHASE_TEXTS["certification"]
MAX_CANDIDATES = 5
"""Candidates that are shown, those that were checked last. Chosen by judgement; not measured."""
MAX_REPLY_LINES = 3
"""Lines that are shown of the reply that is being written. Chosen by judgement; not measured."""


@dataclass
class PartialReply:
    """A reply that is being written: its text and tokens so far, and when its first token came, in seconds."""

    start_s: float
    text: str = ""
    tokens: int = 0


class LiveView:
    """The state of a run, updated with each event and drawn repeatedly; no line of it ever wraps.

    Args:
        limits: The run's limits, keyed by the names of the budget settings.
    """

    def __init__(self, limits: Mapping[str, float | None]) -> None:
        self._model_limits = limits
        self._limits: Mapping[str, float | None] = limits_without_model(limits)
        """The limits to show. Whether the run uses a model is known when it has started."""
        self._spend = SpendTracker()
        self._clock = SystemClock()
        """Runs like the clock of the ledger, so that both agree when the machine's clock is changed."""
        self._running = False
        """Whether the clock runs; it stops while a person is asked."""
        self._phase = "starting"
        self._round = 0
        self._best = ""
        self._candidates: dict[str, tuple[str, int, int]] = {}
        """Candidate -> `(label, passing checks, all checks)`, in the order of the last check."""
        self._lessons: tuple[str, ...] = ()
        self._partial_replies: dict[int, PartialReply] = {}
        """Number of a reply -> what is written of it."""
        self._phase_start_s = time.monotonic()
        self._max_changes = 0
        self._search_text = ""
        self._spinner = Spinner("dots")
        self.widths: tuple[int, ...] = ()
        """Width in cells of each line as last drawn."""

    def update(self, event: Event) -> None:
        """Apply one event; an event that this version cannot read changes nothing."""
        self._spend.add([event])
        self._running = not isinstance(event.payload, kinds.ReviewAsked)
        phase = PHASES.get(CATALOGUE.get(event.kind, RawPayload), self._phase)
        # The final form of a result is checked while it is certified.
        self._start_phase(self._phase if self._phase == CERTIFYING and phase == "checking" else phase)
        match event.payload:
            case kinds.RunStarted(model=model) if model != "none":
                self._limits = self._model_limits
            case kinds.SearchStarted(candidates=candidates):
                self._max_changes, self._search_text = candidates, ""
            case kinds.SearchFinished():
                self._search_text = ""
            case kinds.MovesDecided() as decided:
                self._round, self._best = decided.round, decided.best or ""
                move = decided.moves[0]
                if move.kind == "stop":
                    self._start_phase(CERTIFYING if move.outcome == "healed" else "ending")
                elif move.kind == "ask":
                    self._start_phase("calling the code")
                elif move.kind == "mutate":
                    self._start_phase("searching for a repair without a model")
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
            return
        partial = self._partial_replies.setdefault(reply, PartialReply(start_s=time.monotonic()))
        partial.text, partial.tokens = text, partial.tokens + 1

    def update_search(self, progress: SearchProgress) -> None:
        """Show how many changes were tried, and what the best of them achieves."""
        tried = f"tried {progress.tried:,} of at most {self._max_changes:,} edits"
        self._search_text = f"{tried} · best: {describe_best_edit(progress)}" if progress.best else tried

    @property
    def is_running(self) -> bool:
        """Return whether the run goes on; not while a person is asked."""
        return self._running

    def status_text(self) -> str:
        """Return what the run does, how far it has come, and for how long it has done it, in one line."""
        phase, _, duration = self._phase_text().rpartition(" · ")
        return " · ".join(filter(None, (phase, self._search_text, duration)))

    def _phase_text(self) -> str:
        """Return what the run does, and for how long it has done it."""
        now_s, replies = time.monotonic(), self._partial_replies.values()
        parts = ["the model writes" if replies else self._phase]
        if self._round:
            parts.append(f"round {self._round + 1}")
        tokens = sum(reply.tokens for reply in replies)
        start_s = min((reply.start_s for reply in replies), default=self._phase_start_s)
        if tokens > 1 and now_s > start_s:
            speed = tokens / (now_s - start_s)
            # A laptop that is busy writes less than one token a second.
            parts.append(f"{tokens} tokens, {speed:.{0 if speed >= 10 else 1}f} a second")
        return " · ".join((*parts, f"{now_s - start_s:.0f} s"))

    def _start_phase(self, phase: str) -> None:
        if phase != self._phase:
            self._phase, self._phase_start_s = phase, time.monotonic()

    def spend_text(self, now_s: float | None = None) -> str:
        """Return what was used and the limits."""
        return describe_spend(self._spend.spend(now_s, with_reservations=False), self._limits)

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
        phase, separator, details = self._phase_text().partition(" · ")
        yield Text.assemble(mark, " ", (phase, "bold"), f"{separator}{details}")
        if self._search_text:
            yield Text(f"  {self._search_text}")
        # Of several replies, show the one that started first.
        reply = next((reply.text for reply in self._partial_replies.values()), "")
        reply_lines = [line for line in reply.splitlines() if line.strip()][-MAX_REPLY_LINES:]
        yield from (Text(f"  | {escape_unprintable(line)}", style="dim") for line in reply_lines)
        for name, (label, passed, total) in list(self._candidates.items())[-MAX_CANDIDATES:]:
            style = "green" if total and passed == total else "yellow" if passed else "red"
            best = " (best)" if name == self._best else ""
            score = f"{passed}/{total}" if total else "unchecked"
            yield Text.assemble(
                "  ", (f"{score:>9}", style), escape_unprintable(f"  {name[:8]}  {label}{best}")
            )
        yield Text(f"  spent {self.spend_text(self._clock.now() if self._running else None)}", style="dim")
        yield from (Text(f"  lesson: {escape_unprintable(lesson)}", style="dim") for lesson in self._lessons)
