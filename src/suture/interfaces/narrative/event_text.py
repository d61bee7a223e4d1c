"""An event of the ledger as one line for people. Live progress and `suture show` both speak through this."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from suture.core.ledger import Event, Payload, summarise_event
from suture.core.ledger.kinds import (
    BudgetRefused,
    BudgetReserved,
    BudgetSettled,
    CandidateChecked,
    CandidateProposed,
    CandidateRefused,
    CandidateRegressed,
    CandidateUnconfirmed,
    Decided,
    HistorySearched,
    ModelCalled,
    ModelEscalated,
    ModelSteppedDown,
    MoveFailed,
    PackagesInstalled,
    ReplyCut,
    ReviewAnswered,
    ReviewAsked,
    ReviewStage,
    RunFinished,
    RunParked,
    RunRefused,
    RunResumed,
    RunStarted,
    SearchFinished,
    SearchStarted,
    TaskPrepared,
    TestAccepted,
    TriageFinished,
    Trials,
    UserAnswered,
)
from suture.core.records import Counterexample, Evidence, MoveKind
from suture.interfaces.narrative.render_certificate import CERTIFICATE_RENDERERS
from suture.interfaces.narrative.plain_text import escape_line_breaks, format_count, render_label
from suture.interfaces.narrative.role_event_text import MEMORY_RENDERERS, ROLE_RENDERERS

NO_MODEL = "none"
"""As the record of a run names the model where nobody was to be asked."""

EVIDENCE_TEXTS: dict[Evidence, str] = {
    "split": "a judge that never loads the code under test",
    "nonce": "the test runner's report, signed with a secret of this run",
    "report": "the test runner's report and exit status, so code that prints the like passes too",
    "exit_status": "the exit status alone, so code that ends the command with 0 passes too",
}
"""What each kind of evidence is worth, in words (see docs/verdicts.md)."""

REVIEW_STAGE_TEXTS: dict[ReviewStage, str] = {
    "search": "small edits without a model",
    "samples": "fresh candidates",
    "repairs": "repairs",
    "hand_over": "the hand-over",
    "distinguish": "a choice between repairs that differ",
    "test": "the use of a test that a model wrote",
    "safety": "a run of code that the safety scan asks about",
}
MAX_LISTED_FILES = 8
MOVE_TEXTS: dict[MoveKind, str] = {
    "mutate": "small edits without a model",
    "sample": "fresh code",
    "repair": "repair",
    "agent": "an agent",
    "stop": "stop",
}
"""What is tried next, in words."""


def render_event(event: Event) -> str | None:
    """One line about an event; `None` for mere bookkeeping.

    An event that this version cannot read (an older or newer ledger) is told by its kind and its data.
    """
    if isinstance(event.payload, BudgetReserved | BudgetSettled | BudgetRefused):
        return None
    teller = RENDERERS.get(type(event.payload))
    return escape_line_breaks(teller(event.payload) if teller else summarise_event(event))


def counterexample_lines(fact: Counterexample) -> list[str]:
    """A counterexample, one aspect a line."""
    where = f" ({fact.file or 'the code'} line {fact.line})" if fact.line else ""
    pairs = (
        ("call", fact.call),
        ("expected", fact.expected),
        ("got", fact.actual),
        ("raised", fact.exception + where if fact.exception else ""),
    )
    return [fact.check_id, *(f"  {name}: {value}" for name, value in pairs if value)]


def _started(started: RunStarted) -> str:
    model = "no model" if started.model == NO_MODEL else f"model {started.model}" if started.model else ""
    parts = [model] if model else []
    parts += [f"recipe {started.recipe}"] if started.recipe else []
    parts += [f"{started.stronger} for a hard case"] if started.stronger else []
    scripted = "; scripted, not a model" if started.model.startswith("scripted:") else ""
    unpriced = ", ".join(started.unpriced)
    note = f"; no price is known of {unpriced}, whose money is not counted" if unpriced else ""
    text = f" with {', '.join(parts)}" if parts else ""
    left_out = f"; {withheld_files_text(started.left_out)}" if started.left_out else ""
    origin = f", from step {started.forks.at} of {started.forks.run}" if started.forks else ""
    return f"{started.kind}{text}{origin}{scripted}{note}{left_out}"


def withheld_files_text(names: Sequence[str]) -> str:
    """Files that no run sees: a test that needs one of them fails for want of it."""
    more = f" and {len(names) - MAX_LISTED_FILES} more" if len(names) > MAX_LISTED_FILES else ""
    text = f"{', '.join(names[:MAX_LISTED_FILES])}{more}"
    return f"left out, as they may hold secrets: {text} (sandbox.secrets lets files in)"


def _prepared(prepared: TaskPrepared) -> str:
    command = " ".join(prepared.test_command)
    parts = (
        [
            format_count(prepared.checks, "example or assert")
            if prepared.checks == 1
            else f"{prepared.checks:,} examples and asserts"
        ]
        if prepared.checks
        else []
    )
    origin = f" ({prepared.test_origin})" if prepared.test_origin else ""
    parts += [f"{command}{origin}"] if command else []
    python = f"; python is {prepared.python}, {prepared.python_origin}" if prepared.python else ""
    unread = f"; not understood, so not checked: {'; '.join(prepared.unread)}" if prepared.unread else ""
    python += f"; {prepared.language} is {prepared.toolchain}" if prepared.toolchain else ""
    return "checks: " + (" and ".join(parts) or "none, so nothing can be verified") + python + unread


def _triaged(triaged: TriageFinished) -> str:
    text = f"; not the code's fault: {excluded_tests_text(triaged)}" if triaged.set_apart else ""
    return f"{format_count(triaged.code_faults, 'failing test')} to mend{text}"


def excluded_tests_text(triaged: TriageFinished) -> str:
    """Failing tests that are not the code's fault, with why; of those with one reason the first."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for one in triaged.set_apart:
        by_reason.setdefault((one.cause, one.why), []).append(one.test)
    return "; ".join(
        f"{tests[0]}{f' and {len(tests) - 1} more' if tests[1:] else ''} ({cause}: {why})"
        for (cause, why), tests in by_reason.items()
    )


def _decided(decided: Decided) -> str:
    first, count = decided.moves[0], len(decided.moves)
    if first.kind == "stop":
        return f"end: {first.reason}"
    times = f" ({count} times)" if count > 1 else ""
    return f"next: {render_next_move(first.kind, times, first.reason)}"


def render_next_move(kind: MoveKind, how: str, reason: str) -> str:
    """What is tried next, and why; that a first reply is the likeliest one needs no reason."""
    return f"{MOVE_TEXTS[kind]}{how}" + (f", {reason}" if reason != "greedy first" else "")


def _called(called: ModelCalled) -> str:
    tokens = f"{called.prompt_tokens} tokens in, {called.completion_tokens} out"
    if called.replayed:
        record = f"the record of {called.from_run}" if called.from_run else "the run's own record"
        return f"model: answered from {record}, {tokens}"
    cut = ", cut short" if called.finish == "length" else ""
    money = f", ${called.money:.4f}" if called.money else ""
    again = f", after {called.retries} tries that failed" if called.retries else ""
    return f"{_asked(called.role)}: {tokens}, {called.seconds:.1f} s{money}{again}{cut}"


def _asked(role: str) -> str:
    return {"coder": "model", "escalate": "stronger model"}.get(role, f"model of the {role}")


def _escalated(escalated: ModelEscalated) -> str:
    return f"{escalated.to} takes over from {escalated.from_}: {escalated.reason}"


def _cut(cut: ReplyCut) -> str:
    return f"the reply ended too early: asked again, with {cut.again_with_tokens} tokens"


def _stepped_down(down: ModelSteppedDown) -> str:
    return f"{down.from_} failed, so {down.to} is asked: {down.message}"


def _failed_move(failed: MoveFailed) -> str:
    return f"no candidate: {failed.message}"


def _proposed(proposed: CandidateProposed) -> str:
    surplus = f"; not taken from the reply: {', '.join(proposed.surplus)}" if proposed.surplus else ""
    label = render_label(proposed.label)
    return f"candidate {proposed.candidate[:8]}: {label}, writes {', '.join(proposed.files)}{surplus}"


def _checked(checked: CandidateChecked) -> str:
    total, name = checked.passed + checked.failed, f"{checked.candidate[:8]} ({render_label(checked.label)})"
    if not total:
        return f"not checked {name}: there is nothing to check it against"
    unreached = f", {checked.unreached} not reached" if checked.unreached else ""
    return f"checked {name}: {checked.passed} of {total} pass{unreached}"


def _not_run(refused: CandidateRefused) -> str:
    more = f" (and {len(refused.reasons) - 1} more)" if refused.reasons[1:] else ""
    return f"candidate {refused.candidate[:8]} is not let run: {refused.reasons[0]}{more}"


def _installed(installed: PackagesInstalled) -> str:
    return f"packages for the code, fetched and locked by their hashes: {', '.join(installed.packages)}"


def _regressed(regressed: CandidateRegressed) -> str:
    return f"candidate {regressed.candidate[:8]} breaks what worked: {', '.join(regressed.checks)}"


def _unconfirmed(lost: CandidateUnconfirmed) -> str:
    return f"candidate {lost.candidate[:8]} passed once, and not again: {', '.join(lost.checks)}"


def _asked_person(asked: ReviewAsked) -> str:
    return f"asks you before {REVIEW_STAGE_TEXTS[asked.stage]}"


def _test_accepted(accepted: TestAccepted) -> str:
    return f"accepted by a person, and trusted from now on: {accepted.path} ({' '.join(accepted.command)})"


def _person_answered(answered: ReviewAnswered) -> str:
    hint = f": {answered.hint}" if answered.hint else ""
    return f"your answer: {answered.choice}{hint}"


def _stands(end: RunFinished | RunParked) -> str:
    return f"{end.outcome}: {end.reason}{f'; confidence {end.confidence:.2f}' if end.confidence else ''}"


def _resumed(resumed: RunResumed) -> str:
    return f"resumed at: {', '.join(resumed.at) or 'the beginning'}"


def _refused(refused: RunRefused) -> str:
    return f"ended by an error: {refused.message}"


RENDERERS: dict[type[Payload], Callable[[Any], str]] = {
    RunStarted: _started,
    TaskPrepared: _prepared,
    TriageFinished: _triaged,
    Decided: _decided,
    ModelCalled: _called,
    ModelSteppedDown: _stepped_down,
    ModelEscalated: _escalated,
    ReplyCut: _cut,
    MoveFailed: _failed_move,
    CandidateProposed: _proposed,
    CandidateChecked: _checked,
    CandidateRefused: _not_run,
    PackagesInstalled: _installed,
    CandidateRegressed: _regressed,
    CandidateUnconfirmed: _unconfirmed,
    ReviewAsked: _asked_person,
    ReviewAnswered: _person_answered,
    TestAccepted: _test_accepted,
    RunParked: _stands,
    RunResumed: _resumed,
    RunFinished: _stands,
    RunRefused: _refused,
    **ROLE_RENDERERS,
    **MEMORY_RENDERERS,
    **CERTIFICATE_RENDERERS,
    **SEARCH_RENDERERS,
}


def _search_began(began: SearchStarted) -> str:
    return (
        f"searching: at most {began.candidates:,} edits of {format_count(len(began.files), 'file')}, "
        f"for {began.seconds:.0f} s"
    )


def _history_searched(searched: HistorySearched) -> str:
    if not searched.good:
        return "history: the tests fail on the oldest code too; no change broke them"
    return f"history: the tests pass on the code of {searched.good}, and not since {searched.broke}"


def _search_ended(ended: SearchFinished) -> str:
    found = (
        f"{ended.plausible} of them make all tests pass" if ended.plausible else "none makes all tests pass"
    )
    text = f"tried {format_count(ended.tried, 'edit')} in {ended.seconds:.1f} s, {found} ({ended.ended})"
    text += trial_caveats(ended.trials)
    if apart := ended.difference:
        answers = "; ".join(f"{answer} with {label!r}" for label, answer in apart.answers.items())
        text += f"; {apart.call} tells the likeliest apart: {answers}"
    for broken in ended.broken[:1]:
        text += f"; {broken.operator!r} broke on {broken.path}:{broken.line} and was left out there"
        text += f" (a fault of suture's own: {broken.fault})"
    return text


def trial_caveats(trials: Trials) -> str:
    """Where the search could not see what the user's own run shows."""
    text = "".join(f"; {note}" for note in (trials.partly, *trials.notes) if note)
    if trials.disagreements:
        some = [f"{one.test} ({one.run} in your run, {one.trial} in a trial)" for one in trials.differing[:3]]
        more = ", ..." if trials.disagreements > len(some) else ""
        text += f"; {trials.disagreements} test(s) end otherwise in a trial and are left to the verdict: "
        text += ", ".join(some) + more
    return text


def _user_answered(answered: UserAnswered) -> str:
    return f"asked about {answered.call}: {' or '.join(answered.answers)}? your answer: {answered.choice}"


SEARCH_RENDERERS: dict[type[Payload], Callable[[Any], str]] = {
    HistorySearched: _history_searched,
    SearchStarted: _search_began,
    SearchFinished: _search_ended,
    UserAnswered: _user_answered,
}
"""A line for each kind of event about the search."""
