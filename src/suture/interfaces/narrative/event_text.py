"""Render ledger events as one line each. Live progress and `suture show` use the same lines."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from suture.core.ledger import Event, Payload, kinds, summarise_event
from suture.core.records import Candidate, Counterexample, MoveKind, Reason, TaskKind, render_reason
from suture.core.text_excerpts import shorten_pair
from suture.interfaces.narrative.certificate_rendering import render_delivery
from suture.interfaces.narrative.flaky_text import list_flaky_tests, render_flaky_repair
from suture.interfaces.narrative.judgement_text import OUTCOME_TEXTS as JUDGEMENT_TEXTS
from suture.interfaces.narrative.plain_text import (
    escape_line_breaks,
    format_count,
    format_share,
    name_candidate,
    render_command,
)
from suture.interfaces.narrative.search_text import render_search_finished
from suture.interfaces.narrative.wording import (
    MOVE_TEXTS,
    REVIEW_CHOICE_TEXTS,
    REVIEW_STAGE_TEXTS,
    name_outcome,
    render_confidence,
)

NO_MODEL = "none"
"""The model name in the ledger of a run that uses no model."""
UNCHANGED_CODE = Candidate(files={}, origin="user").hash
"""The candidate that changes no file. Its verdict is that of the user's own code."""
MAX_LISTED_FILES = 8
"""Files that a line names. This limit and the next ones keep a line short; chosen by judgement, not measured."""
MAX_LISTED_EXAMPLES = 5
"""Unread examples of a statement that a line quotes."""
MAX_VALUE_CHARS = 300
"""Characters of an expected or actual value. Chosen by judgement; not measured."""
MAX_INPUT_CHARS = 80
"""Length of a tool's input in a line about a step."""


def render_event(event: Event, kind: TaskKind = "heal") -> str | None:
    """Return one line about an event of a run of some kind, or `None` for pure bookkeeping.

    An event that this version cannot read is shown by its kind and its data.
    """
    if isinstance(event.payload, kinds.BudgetReserved | kinds.BudgetSettled | kinds.BudgetRefused):
        return None
    return escape_line_breaks(render_payload(event.payload, kind) or summarise_event(event))


def render_payload(payload: Payload, kind: TaskKind = "heal") -> str | None:
    """Return one line about what an event reports, or `None` if its kind has no wording."""
    for render in (
        partial(_render_run_event, kind=kind),
        _render_model_event,
        _render_candidate_event,
        _render_review_event,
        _render_search_event,
        _render_role_event,
        _render_test_or_memory_event,
        render_delivery,
    ):
        if (text := render(payload)) is not None:
            return text
    return None


def counterexample_lines(counterexample: Counterexample) -> list[str]:
    """Return a counterexample with one aspect on each line."""
    line = counterexample.line
    location = f" ({counterexample.file or 'the code'} line {line})" if line else ""
    expected, actual = shorten_pair(counterexample.expected, counterexample.actual, MAX_VALUE_CHARS)
    aspects = (
        ("call", counterexample.call),
        ("expected", expected),
        ("got", actual),
        ("raised", counterexample.exception + location if counterexample.exception else ""),
    )
    return [counterexample.check_id, *(f"  {name}: {value}" for name, value in aspects if value)]


def _render_run_event(payload: Payload, kind: TaskKind) -> str | None:
    match payload:
        case kinds.RunStarted():
            return _run_started(payload)
        case kinds.TaskPrepared():
            return _task_prepared(payload)
        case kinds.TriageFinished(code_failure_count=count):
            excluded = f"; not the code's fault: {excluded_tests_text(payload)}"
            return (
                f"{format_count(count, 'failing test')} to fix{excluded if payload.non_code_failures else ''}"
            )
        case kinds.FlakyTestsInvestigated():
            return "; ".join(list_flaky_tests(payload))
        case kinds.RunPaused() | kinds.RunFinished():
            confidence = (
                f"; {render_confidence(payload.confidence, payload.reason)}" if payload.confidence else ""
            )
            return f"{name_outcome(payload.outcome, kind)}: {render_reason(payload.reason)}{confidence}"
        case kinds.RunResumed(next_nodes=nodes):
            return f"resumed at: {', '.join(nodes) or 'the beginning'}"
        case kinds.SandboxSubstituted(preferred=preferred, used=used, level=level, cause=cause):
            place = "in containers of Docker or Podman" if used == "container" else f"in the sandbox {used!r}"
            return f"Programs run {place} (level {level!r}), because {preferred} cannot be used here: {cause}"
        case kinds.RunFailed(message=message):
            return f"stopped by an error: {message}"
        case kinds.AttemptsNearLimit(used=used, limit=limit):
            return f"Warning: {used}{f' of {limit}' if limit else ''} attempts are used"
    return None


def _run_started(started: kinds.RunStarted) -> str:
    model = "no model" if started.model == NO_MODEL else f"model {started.model}" if started.model else ""
    recipe = f"recipe {started.recipe}" if started.recipe else ""
    stronger_model = f"{started.escalation_model} for a hard case" if started.escalation_model else ""
    participants = ", ".join(filter(None, (model, recipe, stronger_model)))
    scripted = "; scripted, not a model" if started.model.startswith("scripted:") else ""
    unpriced = ", ".join(started.unpriced_models)
    price_note = f"; no price is known for {unpriced}, so its cost is not counted" if unpriced else ""
    withheld = f"; {withheld_files_text(started.excluded_files)}" if started.excluded_files else ""
    origin = f", from step {started.fork.step} of {started.fork.run}" if started.fork else ""
    task = f"{started.kind} with {participants}" if participants else started.kind
    return f"{task}{origin}{scripted}{price_note}{withheld}"


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
    if command := render_command(prepared.test_command):
        checks.append(f"{command} ({prepared.test_origin})" if prepared.test_origin else command)
    subject = "checks" if prepared.checks or not command else "tests"
    text = f"{subject}: {' and '.join(checks) or 'none, so nothing can be verified'}"
    if prepared.python:
        text += (
            f"; Python is {prepared.python}, {prepared.python_origin.removesuffix(f' ({prepared.python})')}"
        )
    if prepared.toolchain:
        text += f"; {prepared.language} is {prepared.toolchain}"
    if prepared.inferred_examples:
        text += f"; read from the text: {'; '.join(prepared.inferred_examples)}"
    if prepared.unused_examples:
        text += f"; {unread_examples_text(prepared.unused_examples)}"
    return text


def unread_examples_text(examples: Sequence[str]) -> str:
    """Say which parts of a statement look like examples and are not checked."""
    more = f"; and {len(examples) - MAX_LISTED_EXAMPLES} more" if len(examples) > MAX_LISTED_EXAMPLES else ""
    listed = "; ".join(examples[:MAX_LISTED_EXAMPLES])
    count = format_count(len(examples), "example")
    return f"{count} in the text could not be read as {'a check' if len(examples) == 1 else 'checks'}: {listed}{more}"


def excluded_tests_text(triaged: kinds.TriageFinished) -> str:
    """Return the failing tests that are not the code's fault: the first for each reason, and a count."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for failure in triaged.non_code_failures:
        by_reason.setdefault((failure.cause, failure.explanation), []).append(failure.test)
    return "; ".join(
        f"{tests[0]}{f' and {len(tests) - 1} more' if tests[1:] else ''} ({cause}: {explanation})"
        for (cause, explanation), tests in by_reason.items()
    )


REFUSED_PARAMETER_TEXTS = {
    "tools": "refuses tools: it works without them",
    "system_role": "refuses a system message: it is sent as a part of the user's",
    "stream_options": "does not count the tokens of a stream: its replies are not streamed",
    "max_tokens": "refuses the requested length of a reply: asked in its own way",
    "chat_completions": "is not behind Chat Completions: called through the Responses API",
}
"""What a refused part of a request means, where the model is not just called without it."""


def _render_model_event(payload: Payload) -> str | None:
    match payload:
        case kinds.MovesDecided(moves=moves):
            move, times = moves[0], f" ({len(moves)} times)" if len(moves) > 1 else ""
            if move.kind == "stop":
                return f"stop: {render_reason(move.reason)}" if move.reason else "stop"
            return f"next: {render_next_move(move.kind, times, move.reason)}"
        case kinds.ModelCalled():
            return _model_called(payload)
        case kinds.ModelFellBack(from_=failed, to=fallback, message=message):
            return f"{failed} failed, using {fallback} instead: {message}"
        case kinds.ModelParameterRefused(model=model, parameter=parameter):
            return f"{model} {REFUSED_PARAMETER_TEXTS.get(parameter, f'refuses `{parameter}`: called without it')}"
        case kinds.ModelEscalated(from_=weaker, to=stronger, reason=reason):
            return f"{stronger} takes over from {weaker}: {render_reason(reason)}"
        case kinds.ReplyTruncated(retry_max_tokens=tokens):
            return f"the reply was cut off: asking again with {tokens} tokens"
        case kinds.MoveFailed(error_type="UnchangedCode"):
            return "no new candidate: the model leaves the code as it is"
        case kinds.MoveFailed(message=message):
            return f"no candidate: {message}"
    return None


def render_next_move(kind: MoveKind, how: str, reason: Reason | None) -> str:
    """Return what the run tries next and why; a first greedy reply needs no reason."""
    if reason is None or reason.code == "greedy_first":
        return f"{MOVE_TEXTS[kind]}{how}"
    return f"{MOVE_TEXTS[kind]}{how}, {render_reason(reason)}"


def _model_called(called: kinds.ModelCalled) -> str:
    cached = f" ({called.cached_tokens} cached)" if called.cached_tokens else ""
    thinking = f" ({called.thinking_tokens} thinking)" if called.thinking_tokens else ""
    tokens = f"{called.prompt_tokens} tokens in{cached}, {called.completion_tokens} out{thinking}"
    if called.replayed:
        record = f"the record of {called.from_run}" if called.from_run else "the run's own record"
        return f"model: reply taken from {record}, {tokens}"
    model = {"coder": "model", "escalate": "stronger model"}.get(called.role, f"model of the {called.role}")
    money = f", ${called.money:.4f}" if called.money else ""
    retries = f", after {format_count(called.retries, 'failed call')}" if called.retries else ""
    cut = {
        "length": ", cut short",
        "thinking": ", all of it thinking",
        "refusal": ", refused",
        "content_filter": ", stopped by a content filter",
    }.get(called.finish_reason, "")
    return f"{model}: {tokens}, {called.seconds:.1f} s{money}{retries}{cut}"


def _render_candidate_event(payload: Payload) -> str | None:
    match payload:
        case kinds.CandidateProposed(candidate=candidate, label=label, files=files, surplus_files=surplus):
            ignored = f"; not taken from the reply: {', '.join(surplus)}" if surplus else ""
            return f"{name_candidate(candidate, label)} writes {', '.join(files)}{ignored}"
        case kinds.CandidateChecked(passed=passed, failed=failed):
            is_unchanged = payload.candidate == UNCHANGED_CODE
            name = "your code" if is_unchanged else name_candidate(payload.candidate, payload.label)
            if not passed + failed:
                return f"not checked {name}: there is no test or example to check it against"
            unreached = f", {payload.unreached} not reached" if payload.unreached else ""
            return f"checked {name}: {format_share(passed, passed + failed, 'pass')}{unreached}"
        case kinds.CandidateRefused(candidate=candidate, reasons=reasons):
            more = f" (and {len(reasons) - 1} more)" if reasons[1:] else ""
            return f"candidate {candidate[:8]} is not run: {reasons[0]}{more}"
        case kinds.CandidateRegressed(candidate=candidate, checks=checks):
            return f"candidate {candidate[:8]} breaks what worked: {', '.join(checks)}"
        case kinds.CandidateUnconfirmed(candidate=candidate, checks=checks):
            return f"candidate {candidate[:8]} passed once but not again: {', '.join(checks)}"
        case kinds.FlakyRepairTried():
            return render_flaky_repair(payload)
        case kinds.CandidatesCompared(candidates=candidates, reason=reason, differ=differences):
            text = f"compared {len(candidates)} candidates that pass: {reason}"
            for difference in differences[:1]:
                answers = "; ".join(f"{answer} by {name[:8]}" for name, answer in difference.answers.items())
                text += f"; {difference.call} gives {answers}"
            return text
        case kinds.CandidateOptimised(nodes=nodes):
            before, after = nodes
            names = f"candidate {payload.original[:8]} more simply, as {payload.candidate[:8]}"
            rejection = "discarded, because it is no simpler or does not pass"
            decision = "kept" if payload.accepted else rejection
            return f"the optimiser rewrote {names} ({before} to {after} syntax nodes): {decision}"
        case kinds.PackagesInstalled(packages=packages):
            return f"packages for the code, installed and locked by hash: {', '.join(packages)}"
    return None


def _render_review_event(payload: Payload) -> str | None:
    match payload:
        case kinds.ReviewAsked(stage=stage):
            return f"waits for your answer before {REVIEW_STAGE_TEXTS[stage]}"
        case kinds.ReviewAnswered(choice=choice, hint=hint):
            return f"your answer: {REVIEW_CHOICE_TEXTS[choice]}{f': {hint}' if hint else ''}"
        case kinds.UserAnswered(call=call, answers=answers, choice="neither"):
            return f"your answer: neither {' nor '.join(answers)} is right for {call}"
        case kinds.UserAnswered(call=call, answers=answers, choice=choice):
            return f"your answer: {answers[choice == 'second']} is right for {call}"
        case kinds.TestAccepted(path=path, command=command):
            return f"accepted by a person, and trusted from now on: {path} ({' '.join(command)})"
        case kinds.ExamplesConfirmed(asserts=asserts):
            return f"confirmed by a person, and checked from now on: {format_count(len(asserts), 'result')}"
    return None


def _render_search_event(payload: Payload) -> str | None:
    match payload:
        case kinds.SearchStarted(candidates=count, files=files, seconds=seconds):
            file_count = format_count(len(files), "file")
            return f"searching: at most {count:,} edits of {file_count}, in at most {seconds:.0f} s"
        case kinds.SearchFinished():
            return render_search_finished(payload)
        case kinds.RepairChosen():
            return _render_choice(payload)
        case kinds.RepairUndetermined(changes=changes) if len(changes) > 1:
            return f"the tests do not decide between {payload.count} changes"
        case kinds.RepairUndetermined(noticed=noticed, mistakes=mistakes):
            return f"the tests notice only {noticed} of {mistakes} deliberate mistakes in the changed lines"
        case kinds.HistorySearched(last_good=good_commit, first_bad=bad_commit) if good_commit:
            return f"history: the tests pass at {good_commit} and fail since {bad_commit}"
        case kinds.HistorySearched():
            return "history: the tests also fail on the oldest code, so no change in the history broke them"
    return None


def _render_choice(chosen: kinds.RepairChosen) -> str:
    """Return what a model or a person said about repairs between which the tests do not decide."""
    count = len(chosen.labels)
    if chosen.by == "person":
        return f"you chose {chosen.labels[chosen.choice - 1]!r} among the edits that pass"
    question = (
        f"asked which of {count} passing edits is right" if count > 1 else "asked whether the edit is right"
    )
    reasons = f": {chosen.explanation}" if chosen.explanation else ""
    if chosen.choice:
        answer = f"the model chose {chosen.labels[chosen.choice - 1]!r}"
    elif not chosen.candidate:
        return f"{question}, the model chose none and wrote nothing usable{reasons}"
    else:
        answer = "the model wrote another change"
    return f"{question}, {answer}{'' if chosen.passed else ', which does not pass'}{reasons}"


def _render_role_event(payload: Payload) -> str | None:
    match payload:
        case kinds.CandidateCriticised(candidate=candidate, critique=critique):
            opinion = "approves" if critique.approved else "does not approve"
            issues = f": {'; '.join(critique.issues)}" if critique.issues else ""
            return f"critic {opinion} of {candidate[:8]}{issues}"
        case kinds.DiagnosisMade(candidate=candidate, diagnosis=diagnosis):
            details = f"{diagnosis.category}, {diagnosis.strategy}, confidence {diagnosis.confidence:.2f}"
            return f"debugger on {candidate[:8]}: {diagnosis.root_cause} ({details})"
        case kinds.DebuggerStepped(step=step):
            return f"debugger: {step.tool or 'no action'} {' '.join(step.input.split())[:MAX_INPUT_CHARS]}".rstrip()
        case kinds.SubtaskStepped(goal=goal, step=step):
            return f"part {goal[:60]!r}: {step.tool or 'no action'} {step.input[:60]}".rstrip()
        case kinds.AgentBriefed(turn=turn):
            return f"conversation {turn} begins"
        case kinds.AgentStepped():
            return _agent_stepped(payload)
        case kinds.PlanMade(plan=plan):
            return "plan: " + " ".join(f"{n}. {subtask.goal}" for n, subtask in enumerate(plan.subtasks, 1))
        case kinds.ProposerRan():
            return _proposer_ran(payload)
        case kinds.ChangeJudged():
            return _change_judged(payload)
        case kinds.RoleDegraded(role=role, message=message):
            return f"{_role_name(role)} failed, and the run continues without it: {message}"
    return None


def _agent_stepped(step: kinds.AgentStepped) -> str:
    parts = (
        [f"{', '.join(step.tools)} {' '.join(step.input.split())[:MAX_INPUT_CHARS]}".rstrip()]
        if step.tools
        else []
    )
    if step.patch:
        broken = f", {step.regressed} of them passed before" if step.regressed else ""
        counts = format_share(step.passed, step.passed + step.failed, "pass", "test")
        parts.append(f"patch {step.patch}: {counts}{broken}")
    if step.problem:
        parts.append(AGENT_PROBLEMS[step.problem])
    if step.ending and step.ending not in ("passed", step.problem):
        parts.append(step.ending)
    return f"reply {step.number}: {'; '.join(parts) or 'no change'}"


AGENT_PROBLEMS = {
    "not_applied": "an edit does not apply",
    "no_change": "no change",
    "same_patch": "a patch that was tried before",
    "cut": "cut at the limit of its length",
    "empty": "empty",
}
"""Why a reply achieved nothing, by its code."""


def _proposer_ran(ran: kinds.ProposerRan) -> str:
    endings = {"exit": f"exit code {ran.exit_code}", "timeout": "timed out", "memory": "out of memory"}
    changes = f"changed {', '.join(ran.changed)}" if ran.changed else "changed nothing"
    deletions = f"; deleted {', '.join(ran.deleted)}" if ran.deleted else ""
    restored = f"; must not change: {', '.join(ran.restored)}" if ran.restored else ""
    excluded = f"; not part of the change: {', '.join(ran.excluded_files)}" if ran.excluded_files else ""
    ending = endings.get(ran.ending, ran.ending)
    return f"proposer: {ending} after {ran.seconds:.1f} s, {changes}{deletions}{restored}{excluded}"


def _change_judged(judged: kinds.ChangeJudged) -> str:
    reasons = f" ({', '.join(dict.fromkeys(judged.codes))})" if judged.codes else ""
    failing = f", {format_count(judged.failing, 'test')} failing" if judged.failing else ""
    return f"turn {judged.turn} is judged: {JUDGEMENT_TEXTS[judged.outcome].lower()}{reasons}{failing}"


def _role_name(role: str) -> str:
    return role.replace("_", " ")


def _render_failing_tests(failed: kinds.GeneratedTestsFailed) -> str:
    tests = "; ".join(f"{' '.join(test.test.split())} (trust {test.trust:.2f})" for test in failed.tests)
    count = format_count(len(failed.tests), "generated test")
    return (
        f"{count} that decided nothing {'fails' if len(failed.tests) == 1 else 'fail'} on the result: {tests}"
    )


def _render_test_or_memory_event(payload: Payload) -> str | None:
    match payload:
        case kinds.TestsWritten(role="example_reader", tests=tests):
            listed = "; ".join(test.strip().splitlines()[-1].removeprefix("assert ") for test in tests)
            return f"a model reads the unread examples as: {listed or 'no call with a result'}; they do not decide"
        case kinds.TestsWritten(role=role, tests=tests, dropped=dropped):
            unusable = f", and {sum(dropped.values())} unusable ones" if sum(dropped.values()) else ""
            count = format_count(len(tests), "test")
            return f"{_role_name(role)} wrote {count}{unusable}; they do not decide anything yet"
        case kinds.TestsAssessed(tests=tests, removed=removed):
            candidates = format_count(payload.candidates, "candidate")
            removals = f", {len(removed)} removed" if removed else ""
            trust = f"highest trust {max((test.trust for test in tests), default=0.0):.2f}"
            return f"generated tests: {len(tests)} compared on {candidates}{removals}; {trust}"
        case kinds.GeneratedTestsFailed():
            return _render_failing_tests(payload)
        case kinds.LessonsDrawn(lessons=lessons):
            return f"lessons: {'; '.join(lessons)}"
        case kinds.MemoryRecalled():
            return _memory_recalled(payload)
        case kinds.MemoryStored(fault=fault) if fault:
            return f"memory could not store the lessons of this run: {fault}"
        case kinds.MemoryStored():
            failures = format_count(payload.failures, "failure")
            patterns = format_count(payload.patterns, "pattern")
            lesson_count = format_count(payload.lessons, "lesson")
            return f"memory stored {failures}, {patterns} and {lesson_count} from this run"
    return None


def _memory_recalled(recalled: kinds.MemoryRecalled) -> str:
    if recalled.fault:
        return f"memory is not available, and the run continues without it: {recalled.fault}"
    if not recalled.found:
        return "memory: nothing similar is known"
    text = f"memory: {len(recalled.found)} from earlier runs are like {recalled.query!r}"
    if recalled.prompt_texts:
        text += "; added to prompts: " + " / ".join(recalled.prompt_texts)
    return text
