"""Search for a repair without a model, and judge the most likely repairs that the search found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from suture.agents.context.failure_causes import collect_deciding_facts, count_deciding_checks
from suture.core.ledger.kinds import (
    FoundRepair,
    NearMiss,
    PartialRepair,
    ReviewAsked,
    SearchFinished,
    SearchStarted,
    TrialAgreement,
)
from suture.core.records import Candidate, Verdict, content_hash, decode_record, encode_record
from suture.errors import BudgetExceeded, SandboxError
from suture.judge import Suite, check_candidate
from suture.judge.runners.diagnostics.tool_fixes import collect_tool_fixes
from suture.judge.signs import render_tampering_warning
from suture.judge.trials.trial_records import Proposal, Trial
from suture.loop import tuning
from suture.loop.context import RunContext, load_deciding_suite
from suture.loop.evaluation.change_warnings import FIX_SEPARATOR
from suture.loop.evaluation.divergence import find_divergences, find_suspect_hunks
from suture.loop.evaluation.judging import judge, record_verdict
from suture.loop.evaluation.search_setup import editable_texts, find_failing_project, limit_search
from suture.loop.nodes.propose import RoundBranch
from suture.loop.policy.attempts import Attempt
from suture.loop.review.questions import apply_choice
from suture.loop.roles.rival_choice import make_search_candidate, propose_repair, render_change, settle_rivals
from suture.loop.services.candidate_store import SEARCH_ROUND, Lineage
from suture.loop.state import (
    LoopState,
    encode_attempts,
    judged_attempts,
    role_contributions,
    with_judged_attempts,
)
from suture.mutation import apply_edits
from suture.project.languages import LANGUAGES
from suture.project.workspace import overlay_candidate
from suture.search import PlausibleRepairs, SearchLimits, SearchResult, find_repairs, rank_repairs


async def mutate(state: RoundBranch, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """Search once. It costs no attempt and no token, and leaves clues for the model."""
    context, loop_state = runtime.context, state["state"]
    suite = await load_deciding_suite(role_contributions(loop_state), context)
    texts = editable_texts(suite)
    baseline = context.candidates.baseline_verdict(loop_state)
    if suite.diagnostics is not None:
        fixed = await judge_tool_fixes(suite, baseline, context)
        loop_state = with_judged_attempts(loop_state, (*judged_attempts(loop_state), *fixed))
        tests_fail = baseline is not None and has_failing_tests(baseline)
        if not tests_fail or any(attempt.solved for attempt in fixed):
            return {"searched": True, "judged": loop_state["judged"]}
    update = await _search(suite, texts, baseline, context)
    return {**update, "judged": loop_state["judged"]}


async def _search(
    suite: Suite, texts: Mapping[str, str], baseline: Verdict | None, context: RunContext
) -> dict[str, Any]:
    """Search for small edits that make the failing tests pass, and return the update of the state."""
    async with context.budget.time_limit():  # tests may run in another way than by the user's command
        project = await find_failing_project(suite, texts, baseline, context) if texts else None
    if project is None:
        return {"searched": True}
    limits = limit_search(context, baseline)
    _record_start(texts, len(project.failing()), limits, context)
    async with context.budget.time_limit():
        is_python = LANGUAGES[project.language].parsed
        hunks = await find_suspect_hunks(project, context) if is_python else ()
        session = await context.prefetch.open_session(project, suite, limits)
        result = await find_repairs(project, limits, hunks, session)
    if suite.flaky_tests:  # They count as skipped in the user's run, and so only seem to end differently.
        disagreements = [d for d in result.spectrum.disagreements if d.test not in suite.flaky_tests]
        result.spectrum = replace(result.spectrum, disagreements=tuple(disagreements))
    # This is outside of the time limit, which would lose what was found; it has its own limit.
    plausible = await rank_repairs(result, project, seed=limits.seed, seconds=_ranking_s(limits, result))
    divergences: dict[str, str] = {}
    if is_python and not plausible.repairs and baseline is not None:  # For the model that is asked next.
        async with context.budget.time_limit():
            facts = collect_deciding_facts(baseline, context.trust_threshold)
            changes = [change for change, _ in result.partial]
            divergences = await find_divergences(facts, changes, result.texts, context)
    clues = _list_partial_repairs(result)
    if clues and baseline is not None and not (plausible.repairs or result.near_misses or context.has_model):
        clues = await _confirm_partial_repairs(clues, result, suite, baseline, context)
    return _finish_search(result, plausible, clues, divergences, limits, context)


def _list_partial_repairs(result: SearchResult) -> list[PartialRepair]:
    """Return the records of the best changes that make some failing test pass."""
    return [
        PartialRepair(path=change.path, label=change.label, passing=trial.passing, failing=trial.failing)
        for change, trial in result.partial[: tuning.MAX_LISTED_PARTIAL_REPAIRS]
    ]


async def _confirm_partial_repairs(
    clues: list[PartialRepair], result: SearchResult, suite: Suite, baseline: Verdict, context: RunContext
) -> list[PartialRepair]:
    """Run all tests on the best partial repairs until one breaks none of them; that one comes first."""
    count = tuning.MAX_CONFIRMED_CLUES if baseline.wall_s < tuning.QUICK_CLUE_RUN_S else 1
    for clue, (change, _) in zip(clues[:count], result.partial, strict=False):
        confirmed = await _confirm_partial_repair(clue, change, result, suite, baseline, context)
        if confirmed.confirmed:
            return [confirmed, *(other for other in clues if other is not clue)]
    return clues


async def _confirm_partial_repair(
    clue: PartialRepair,
    change: Proposal,
    result: SearchResult,
    suite: Suite,
    baseline: Verdict,
    context: RunContext,
) -> PartialRepair:
    """Run all tests on a partial repair; return it with their numbers if it breaks none of them."""
    text = apply_edits(result.texts[change.path], change.edits)
    candidate = Candidate(files={change.path: text}, origin="mutation", label=change.label)
    try:
        async with context.budget.time_limit():
            verdict = await check_candidate(candidate, suite)
    except (BudgetExceeded, SandboxError):  # It is only a clue: the run ends as it would without it.
        return clue
    _, failing, broken = count_deciding_checks(verdict, baseline, context.trust_threshold)
    passing = len(verdict.passed & baseline.failed)
    if broken or not passing:
        return clue
    diff = render_change(change.path, text, result.texts)
    return replace(clue, passing=passing, failing=failing, confirmed=True, diff=diff)


def _record_start(texts: Mapping[str, str], failing: int, limits: SearchLimits, context: RunContext) -> None:
    context.ledger.append(
        SearchStarted(
            files=tuple(sorted(texts)),
            failing=failing,
            candidates=limits.max_candidates,
            seconds=min(limits.max_seconds, limits.trial_s),
            seed=limits.seed,
        )
    )


def _ranking_s(limits: SearchLimits, result: SearchResult) -> float:
    """Return the seconds for ranking: what the search left, and at least the time of a few calls."""
    return max(tuning.MIN_RANKING_S, limits.max_seconds - result.seconds)


def _finish_search(
    result: SearchResult,
    plausible: PlausibleRepairs,
    clues: Sequence[PartialRepair],
    divergences: Mapping[str, str],
    limits: SearchLimits,
    context: RunContext,
) -> dict[str, Any]:
    """Record the search, and store its repairs for `try_repairs`, which may have to wait for a person."""
    event = _make_search_event(result, plausible, clues, divergences)
    # `limit_search` takes the seconds of the setting, unless the budget leaves less.
    setting_s = (context.settings.repair.seconds, tuning.SEARCH_DEFAULT_S)
    is_set = limits.max_seconds in setting_s or limits.trial_s < limits.max_seconds
    context.ledger.append(replace(event, time_limit="repair.seconds" if is_set else "budget.seconds"))
    if not plausible.repairs:
        return {"searched": True}
    return {"searched": True, "found_repairs": context.folder.save_record(plausible)}


def _make_search_event(
    result: SearchResult,
    plausible: PlausibleRepairs,
    clues: Sequence[PartialRepair],
    divergences: Mapping[str, str],
) -> SearchFinished:
    spectrum = result.spectrum
    return SearchFinished(
        candidates_tried=result.tried_count,
        seconds=round(result.seconds, 3),
        ending=result.ending,
        plausible_count=len(result.plausible),
        repairs=tuple(
            FoundRepair(
                label=repair.proposal.label,
                file=repair.proposal.path,
                score=round(repair.score, 4),
                operators=tuple(repair.proposal.operators),
                warnings=tuple(map(render_tampering_warning, repair.warnings)),
                equivalents=tuple(repair.equivalents),
                diff=render_change(repair.proposal.path, repair.text, result.texts),
                candidate=make_search_candidate(repair).hash,
            )
            for repair in plausible.repairs
        ),
        partial=tuple(clues),
        near_misses=()
        if plausible.repairs
        else tuple(
            _describe_near_miss(change, trial, result.texts)
            for change, trial in result.near_misses[: tuning.MAX_LISTED_NEAR_MISSES]
        ),
        agreement=TrialAgreement(
            compared=spectrum.compared,
            disagreements=len(spectrum.disagreements),
            disagreeing_tests=spectrum.disagreements[: tuning.MAX_LISTED_LINES],
            untraced=spectrum.untraced,
            notes=tuple(result.notes),
            localisation_s=round(result.localisation_s, 3),
            mutation_s=round(result.generation_s, 3),
        ),
        distinguishing_input=plausible.difference,
        compared_calls=plausible.compared_calls,
        faults=result.suspect_lines[: tuning.MAX_LISTED_LINES],
        broken_operators=tuple(result.operator_failures[: tuning.MAX_LISTED_LINES]),
        divergences=divergences,
    )


def _describe_near_miss(change: Proposal, trial: Trial, texts: Mapping[str, str]) -> NearMiss:
    """Return the record of a change that makes all failing tests pass and breaks another test."""
    text = apply_edits(texts[change.path], change.edits)
    return NearMiss(
        path=change.path,
        label=change.label,
        broken_test=trial.broken_test,
        diff=render_change(change.path, text, texts),
    )


async def try_repairs(state: LoopState, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """Judge the repairs of the search. If two of them differ, a person may be asked first which is right."""
    context, blob = runtime.context, state.get("found_repairs", "")
    if not blob:
        return {}
    plausible = decode_record(PlausibleRepairs, context.folder.load_json(blob))
    difference = plausible.difference
    if difference is not None and context.spec.asks_user:
        key = {"stage": "distinguish", "call": difference.call, "answers": difference.answer_pair}
        question = ReviewAsked(
            key=content_hash(key),
            stage="distinguish",
            decision=state["decisions"],
            round=state["round"],
            distinguishing_input=difference,
        )
        # LangGraph runs this node again from its start when the answer is there: so far, nothing was changed.
        answer: Mapping[str, Any] = interrupt(encode_record(question))
        plausible = apply_choice(plausible, answer["choice"])
    suite = await load_deciding_suite(role_contributions(state), context)
    judged = await _judge_repairs(plausible, suite, state, context)
    # The rivals are known without the fixes of tools, so that none of them passes alone.
    if judged and judged[-1].solved and suite.diagnostics is None:
        judged = await settle_rivals(plausible, judged, suite, state, context)
    return {"found_repairs": "", "judged": encode_attempts((*judged_attempts(state), *judged))}


async def _judge_repairs(
    plausible: PlausibleRepairs, suite: Suite, state: LoopState, context: RunContext
) -> list[Attempt]:
    """Judge the most likely repairs one after the other, until one of them passes.

    If the sandbox fails, the next repair is still judged, so that a repair that passes is recorded; the fault
    is raised at the end. If the time is up first, all repairs stay found, so that `suture resume` verifies them.
    """
    baseline = context.candidates.baseline_verdict(state)
    run_s = baseline.wall_s if baseline is not None else 0.0
    judged: list[Attempt] = []
    faults: list[SandboxError] = []
    for repair in plausible.repairs[: tuning.MAX_JUDGED_REPAIRS]:
        proposal = propose_repair(repair, plausible, context)
        try:
            for combined in await combine_with_tool_fixes(proposal, suite, context):
                candidate = context.candidates.load(combined.blob)
                verdict = await judge(candidate, suite, context, trial_run_s=run_s)
                judged.append(record_verdict(combined, verdict, baseline, context))
                if judged[-1].solved or has_failing_tests(verdict):
                    break  # further fixes of tools repair no test
        except SandboxError as fault:
            faults.append(fault)
            if len(faults) == tuning.MAX_SANDBOX_FAULTS:
                break
            continue
        if judged[-1].solved:
            break
    if faults:
        raise faults[0]
    return judged


async def judge_tool_fixes(suite: Suite, baseline: Verdict | None, context: RunContext) -> list[Attempt]:
    """Judge the results of the tools' own fixes, the safest first, until one passes."""
    judged: list[Attempt] = []
    async with context.budget.time_limit():
        fixes = [fix async for fix in collect_tool_fixes(suite, suite.task.files)]
    for fix in fixes:
        candidate = Candidate(files=fix.files, origin="fix", label=fix.label)
        proposal = context.candidates.propose(
            replace(context.candidates.make_proposal(candidate), unsafe_fixes=fix.unsafe_commands),
            Lineage.beginning(SEARCH_ROUND),
        )
        verdict = await judge(candidate, suite, context)
        judged.append(record_verdict(proposal, verdict, baseline, context))
        if judged[-1].solved:
            break
    return judged


async def combine_with_tool_fixes(proposal: Attempt, suite: Suite, context: RunContext) -> Iterator[Attempt]:
    """Propose a repair together with what the tools' own fixes make of the repaired code, the safest fixes first.

    Returns:
        The combinations, each proposed when it is asked for; only the repair itself if the tools change nothing.
    """
    if suite.diagnostics is None:
        return iter((proposal,))
    candidate, found = (
        context.candidates.load(proposal.blob),
        context.candidates.find_proposal(proposal.candidate),
    )
    assert found is not None  # the repair was proposed a moment ago
    repaired = overlay_candidate(suite.task.files, candidate.files)
    async with context.budget.time_limit():
        fixes = [fix async for fix in collect_tool_fixes(suite, repaired)]
    events = []
    for fix in fixes:
        both = Candidate(
            files={**candidate.files, **fix.files},
            origin=candidate.origin,
            parent=candidate.hash,
            label=f"{candidate.label}{FIX_SEPARATOR}{fix.label}",
        )
        made = context.candidates.make_proposal(both)
        events.append(
            replace(
                made,
                warnings=found.warnings,
                agreement=found.agreement,
                rivals=found.rivals,
                rival_descriptions=found.rival_descriptions,
                score_share=found.score_share,
                unsafe_fixes=fix.unsafe_commands,
            )
        )
    if not events:
        return iter((proposal,))
    return (context.candidates.propose(event, Lineage.beginning(SEARCH_ROUND)) for event in events)


def has_failing_tests(verdict: Verdict) -> bool:
    """Return whether a check fails that is not a diagnostic of a linter, type checker or compiler."""
    return any(
        outcome.provenance != "tool" and outcome.check_id in verdict.failed for outcome in verdict.outcomes
    )
