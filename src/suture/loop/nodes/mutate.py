"""Mutate: search for a repair without a model, and judge the likeliest of what it finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from langgraph.runtime import Runtime

from suture.checks import Suite
from suture.errors import BudgetExceeded, SandboxError
from suture.ledger.kinds import (
    BrokenOperator,
    DifferingAnswers,
    DifferingTrial,
    FoundRepair,
    PartialRepair,
    SearchFinished,
    SearchStarted,
    SuspectLine,
    Trials,
)
from suture.loop.context import RunContext
from suture.loop.edits import proposed_event
from suture.loop.evaluation.bisecting import suspect_hunks
from suture.loop.evaluation.deciding import deciding_suite
from suture.loop.evaluation.divergence import divergences
from suture.loop.evaluation.judging import judge, tried_entry
from suture.loop.evaluation.search_ahead import editable_texts, search_limits, taken_ready
from suture.loop.evaluation.search_tests import guide_of
from suture.loop.helper_state import aids_of
from suture.loop.nodes.propose import Branch
from suture.loop.prompting.briefs import deciding_facts
from suture.loop.review.disambiguation import chosen_repairs
from suture.loop.state import LoopState, Proposal, TriedEntry
from suture.records import Candidate, Verdict
from suture.repair import Difference, Findings, Repair, SearchLimits, rank_repairs, recover, search
from suture.workspace import text_of

__all__ = ["editable_texts", "mutate", "search_limits"]

NO_PYTHON = ("SyntaxError", "IndentationError", "TabError")
MOST_JUDGED = 8
"""Repairs that the trusted suite judges, likeliest first; it stops at the first that passes."""
MOST_FAULTS = 2
"""Times that the wall may fail under one of them before no further one is judged."""
MOST_TOLD = 40
"""Suspicious lines that the ledger names."""
LEAST_RANKING_S = 2.0


async def mutate(state: Branch, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """Search once; it costs no attempt and no token, and what it leaves undone is the model's."""
    context, loop = runtime.context, state["state"]
    suite = await deciding_suite(aids_of(loop), context)
    texts = editable_texts(suite)
    base = context.base_verdict(loop)
    guide = await guide_of(suite, base, context) if texts else None
    if guide is None:
        return {"searched": True}
    limits = search_limits(context, base)
    began = SearchStarted(
        files=tuple(sorted(texts)),
        failing=len(guide.failing),
        candidates=limits.candidates,
        seconds=limits.seconds,
        seed=limits.seed,
    )
    context.ledger.append(began)
    async with context.budget.time_limit():
        tests = [text_of(suite.task.files[path]) for path in guide.command.test_files]
        hunks = await suspect_hunks(guide, texts, context)
        ready = await taken_ready(guide.command, suite, context)
        found = await search(
            guide.command, texts, guide.failing, limits, tests, hunks, baseline=guide.outcomes, ready=ready
        )
        unread = "" if found.plausible else unreadable_in(base, texts)
        if unread:  # no operator can read it: what was tried up to here are changes taken back
            found = await recover(guide.command, suite.task.files, texts, unread, limits, tests)
        repairs, difference = await rank_repairs(
            found, guide.command, tests, seed=limits.seed, seconds=_ranking_s(limits, found)
        )
        apart = {} if repairs else await _divergences(found, loop, context)
    context.ledger.append(_told(found, repairs, difference, apart))
    chosen = chosen_repairs(repairs, difference, context)
    return {
        "searched": True,
        "tried": [*loop["tried"], *await _judged(chosen, difference, suite, loop, context)],
    }


def unreadable_in(base: Verdict | None, texts: Mapping[str, str]) -> str:
    """The file that may be changed and that the tests could not read; empty where there is none."""
    facts = [o.counterexample for o in base.outcomes if o.counterexample is not None] if base else []
    named = [fact.file for fact in facts if fact.exception.startswith(NO_PYTHON)]
    return next((path for path in named if path in texts), "")


def _ranking_s(limits: SearchLimits, found: Findings) -> float:
    """Ranking is of the search: it has what that left, and at least what a few calls take."""
    return max(LEAST_RANKING_S, limits.seconds - found.seconds)


def _told(
    found: Findings,
    repairs: tuple[Repair, ...],
    difference: Difference | None,
    divergences: Mapping[str, str],
) -> SearchFinished:
    return SearchFinished(
        tried=found.tried,
        seconds=round(found.seconds, 3),
        ended=found.ended,
        plausible=len(found.plausible),
        repairs=tuple(
            FoundRepair(
                label=r.proposal.label,
                file=r.proposal.path,
                score=round(r.score, 4),
                operators=tuple(r.proposal.operators),
                warnings=tuple(r.warnings),
                alike=tuple(r.alike),
            )
            for r in repairs
        ),
        partial=tuple(
            PartialRepair(path=p.path, label=p.label, passing=trial.passing, failing=trial.failing)
            for p, trial in found.partial[:5]
        ),
        trials=_trials_told(found),
        difference=DifferingAnswers(**vars(difference)) if difference is not None else None,
        faults=tuple(SuspectLine(**vars(fault)) for fault in found.faults[:MOST_TOLD]),
        broken=tuple(BrokenOperator(path=path, **vars(fault)) for path, fault in found.broken[:MOST_TOLD]),
        divergences=divergences,
    )


def _trials_told(found: Findings) -> Trials:
    spectrum = found.spectrum
    return Trials(
        compared=spectrum.compared,
        disagreements=len(spectrum.disagreements),
        differing=tuple(DifferingTrial(**vars(one)) for one in spectrum.disagreements[:MOST_TOLD]),
        partly=spectrum.partly,
        notes=tuple(found.notes),
        located_s=round(found.located_s, 3),
        made_s=round(found.made_s, 3),
    )


async def _divergences(found: Findings, state: LoopState, context: RunContext) -> dict[str, str]:
    """What a model will be told of the failing calls: it is the next to be asked."""
    base = context.base_verdict(state)
    facts = deciding_facts(base, context.settings.loop.trust_threshold) if base is not None else ()
    return await divergences(facts, [change for change, _ in found.partial], found.texts, context)


async def _judged(
    repairs: tuple[Repair, ...],
    difference: Difference | None,
    suite: Suite,
    state: LoopState,
    context: RunContext,
) -> list[TriedEntry]:
    """The likeliest repairs under the trusted suite, one after the other, until one of them passes.

    Each is run twice, side by side: all of them have passed a trial. Where the wall fails under one, the next
    is still judged, as a verdict that is written down is not lost; then the fault goes on.
    """
    base = context.base_verdict(state)
    entries: list[TriedEntry] = []
    faults: list[SandboxError] = []

    async def one(proposal: Proposal) -> TriedEntry:
        verdict = await judge(context.candidate(proposal["blob"]), suite, context, likely=True)
        return tried_entry(proposal, verdict, base, context)

    for repair in repairs[:MOST_JUDGED]:
        proposal = _propose(repair, repairs, difference, context)
        try:
            entries.append(await one(proposal))
        except BudgetExceeded:
            if not entries:
                raise
            break
        except SandboxError as fault:
            faults.append(fault)
            if len(faults) == MOST_FAULTS:
                break
            continue
        if context.tried(entries[-1]).solved:
            break
    if faults:
        raise faults[0]
    return entries


def _compared(
    repair: Repair, repairs: tuple[Repair, ...], difference: Difference | None
) -> tuple[float | None, int | None]:
    """The share of the other plausible repairs that behave like one, and how many behave otherwise.

    `None` where that was not compared; there is no share where there are no others.
    """
    if difference is None and len(repairs) > 1:
        return None, None
    others = sum(1 + len(other.alike) for other in repairs) - 1
    alike = len(repair.alike)
    return round(alike / others, 4) if others else None, others - alike


def _propose(
    repair: Repair, repairs: tuple[Repair, ...], difference: Difference | None, context: RunContext
) -> Proposal:
    candidate = Candidate(
        files={repair.proposal.path: repair.text},
        origin="mutation",
        label=f"mutation, {repair.proposal.label}",
    )
    blob = context.keep(candidate)
    agreement, rivals = _compared(repair, repairs, difference)
    told = replace(
        proposed_event(candidate, blob), warnings=tuple(repair.warnings), agreement=agreement, rivals=rivals
    )
    context.ledger.append(told)
    return Proposal(
        candidate=candidate.hash,
        blob=blob,
        origin=candidate.origin,
        round=-1,
        start=-1,
        depth=0,
        label=candidate.label,
        fault="",
        message="",
    )
