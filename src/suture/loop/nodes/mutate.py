"""Mutate: search for a repair without a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from langgraph.runtime import Runtime

from suture.core.ledger.kinds import (
    BrokenOperator,
    DifferingAnswers,
    FoundRepair,
    PartialRepair,
    SearchFinished,
    SearchStarted,
    Trials,
)
from suture.core.records import Verdict, to_plain
from suture.judge import Suite
from suture.loop.context import RunContext
from suture.loop.evaluation.bisecting import suspect_hunks
from suture.loop.evaluation.deciding import deciding_suite
from suture.loop.evaluation.divergence import divergences
from suture.loop.evaluation.search_setup import (
    editable_texts,
    failing_of,
    failing_project,
    guide_of,
    search_limits,
    taken_look,
    taken_ready,
)
from suture.loop.nodes.propose import Branch
from suture.loop.prompting.briefs import deciding_facts
from suture.loop.review.disambiguation import FoundRepairs
from suture.loop.state import LoopState, aids_of
from suture.mutation import has_grammar
from suture.project.workspace import text_of
from suture.search import (
    Difference,
    FailingProject,
    SearchResult,
    Repair,
    SearchLimits,
    rank_tree_repairs,
    rank_python_repairs,
    recover_python,
    recover_with_tree_sitter,
    search_python,
    search_with_tree_sitter,
    find_unparsable_file,
)

NO_PYTHON = ("SyntaxError", "IndentationError", "TabError")
MOST_TOLD = 40
"""Suspicious lines that the ledger names."""
READING_SHARE = 0.5
"""Of the seconds, for a file that can be read and that its language refuses: a search may mend that too."""
LEAST_SEARCH_S = 1.0
LEAST_RANKING_S = 2.0
"""Also where the search has used up its own: what was found is worth little as long as nobody ranks it."""


async def mutate(state: Branch, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """Search once; it costs no attempt and no token, and what it leaves undone is the model's."""
    context, loop = runtime.context, state["state"]
    suite = await deciding_suite(aids_of(loop), context)
    texts = editable_texts(suite)
    base = context.base_verdict(loop)
    if texts and has_grammar(context.task.language):
        return await _elsewhere(suite, texts, base, context)
    guide = await guide_of(suite, base, context) if texts else None
    if guide is None:
        return {"searched": True}
    limits = search_limits(context, base)
    _tell_start(texts, len(guide.failing), limits, context)
    async with context.budget.time_limit():
        tests = [text_of(suite.task.files[path]) for path in guide.command.test_files]
        has_past = any(state.files for state in context.task.earlier)
        hunks = await suspect_hunks(guide, texts, context) if has_past else ()
        ready = await taken_ready(guide.command, suite, context)
        found = await search_python(
            guide.command, texts, guide.failing, limits, tests, hunks, baseline=guide.outcomes, ready=ready
        )
        unread = "" if found.plausible else unreadable_in(base, texts)
        if unread:  # no operator can read it: what was tried up to here are changes taken back
            left = limits.minus(found.seconds, found.tried_count)
            whole = failing_project(suite, guide.command, texts, base)
            found = await recover_python(whole, unread, left, tests)
        repairs, difference = await rank_python_repairs(
            found, guide.command, tests, seed=limits.seed, seconds=_ranking_s(limits, found)
        )
        apart = {} if repairs else await _divergences(found, loop, context)
    context.ledger.append(_told(found, repairs, difference, apart))
    return _kept(repairs, difference, context)


async def _elsewhere(
    suite: Suite, texts: Mapping[str, str], base: Verdict | None, context: RunContext
) -> dict[str, Any]:
    """The search in another language than Python."""
    if suite.command is None or base is None:
        return {"searched": True}
    limits = search_limits(context, base)
    _tell_start(texts, len(failing_of(base.outcomes)[0]), limits, context)
    async with context.budget.time_limit():
        project = failing_project(suite, suite.command, texts, base)
        found = await _found_elsewhere(suite, project, base, limits, context)
        repairs, difference = await rank_tree_repairs(
            *(found, project, project.test_texts()), seed=limits.seed, seconds=_ranking_s(limits, found)
        )
    context.ledger.append(_told(found, repairs, difference, {}))
    return _kept(repairs, difference, context)


async def _found_elsewhere(
    suite: Suite, project: FailingProject, base: Verdict, limits: SearchLimits, context: RunContext
) -> SearchResult:
    """What is found for a file that cannot be read, else by changes of the trees."""
    look = await taken_look(suite, project.texts, context)
    unread = find_unparsable_file(project.outcomes, project.texts, project.language)
    if unread is not None:
        if look is not None:
            await look.close()  # it sees no test
        is_sure = not unread.line
        own = limits if is_sure else replace(limits, seconds=READING_SHARE * limits.max_seconds)
        found = await recover_with_tree_sitter(project, unread, own, wall_s=base.wall_s)
        look, limits = None, limits.minus(found.seconds, found.tried_count)
        is_over = limits.max_seconds < LEAST_SEARCH_S or not limits.max_candidates
        if found.plausible or (found.tried_count and is_sure) or is_over:
            return found
    return await search_with_tree_sitter(project, limits, look)


def _tell_start(texts: Mapping[str, str], failing: int, limits: SearchLimits, context: RunContext) -> None:
    began = SearchStarted(
        files=tuple(sorted(texts)),
        failing=failing,
        candidates=limits.max_candidates,
        seconds=limits.max_seconds,
        seed=limits.seed,
    )
    context.ledger.append(began)


def _kept(repairs: tuple[Repair, ...], difference: Difference | None, context: RunContext) -> dict[str, Any]:
    """What the next step judges; it may have to wait for a person."""
    if not repairs:
        return {"searched": True}
    kept = FoundRepairs(repairs=repairs, difference=difference)
    return {"searched": True, "found": context.folder.put_json(to_plain(kept))}


def unreadable_in(base: Verdict | None, texts: Mapping[str, str]) -> str:
    """The file that may be changed and that the tests could not read; empty where there is none."""
    facts = [o.counterexample for o in base.outcomes if o.counterexample is not None] if base else []
    named = [fact.file for fact in facts if fact.exception.startswith(NO_PYTHON)]
    return next((path for path in named if path in texts), "")


def _ranking_s(limits: SearchLimits, found: SearchResult) -> float:
    """Ranking is of the search: it has what that left, and at least what a few calls take."""
    return max(LEAST_RANKING_S, limits.max_seconds - found.seconds)


def _told(
    found: SearchResult,
    repairs: tuple[Repair, ...],
    difference: Difference | None,
    divergences: Mapping[str, str],
) -> SearchFinished:
    return SearchFinished(
        tried=found.tried_count,
        seconds=round(found.seconds, 3),
        ended=found.ending,
        plausible=len(found.plausible),
        repairs=tuple(
            FoundRepair(
                label=r.proposal.label,
                file=r.proposal.path,
                score=round(r.score, 4),
                operators=tuple(r.proposal.operators),
                warnings=tuple(r.warnings),
                alike=tuple(r.equivalent_labels),
            )
            for r in repairs
        ),
        partial=tuple(
            PartialRepair(path=p.path, label=p.label, passing=trial.passing, failing=trial.failing)
            for p, trial in found.partial[:5]
        ),
        trials=_trials_told(found),
        difference=DifferingAnswers(**vars(difference)) if difference is not None else None,
        faults=found.suspect_lines[:MOST_TOLD],
        broken=tuple(BrokenOperator(path=path, **vars(fault)) for path, fault in found.operator_failures[:MOST_TOLD]),
        divergences=divergences,
    )


def _trials_told(found: SearchResult) -> Trials:
    spectrum = found.spectrum
    return Trials(
        compared=spectrum.compared,
        disagreements=len(spectrum.disagreements),
        differing=spectrum.disagreements[:MOST_TOLD],
        partly=spectrum.partly,
        notes=tuple(found.notes),
        located_s=round(found.localisation_s, 3),
        made_s=round(found.generation_s, 3),
    )


async def _divergences(found: SearchResult, state: LoopState, context: RunContext) -> dict[str, str]:
    """What a model will be told of the failing calls: it is the next to be asked."""
    base = context.base_verdict(state)
    facts = deciding_facts(base, context.settings.loop.trust_threshold) if base is not None else ()
    return await divergences(facts, [change for change, _ in found.partial], found.texts, context)
