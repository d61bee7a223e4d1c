"""A run in few words, for whoever waits in front of it; `--verbose` and `suture show` have the rest."""

from __future__ import annotations

from collections.abc import Iterator

from suture.core.ledger import Event, RunFolder, last_of, read_ledger
from suture.core.ledger.kinds import (
    CandidateChecked,
    CandidateProposed,
    CandidateRegressed,
    CandidateUnconfirmed,
    CertificateWritten,
    HistorySearched,
    ModelCalled,
    ModelEscalated,
    ModelSteppedDown,
    MoveFailed,
    ReplyCut,
    ReviewAnswered,
    RoleDegraded,
    RunFinished,
    RunParked,
    RunResumed,
    RunStarted,
    SearchFinished,
    SearchStarted,
    TaskPrepared,
    TriageFinished,
    UserAnswered,
)
from suture.core.records import Outcome, Result, Spend
from suture.interfaces.narrative.render_certificate import certificate_summary_lines
from suture.interfaces.narrative.deselection_advice import deselection_arguments
from suture.interfaces.narrative.event_text import (
    excluded_tests_text,
    render_event,
    trial_caveats,
    withheld_files_text,
)
from suture.interfaces.narrative.plain_text import escape_line_breaks, format_count, render_label
from suture.interfaces.narrative.result_text import (
    caution_lines,
    change_size,
    failing_lines,
    is_heal_run,
    next_step_lines,
)

AS_IT_IS = "the code as it is"
"""As a run labels the code that it was given."""
RENDERED_AS_IN_SHOW = (
    CandidateRegressed,
    CandidateUnconfirmed,
    HistorySearched,
    ModelEscalated,
    ModelSteppedDown,
    MoveFailed,
    ReplyCut,
    ReviewAnswered,
    RoleDegraded,
    RunResumed,
    UserAnswered,
)
"""Events that matter as they come, in the words that `suture show` has for them."""
OUTCOME_TEXTS: dict[Outcome, str] = {
    "healed": "Healed",
    "nothing_to_heal": "Nothing to heal",
    "not_healed": "Not healed",
    "stuck": "Gave up (stuck)",
    "not_a_code_fault": "Not the code's fault",
    "budget_exhausted": "Stopped at the limit (budget_exhausted)",
    "waiting": "Waiting for you",
    "infra_error": "Broke off (infra_error)",
    "cancelled": "Stopped",
}


class ProgressNarrator:
    """Says what a run does as it goes on, an event at a time."""

    def __init__(self) -> None:
        self._command = ""
        self._words: tuple[str, ...] = ()
        self._kind = "heal"
        self._calls: dict[str, str] = {}
        self._written: dict[str, str] = {}
        self._last, self._again = "", 0

    def render_event(self, event: Event) -> tuple[str, ...]:
        """The lines about an event; none for most, and a line that is said again and again is counted."""
        lines: list[str] = []
        for line in map(escape_line_breaks, self._lines(event)):
            if line == self._last:
                self._again += 1
                continue
            lines += [*self._counted_again(), line]
            self._last = line
        if isinstance(event.payload, RunFinished | RunParked):
            lines += self._counted_again()
        return tuple(lines)

    def _counted_again(self) -> Iterator[str]:
        if self._again:
            yield f"  the same {format_count(self._again, 'more time')}"
        self._again = 0

    def _lines(self, event: Event) -> Iterator[str]:
        match event.payload:
            case RunStarted() as started:
                self._kind = started.kind
                yield from _start_lines(started)
            case TaskPrepared() as prepared:
                self._words = prepared.test_command
                self._command = " ".join(self._words)
                yield from _preparation_lines(prepared)
            case TriageFinished() as triaged if triaged.set_apart:
                yield f"Not the code's fault: {excluded_tests_text(triaged)}"
                if way := deselection_arguments(triaged, self._words):
                    yield f"While these fail nothing counts as healed. Leave them out: {way}"
            case SearchStarted() as began:
                yield (
                    f"Trying small edits first, without a model: at most {began.candidates:,}, "
                    f"for {began.seconds:.0f} s."
                )
            case SearchFinished() as ended:
                yield from _search_lines(ended)
            case ModelCalled(role="coder" | "escalate") as called:
                replayed = " (recorded)" if called.replayed else f" in {called.seconds:.1f} s"
                self._calls[called.call] = f", {called.completion_tokens} tokens{replayed}"
            case CandidateProposed() as proposed:
                self._written[proposed.candidate] = self._calls.get(proposed.call, "")
            case CandidateChecked() as checked:
                yield from self._checked(checked)
            case payload if isinstance(payload, RENDERED_AS_IN_SHOW):
                yield render_event(event) or ""

    def _checked(self, checked: CandidateChecked) -> Iterator[str]:
        total = checked.passed + checked.failed
        what = "tests" if self._kind == "heal" else "checks"
        if checked.label == AS_IT_IS:
            passed = "all pass" if not checked.failed else f"{checked.failed} of {total} fail"
            if checked.unreached:
                failed = checked.failed - checked.unreached
                passed = f"{checked.passed} pass, {failed} fail, {checked.unreached} not reached"
            yield f"Your code: {passed}{f' ({self._command})' if self._command else ''}."
            return
        written = self._written.get(checked.candidate, "")
        if checked.label.startswith("mutation") and not checked.failed:
            return  # the search has said so
        name = f"{render_label(checked.label)}{written}"
        yield (
            f"{name}: {checked.passed} of {total} {what} pass"
            if total
            else f"{name}: nothing to check it against"
        )


def render_short_result(result: Result, folder: RunFolder, *, typed: bool = True) -> Iterator[str]:
    """The last lines of a run: the outcome, what it is worth, what to type next.

    Args:
        result: How the run ended.
        folder: Its folder.
        typed: Whether what to type next is told; an editor and a page have buttons.
    """
    yield _outcome(result, heals=is_heal_run(folder))
    if not result.ok:
        yield from _best_so_far(result)
    events = read_ledger(folder.ledger_path).events
    if (written := last_of(events, CertificateWritten)) is not None:
        yield from certificate_summary_lines(written, folder.id, result.confidence)
    yield from caution_lines(result, folder, typed=typed)
    if typed:
        yield from next_step_lines(result, folder)
    yield f"{_spent(result.spend)}. More: suture show {folder.id}"


def _start_lines(started: RunStarted) -> Iterator[str]:
    if started.forks:
        yield f"Goes on from step {started.forks.at} of {started.forks.run}."
    if started.left_out:
        yield f"Note: {withheld_files_text(started.left_out)}"


def _preparation_lines(prepared: TaskPrepared) -> Iterator[str]:
    for example in prepared.unread:
        yield f"Note: this looks like an example, but is not understood and not checked: {example}"
    if not prepared.checks and not prepared.test_command:
        yield "No test and no example can be run, so the code cannot be verified."


def _search_lines(ended: SearchFinished) -> Iterator[str]:
    tried = f"{ended.tried:,} edits in {ended.seconds:.1f} s"
    if ended.repairs:
        others = f", and {len(ended.repairs) - 1} more" if len(ended.repairs) > 1 else ""
        first = ended.repairs[0]
        yield f"Found among {tried}: {first.file}, {first.label}{others}"
    else:
        yield f"None of {tried} makes all tests pass."
    if text := trial_caveats(ended.trials):
        yield f"Note: {text.removeprefix('; ')}"


def _outcome(result: Result, *, heals: bool) -> str:
    verdict, word = result.verdict, OUTCOME_TEXTS[result.outcome]
    if result.outcome == "healed" and verdict is not None and verdict.outcomes:
        if verdict.evidence == "exit_status":
            return "Healed: the test command passes, judged by its exit status alone."
        count = len(verdict.passed)
        what = ("test" if heals else "check") + ("s" if count != 1 else "")
        done = "Healed" if heals else "Done"
        return f"{done}: all {count} {what} pass." if count != 1 else f"{done}: the one {what} passes."
    if result.outcome == "not_healed" and not heals:  # nothing was ill
        word = "Not done" if verdict is not None and verdict.outcomes else "Not verified"
    return f"{word}: {result.reason}"


def _best_so_far(result: Result) -> Iterator[str]:
    if result.candidate is not None and result.diff:
        yield f"Best so far: {change_size(result)}"
    if result.verdict is not None and result.verdict.failed:
        yield from failing_lines(result.verdict)


def _spent(spend: Spend) -> str:
    """What was used, in few words; the limits were said at the start."""
    parts = [f"{spend.seconds:,.0f} s"]
    if spend.tokens or spend.attempts:
        parts.append(f"{format_count(spend.tokens, 'token')} in {format_count(spend.attempts, 'attempt')}")
    if spend.money:
        parts.append(f"${spend.money:,.4f}")
    if spend.unpriced_calls:
        parts.append(f"{format_count(spend.unpriced_calls, 'call')} of unknown price")
    return f"Used {', '.join(parts)}"
