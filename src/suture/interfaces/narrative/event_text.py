"""Render ledger events as one line each. Live progress and `suture show` use the same lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from suture.core.ledger import Event, Payload, kinds, summarise_event
from suture.core.records import Counterexample, MoveKind, Reason, render_reason
from suture.interfaces.narrative.certificate_rendering import CERTIFICATE_RENDERERS
from suture.interfaces.narrative.plain_text import escape_line_breaks, format_count, render_label
from suture.interfaces.narrative.wording import MOVE_TEXTS, REVIEW_STAGE_TEXTS
from suture.mutation import describe_operator

NO_MODEL = "none"
"""The model name in the ledger of a run that uses no model."""
MAX_LISTED_FILES = 8
MAX_LISTED_DISAGREEMENTS = 3
MAX_FACTORS = 5
"""The number of search factors that a line about the memory lists."""
RENDERERS: dict[type[Payload], Callable[[Any], str]] = {**CERTIFICATE_RENDERERS}
"""One renderer for each kind of event. Bookkeeping events have none."""
PayloadT = TypeVar("PayloadT", bound=Payload)


def _render_with(kind: type[PayloadT], renderer: Callable[[PayloadT], str]) -> None:
    """Add a renderer; unlike in a dict literal, its type is checked against the kind of event."""
    RENDERERS[kind] = renderer


def render_event(event: Event) -> str | None:
    """Return one line about an event, or `None` for pure bookkeeping.

    An event that this version cannot read is shown by its kind and its data.
    """
    if isinstance(event.payload, kinds.BudgetReserved | kinds.BudgetSettled | kinds.BudgetRefused):
        return None
    renderer = RENDERERS.get(type(event.payload))
    return escape_line_breaks(renderer(event.payload) if renderer else summarise_event(event))


def counterexample_lines(counterexample: Counterexample) -> list[str]:
    """Return a counterexample with one aspect on each line."""
    line = counterexample.line
    location = f" ({counterexample.file or 'the code'} line {line})" if line else ""
    aspects = (
        ("call", counterexample.call),
        ("expected", counterexample.expected),
        ("got", counterexample.actual),
        ("raised", counterexample.exception + location if counterexample.exception else ""),
    )
    return [counterexample.check_id, *(f"  {name}: {value}" for name, value in aspects if value)]


# The run and its task


def _run_started(started: kinds.RunStarted) -> str:
    model = "no model" if started.model == NO_MODEL else f"model {started.model}" if started.model else ""
    parts = [model] if model else []
    parts += [f"recipe {started.recipe}"] if started.recipe else []
    parts += [f"{started.escalation_model} for a hard case"] if started.escalation_model else []
    scripted = "; scripted, not a model" if started.model.startswith("scripted:") else ""
    unpriced = ", ".join(started.unpriced_models)
    price_note = f"; no price is known for {unpriced}, so its cost is not counted" if unpriced else ""
    participants = f" with {', '.join(parts)}" if parts else ""
    withheld = f"; {withheld_files_text(started.excluded_files)}" if started.excluded_files else ""
    origin = f", from step {started.fork.step} of {started.fork.run}" if started.fork else ""
    return f"{started.kind}{participants}{origin}{scripted}{price_note}{withheld}"


def withheld_files_text(names: Sequence[str]) -> str:
    """Name the files that no run sees because they may hold secrets.

    A test that needs one of these files fails in every run.
    """
    more = f" and {len(names) - MAX_LISTED_FILES} more" if len(names) > MAX_LISTED_FILES else ""
    files = f"{', '.join(names[:MAX_LISTED_FILES])}{more}"
    return f"left out because they may hold secrets: {files} (the setting sandbox.secrets lets files in)"


def _task_prepared(prepared: kinds.TaskPrepared) -> str:
    checks = []
    if prepared.checks:
        several = f"{prepared.checks:,} examples and asserts"
        checks.append("1 example or assert" if prepared.checks == 1 else several)
    if command := " ".join(prepared.test_command):
        checks.append(f"{command} ({prepared.test_origin})" if prepared.test_origin else command)
    text = "checks: " + (" and ".join(checks) or "none, so nothing can be verified")
    if prepared.python:
        text += f"; Python is {prepared.python}, {prepared.python_origin}"
    if prepared.toolchain:
        text += f"; {prepared.language} is {prepared.toolchain}"
    if prepared.unused_examples:
        text += f"; could not be parsed and is not checked: {'; '.join(prepared.unused_examples)}"
    return text


def _triage_finished(triaged: kinds.TriageFinished) -> str:
    excluded = f"; not the code's fault: {excluded_tests_text(triaged)}" if triaged.non_code_failures else ""
    return f"{format_count(triaged.code_failure_count, 'failing test')} to fix{excluded}"


def excluded_tests_text(triaged: kinds.TriageFinished) -> str:
    """Return the failing tests that are not the code's fault: the first for each reason, and a count."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for failure in triaged.non_code_failures:
        by_reason.setdefault((failure.cause, failure.explanation), []).append(failure.test)
    return "; ".join(
        f"{tests[0]}{f' and {len(tests) - 1} more' if tests[1:] else ''} ({cause}: {explanation})"
        for (cause, explanation), tests in by_reason.items()
    )


def _run_ended(end: kinds.RunFinished | kinds.RunPaused) -> str:
    confidence = f"; confidence {end.confidence:.2f}" if end.confidence else ""
    return f"{end.outcome}: {render_reason(end.reason)}{confidence}"


def _attempts_near_limit(near: kinds.AttemptsNearLimit) -> str:
    limit = f" of {near.limit}" if near.limit else ""
    return f"Warning: {near.used}{limit} attempts are used"


_render_with(kinds.RunStarted, _run_started)
_render_with(kinds.TaskPrepared, _task_prepared)
_render_with(kinds.TriageFinished, _triage_finished)
_render_with(kinds.RunPaused, _run_ended)
_render_with(kinds.RunFinished, _run_ended)
_render_with(kinds.AttemptsNearLimit, _attempts_near_limit)
_render_with(
    kinds.RunResumed, lambda resumed: f"resumed at: {', '.join(resumed.next_nodes) or 'the beginning'}"
)
_render_with(kinds.RunFailed, lambda failed: f"stopped by an error: {failed.message}")


# Moves and the model


def _moves_decided(decided: kinds.MovesDecided) -> str:
    move, count = decided.moves[0], len(decided.moves)
    if move.kind == "stop":
        return f"stop: {render_reason(move.reason)}" if move.reason else "stop"
    return f"next: {render_next_move(move.kind, f' ({count} times)' if count > 1 else '', move.reason)}"


def render_next_move(kind: MoveKind, how: str, reason: Reason | None) -> str:
    """Return what the run tries next and why; a first greedy reply needs no reason."""
    if reason is None or reason.code == "greedy_first":
        return f"{MOVE_TEXTS[kind]}{how}"
    return f"{MOVE_TEXTS[kind]}{how}, {render_reason(reason)}"


def _model_called(called: kinds.ModelCalled) -> str:
    tokens = f"{called.prompt_tokens} tokens in, {called.completion_tokens} out"
    if called.replayed:
        record = f"the record of {called.from_run}" if called.from_run else "the run's own record"
        return f"model: reply taken from {record}, {tokens}"
    model = {"coder": "model", "escalate": "stronger model"}.get(called.role, f"model of the {called.role}")
    money = f", ${called.money:.4f}" if called.money else ""
    retries = f", after {called.retries} failed tries" if called.retries else ""
    cut = ", cut short" if called.finish_reason == "length" else ""
    return f"{model}: {tokens}, {called.seconds:.1f} s{money}{retries}{cut}"


_render_with(kinds.MovesDecided, _moves_decided)
_render_with(kinds.ModelCalled, _model_called)
_render_with(
    kinds.ModelFellBack,
    lambda change: f"{change.from_} failed, using {change.to} instead: {change.message}",
)
_render_with(
    kinds.ModelEscalated,
    lambda change: f"{change.to} takes over from {change.from_}: {render_reason(change.reason)}",
)
_render_with(
    kinds.ReplyTruncated,
    lambda reply: f"the reply was cut off: asking again with {reply.retry_max_tokens} tokens",
)
_render_with(kinds.MoveFailed, lambda failed: f"no candidate: {failed.message}")


# Candidates and the questions about them


def _candidate_proposed(proposed: kinds.CandidateProposed) -> str:
    text = f"candidate {proposed.candidate[:8]}: {render_label(proposed.label)}, "
    text += f"writes {', '.join(proposed.files)}"
    if proposed.surplus_files:
        text += f"; not taken from the reply: {', '.join(proposed.surplus_files)}"
    return text


def _candidate_checked(checked: kinds.CandidateChecked) -> str:
    total, name = checked.passed + checked.failed, f"{checked.candidate[:8]} ({render_label(checked.label)})"
    if not total:
        return f"not checked {name}: there is no test or example to check it against"
    unreached = f", {checked.unreached} not reached" if checked.unreached else ""
    return f"checked {name}: {checked.passed} of {total} pass{unreached}"


def _candidate_refused(refused: kinds.CandidateRefused) -> str:
    more = f" (and {len(refused.reasons) - 1} more)" if refused.reasons[1:] else ""
    return f"candidate {refused.candidate[:8]} is not run: {refused.reasons[0]}{more}"


def _candidates_compared(compared: kinds.CandidatesCompared) -> str:
    text = f"compared {len(compared.candidates)} candidates that pass: {compared.reason}"
    for difference in compared.differ[:1]:
        answers = "; ".join(f"{answer} by {name[:8]}" for name, answer in difference.answers.items())
        text += f"; {difference.call} gives {answers}"
    return text


def _candidate_optimised(optimised: kinds.CandidateOptimised) -> str:
    nodes_before, nodes_after = optimised.nodes
    decision = "kept" if optimised.accepted else "discarded, because it is no simpler or does not pass"
    names = f"{optimised.original[:8]} as {optimised.candidate[:8]}"
    return f"rewritten {names}, {nodes_before} to {nodes_after} nodes: {decision}"


def _review_answered(answered: kinds.ReviewAnswered) -> str:
    hint = f": {answered.hint}" if answered.hint else ""
    return f"your answer: {answered.choice}{hint}"


def _user_answered(answered: kinds.UserAnswered) -> str:
    answers = " or ".join(answered.answers)
    return f"question about {answered.call}: {answers}? your answer: {answered.choice}"


def _test_accepted(accepted: kinds.TestAccepted) -> str:
    return f"accepted by a person, and trusted from now on: {accepted.path} ({' '.join(accepted.command)})"


_render_with(kinds.CandidateProposed, _candidate_proposed)
_render_with(kinds.CandidateChecked, _candidate_checked)
_render_with(kinds.CandidateRefused, _candidate_refused)
_render_with(
    kinds.CandidateRegressed,
    lambda broken: f"candidate {broken.candidate[:8]} breaks what worked: {', '.join(broken.checks)}",
)
_render_with(
    kinds.CandidateUnconfirmed,
    lambda flaky: f"candidate {flaky.candidate[:8]} passed once but not again: {', '.join(flaky.checks)}",
)
_render_with(kinds.CandidatesCompared, _candidates_compared)
_render_with(kinds.CandidateOptimised, _candidate_optimised)
_render_with(
    kinds.PackagesInstalled,
    lambda installed: f"packages for the code, installed and locked by hash: {', '.join(installed.packages)}",
)
_render_with(
    kinds.ReviewAsked, lambda review: f"waits for your answer before {REVIEW_STAGE_TEXTS[review.stage]}"
)
_render_with(kinds.ReviewAnswered, _review_answered)
_render_with(kinds.UserAnswered, _user_answered)
_render_with(kinds.TestAccepted, _test_accepted)


# The search


SEARCH_ENDINGS: Mapping[kinds.SearchEnding, str] = {
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


def _search_started(search: kinds.SearchStarted) -> str:
    files = format_count(len(search.files), "file")
    return f"searching: at most {search.candidates:,} edits of {files}, for {search.seconds:.0f} s"


def _search_finished(ended: kinds.SearchFinished) -> str:
    count = ended.plausible_count
    success = f"{count} of them make all tests pass" if count else "none makes all tests pass"
    text = f"tried {format_count(ended.candidates_tried, 'edit')} in {ended.seconds:.1f} s, {success}"
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


def trial_caveats(trials: kinds.TrialAgreement) -> str:
    """Return where the search's trial runs cannot see what the user's own run shows."""
    text = "".join(f"; {note}" for note in trials.notes if note)
    if trials.untraced:
        text = f"; {trials.untraced} test(s) were not traced, because the time was up" + text
    if trials.disagreements:
        tests = [
            f"{test.test} ({test.run} in your run, {test.trial} in a trial)"
            for test in trials.disagreeing_tests[:MAX_LISTED_DISAGREEMENTS]
        ]
        text += (
            f"; {trials.disagreements} test(s) end differently in a trial run and are left to the verdict: "
        )
        text += ", ".join(tests) + (", ..." if trials.disagreements > len(tests) else "")
    return text


def _history_searched(searched: kinds.HistorySearched) -> str:
    if not searched.last_good:
        return "history: the tests also fail on the oldest code, so no change in the history broke them"
    return f"history: the tests pass at {searched.last_good} and fail since {searched.first_bad}"


_render_with(kinds.SearchStarted, _search_started)
_render_with(kinds.SearchFinished, _search_finished)
_render_with(kinds.HistorySearched, _history_searched)


# The roles beside the coder


def _tests_written(written: kinds.TestsWritten) -> str:
    dropped = sum(written.dropped.values())
    unusable = f", and {dropped} unusable ones" if dropped else ""
    tests = format_count(len(written.tests), "test")
    return f"{_role_name(written.role)} wrote {tests}{unusable}; they do not decide anything yet"


def _tests_assessed(assessed: kinds.TestsAssessed) -> str:
    highest_trust = max((test.trust for test in assessed.tests), default=0.0)
    removed = f", {len(assessed.removed)} removed" if assessed.removed else ""
    return (
        f"generated tests: {len(assessed.tests)} compared on "
        f"{format_count(assessed.candidates, 'candidate')}{removed}"
        f"; highest trust {highest_trust:.2f}"
    )


def _candidate_criticised(criticised: kinds.CandidateCriticised) -> str:
    critique = criticised.critique
    opinion = "approves" if critique.approved else "does not approve"
    issues = f": {'; '.join(critique.issues)}" if critique.issues else ""
    return f"critic {opinion} of {criticised.candidate[:8]}{issues}"


def _candidate_reviewed(reviewed: kinds.CandidateReviewed) -> str:
    concerns = [
        f"{concern.severity} {concern.kind}: {concern.problem}" for concern in reviewed.review.concerns
    ]
    return f"reviewer on {reviewed.candidate[:8]}: {'; '.join(concerns) or 'no concerns'}"


def _diagnosis_made(made: kinds.DiagnosisMade) -> str:
    diagnosis = made.diagnosis
    return (
        f"debugger on {made.candidate[:8]}: {diagnosis.root_cause} "
        f"({diagnosis.category}, {diagnosis.strategy}, confidence {diagnosis.confidence:.2f})"
    )


def _debugger_stepped(stepped: kinds.DebuggerStepped) -> str:
    step = stepped.step
    return f"debugger: {step.tool or 'no action'} {' '.join(step.input.split())[:80]}".rstrip()


def _subtask_stepped(stepped: kinds.SubtaskStepped) -> str:
    step = stepped.step
    return f"part {stepped.goal[:60]!r}: {step.tool or 'no action'} {step.input[:60]}".rstrip()


def _agent_stepped(step: kinds.AgentStepped) -> str:
    ending = f", {step.ending}" if step.ending else ""
    arguments = " ".join(step.input.split())[:80] if step.tool not in ("submit", "run_tests") else ""
    return f"agent step {step.number}: {step.tool or 'no tool'} {arguments}".rstrip() + ending


def _proposer_ran(ran: kinds.ProposerRan) -> str:
    endings = {"exit": f"exit code {ran.exit_code}", "timeout": "timed out", "memory": "out of memory"}
    changes = f"changed {', '.join(ran.changed)}" if ran.changed else "changed nothing"
    deletions = f"; deletions ignored: {', '.join(ran.deleted)}" if ran.deleted else ""
    excluded = f"; not part of the change: {', '.join(ran.excluded_files)}" if ran.excluded_files else ""
    ending = endings.get(ran.ending, ran.ending)
    return f"proposer: {ending} after {ran.seconds:.1f} s, {changes}{deletions}{excluded}"


def _plan_made(made: kinds.PlanMade) -> str:
    return "plan: " + " ".join(f"{n}. {subtask.goal}" for n, subtask in enumerate(made.plan.subtasks, 1))


def _role_degraded(degraded: kinds.RoleDegraded) -> str:
    return f"{_role_name(degraded.role)} failed, and the run continues without it: {degraded.message}"


def _role_name(role: str) -> str:
    return role.replace("_", " ")


_render_with(kinds.AgentStepped, _agent_stepped)
_render_with(kinds.CandidateCriticised, _candidate_criticised)
_render_with(kinds.CandidateReviewed, _candidate_reviewed)
_render_with(kinds.DebuggerStepped, _debugger_stepped)
_render_with(kinds.DiagnosisMade, _diagnosis_made)
_render_with(kinds.LessonsDrawn, lambda drawn: f"lessons: {'; '.join(drawn.lessons)}")
_render_with(kinds.PlanMade, _plan_made)
_render_with(kinds.ProposerRan, _proposer_ran)
_render_with(kinds.RoleDegraded, _role_degraded)
_render_with(kinds.SubtaskStepped, _subtask_stepped)
_render_with(kinds.TestsAssessed, _tests_assessed)
_render_with(kinds.TestsWritten, _tests_written)


# The memory


def _memory_recalled(recalled: kinds.MemoryRecalled) -> str:
    if recalled.fault:
        return f"memory is not available, and the run continues without it: {recalled.fault}"
    if not recalled.found:
        return "memory: nothing similar is known"
    counts = Counter(memory.arm for memory in recalled.found)
    arms = ", ".join(f"{count} {arm}" for arm, count in counts.items())
    text = f"memory: {len(recalled.found)} from earlier runs are like {recalled.query!r} ({arms})"
    factors = sorted(recalled.factors.items(), key=lambda pair: (-pair[1], pair[0]))[:MAX_FACTORS]
    if factors:
        text += "; the search prefers: " + ", ".join(f"{name} x{factor:g}" for name, factor in factors)
    if recalled.prompt_texts:
        text += "; added to prompts: " + " / ".join(recalled.prompt_texts)
    return text


def _memory_stored(stored: kinds.MemoryStored) -> str:
    if stored.fault:
        return f"memory could not store the lessons of this run: {stored.fault}"
    failures, patterns = format_count(stored.failures, "failure"), format_count(stored.patterns, "pattern")
    return f"memory stored {failures}, {patterns} and {format_count(stored.lessons, 'lesson')} from this run"


_render_with(kinds.MemoryRecalled, _memory_recalled)
_render_with(kinds.MemoryStored, _memory_stored)
