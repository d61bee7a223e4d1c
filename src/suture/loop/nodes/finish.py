"""Finish: certify the best candidate, set the outcome, and write the result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, cast

from langgraph.runtime import Runtime

from suture.agents.calling.role_call import list_degraded_roles
from suture.core.ledger import last_payload
from suture.core.ledger.kinds import (
    ChangeJudged,
    GeneratedTestsFailed,
    RepairUndetermined,
    RunFinished,
    RunPaused,
)
from suture.core.records import (
    Candidate,
    FaultCause,
    Outcome,
    Project,
    Reason,
    ReasonNote,
    Result,
    Verdict,
    decode_record,
)
from suture.core.records.finding_text import render_finding, render_place
from suture.core.records.judgement import Judgement
from suture.errors import BudgetExceeded
from suture.judge import Suite
from suture.judge.confidence import (
    estimate_confidence,
    limit_confidence_for_capabilities,
    limit_confidence_for_contradiction,
    limit_confidence_for_signs,
    reduce_confidence_for_warnings,
)
from suture.judge.mutation_testing.mutant_runs import MutationResult
from suture.loop.context import RunContext, load_deciding_suite
from suture.loop.evaluation.certification import CertifiedCandidate, certify
from suture.loop.evaluation.change_warnings import (
    ChangeWarnings,
    compare_with_rivals,
    find_capabilities,
    find_warnings,
)
from suture.loop.evaluation.judging import judge
from suture.loop.policy.attempts import find_best
from suture.loop.roles.generated_tests import find_failing_tests
from suture.loop.services.safety_gate import summarise_findings
from suture.loop.state import LoopState, judged_attempts, role_contributions
from suture.project.languages import LANGUAGES
from suture.project.python_source.functions import tidy_module
from suture.project.workspace import overlay_candidate, unified_diff
from suture.sandbox.packages import AddedPackages

UNVERIFIED_REASONS = ("no_trusted_check", "no_shown_result", "results_rejected")
"""Why new code ends unverified although nothing failed: no check shows whether it is right."""
UNVERIFIED_PREFIX = "unverified_"
"""Prefix of the names of unverified code's files in the run folder."""


async def finish(state: LoopState, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """End the run with the outcome that was decided."""
    context, outcome = runtime.context, cast(Outcome, state["outcome"])
    reason = decode_record(Reason, state["reason"] or {})
    is_judged = last_payload(context.ledger.events, ChangeJudged) is not None
    certified = await certify_best(state, context) if outcome == "healed" and not is_judged else None
    write_result(state, context, outcome, reason, certified)
    return {}


async def certify_best(state: LoopState, context: RunContext) -> CertifiedCandidate | None:
    """Certify the best candidate, and return it; `None` if there is none."""
    candidate, verdict = _load_best(state, context)
    if candidate is None or verdict is None:
        return None
    contributions = role_contributions(state)
    failing_tests = await find_failing_tests(candidate, contributions, context)
    if failing_tests:
        context.ledger.append(GeneratedTestsFailed(candidate=candidate.hash, tests=failing_tests))
    suite = await load_deciding_suite(contributions, context)
    candidate, verdict = await tidy_candidate(candidate, verdict, suite, context)
    baseline = context.candidates.baseline_verdict(state)
    return await certify(candidate, verdict, baseline, suite, context, failing_tests)


def write_result(
    state: LoopState,
    context: RunContext,
    outcome: Outcome,
    reason: Reason,
    certified: CertifiedCandidate | None = None,
) -> Result:
    """Write the result, whatever ended the run; the best candidate so far is never lost.

    Args:
        outcome: The outcome, unless a setting turns a repair into `not_healed`.
        certified: The best candidate, if it was certified.
    """
    judged = last_payload(context.ledger.events, ChangeJudged)
    if judged is not None:
        result = _make_judged_result(judged, outcome, reason, context)
    else:
        result = _make_candidate_result(state, context, outcome, reason, certified)
    _record_end(result, context)
    return result


def _make_candidate_result(
    state: LoopState,
    context: RunContext,
    outcome: Outcome,
    reason: Reason,
    certified: CertifiedCandidate | None,
) -> Result:
    candidate, verdict = _load_best(state, context)
    if certified is not None:
        candidate, verdict, confidence = certified.candidate, certified.verdict, certified.confidence
    else:
        confidence = _estimate_confidence(candidate, verdict, state, context)
    if certified is not None:
        found = certified.warnings
    else:
        found = find_warnings(candidate, verdict, context) if candidate else ChangeWarnings()
    warnings = found.texts
    if warnings:
        confidence = reduce_confidence_for_warnings(confidence)
    if found.limits_confidence:
        confidence = limit_confidence_for_signs(confidence)
    capabilities = find_capabilities(candidate, verdict, context) if candidate else ()
    if capabilities:
        confidence = limit_confidence_for_capabilities(confidence)
    warnings = (*warnings, *found.remarks)
    failing_tests = certified.failing_tests if certified is not None else ()
    if failing_tests:
        confidence = limit_confidence_for_contradiction(confidence)
    if candidate:
        # What the safety scan finds is not a sign that the code is wrong, and does not lower the confidence.
        warnings = (*warnings, *summarise_findings(context.safety.scan(candidate)))
    rivals: tuple[str, ...] = ()
    doubt: RepairUndetermined | None = None
    if candidate and outcome == "healed":
        rivals = context.candidates.describe_rivals(candidate)
        doubt = _find_doubt(candidate, certified, context)
        outcome, reason = _apply_settings(candidate, reason, confidence, doubt, context)
        notes = _note_unshown_behaviour(context.task.project, verdict) if outcome == "healed" else ()
        reason = replace(reason, notes=(*reason.notes, *notes))
    if doubt is not None:
        context.ledger.append(doubt)
    packages = context.suites.packages
    if candidate and outcome == "healed" and isinstance(packages, AddedPackages):
        warnings = (*warnings, *packages.follow_up_notes(candidate.files))
    return Result(
        run_id=context.folder.id,
        outcome=outcome,
        reason=reason,
        cause=cast(FaultCause, state["cause"]) if outcome == "not_a_code_fault" else None,
        candidate=candidate,
        verdict=verdict,
        diff=_make_diff(candidate, context),
        evidence=verdict.evidence if verdict and verdict.outcomes else None,
        confidence=confidence,
        warnings=warnings,
        capabilities=capabilities,
        rivals=rivals,
        is_undetermined=doubt is not None,
        failing_tests=failing_tests,
        failed_roles=tuple(dict.fromkeys(list_degraded_roles(context.ledger.events))),
        spend=context.budget.spend(),
    )


def _note_unshown_behaviour(project: Project | None, verdict: Verdict | None) -> tuple[ReasonNote, ...]:
    """Return a note if no check that decides states what the new code must do."""
    if project is not None and project.is_feature_untested:
        return ("feature_unshown",)
    if project is None or not project.is_new or verdict is None or not verdict.all_passed:
        return ()
    is_shown = any(outcome.provenance != "smoke" for outcome in verdict.outcomes)
    return () if is_shown else ("project_unshown",)


def _make_judged_result(
    judged: ChangeJudged, outcome: Outcome, reason: Reason, context: RunContext
) -> Result:
    """Return the result of a run of the user's own program. Only an accepted change is handed over."""
    judgement = context.folder.load_record(Judgement, judged.judgement)
    is_accepted = outcome == "healed"
    remarks = [finding for finding in judgement.findings if finding.severity == "remark"]
    return Result(
        run_id=context.folder.id,
        outcome=outcome,
        reason=reason,
        candidate=context.candidates.load(judged.candidate) if is_accepted else None,
        diff=judgement.diff if is_accepted else "",
        evidence=judgement.evidence,
        warnings=tuple(f"{render_place(finding)}{render_finding(finding)}" for finding in remarks),
        judgement=judgement,
        spend=context.budget.spend(),
    )


def _find_doubt(
    candidate: Candidate, certified: CertifiedCandidate | None, context: RunContext
) -> RepairUndetermined | None:
    """Return how a candidate that passes compares with its rivals; `None` if the tests, a model or a person decide."""
    if certified is not None:
        is_undetermined, mutation = certified.is_undetermined, certified.mutation
    else:
        rivals, choice = (
            context.candidates.describe_rivals(candidate),
            context.candidates.find_choice(candidate),
        )
        is_undetermined, mutation = bool(rivals) and choice is None, MutationResult()
    return compare_with_rivals(candidate, mutation, context) if is_undetermined else None


def _apply_settings(
    candidate: Candidate,
    reason: Reason,
    confidence: float,
    doubt: RepairUndetermined | None,
    context: RunContext,
) -> tuple[Outcome, Reason]:
    """Return the outcome of a candidate that passes, and its reason: a setting may turn it into `not_healed`."""
    settings = context.settings.loop
    if doubt is not None and settings.strict:
        return "not_healed", replace(reason, code="undetermined", count=doubt.count)
    if confidence < settings.abstain_below:
        return "not_healed", replace(reason, notes=(*reason.notes, "low_confidence"), confidence=confidence)
    choice = context.candidates.find_choice(candidate)
    if choice is not None:
        note: ReasonNote = "model_chose" if choice.by == "model" else "person_chose"
        return "healed", replace(reason, notes=(*reason.notes, note))
    return "healed", reason


def _make_diff(candidate: Candidate | None, context: RunContext) -> str:
    """Return the diff from the user's files; a test that a person accepted in the run is a part of it."""
    before = context.spec.task.given_files
    if candidate is None or not candidate.files:
        return ""
    return unified_diff(before, overlay_candidate(context.task.files, candidate.files))


def _record_end(result: Result, context: RunContext) -> None:
    if result.diff:
        context.folder.write_text("result.diff", result.diff)
    if result.reason.code in UNVERIFIED_REASONS and result.candidate and len(result.candidate.files) == 1:
        ((path, text),) = result.candidate.files.items()
        context.folder.write_text(f"{UNVERIFIED_PREFIX}{PurePosixPath(path).name}", text)
    event = RunPaused if result.outcome == "waiting" else RunFinished
    context.ledger.append(
        event(
            outcome=result.outcome,
            reason=result.reason,
            best=result.candidate.hash if result.candidate else None,
            confidence=result.confidence,
            warnings=result.warnings,
            result=context.folder.save_record(result),
        )
    )


def _estimate_confidence(
    candidate: Candidate | None, verdict: Verdict | None, state: LoopState, context: RunContext
) -> float:
    """Return the confidence in a candidate that was not certified."""
    proposal = context.candidates.find_proposal(candidate.hash) if candidate else None
    rivals, share = context.candidates.count_rivals(proposal)
    return estimate_confidence(
        verdict,
        context.trust_threshold,
        checks=context.task.checks,
        before=context.candidates.baseline_verdict(state),
        rivals=rivals,
        share=share,
    )


def _load_best(state: LoopState, context: RunContext) -> tuple[Candidate | None, Verdict | None]:
    best = find_best(judged_attempts(state))
    if best is None or best.blocked:
        return None, None
    return context.candidates.load(best.blob), context.candidates.load_verdict(best.verdict)


async def tidy_candidate(
    candidate: Candidate, verdict: Verdict, suite: Suite, context: RunContext
) -> tuple[Candidate, Verdict]:
    """Return passing code of a model as readers expect it, with the verdict on that version.

    The code stays as it is if the tidy version passes less, or if there is no time to judge it.
    """
    task = context.task
    is_function = task.kind == "write" and task.project is None and LANGUAGES[task.language].parsed
    if not is_function or candidate.origin == "edit":
        return candidate, verdict
    files = {
        path: tidy_module(text) if path.endswith(".py") and text else text
        for path, text in candidate.files.items()
    }
    tidied = replace(candidate, files=files, parent=candidate.hash)
    if files == candidate.files:
        return candidate, verdict
    context.ledger.append(context.candidates.make_proposal(tidied))
    try:
        tidied_verdict = await judge(tidied, suite, context, confirm=False)
    except BudgetExceeded:
        return candidate, verdict
    is_equal = verdict.passed <= tidied_verdict.passed and tidied_verdict.failed <= verdict.failed
    return (tidied, tidied_verdict) if is_equal else (candidate, verdict)
