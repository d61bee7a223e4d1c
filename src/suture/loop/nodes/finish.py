"""Finish: name the outcome, pick the best candidate, have it proved, write the diff."""

from __future__ import annotations

from typing import Any, cast

from langgraph.runtime import Runtime

from suture.core.ledger.kinds import RunFinished, RunParked
from suture.core.records import Candidate, FaultCause, Outcome, Result, Verdict, to_plain
from suture.judge.confidence import confidence_in, confidence_when_warned
from suture.loop.calls.helper_call import degraded_helpers
from suture.loop.context import RunContext
from suture.loop.evaluation.deciding import deciding_suite
from suture.loop.evaluation.proving import Proven, abstains, prove
from suture.loop.evaluation.suspicion import doubts_about
from suture.loop.policy.progress import best_of
from suture.loop.state import LoopState, aids_of, tried_in
from suture.loop.vetting import warnings_of
from suture.project.workspace import overlay, unified_diff

UNSHOWN = "nothing shows the new feature: only that what worked before still does"


async def finish(state: LoopState, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """End the run with the outcome that was decided."""
    outcome = cast(Outcome, state["outcome"])
    proven = await prove_best(state, runtime.context) if outcome == "healed" else None
    write_result(state, runtime.context, outcome, state["reason"], proven)
    return {}


async def prove_best(state: LoopState, context: RunContext) -> Proven | None:
    """The best candidate with its proof; `None` where there is none to prove.

    Raises:
        SandboxError: The wall failed.
        StorageError: The run folder cannot be written.
    """
    candidate, verdict = _best(state, context)
    if candidate is None or verdict is None:
        return None
    suite = await deciding_suite(aids_of(state), context)
    return await prove(candidate, verdict, context.base_verdict(state), suite, context)


def write_result(
    state: LoopState, context: RunContext, outcome: Outcome, reason: str, proven: Proven | None = None
) -> Result:
    """Write the result down, whatever ended the run: the best candidate so far is never lost."""
    candidate, verdict = (proven.candidate, proven.verdict) if proven else _best(state, context)
    settings = context.settings.loop
    confidence = proven.confidence if proven else _confidence(candidate, verdict, state, context)
    warnings = doubts_about(candidate, verdict, context) if candidate else ()
    if warnings:
        confidence = confidence_when_warned(confidence)
    if candidate:  # what it does is no sign that it is wrong, and takes nothing from the confidence
        warnings = (*warnings, *warnings_of(context.findings_in(candidate)))
    if outcome == "healed" and confidence < settings.abstain_below:
        outcome = "not_healed"
        reason = f"{reason}, but {confidence:.2f} is too little confidence (loop.abstain_below)"
    undetermined = context.undetermined(candidate) if candidate and outcome == "healed" else ()
    if abstains(undetermined, context):
        outcome = "not_healed"
        reason = f"{reason}, but the tests do not tell it from other changes (loop.abstain_undetermined)"
    project = context.task.project
    if project is not None and project.unshown:
        warnings = (*warnings, UNSHOWN)
    if candidate and outcome == "healed":
        warnings = (*warnings, *context.left_to_do(candidate))
    before = context.spec.task.given_files  # a test that was accepted is part of what is handed over
    after = overlay(context.task.files, candidate.files) if candidate and candidate.files else before
    diff = unified_diff(before, after)
    result = Result(
        run_id=context.folder.id,
        outcome=outcome,
        reason=reason,
        cause=cast(FaultCause, state["cause"]) if outcome == "not_a_code_fault" else None,
        candidate=candidate,
        verdict=verdict,
        diff=diff,
        evidence=verdict.evidence if verdict and verdict.outcomes else None,
        confidence=confidence,
        warnings=warnings,
        undetermined=undetermined,
        degraded=tuple(dict.fromkeys(degraded_helpers(context))),
        spend=context.budget.spend(),
    )
    if diff:
        context.folder.write_text("result.diff", diff)
    blob = context.folder.put_json(to_plain(result))
    stands = RunParked if outcome == "waiting" else RunFinished
    end = stands(
        outcome=outcome,
        reason=reason,
        best=candidate.hash if candidate else None,
        confidence=confidence,
        warnings=warnings,
        result=blob,
    )
    context.ledger.append(end)
    return result


def _confidence(
    candidate: Candidate | None, verdict: Verdict | None, state: LoopState, context: RunContext
) -> float:
    """The confidence in what nobody proved."""
    rivals, share = context.rivalry_of(candidate.hash) if candidate else (None, None)
    return confidence_in(
        verdict,
        context.settings.loop.trust_threshold,
        before=context.base_verdict(state),
        rivals=rivals,
        share=share,
    )


def _best(state: LoopState, context: RunContext) -> tuple[Candidate | None, Verdict | None]:
    best = best_of(tried_in(state))
    if best is None or best.blocked:
        return None, None
    return context.candidate(best.blob), context.verdict(best.verdict)
