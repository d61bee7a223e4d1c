"""Words for the closed sets of codes that run stories contain.

Every table maps each code of a `Literal` alias to the text that people read. A test walks all codes, so a
code without words is found before a user meets it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the help page imports this module, and the event types are dozens
    from suture.core.ledger.kinds import ReviewChoice, ReviewStage
    from suture.core.records import (
        CapabilityCode,
        CapabilityUse,
        Evidence,
        MoveKind,
        Origin,
        Outcome,
        Reason,
        ReasonNote,
        VerdictNote,
        VerdictNoteCode,
    )

OUTCOME_TEXTS: dict[Outcome, str] = {
    "healed": "Healed",
    "nothing_to_heal": "Nothing to heal",
    "not_healed": "Not healed",
    "stuck": "Gave up",
    "not_a_code_fault": "Not the code's fault",
    "budget_exhausted": "Stopped at a limit",
    "waiting": "Waiting for you",
    "infra_error": "Broke off",
    "cancelled": "Cancelled",
}
UNSHOWN_TEXTS: dict[ReasonNote, str] = {
    "project_unshown": "Written, but nothing shows that it does what you asked: only Suture's own checks pass.",
    "feature_unshown": "Written, but nothing shows the new feature: only that what worked before still does.",
}
"""The first sentence about new code that passes all checks, if none of them shows what the task asks for."""
EVIDENCE_TEXTS: dict[Evidence, str] = {
    "split": "a process that never loads the code under test",
    "nonce": "the test runner's signed report. Only code written to cheat could fake it",
    "report": "the test runner's report and exit status. Code that prints such a report could fake it",
    "exit_status": "the exit status alone. Code that ends the command with 0 passes, whatever the tests say",
}
"""What decided, and what it is worth, by the kind of evidence."""
FORGEABLE_EVIDENCE: frozenset[Evidence] = frozenset(("nonce", "report"))
"""Evidence that a change can fake, so that a person should read the change."""
MOVE_TEXTS: dict[MoveKind, str] = {
    "investigate": "experiments with the flaky tests",
    "mutate": "small edits without a model",
    "sample": "a fresh candidate",
    "repair": "repair",
    "agent": "a conversation with the model",
    "gate": "your program",
    "ask": "asking you about results",
    "stop": "stop",
}
PHASE_TEXTS = {
    "prepare": "first test run",
    "search": "small edits without a model",
    "model": "replies of models",
    "checks": "testing candidates",
    "certification": "certifying the result",
}
"""The phases of `suture metrics` in words."""
ORIGIN_TEXTS: dict[Origin, str] = {
    "user": "your code",
    "mutation": "small edits without a model",
    "fix": "fixes by linters",
    "sample": "fresh candidates",
    "repair": "repairs",
    "edit": "your own versions",
}
"""How candidates were produced, in words."""
REVIEW_STAGE_TEXTS: dict[ReviewStage, str] = {
    "search": "small edits without a model",
    "samples": "fresh candidates",
    "repairs": "repairs",
    "delivery": "the delivery",
    "distinguish": "choosing between repairs that differ",
    "test": "trusting a test that a model wrote",
    "safety": "running code that the safety scan reports",
    "examples": "using results of the code as checks",
}
"""What a run asks a person about at each stage, as in "waits for your answer before ..."."""
REVIEW_CHOICE_TEXTS: dict[ReviewChoice, str] = {
    "approve": "yes",
    "edit": "your own version",
    "redirect": "no, a hint",
    "reject": "no",
    "abort": "stop the run",
}
"""What a person answered, as in "your answer: yes"."""
REVIEW_QUESTION_TEXTS: dict[ReviewStage, str] = {
    "search": "Your tests fail. Search for a small edit that fixes them? No model, no cost.",
    "samples": "Allow Suture to ask the model for {candidates}?",
    "repairs": "Allow Suture to ask the model for {repairs}?",
    "delivery": "Accept this fix?",
    "distinguish": "Which of two repairs is right?",
    "test": "Use this test, which fails on your code, to decide about the repair?",
    "safety": "Allow Suture to run code that the safety scan reports?",
    "examples": "Are these results of the code right?",
}
"""The question that a run asks a person at each stage."""
VERDICT_NOTE_TEXTS: dict[VerdictNoteCode, str] = {
    "protected_file": "{subjects} is protected: the candidate's version was left out",
    "live_objects": "these checks ran in the candidate's own process, because they need its objects: {subjects}",
    "shared_process": "",
    "unwatched_processes": "tests ran in processes where nothing sees what the candidate changes in pytest",
    "cut_off": "the time limit was reached before every test had run",
    "exit_status_only": "",
    "signed_report": "",
    "unsigned_report": "",
    "unwatched_runner": "with this {subjects}, Suture cannot see whether the code changes functions that "
    "the tests rely on",
    "smoke_checks_only": "only smoke checks ran: they start the project, and do not show that it does all that "
    "was asked",
    "passed_once": "it passed one whole run; there was no time to repeat the run on the same files",
    "answers_by_order": "the results depend on the order of the calls: in another order they differ",
    "assert_not_reached": "these tests passed without reaching the assertion at which they failed before: {subjects}",
    "not_repeated": "these passed in one run and not in the next, on the same files: {subjects}",
    "flaky_tests": "these failed and passed on the same files, so they did not decide: {subjects}",
    "diagnostics": "each finding of {subjects} is a check, identified by file, rule, message and function",
    "guard_tests_failing": "these tests failed before the change and do not decide, because the command only runs "
    "tools: {subjects}",
    "no_guard_tests": "no tests ran, so only the tools decide",
    "scan_refused": "the safety scan does not let it run",
    "scan_asks": "the safety scan lets it run only if a person allows it",
}
"""Code of a note -> its message; empty for notes that say no more than the verdict's kind of evidence."""
CAPABILITY_TEXTS: dict[CapabilityCode, str] = {
    "imports_test_machinery": "uses the test machinery",
    "skips_tests": "skips tests",
    "inspects_callers": "inspects its callers, or reads source code",
    "reaches_memory": "reaches for objects or memory of the whole process",
    "reads_loaded_modules": "reads or replaces loaded modules",
    "hooks_interpreter": "hooks into the interpreter, or changes where it finds files",
    "patches_code": "changes code of other modules",
    "computes_names": "runs code, or accesses names, that its text does not show",
    "ends_process": "ends the process",
    "loosens_comparison": "defines a comparison that may hold for different objects",
    "writes_project_files": "writes files of the project",
    "reads_tests": "refers to test files",
    "detects_environment": "detects where or how it runs",
    "starts_test_process": "starts tests or other programs",
    "hides_effects": "does something past the means by which tests observe it",
}
"""What a change newly does that could make wrong code pass (see docs/verdicts.md)."""
MAX_NOTE_SUBJECTS = 10
"""Maximum number of subjects that the message of a note lists."""


def name_outcome(outcome: str, kind: str = "heal") -> str:
    """Return an outcome for a list or within a line: `not healed`, or `not done` for new code (kind `write`)."""
    words = outcome.replace("_", " ")
    return words.replace("healed", "done") if kind == "write" else words


def describe_evidence(evidence: Evidence, *, has_diff: bool) -> str:
    """Return what decided, and what it is worth.

    Args:
        has_diff: Whether there is a change that a person can read.
    """
    advice = ", so read the diff" if has_diff and evidence in FORGEABLE_EVIDENCE else ""
    return f"{EVIDENCE_TEXTS[evidence]}{advice}"


def render_judge(evidence: Evidence, *, has_diff: bool) -> str:
    """Return what decided, for the terminal."""
    return f"judged by {describe_evidence(evidence, has_diff=has_diff)}"


def render_confidence(confidence: float, reason: Reason) -> str:
    """Return the confidence in a result: `confidence 0.95`, or `unverified` if no check is the user's.

    The number estimates how likely code is right that passes its checks. It says nothing about code that only
    Suture's own checks verify.
    """
    return "unverified" if UNSHOWN_TEXTS.keys() & {*reason.notes} else f"confidence {confidence:.2f}"


def render_moves(names: str) -> str:
    """Return the moves of a decision in words; `names` are their kinds, such as `mutate` or `sample, repair`."""
    texts: Mapping[str, str] = {str(kind): text for kind, text in MOVE_TEXTS.items()}
    texts = {**texts, "start": PHASE_TEXTS["prepare"]}
    return ", ".join(texts.get(name, name.replace("_", " ")) for name in names.split(", "))


def render_verdict_notes(notes: Iterable[VerdictNote]) -> list[str]:
    """Return notes on a verdict as lines of text, without those that its kind of evidence says already."""
    return [_render_verdict_note(note) for note in notes if VERDICT_NOTE_TEXTS[note.code]]


def _render_verdict_note(note: VerdictNote) -> str:
    separator = "; " if note.code == "live_objects" else ", "
    subjects = separator.join(note.subjects[:MAX_NOTE_SUBJECTS])
    if len(note.subjects) > MAX_NOTE_SUBJECTS:
        subjects += f"{separator}and others"
    return VERDICT_NOTE_TEXTS[note.code].format(subjects=subjects)


def render_capability(use: CapabilityUse) -> str:
    """Return a new use as one line of text: `prices.py:3: newly inspects its callers (sys._getframe)`."""
    return f"{use.path}:{use.line}: newly {CAPABILITY_TEXTS[use.code]} ({use.name})"
