"""The short story of a run: a few lines while it runs, and a short result at the end.

`--verbose` and `suture show` have the details.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from suture.core.ledger import Event, RunFolder, kinds, last_payload, read_ledger, select_events
from suture.core.records import Origin, Result, Spend, TaskKind, Verdict
from suture.interfaces.narrative.certificate_rendering import certificate_summary_lines
from suture.interfaces.narrative.deselection_advice import deselecting_command
from suture.interfaces.narrative.event_text import (
    NO_MODEL,
    UNCHANGED_CODE,
    excluded_tests_text,
    render_event,
    render_payload,
    unread_examples_text,
    withheld_files_text,
)
from suture.interfaces.narrative.plain_text import (
    escape_line_breaks,
    format_count,
    format_share,
    render_command,
    render_label,
)
from suture.interfaces.narrative.result_text import (
    MODEL_PLACEHOLDER,
    caution_lines,
    change_size,
    failing_lines,
    is_heal_run,
    judgement_lines,
    next_step_lines,
    render_tools,
)
from suture.interfaces.narrative.review_text import render_ending_reason
from suture.interfaces.narrative.rival_text import rival_lines, undetermined_sentence
from suture.interfaces.narrative.search_text import (
    count_tried_edits,
    near_miss_lines,
    render_search_ending,
    trial_caveats,
)
from suture.interfaces.narrative.spend_text import ReplyTracker
from suture.interfaces.narrative.wording import OUTCOME_TEXTS, UNSHOWN_TEXTS, render_confidence

RENDERED_AS_IN_SHOW = (
    kinds.CandidateRegressed,
    kinds.CandidateUnconfirmed,
    kinds.ChangeJudged,
    kinds.ExamplesConfirmed,
    kinds.FlakyRepairTried,
    kinds.FlakyTestsInvestigated,
    kinds.HistorySearched,
    kinds.ModelEscalated,
    kinds.ModelFellBack,
    kinds.ModelParameterRefused,
    kinds.MoveFailed,
    kinds.ProposerRan,
    kinds.RepairChosen,
    kinds.ReplyTruncated,
    kinds.ReviewAnswered,
    kinds.RoleDegraded,
    kinds.RunResumed,
    kinds.SandboxSubstituted,
    kinds.UserAnswered,
)
"""Events that are shown at once, with the same line as in `suture show`."""


class ProgressNarrator:
    """Render a run's events as short progress lines, one event at a time.

    Args:
        suggest_commands: Whether to suggest options to type; an editor or a page has controls instead.

    Attributes:
        kind: The kind of the run, once its first event is known.
    """

    def __init__(self, *, suggest_commands: bool = True) -> None:
        self._suggests_commands = suggest_commands
        self._test_command: tuple[str, ...] = ()
        self._tools: tuple[str, ...] = ()
        self.kind: TaskKind = "heal"
        self._uses_model = False
        self._call_texts: dict[str, str] = {}
        self._candidate_texts: dict[str, str] = {}
        self._origins: dict[str, Origin] = {}
        self._last_checks: dict[str, str] = {}
        self._last_line, self._repetitions = "", 0

    def lines_for(self, event: Event) -> tuple[str, ...]:
        """Return the lines for an event; most events have none. Repeated lines are counted, not repeated."""
        lines: list[str] = []
        for line in map(escape_line_breaks, self._lines(event)):
            if line == self._last_line:
                self._repetitions += 1
                continue
            lines += [*self._repetition_line(), line]
            self._last_line = line
        if isinstance(event.payload, kinds.RunFinished | kinds.RunPaused):
            lines += self._repetition_line()
        return tuple(lines)

    def _repetition_line(self) -> Iterator[str]:
        if self._repetitions:
            yield f"  repeated {format_count(self._repetitions, 'more time')}"
        self._repetitions = 0

    def _lines(self, event: Event) -> Iterator[str]:
        match event.payload:
            case kinds.RunStarted() as started:
                self.kind, self._uses_model = started.kind, started.model not in ("", NO_MODEL)
                yield from _start_lines(started, suggest_commands=self._suggests_commands)
            case kinds.TaskPrepared() as prepared:
                self._test_command, self._tools = prepared.test_command, prepared.tools
                yield from _preparation_lines(prepared)
            case kinds.TriageFinished() as triaged if triaged.non_code_failures:
                yield f"Not the code's fault: {excluded_tests_text(triaged)}"
                if command := deselecting_command(triaged, self._test_command):
                    advice = f"--test {shlex.quote(command)}" if self._suggests_commands else command
                    yield f"While these tests fail, the run cannot count as healed. Leave them out: {advice}"
            case kinds.TestsWritten() as written:
                yield from _written_test_lines(written)
            case kinds.SearchStarted() | kinds.SearchFinished() as search:
                yield from self._search_event_lines(search, is_copied=event.is_copied)
            case kinds.ModelCalled(role="coder" | "escalate") as called:  # other roles propose no candidate
                replayed = " (recorded)" if called.replayed else f" in {called.seconds:.1f} s"
                self._call_texts[called.call] = f", {called.completion_tokens} tokens{replayed}"
            case kinds.CandidateProposed() as proposed:
                self._add_candidate(proposed)
            case kinds.CandidateChecked() as checked:
                yield from self._new_check_lines(checked)
            case payload if isinstance(payload, RENDERED_AS_IN_SHOW):
                yield render_event(event) or ""

    def _search_event_lines(
        self, search: kinds.SearchStarted | kinds.SearchFinished, *, is_copied: bool
    ) -> Iterator[str]:
        """Yield the beginning or the end of a search; `is_copied` if a fork has taken it over from another run."""
        if isinstance(search, kinds.SearchStarted):
            limits = f"at most {format_count(search.candidates, 'edit')} and {search.seconds:.0f} s"
            if not is_copied:
                order = " first" if self._uses_model else ""
                yield f"Trying small edits{order}, without a model: {limits}."
        elif is_copied and not search.repairs:
            option = " (--at 0 repeats it)" if self._suggests_commands else ""
            yield f"Its search for small edits found no repair and is not repeated{option}."
        else:
            suggests_no_model = self._uses_model and self._suggests_commands
            yield from _search_lines(search, suggests_no_model=suggests_no_model)
            if self._uses_model:  # without a model the run ends with it
                for near_miss in search.near_misses[:1]:
                    yield from near_miss_lines(near_miss, with_diff=False)

    def _add_candidate(self, proposed: kinds.CandidateProposed) -> None:
        """Remember what the line of a candidate says; its final form, such as formatted code, has the same line."""
        parent = proposed.parent or ""
        if not proposed.call and self._origins.get(parent) == proposed.origin:
            for texts in (self._candidate_texts, self._last_checks):
                texts[proposed.candidate] = texts.get(parent, "")
        else:
            self._candidate_texts[proposed.candidate] = self._call_texts.get(proposed.call, "")
        self._origins[proposed.candidate] = proposed.origin

    def _new_check_lines(self, checked: kinds.CandidateChecked) -> Iterator[str]:
        """Yield how a candidate was judged, unless its last judgement was the same.

        It is judged again when a person has confirmed results, or before it is delivered, and then in its final form.
        """
        for line in self._checked(checked):
            if self._last_checks.get(checked.candidate) != line:
                yield line
            self._last_checks[checked.candidate] = line

    def _checked(self, checked: kinds.CandidateChecked) -> Iterator[str]:
        total = checked.passed + checked.failed
        if checked.candidate == UNCHANGED_CODE:
            noun = "test" if total == 1 else ""  # the command that follows says what they are
            counts = "all pass" if not checked.failed else format_share(checked.failed, total, "fail", noun)
            if checked.tool_checks:
                counts = _diagnostic_counts(checked, f" of {render_tools(self._tools)}")
            elif checked.unreached:
                failed = checked.failed - checked.unreached
                counts = f"{checked.passed} pass, {failed} fail, {checked.unreached} not reached"
            command = render_command(self._test_command)
            yield f"Your code: {counts}{f' ({command})' if command else ''}."
            return
        if self._origins.get(checked.candidate) == "mutation" and not (checked.failed or checked.tool_checks):
            return  # the search has reported it already
        name = f"{render_label(checked.label)}{self._candidate_texts.get(checked.candidate, '')}"
        if checked.tool_checks:
            yield f"{name}: {_diagnostic_counts(checked, ' left')}"
            return
        counts = format_share(checked.passed, total, "pass", "test" if self.kind == "heal" else "check")
        yield f"{name}: {counts if total else 'no test or example to check it against'}"


def _diagnostic_counts(checked: kinds.CandidateChecked, which: str) -> str:
    """Return how many diagnostics of tools there are, and how many tests pass if some ran."""
    text = f"{format_count(checked.findings, 'finding') if checked.findings else 'no findings'}{which}"
    tests = checked.passed + checked.failed - checked.tool_checks
    passing = checked.passed - (checked.tool_checks - checked.findings)
    return f"{text}, {format_share(passing, tests, 'pass', 'test')}" if tests else text


def render_short_result(
    result: Result, folder: RunFolder, *, suggest_commands: bool = True, model: str = MODEL_PLACEHOLDER
) -> Iterator[str]:
    """Yield the last lines of a run: the outcome, what it is worth, and what to do next.

    Args:
        result: The result of the run.
        folder: The run's folder.
        suggest_commands: Whether to suggest commands to type; an editor or a page has buttons instead.
        model: The model to suggest to a run that had none.
    """
    events = read_ledger(folder.ledger_path).events
    yield outcome_sentence(result, events, heals=is_heal_run(folder))
    yield from judgement_lines(result)
    yield from rival_lines(result, folder, suggest_commands=suggest_commands)
    if not result.ok:
        yield from _best_so_far_lines(result, "test" if is_heal_run(folder) else "check")
    if (written := last_payload(events, kinds.CertificateWritten)) is not None:
        is_new = not is_heal_run(folder)
        confidence = render_confidence(result.confidence, result.reason)
        yield from certificate_summary_lines(written, folder.id, confidence, is_new=is_new)
    yield from caution_lines(result, folder, suggest_commands=suggest_commands)
    if suggest_commands:
        yield from next_step_lines(result, folder, model)
    replies = ReplyTracker(events).render()
    yield f"{'; '.join(filter(None, (_spend_summary(result.spend), replies)))}. More: suture show {folder.id}"


def evidence_sentence(result: Result, folder: RunFolder) -> str:
    """Return what the tests say of a result in addition to its outcome, in one sentence.

    It is empty if there is nothing to add to "all tests pass", and otherwise like "5 of 5 tests pass, 3 of
    them failed before; your tests notice 12 of 12 deliberate mistakes here."
    """
    verdict = result.verdict
    if verdict is None or not verdict.outcomes or result.judgement is not None:
        return ""
    events, noun = read_ledger(folder.ledger_path).events, "test" if is_heal_run(folder) else "check"
    baseline = _find_baseline(events)
    total = len(verdict.passed) + len(verdict.failed)
    counts = format_share(len(verdict.passed), total, "pass", noun)
    passing = text = f"{counts[0].upper()}{counts[1:]}"
    if any(outcome.provenance == "tool" for outcome in verdict.outcomes):
        if not result.ok:
            return ""  # the failing checks are listed
        passing, text = "", _render_removed_findings(verdict, events)
    elif baseline is not None:
        repaired = verdict.passed & folder.load_record(Verdict, baseline.verdict).failed
        before = "and it failed before" if total == 1 else f"{len(repaired)} of them failed before"
        text += f", {before}" if repaired else ""
    certificate = last_payload(events, kinds.CertificateWritten)
    undetermined = last_payload(events, kinds.RepairUndetermined)
    # Noticed mistakes would contradict the rivals, which are changes of the same lines that the tests do not notice.
    has_rivals = undetermined is not None and len(undetermined.changes) > 1
    if certificate is not None and certificate.mutants and not has_rivals:
        mistakes = certificate.mutants if certificate.selected is None else certificate.selected
        subject = "your tests" if is_heal_run(folder) else "the checks"
        text += f"; {subject} notice {certificate.killed} of {mistakes} deliberate mistakes here"
    return "" if text == passing and not verdict.failed else f"{text}."


def _start_lines(started: kinds.RunStarted, *, suggest_commands: bool) -> Iterator[str]:
    if started.fork:
        start = f"step {started.fork.step}" if started.fork.step else "the test results"
        yield f"Continues from {start} of run {started.fork.run}."
    if started.excluded_files:
        yield f"Note: {withheld_files_text(started.excluded_files)}"
    if started.unsearched_language and started.model == NO_MODEL:
        advice = " Name one: --model PROVIDER:MODEL." if suggest_commands else ""
        yield (
            f"Suture does not search {started.unsearched_language} code for small edits: only a model can repair it."
            f"{advice}"
        )


def _preparation_lines(prepared: kinds.TaskPrepared) -> Iterator[str]:
    if prepared.inferred_examples:
        yield f"Read from the text as checks: {'; '.join(prepared.inferred_examples)}"
    if prepared.unused_examples:
        yield f"Note: {unread_examples_text(prepared.unused_examples)}"
    if not prepared.checks and not prepared.test_command:
        yield "The task has no test and no example that show what the code must return."


def _written_test_lines(written: kinds.TestsWritten) -> Iterator[str]:
    """Yield what the user should know of tests that a model wrote, before they have any trust."""
    if written.role == "project_tester" and not written.tests:
        yield f"The tests that the model wrote for the project are left out: {'; '.join(written.dropped)}"
    if written.role == "example_reader" and written.tests:
        text = render_payload(written)
        yield f"{text}. To make one decide, write it into the task as a call with its result."


def _search_lines(search: kinds.SearchFinished, *, suggests_no_model: bool) -> Iterator[str]:
    edits = f"{search.candidates_tried:,} edits in {search.seconds:.1f} s"
    if search.repairs:
        likeliest = search.repairs[0]
        several = ""
        if search.repairs[1:]:
            several = f"{len(search.repairs)} changes make all tests pass; the likeliest is "
        yield f"Found among {edits}: {several}{likeliest.file}, {likeliest.label}"
    else:
        ending = f"; {ending}" if (ending := render_search_ending(search)) else ""
        longer = " With --no-model the search may take all of the run's time."
        is_cut = suggests_no_model and search.ending == "time_over"
        tried = f"Tried {count_tried_edits(search)} in {search.seconds:.1f} s"
        yield f"{tried}, none makes all tests pass{ending}.{longer if is_cut else ''}"
    if caveats := trial_caveats(search.agreement):
        # The text is made to be appended to a sentence, so it starts with a semicolon.
        yield f"Note: {caveats.removeprefix('; ')}"


def outcome_sentence(result: Result, events: Sequence[Event], *, heals: bool) -> str:
    """Return how a run ended, in one sentence; `heals` tells whether it repairs existing code."""
    verdict, word = result.verdict, OUTCOME_TEXTS[result.outcome]
    if result.outcome == "healed" and verdict is not None and verdict.outcomes:
        if verdict.evidence == "exit_status":
            return "Healed: the test command passes, judged by its exit status alone."
        if unshown := next((text for note, text in UNSHOWN_TEXTS.items() if note in result.reason.notes), ""):
            return unshown
        count, failing = len(verdict.passed), len(result.failing_tests)
        success, check = ("Healed", "test") if heals else ("Done", "check")
        passing = f"all {count} {check}s pass" if count != 1 else format_share(1, 1, "pass", check)
        if any(outcome.provenance == "tool" for outcome in verdict.outcomes):
            passing = _render_removed_findings(verdict, events)
        if (undetermined := last_payload(events, kinds.RepairUndetermined)) is not None:
            return undetermined_sentence(undetermined, passing)
        doubt = f", but {format_count(failing, 'generated test')} {'fails' if failing == 1 else 'fail'}"
        return f"{success}: {passing}{doubt if failing else ''}."
    if result.outcome == "not_healed" and not heals:
        word = "Not done" if verdict is not None and verdict.outcomes else "Not verified"
    return f"{word}: {render_ending_reason(result.reason)}"


def _render_removed_findings(verdict: Verdict, events: Sequence[Event]) -> str:
    """Return that what tools reported is gone, and that the tests pass if some ran."""
    prepared, baseline = last_payload(events, kinds.TaskPrepared), _find_baseline(events)
    findings = baseline.findings if baseline is not None else 0
    names = render_tools(prepared.tools if prepared is not None else ())
    gone = f"{format_count(findings, 'finding')} of {names} {'is' if findings == 1 else 'are'} gone"
    text = gone if findings else f"{names} reports nothing"
    tests = sum(outcome.provenance != "tool" for outcome in verdict.outcomes)
    tests_text = f"all {tests} tests pass" if tests != 1 else format_share(1, 1, "pass", "test")
    return f"{text}, and {tests_text}" if tests else f"{text}, and no tests ran"


def _find_baseline(events: Sequence[Event]) -> kinds.CandidateChecked | None:
    """Return how the checks ended on the user's own code."""
    checks = (checked for _, checked in select_events(events, kinds.CandidateChecked))
    return next((checked for checked in checks if checked.candidate == UNCHANGED_CODE), None)


def _best_so_far_lines(result: Result, noun: str) -> Iterator[str]:
    if result.candidate is not None and result.diff:
        yield f"Best so far: {change_size(result)}"
    if result.verdict is not None and result.verdict.failed:
        yield from failing_lines(result.verdict, noun)


def _spend_summary(spend: Spend) -> str:
    """Return what was used, without the limits, which the first line of the run states."""
    parts = [f"{spend.seconds:,.0f} s"]
    if spend.tokens or spend.attempts:
        parts.append(f"{format_count(spend.tokens, 'token')} in {format_count(spend.attempts, 'attempt')}")
    if spend.money:
        parts.append(f"${spend.money:,.4f}")
    if spend.unpriced_calls:
        parts.append(f"{format_count(spend.unpriced_calls, 'call')} of unknown price")
    return f"Used {', '.join(parts)}"
