"""Search for a repair without a model, and judge the most likely repairs that the search found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from suture.agents.context.deciding_checks import collect_deciding_facts
from suture.core.ledger.kinds import (
    FoundRepair,
    PartialRepair,
    ReviewAsked,
    SearchFinished,
    SearchStarted,
    TrialAgreement,
)
from suture.core.records import Verdict, content_hash, decode_record, encode_record
from suture.errors import BudgetExceeded, SandboxError
from suture.judge import Suite
from suture.judge.signs import render_tampering_warning
from suture.loop import tuning
from suture.loop.context import RunContext, load_deciding_suite
from suture.loop.evaluation.divergence import find_divergences
from suture.loop.evaluation.history_bisection import find_suspect_hunks
from suture.loop.evaluation.judging import judge, record_verdict
from suture.loop.evaluation.search_setup import (
    editable_texts,
    failing_project,
    find_target_tests,
    limit_search,
    split_outcomes,
)
from suture.loop.nodes.propose import RoundBranch
from suture.loop.policy.attempts import Attempt
from suture.loop.review.repair_choice import apply_choice
from suture.loop.roles.rival_choice import propose_repair, render_change, settle_rivals
from suture.loop.state import LoopState, encode_attempts, judged_attempts, role_contributions
from suture.mutation import has_grammar
from suture.project.workspace import decode_text
from suture.search import (
    FailingProject,
    PlausibleRepairs,
    SearchLimits,
    SearchResult,
    find_unparsable_file,
    rank_python_repairs,
    rank_tree_repairs,
    recover_python,
    recover_with_tree_sitter,
    search_python,
    search_with_tree_sitter,
)

SYNTAX_ERRORS = ("SyntaxError", "IndentationError", "TabError")
"""Exceptions that Python raises for a file that it cannot parse."""


async def mutate(state: RoundBranch, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """Search once. It costs no attempt and no token, and leaves clues for the model."""
    context, loop_state = runtime.context, state["state"]
    suite = await load_deciding_suite(role_contributions(loop_state), context)
    texts = editable_texts(suite)
    baseline = context.candidates.baseline_verdict(loop_state)
    if texts and has_grammar(context.task.language):
        return await _search_other_language(suite, texts, baseline, context)
    targets = await find_target_tests(suite, baseline, context) if texts else None
    if targets is None:
        return {"searched": True}
    limits = limit_search(context, baseline)
    _record_start(texts, len(targets.failing), limits, context)
    async with context.budget.time_limit():
        tests = [decode_text(suite.task.files[path]) for path in targets.command.test_files]
        hunks = await find_suspect_hunks(targets, texts, context)
        result = await search_python(
            targets.command,
            texts,
            targets.failing,
            limits,
            tests,
            hunks,
            user_outcomes=targets.statuses,
            pool=await context.prefetch.take_pool(targets.command, suite),
        )
        unparsable = "" if result.plausible else _find_unparsable_python_file(baseline, texts)
        if unparsable:
            # No operator applies to a file that does not parse: so far only reverted changes were tried.
            remaining_limits = limits.minus(result.seconds, result.tried_count)
            project = failing_project(suite, targets.command, texts, baseline)
            result = await recover_python(project, unparsable, remaining_limits, tests)
        plausible = await rank_python_repairs(
            result, targets.command, tests, seed=limits.seed, seconds=_ranking_s(limits, result)
        )
        divergences: dict[str, str] = {}
        if not plausible.repairs and baseline is not None:  # For the model that is asked next.
            facts = collect_deciding_facts(baseline, context.trust_threshold)
            changes = [change for change, _ in result.partial]
            divergences = await find_divergences(facts, changes, result.texts, context)
    return _finish_search(result, plausible, divergences, context)


async def _search_other_language(
    suite: Suite, texts: Mapping[str, str], baseline: Verdict | None, context: RunContext
) -> dict[str, Any]:
    if suite.command is None or baseline is None:
        return {"searched": True}
    limits = limit_search(context, baseline)
    _record_start(texts, len(split_outcomes(baseline.outcomes)[0]), limits, context)
    async with context.budget.time_limit():
        project = failing_project(suite, suite.command, texts, baseline)
        result = await _run_tree_search(suite, project, baseline, limits, context)
        plausible = await rank_tree_repairs(
            result, project, project.test_texts(), seed=limits.seed, seconds=_ranking_s(limits, result)
        )
    return _finish_search(result, plausible, {}, context)


async def _run_tree_search(
    suite: Suite, project: FailingProject, baseline: Verdict, limits: SearchLimits, context: RunContext
) -> SearchResult:
    """Repair a file that does not parse, if there is one; otherwise search among mutations of the trees."""
    early = await context.prefetch.take_baseline(suite, project.texts)
    unparsable = find_unparsable_file(project.outcomes, project.texts, project.language)
    if unparsable is not None:
        if early is not None:
            await early.close()  # No test ran in it, because the file does not parse.
            early = None
        # A line is given if only the runtime rejects the file, for a reason that may not be its syntax.
        is_certain = not unparsable.line
        recovery_s = limits.max_seconds * (1.0 if is_certain else tuning.UNPARSABLE_FILE_SHARE)
        recovery_limits = replace(limits, max_seconds=recovery_s)
        result = await recover_with_tree_sitter(project, unparsable, recovery_limits, wall_s=baseline.wall_s)
        limits = limits.minus(result.seconds, result.tried_count)
        is_over = limits.max_seconds < tuning.MIN_SEARCH_S or not limits.max_candidates
        if result.plausible or (result.tried_count and is_certain) or is_over:
            return result
    return await search_with_tree_sitter(project, limits, early)


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


def _find_unparsable_python_file(baseline: Verdict | None, texts: Mapping[str, str]) -> str:
    """Return the editable file that Python could not parse in the tests' run; empty if there is none."""
    facts = baseline.counterexamples if baseline else ()
    paths = (fact.file for fact in facts if fact.exception_type in SYNTAX_ERRORS)
    return next((path for path in paths if path in texts), "")


def _ranking_s(limits: SearchLimits, result: SearchResult) -> float:
    """Return the seconds for ranking: what the search left, and at least the time of a few calls."""
    return max(tuning.MIN_RANKING_S, limits.max_seconds - result.seconds)


def _finish_search(
    result: SearchResult,
    plausible: PlausibleRepairs,
    divergences: Mapping[str, str],
    context: RunContext,
) -> dict[str, Any]:
    """Record the search, and store its repairs for `try_repairs`, which may have to wait for a person."""
    context.ledger.append(_make_search_event(result, plausible, divergences))
    if not plausible.repairs:
        return {"searched": True}
    return {"searched": True, "found_repairs": context.folder.save_record(plausible)}


def _make_search_event(
    result: SearchResult, plausible: PlausibleRepairs, divergences: Mapping[str, str]
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
                diff=render_change(repair, result.texts),
            )
            for repair in plausible.repairs
        ),
        partial=tuple(
            PartialRepair(path=change.path, label=change.label, passing=trial.passing, failing=trial.failing)
            for change, trial in result.partial[: tuning.MAX_LISTED_PARTIAL_REPAIRS]
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


async def try_repairs(state: LoopState, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """Judge the repairs of the search. If two of them differ, a person may be asked first which is right."""
    context, blob = runtime.context, state.get("found_repairs", "")
    if not blob:
        return {}
    plausible = decode_record(PlausibleRepairs, context.folder.load_json(blob))
    difference = plausible.difference
    if difference is not None and context.spec.asks_to_distinguish:
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
    if judged and judged[-1].solved:
        judged = await settle_rivals(plausible, judged, suite, state, context)
    return {"found_repairs": "", "judged": encode_attempts((*judged_attempts(state), *judged))}


async def _judge_repairs(
    plausible: PlausibleRepairs, suite: Suite, state: LoopState, context: RunContext
) -> list[Attempt]:
    """Judge the most likely repairs one after the other, until one of them passes.

    If the sandbox fails, the next repair is still judged, so that a repair that passes is recorded; the fault
    is raised at the end.
    """
    baseline = context.candidates.baseline_verdict(state)
    run_s = baseline.wall_s if baseline is not None else 0.0
    judged: list[Attempt] = []
    faults: list[SandboxError] = []
    for repair in plausible.repairs[: tuning.MAX_JUDGED_REPAIRS]:
        proposal = propose_repair(repair, plausible, context)
        try:
            candidate = context.candidates.load(proposal.blob)
            verdict = await judge(candidate, suite, context, trial_run_s=run_s)
        except BudgetExceeded:
            if not judged:
                raise
            break
        except SandboxError as fault:
            faults.append(fault)
            if len(faults) == tuning.MAX_SANDBOX_FAULTS:
                break
            continue
        judged.append(record_verdict(proposal, verdict, baseline, context))
        if judged[-1].solved:
            break
    if faults:
        raise faults[0]
    return judged
