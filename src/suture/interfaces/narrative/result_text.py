"""Render a result: what changed, how it was verified, what it cost, and how to apply or undo it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from suture.core.ledger import (
    Event,
    RunFolder,
    find_first_payload,
    kinds,
    last_payload,
    read_ledger,
    select_events,
)
from suture.core.records import (
    FailingGeneratedTest,
    ReasonCode,
    Result,
    Task,
    TaskKind,
    Verdict,
    encode_record,
)
from suture.core.records.finding_text import list_reasons
from suture.core.settings import BudgetSettings
from suture.interfaces.narrative.certificate_rendering import certificate_lines, delivery_lines
from suture.interfaces.narrative.deselection_advice import deselection_hint
from suture.interfaces.narrative.event_text import NO_MODEL, counterexample_lines
from suture.interfaces.narrative.exit_codes import EXIT_CODES
from suture.interfaces.narrative.judgement_text import MAX_SUMMARY_FINDINGS, list_facts
from suture.interfaces.narrative.plain_text import format_count, format_share
from suture.interfaces.narrative.review_text import answer_instructions, render_ending_reason
from suture.interfaces.narrative.rival_text import is_chosen_by_person, rival_lines, undetermined_sentence
from suture.interfaces.narrative.search_text import near_miss_lines, partial_repair_lines
from suture.interfaces.narrative.spend_text import describe_spend, limits_without_model
from suture.interfaces.narrative.wording import (
    name_outcome,
    render_capability,
    render_judge,
    render_verdict_notes,
)
from suture.project.python_source.parsing import imported_paths, loaded_files
from suture.sandbox.packages import is_lock_path

LARGER_MODEL_REASONS: frozenset[ReasonCode] = frozenset(
    {
        "agent_failed",
        "attempts_used",
        "max_rounds",
        "no_new_code",
        "no_progress",
        "repairs_exhausted",
        "turns_used",
    }
)
"""Endings after which another model may get further, if a model has answered at all."""
MODEL_PLACEHOLDER = "PROVIDER:MODEL"
"""What a suggested command says in place of a model, if none is at hand."""
MAX_COUNTEREXAMPLES = 3
MAX_FAILING_TESTS = 5
"""How many counterexamples and failing generated tests the end of a run lists. Chosen by judgement; not measured."""


def result_output(result: Result, kind: TaskKind) -> str:
    """Return the result itself for stdout: the code of a `write` run, the diff of a `heal` run."""
    if kind != "write" or result.candidate is None:
        return result.diff
    files = {path: text for path, text in result.candidate.files.items() if not is_lock_path(path)}
    if len(files) == 1:
        return next(iter(files.values()))
    return "\n".join(f"==> {path} <==\n{text.rstrip()}\n" for path, text in files.items())


def _candidate_names(result: Result) -> tuple[str | None, ...]:
    """Return the hash of the result's candidate, and of the one that it was tidied or minimised from."""
    return (result.candidate.hash, result.candidate.parent) if result.candidate else ()


def ignored_reply_files(result: Result, folder: RunFolder) -> tuple[str, ...]:
    """Return the files in the model's reply that are not part of the result."""
    names = _candidate_names(result)
    for _, proposed in select_events(read_ledger(folder.ledger_path).events, kinds.CandidateProposed):
        if proposed.candidate in names:
            return proposed.surplus_files
    return ()


def untested_files(result: Result, folder: RunFolder) -> tuple[str, ...]:
    """Return the modules of newly written code that no check imports, sorted."""
    started = find_first_payload(folder.ledger_path, kinds.RunStarted)
    if result.candidate is None or started is None or started.kind != "write":
        return ()
    written = {path: text for path, text in result.candidate.files.items() if path.endswith(".py")}
    if len(written) < 2:  # a single file is the module under test
        return ()
    task = folder.load_record(Task, started.task)
    original_files = {
        path: text.decode(errors="replace") for path, text in task.files.items() if path.endswith(".py")
    }
    imported = [name for check in task.checks for name in imported_paths(check.source, "check.py")]
    modules = (task.module.removesuffix(".py"), *imported)
    roots = (*original_files, *(f"{name}{end}" for name in modules for end in (".py", "/__init__.py")))
    return tuple(sorted(written.keys() - loaded_files({**original_files, **written}, roots)))


def applied_files(folder: RunFolder) -> tuple[str, ...]:
    """Return the files of the user's project that the run has changed and not reverted."""
    applied: tuple[str, ...] = ()
    for event in read_ledger(folder.ledger_path).events:
        match event.payload:
            case kinds.TreeApplied(files=files):
                applied = files
            case kinds.TreeUndone():
                applied = ()
    return applied


def render_full_result(
    result: Result, budget: BudgetSettings, folder: RunFolder, model: str = MODEL_PLACEHOLDER
) -> Iterator[str]:
    """Yield the last lines of a run in full detail, for stderr; `model` is as in `next_step_lines`."""
    undetermined = last_payload(read_ledger(folder.ledger_path).events, kinds.RepairUndetermined)
    if result.ok and undetermined is not None:
        yield undetermined_sentence(undetermined, "all tests pass")
    else:
        outcome = name_outcome(result.outcome, "heal" if is_heal_run(folder) else "write")
        yield f"{outcome}: {render_ending_reason(result.reason)}"
    if result.diff and result.candidate is not None:
        yield f"{'Changed' if result.ok else 'Best so far'}: {change_size(result)}"
    yield from judgement_lines(result)
    yield from rival_lines(result, folder)
    yield from _verification_lines(result, "test" if is_heal_run(folder) else "check")
    yield from caution_lines(result, folder)
    yield from certificate_lines(folder)
    limits, started = budget.model_dump(), find_first_payload(folder.ledger_path, kinds.RunStarted)
    if started is not None and started.model == NO_MODEL:
        limits = limits_without_model(limits)
    yield f"Used {describe_spend(result.spend, limits)}"
    yield from next_step_lines(result, folder, model)
    if result.diff:
        yield f"Diff: {folder.path / 'result.diff'}"
    yield f"Run: {folder.path}"
    yield f"More: suture show {folder.id}"


def caution_lines(result: Result, folder: RunFolder, *, suggest_commands: bool = True) -> Iterator[str]:
    """Yield what qualifies a result besides its rivals: doubts, untested and ignored files, warnings."""
    clue_run = folder.id if suggest_commands else ""
    for lines in (unverified_repair_lines(result, folder), _closest_edit_lines(result, folder, clue_run)):
        if suggest_commands:
            yield from lines
        elif text := "\n".join(lines):  # a page and an editor show a diff as one paragraph
            yield text
    yield from failing_test_lines(result)
    yield from objection_lines(result, folder)
    if result.ok and (untested := untested_files(result, folder)):
        yield f"No check imports {', '.join(untested)}, so nothing shows that they work."
    if ignored := ignored_reply_files(result, folder):
        has_command = suggest_commands and not is_heal_run(folder)
        hint = " To get every file: suture run ... --into FOLDER" if has_command else ""
        yield f"Ignored in the model's reply, because not requested or protected: {', '.join(ignored)}.{hint}"
    yield from warning_lines(result)
    if result.failed_roles:
        yield f"Continued without these roles, because they failed: {', '.join(result.failed_roles)}"


def judgement_lines(result: Result) -> Iterator[str]:
    """Yield the facts of the judgement on a proposer's change, and why it is rejected; warnings hold its remarks."""
    if result.judgement is not None:
        yield from (f"  {label:<10}{text}" for label, text in list_facts(result.judgement))
        yield from (
            f"  reject    {reason}" for reason in list_reasons(result.judgement, MAX_SUMMARY_FINDINGS)
        )


def unverified_repair_lines(result: Result, folder: RunFolder) -> Iterator[str]:
    """Yield the diff of a repair that passed its trials, and for whose verdict there was no time."""
    search = last_payload(read_ledger(folder.ledger_path).events, kinds.SearchFinished)
    if "repair_unverified" in result.reason.notes and search is not None and search.repairs:
        yield "Found, not verified yet:"
        yield from (f"  {line}" for line in search.repairs[0].diff.splitlines())


def _closest_edit_lines(result: Result, folder: RunFolder, clue_run: str) -> Iterator[str]:
    """Yield the edit of the search that came closest to a repair, if nothing better is shown.

    Args:
        clue_run: As `run` of `partial_repair_lines`.
    """
    search = last_payload(read_ledger(folder.ledger_path).events, kinds.SearchFinished)
    if result.ok or result.diff or search is None or search.repairs:
        return
    if search.near_misses:
        yield from near_miss_lines(search.near_misses[0])
    elif search.partial and search.partial[0].confirmed:
        yield from partial_repair_lines(search.partial[0], clue_run)


def warning_lines(result: Result) -> Iterator[str]:
    """Yield the warnings of a result, those about new capabilities first."""
    yield from (f"Warning: {render_capability(use)}" for use in result.capabilities)
    yield from (f"Warning: {warning}" for warning in result.warnings)


def next_step_lines(result: Result, folder: RunFolder, model: str = MODEL_PLACEHOLDER) -> Iterator[str]:
    """Yield how the result was delivered, and what to type next.

    Args:
        result: The result of the run.
        folder: The run's folder.
        model: The model to suggest to a run that had none.
    """
    events = read_ledger(folder.ledger_path).events
    delivered = list(delivery_lines(folder))
    yield from delivered
    if result.ok and result.diff and not delivered and is_heal_run(folder):
        yield f"Apply it: suture apply {folder.id}"
    if delivered and last_payload(events, kinds.RepairUndetermined) is not None:
        yield (
            "It was delivered although your tests do not decide whether it is right. "
            "With --strict, Suture delivers nothing in such a case."
        )
    files = result.candidate.files if result.candidate and not delivered and not is_heal_run(folder) else {}
    if result.ok and len(files) == 1:
        yield f"Save it as {next(iter(files))}: suture apply {folder.id}"
    elif result.ok and files:
        yield f"Write all {len(files)} files: suture apply {folder.id} --into FOLDER"
    elif len(files) > 1:
        yield f"All files, not verified, as a diff for git apply: {folder.path / 'result.diff'}"
    if result.ok and {"project_unshown", "feature_unshown"} & {*result.reason.notes}:
        yield "To verify it, add a run with its result to the task, or a test file with --test, and run it again."
    saved = () if result.ok else sorted(folder.path.glob("unverified_*"))
    yield from (f"Saved, not verified: {path}" for path in saved)
    yield from _quarantine_lines(result, folder)
    if result.outcome == "waiting":
        review_event = last_payload(events, kinds.ReviewAsked)
        stage = review_event.stage if review_event else "delivery"
        has_examples = review_event is not None and bool(review_event.examples)
        yield from answer_instructions(folder.id, stage, has_examples=has_examples)
    if result.outcome == "not_healed" and (ran := last_payload(events, kinds.ProposerRan)) is not None:
        yield f"Your program ran {format_count(ran.turn, 'time')}. Its output: suture show {folder.id}"
        return
    chosen = last_payload(events, kinds.RepairChosen)
    if result.outcome == "not_healed" and chosen is not None and is_chosen_by_person(result, chosen):
        is_doubted = "low_confidence" in result.reason.notes
        fault = "is below your limit of confidence" if is_doubted else "does not pass"
        yield f"Nothing was applied: the change that you chose {fault}."
        return
    if not result.ok and (hint := deselection_hint(events)):
        yield hint
        return
    if result.reason.code == "budget_exceeded" and last_payload(events, kinds.MovesDecided) is None:
        yield f"Start it again: {result.reason.remedy}"  # there is no step to continue from
        return
    yield from _continuation_lines(result, folder.id, events, model)


def _quarantine_lines(result: Result, folder: RunFolder) -> Iterator[str]:
    """Yield how to mark flaky tests that were not repaired. Nothing applies the patch on its own."""
    investigated = last_payload(read_ledger(folder.ledger_path).events, kinds.FlakyTestsInvestigated)
    if not result.ok and investigated is not None and investigated.quarantine:
        patch = folder.path / investigated.quarantine
        yield f"To mark the flaky tests as expected failures (not done yet): git apply {patch}"


def _continuation_lines(result: Result, run: str, events: Sequence[Event], model: str) -> Iterator[str]:
    """Yield how the user can get further, according to what ended the run."""
    reason = result.reason
    if result.outcome in ("infra_error", "cancelled"):
        yield f"Resume it: suture resume {run}"
        yield f"Or continue from one of its steps: suture fork {run} --at N"
    elif result.verdict is not None and not result.verdict.outcomes:
        if reason.code == "no_trusted_check":
            yield f"Verify it by results that you confirm: suture resume {run}"
        yield f"Add something to check: {_suggest_example(result)}, or a test file with --test."
    elif reason.code == "no_model":
        yield from _more_time_lines(run, events)
        yield f"Let a model continue: suture fork {run} --model {model}"
        yield "See the suspicious lines: suture show --faults"
    elif reason.code == "no_search":
        yield f"Let a model try: suture fork {run} --model {model}"
    elif "repair_unverified" in reason.notes:
        yield f"Verify it: suture resume {run}"
    elif reason.code == "budget_exceeded" and reason.limit:
        yield _raise_limit(run, reason.fault, reason.limit)
    elif reason.code == "next_call_over_budget":
        refused = last_payload(events, kinds.BudgetRefused)
        if refused is not None:
            yield _raise_limit(run, refused.limit_kind, refused.limit)
    else:
        if reason.code == "attempts_used" and reason.limit:
            more = 2 * reason.limit
            yield f"Allow more attempts (next time: --attempts {more}): suture fork {run} --set budget.attempts={more}"
        if reason.code in LARGER_MODEL_REASONS and last_payload(events, kinds.ModelCalled) is not None:
            yield f"Try a larger model: suture fork {run} --model {MODEL_PLACEHOLDER}"


def _more_time_lines(run: str, events: Sequence[Event]) -> Iterator[str]:
    """Yield how a search that ran out of time gets twice as much."""
    search, limit_s = last_payload(events, kinds.SearchFinished), None
    if search is None or search.ending != "time_over":
        return
    if search.time_limit == "budget.seconds" and (started := last_payload(events, kinds.RunStarted)):
        limit_s = started.limits.get("seconds")
    elif search.time_limit == "repair.seconds" and (
        search_start := last_payload(events, kinds.SearchStarted)
    ):
        limit_s = search_start.seconds
    if limit_s:
        more = f"{2 * limit_s:.12g}"
        flag = f" (next time: --seconds {more})" if search.time_limit == "budget.seconds" else ""
        yield f"Give the search more time{flag}: suture fork {run} --set {search.time_limit}={more}"


def _raise_limit(run: str, kind: str, limit: float) -> str:
    return f"Continue with a higher limit: suture fork {run} --set budget.{kind}={2 * limit:.12g}"


def _suggest_example(result: Result) -> str:
    """Return what to add to a task so that code of it can be verified, with the name of the function if it is known."""
    from suture.judge.differential.proposed_examples import render_main_call  # slow, and seldom needed

    call = render_main_call(result.candidate.files.values() if result.candidate else ())
    return f"a call with its result in the task, such as {call} == ..." if call else "an example in the task"


def continuation_hint(run: str) -> str:
    """Return how a user can continue a run that an error or they themselves stopped."""
    return f"resume it: suture resume {run}; or continue from one of its steps: suture fork {run} --at N"


def result_as_json(result: Result, folder: RunFolder, applied: Sequence[str]) -> dict[str, Any]:
    """Return the result record as JSON values, with the facts that a caller would have to look up."""
    events = read_ledger(folder.ledger_path).events
    undetermined = last_payload(events, kinds.RepairUndetermined)
    flaky = last_payload(events, kinds.FlakyTestsInvestigated)
    return {
        **encode_record(result),
        "flaky": encode_record(flaky) if flaky is not None else None,
        "undetermined": encode_record(undetermined) if undetermined is not None else None,
        "exit_code": EXIT_CODES[result.outcome],
        "folder": str(folder.path),
        "applied": list(applied),
        "surplus": list(ignored_reply_files(result, folder)),
        "unchecked": list(untested_files(result, folder)),
    }


def change_size(result: Result) -> str:
    """Return the changed files and the number of added and removed lines."""
    lines = result.diff.splitlines()
    added = sum(line.startswith("+") and not line.startswith("+++") for line in lines)
    removed = sum(line.startswith("-") and not line.startswith("---") for line in lines)
    files = sorted(result.candidate.files) if result.candidate else []
    return f"{', '.join(files)} (+{added} -{removed} lines)"


def _verification_lines(result: Result, noun: str) -> Iterator[str]:
    """Yield how a result was verified; `noun` is what its checks are called."""
    verdict = result.verdict
    if result.judgement is not None:
        return  # its facts say how the change was verified
    if verdict is None or not verdict.outcomes:
        yield "Not verified: there is no test or example to check it against."
        return
    total = len(verdict.passed) + len(verdict.failed)
    if result.ok:
        passing = format_share(total, total, "pass", noun)
        yield f"{passing[0].upper()}{passing[1:]}, {render_judge(verdict.evidence, has_diff=bool(result.diff))}"
    else:
        yield from failing_lines(verdict, noun)
    warned_of = ("passed_once", "flaky_tests") if result.warnings else ()
    notes = render_verdict_notes(note for note in verdict.notes if note.code not in warned_of)
    yield from (f"Note: {note}" for note in notes)


def failing_lines(verdict: Verdict, noun: str) -> Iterator[str]:
    """Yield how many checks fail, and the first counterexamples; `noun` is what a check is called."""
    tools = {outcome.check_id for outcome in verdict.outcomes if outcome.provenance == "tool"}
    tests = len(verdict.passed) + len(verdict.failed) - len(tools)
    findings = len(tools & verdict.failed)
    failed = len(verdict.failed) - findings
    failing = format_share(failed, tests, "still fail", noun) if failed or not findings else ""
    left = f"{format_count(findings, 'finding')} left" if findings else ""
    text = ", ".join(filter(None, (left, failing)))
    yield f"{text[0].upper()}{text[1:]}:"
    for counterexample in verdict.counterexamples[:MAX_COUNTEREXAMPLES]:
        yield from (f"  {line}" for line in counterexample_lines(counterexample))


def render_tools(names: Sequence[str]) -> str:
    """Return the names of linters and other tools for a sentence, such as `ruff and mypy`."""
    short = dict.fromkeys(name.removesuffix(" check").removesuffix(" run") for name in names)
    return " and ".join(short) or "the tools"


def is_heal_run(folder: RunFolder) -> bool:
    """Return whether the run repairs existing code, as opposed to writing new code."""
    started = find_first_payload(folder.ledger_path, kinds.RunStarted)
    return started is not None and started.kind == "heal"


def objection_lines(result: Result, folder: RunFolder) -> Iterator[str]:
    """Yield what a critic objects to in a result that is handed over nevertheless."""
    if not result.ok or result.candidate is None or "critic_objects" not in result.reason.notes:
        return
    critiques = [
        criticised.critique
        for _, criticised in select_events(read_ledger(folder.ledger_path).events, kinds.CandidateCriticised)
        if criticised.candidate in _candidate_names(result)
    ]
    if critiques:
        issues = " ".join(critiques[-1].issues) or "it gives no reason."
        yield f"A model in the role of critic objects to this code, but only tests decide: {issues}"


def failing_test_lines(result: Result) -> Iterator[str]:
    """Yield the generated tests that fail on a result, although they decided nothing."""
    tests = result.failing_tests
    if not result.ok or not tests:
        return
    subject = (
        "1 test that the model wrote fails"
        if len(tests) == 1
        else f"{len(tests)} tests that the model wrote fail"
    )
    pronoun = "It has" if len(tests) == 1 else "They have"
    yield f"{subject} on this code. {pronoun} too little trust to decide. Check whether the test or the code is wrong:"
    for test in tests[:MAX_FAILING_TESTS]:
        yield f"  {render_failing_test(test)}"
    if len(tests) > MAX_FAILING_TESTS:
        yield f"  and {len(tests) - MAX_FAILING_TESTS} more"


def render_failing_test(test: FailingGeneratedTest) -> str:
    """Return a generated test that fails, with its trust and what it saw, in one line."""
    fact, seen = test.fact, ""
    if fact is not None and (fact.exception or fact.actual):
        seen = f"; raised {fact.exception}" if fact.exception else f"; got {fact.actual}"
    return f"{' '.join(test.test.split())} (trust {test.trust:.2f}{seen})"
