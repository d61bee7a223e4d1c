"""Render ledger events as one line each. Live progress and `suture show` use the same lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    HistorySearched,
    ModelCalled,
    ModelEscalated,
    ModelFellBack,
    MoveFailed,
    MovesDecided,
    PackagesInstalled,
    ReplyTruncated,
    ReviewAnswered,
    ReviewAsked,
    RunFailed,
    RunFinished,
    RunPaused,
    RunResumed,
    RunStarted,
    SearchEnding,
    SearchFinished,
    SearchStarted,
    TaskPrepared,
    TestAccepted,
    TriageFinished,
    TrialAgreement,
    UserAnswered,
)
from suture.core.records import Counterexample, MoveKind, Reason, render_reason
from suture.interfaces.narrative.certificate_rendering import CERTIFICATE_RENDERERS
from suture.interfaces.narrative.plain_text import escape_line_breaks, format_count, render_label
from suture.interfaces.narrative.role_event_text import MEMORY_RENDERERS, ROLE_RENDERERS
from suture.interfaces.narrative.wording import MOVE_TEXTS, REVIEW_STAGE_TEXTS
from suture.mutation import describe_operator

NO_MODEL = "none"
"""The model name in the ledger of a run that uses no model."""
MAX_LISTED_FILES = 8
MAX_LISTED_DISAGREEMENTS = 3


def render_event(event: Event) -> str | None:
    """Return one line about an event, or `None` for pure bookkeeping.

    An event that this version cannot read is shown by its kind and its data.
    """
    if isinstance(event.payload, BudgetReserved | BudgetSettled | BudgetRefused):
        return None
    renderer = RENDERERS.get(type(event.payload))
    return escape_line_breaks(renderer(event.payload) if renderer else summarise_event(event))


def counterexample_lines(fact: Counterexample) -> list[str]:
    """Return a counterexample with one aspect on each line."""
    where = f" ({fact.file or 'the code'} line {fact.line})" if fact.line else ""
    pairs = (
        ("call", fact.call),
        ("expected", fact.expected),
        ("got", fact.actual),
        ("raised", fact.exception + where if fact.exception else ""),
    )
    return [fact.check_id, *(f"  {name}: {value}" for name, value in pairs if value)]


def _run_started(started: RunStarted) -> str:
    model = "no model" if started.model == NO_MODEL else f"model {started.model}" if started.model else ""
    parts = [model] if model else []
    parts += [f"recipe {started.recipe}"] if started.recipe else []
    parts += [f"{started.escalation_model} for a hard case"] if started.escalation_model else []
    scripted = "; scripted, not a model" if started.model.startswith("scripted:") else ""
    unpriced = ", ".join(started.unpriced_models)
    note = f"; no price is known for {unpriced}, so its cost is not counted" if unpriced else ""
    text = f" with {', '.join(parts)}" if parts else ""
    left_out = f"; {withheld_files_text(started.excluded_files)}" if started.excluded_files else ""
    origin = f", from step {started.fork.step} of {started.fork.run}" if started.fork else ""
    return f"{started.kind}{text}{origin}{scripted}{note}{left_out}"


def withheld_files_text(names: Sequence[str]) -> str:
    """Name the files that no run sees because they may hold secrets.

    A test that needs one of these files fails in every run.
    """
    more = f" and {len(names) - MAX_LISTED_FILES} more" if len(names) > MAX_LISTED_FILES else ""
    text = f"{', '.join(names[:MAX_LISTED_FILES])}{more}"
    return f"left out because they may hold secrets: {text} (the setting sandbox.secrets lets files in)"


def _task_prepared(prepared: TaskPrepared) -> str:
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
    python = f"; Python is {prepared.python}, {prepared.python_origin}" if prepared.python else ""
    unread = (
        f"; could not be parsed and is not checked: {'; '.join(prepared.unused_examples)}"
        if prepared.unused_examples
        else ""
    )
    python += f"; {prepared.language} is {prepared.toolchain}" if prepared.toolchain else ""
    return "checks: " + (" and ".join(parts) or "none, so nothing can be verified") + python + unread


def _triage_finished(triaged: TriageFinished) -> str:
    text = f"; not the code's fault: {excluded_tests_text(triaged)}" if triaged.non_code_failures else ""
    return f"{format_count(triaged.code_failure_count, 'failing test')} to fix{text}"


def excluded_tests_text(triaged: TriageFinished) -> str:
    """Return the failing tests that are not the code's fault: the first for each reason, and a count."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for one in triaged.non_code_failures:
        by_reason.setdefault((one.cause, one.explanation), []).append(one.test)
    return "; ".join(
        f"{tests[0]}{f' and {len(tests) - 1} more' if tests[1:] else ''} ({cause}: {why})"
        for (cause, why), tests in by_reason.items()
    )


def _decided(decided: MovesDecided) -> str:
    first, count = decided.moves[0], len(decided.moves)
    if first.kind == "stop":
        return f"stop: {render_reason(first.reason)}" if first.reason else "stop"
    times = f" ({count} times)" if count > 1 else ""
    return f"next: {render_next_move(first.kind, times, first.reason)}"


def render_next_move(kind: MoveKind, how: str, reason: Reason | None) -> str:
    """Return what the run tries next and why; a first greedy reply needs no reason."""
    if reason is None or reason.code == "greedy_first":
        return f"{MOVE_TEXTS[kind]}{how}"
    return f"{MOVE_TEXTS[kind]}{how}, {render_reason(reason)}"


def _model_called(called: ModelCalled) -> str:
    tokens = f"{called.prompt_tokens} tokens in, {called.completion_tokens} out"
    if called.replayed:
        record = f"the record of {called.from_run}" if called.from_run else "the run's own record"
        return f"model: reply taken from {record}, {tokens}"
    cut = ", cut short" if called.finish_reason == "length" else ""
    money = f", ${called.money:.4f}" if called.money else ""
    again = f", after {called.retries} failed tries" if called.retries else ""
    return f"{_model_name(called.role)}: {tokens}, {called.seconds:.1f} s{money}{again}{cut}"


def _model_name(role: str) -> str:
    return {"coder": "model", "escalate": "stronger model"}.get(role, f"model of the {role}")


def _model_escalated(escalated: ModelEscalated) -> str:
    return f"{escalated.to} takes over from {escalated.from_}: {render_reason(escalated.reason)}"


def _reply_cut(cut: ReplyTruncated) -> str:
    return f"the reply was cut off: asking again with {cut.retry_max_tokens} tokens"


def _model_stepped_down(down: ModelFellBack) -> str:
    return f"{down.from_} failed, using {down.to} instead: {down.message}"


def _move_failed(failed: MoveFailed) -> str:
    return f"no candidate: {failed.message}"


def _candidate_proposed(proposed: CandidateProposed) -> str:
    surplus = (
        f"; not taken from the reply: {', '.join(proposed.surplus_files)}" if proposed.surplus_files else ""
    )
    label = render_label(proposed.label)
    return f"candidate {proposed.candidate[:8]}: {label}, writes {', '.join(proposed.files)}{surplus}"


def _candidate_checked(checked: CandidateChecked) -> str:
    total, name = checked.passed + checked.failed, f"{checked.candidate[:8]} ({render_label(checked.label)})"
    if not total:
        return f"not checked {name}: there is no test or example to check it against"
    unreached = f", {checked.unreached} not reached" if checked.unreached else ""
    return f"checked {name}: {checked.passed} of {total} pass{unreached}"


def _candidate_refused(refused: CandidateRefused) -> str:
    more = f" (and {len(refused.reasons) - 1} more)" if refused.reasons[1:] else ""
    return f"candidate {refused.candidate[:8]} is not run: {refused.reasons[0]}{more}"


def _packages_installed(installed: PackagesInstalled) -> str:
    return f"packages for the code, installed and locked by hash: {', '.join(installed.packages)}"


def _candidate_regressed(regressed: CandidateRegressed) -> str:
    return f"candidate {regressed.candidate[:8]} breaks what worked: {', '.join(regressed.checks)}"


def _candidate_unconfirmed(lost: CandidateUnconfirmed) -> str:
    return f"candidate {lost.candidate[:8]} passed once but not again: {', '.join(lost.checks)}"


def _review_asked(asked: ReviewAsked) -> str:
    return f"waits for your answer before {REVIEW_STAGE_TEXTS[asked.stage]}"


def _test_accepted(accepted: TestAccepted) -> str:
    return f"accepted by a person, and trusted from now on: {accepted.path} ({' '.join(accepted.command)})"


def _review_answered(answered: ReviewAnswered) -> str:
    hint = f": {answered.hint}" if answered.hint else ""
    return f"your answer: {answered.choice}{hint}"


def _run_finished(end: RunFinished | RunPaused) -> str:
    return (
        f"{end.outcome}: "
        f"{render_reason(end.reason)}{f'; confidence {end.confidence:.2f}' if end.confidence else ''}"
    )


def _run_resumed(resumed: RunResumed) -> str:
    return f"resumed at: {', '.join(resumed.next_nodes) or 'the beginning'}"


def _run_refused(refused: RunFailed) -> str:
    return f"stopped by an error: {refused.message}"


def _search_started(began: SearchStarted) -> str:
    return (
        f"searching: at most {began.candidates:,} edits of {format_count(len(began.files), 'file')}, "
        f"for {began.seconds:.0f} s"
    )


def _history_searched(searched: HistorySearched) -> str:
    if not searched.last_good:
        return "history: the tests also fail on the oldest code, so no change in the history broke them"
    return f"history: the tests pass at {searched.last_good} and fail since {searched.first_bad}"


SEARCH_ENDINGS: Mapping[SearchEnding, str] = {
    "enough_repairs": "enough plausible repairs were found",
    "likely_changes_tried": "the likeliest changes were tried",
    "all_tried": "everything was tried",
    "time_over": "the time was up",
    "candidate_limit": "the limit of candidates was reached",
    "workers_lost": "no trial process could be kept running",
    "nothing_could_be_tried": "no change could be tried",
    "no_failing_test": "no test fails in a trial",
    "targets_not_reached": "the failing tests were not reached in the time for localisation",
    "targets_pass_alone": "the failing tests pass when they run alone, so no change can be tried on them",
    "trials_disagree": "the trial disagrees with your run: what fails there passes here",
    "no_parsable_text": "no small change makes the file parse",
    "parsable_texts_tried": "the texts that parse were tried",
}
"""Why a search ended, in words."""


def _search_finished(ended: SearchFinished) -> str:
    found = (
        f"{ended.plausible_count} of them make all tests pass"
        if ended.plausible_count
        else "none makes all tests pass"
    )
    text = f"tried {format_count(ended.candidates_tried, 'edit')} in {ended.seconds:.1f} s, {found}"
    if ended.ending is not None:
        text += f" ({SEARCH_ENDINGS[ended.ending]})"
    text += trial_caveats(ended.agreement)
    if difference := ended.distinguishing_input:
        answers = "; ".join(f"{answer} with {label!r}" for label, answer in difference.answers.items())
        text += f"; {difference.call} distinguishes the likeliest repairs: {answers}"
    for broken in ended.broken_operators[:1]:
        operator = describe_operator(broken.operator)
        text += f"; the mutation {operator!r} failed on {broken.path}:{broken.line} and was skipped there"
        text += f" (an internal error in Suture: {broken.fault})"
    return text


def trial_caveats(trials: TrialAgreement) -> str:
    """Return where the search's trial runs cannot see what the user's own run shows."""
    untraced = (
        f"{trials.untraced} test(s) were not traced, because the time was up" if trials.untraced else ""
    )
    text = "".join(f"; {note}" for note in (untraced, *trials.notes) if note)
    if trials.disagreements:
        listed = trials.disagreeing_tests[:MAX_LISTED_DISAGREEMENTS]
        some = [f"{one.test} ({one.run} in your run, {one.trial} in a trial)" for one in listed]
        more = ", ..." if trials.disagreements > len(some) else ""
        text += (
            f"; {trials.disagreements} test(s) end differently in a trial run and are left to the verdict: "
        )
        text += ", ".join(some) + more
    return text


def _user_answered(answered: UserAnswered) -> str:
    return f"question about {answered.call}: {' or '.join(answered.answers)}? your answer: {answered.choice}"


RENDERERS: dict[type[Payload], Callable[[Any], str]] = {
    RunStarted: _run_started,
    TaskPrepared: _task_prepared,
    TriageFinished: _triage_finished,
    MovesDecided: _decided,
    ModelCalled: _model_called,
    ModelFellBack: _model_stepped_down,
    ModelEscalated: _model_escalated,
    ReplyTruncated: _reply_cut,
    MoveFailed: _move_failed,
    CandidateProposed: _candidate_proposed,
    CandidateChecked: _candidate_checked,
    CandidateRefused: _candidate_refused,
    PackagesInstalled: _packages_installed,
    CandidateRegressed: _candidate_regressed,
    CandidateUnconfirmed: _candidate_unconfirmed,
    ReviewAsked: _review_asked,
    ReviewAnswered: _review_answered,
    TestAccepted: _test_accepted,
    RunPaused: _run_finished,
    RunResumed: _run_resumed,
    RunFinished: _run_finished,
    RunFailed: _run_refused,
    HistorySearched: _history_searched,
    SearchStarted: _search_started,
    SearchFinished: _search_finished,
    UserAnswered: _user_answered,
    **ROLE_RENDERERS,
    **MEMORY_RENDERERS,
    **CERTIFICATE_RENDERERS,
}
"""One renderer for each event kind; bookkeeping events have none."""
