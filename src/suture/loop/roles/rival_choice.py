"""Decide which of several passing repairs is meant if the tests do not: a capable model is asked.

Its choice decides among candidates that pass. What it writes is judged like any other candidate.

A tournament ranks candidates by inputs on which they behave differently.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from suture.agents.context.file_selection import make_excerpt
from suture.agents.replies.change_reading import read_change
from suture.agents.roles.repair_chooser import (
    ChoiceBrief,
    RepairChoice,
    draft_choice_prompt,
    read_choice,
)
from suture.core.ledger import first_payload, select_events
from suture.core.ledger.kinds import (
    CandidateProposed,
    CandidatesCompared,
    DifferingCall,
    RepairChosen,
    UserAnswered,
)
from suture.core.records import Candidate
from suture.errors import BudgetExceeded
from suture.judge import Suite, find_protected_paths
from suture.judge.coverage.coverage_run import find_changed_lines
from suture.judge.differential.behaviour_comparison import compare_candidates, render_comparison
from suture.judge.mutation_testing.mutant_runs import MutationResult
from suture.judge.signs import render_tampering_warning
from suture.judge.triage import get_test_source
from suture.loop.briefing import make_role_call
from suture.loop.context import RunContext
from suture.loop.evaluation.certification import measure_mutants
from suture.loop.evaluation.change_warnings import LABEL_PREFIX, select_answers
from suture.loop.evaluation.judging import judge, judge_at_once, record_verdict
from suture.loop.policy.attempts import Attempt, find_best
from suture.loop.roles.generated_tests import load_generated_checks
from suture.loop.services.candidate_store import SEARCH_ROUND, Lineage
from suture.loop.state import LoopState, judged_attempts, role_contributions, with_judged_attempts
from suture.loop.tuning import (
    MAX_CHOICE_MUTATION_S,
    MAX_LISTED_RIVALS,
    MAX_SHOWN_TESTS,
    MAX_SHOWN_VERSIONS,
    UNPARSED_EXCERPT_LINES,
)
from suture.mutation.edits import encode_source
from suture.project.languages import LANGUAGES
from suture.project.workspace import decode_text, unified_diff
from suture.search import PlausibleRepairs, Repair

CHOSEN_RANK = 1
"""`Attempt.rank` of the candidate that the model chose or wrote; other candidates that pass have none."""


def make_search_candidate(repair: Repair) -> Candidate:
    """Return the candidate that consists of a repair of the search alone."""
    return Candidate(
        files={repair.proposal.path: repair.text},
        origin="mutation",
        label=f"{LABEL_PREFIX}{repair.proposal.label}",
    )


def propose_repair(repair: Repair, plausible: PlausibleRepairs, context: RunContext) -> Attempt:
    """Propose a repair of the search, with how it compares to the other plausible repairs."""
    candidate = make_search_candidate(repair)
    remaining = {other.proposal.label for other in plausible.repairs}  # A person may have ruled out some.
    rivals = tuple(label for label in repair.rivals if label in remaining)
    # Rivals that a person ruled out are no longer in `plausible`, so their scores do not count.
    rival_scores = sum(other.score for other in plausible.repairs if other.proposal.label in repair.rivals)
    total_score = repair.score + rival_scores
    other_count = sum(1 + len(other.equivalents) for other in plausible.repairs) - 1  # without this repair
    proposal = replace(
        context.candidates.make_proposal(candidate),
        warnings=tuple(map(render_tampering_warning, repair.warnings)),
        agreement=round(len(repair.equivalents) / other_count, 4) if other_count else None,
        rivals=len(rivals),
        rival_descriptions=rivals[:MAX_LISTED_RIVALS],
        score_share=round(repair.score / total_score, 4) if total_score else 1.0,
    )
    return context.candidates.propose(proposal, Lineage.beginning(SEARCH_ROUND))


def render_change(path: str, text: str, texts: Mapping[str, str]) -> str:
    """Return the change of one file as a unified diff.

    Args:
        path: The changed file.
        text: Its new text.
        texts: The user's code: path -> text.
    """
    return unified_diff({path: encode_source(texts[path])}, {path: encode_source(text)})


async def settle_rivals(
    plausible: PlausibleRepairs,
    judged: Sequence[Attempt],
    suite: Suite,
    state: LoopState,
    context: RunContext,
) -> list[Attempt]:
    """Ask a capable model which repair is meant, if the tests do not decide; return its candidate, if it passes.

    No model is asked if a person has already chosen.

    Args:
        judged: The repairs that were judged. The last one passes.

    Returns:
        The judged repairs, where the candidate that the model prefers is ranked first among those that pass.
    """
    attempts = list(judged)
    is_answered = first_payload(context.ledger.events, UserAnswered) is not None
    if not context.has_capable_model or is_answered:
        return attempts
    try:
        question = await _make_question(plausible, attempts, suite, state, context)
        if question is None:
            return attempts
        choice = await _ask(question, state, context)
        if choice is None:
            return attempts
        chosen = await _judge_choice(choice, question, plausible, attempts[-1], suite, state, context)
    except BudgetExceeded:  # The repair that passes is known, and must not be lost.
        return attempts
    passed = chosen is not None and chosen.solved
    context.ledger.append(
        RepairChosen(
            labels=tuple(repair.proposal.label for repair in question.versions),
            choice=choice.number,
            candidate=chosen.candidate if chosen is not None else "",
            passed=passed,
            explanation=choice.explanation,
        )
    )
    if chosen is None:
        return attempts
    ranked = replace(chosen, rank=CHOSEN_RANK if passed else None)
    return [*(attempt for attempt in attempts if attempt.candidate != chosen.candidate), ranked]


@dataclass(frozen=True, kw_only=True)
class _Question:
    """The repairs that the model is asked about, and what it is shown.

    Attributes:
        versions: The repairs. The first one has been judged, and passes.
    """

    versions: tuple[Repair, ...]
    brief: ChoiceBrief


async def _make_question(
    plausible: PlausibleRepairs,
    attempts: Sequence[Attempt],
    suite: Suite,
    state: LoopState,
    context: RunContext,
) -> _Question | None:
    """Return what the model is asked; `None` if the tests decide."""
    failed_texts = [context.candidates.load(attempt.blob).files for attempt in attempts[:-1]]
    passing_files = context.candidates.load(attempts[-1].blob).files
    best = next(r for r in plausible.repairs if passing_files == {r.proposal.path: r.text})
    rivals = [
        repair
        for repair in plausible.repairs
        if repair.proposal.label in best.rivals and {repair.proposal.path: repair.text} not in failed_texts
    ]
    versions = (best, *rivals[: MAX_SHOWN_VERSIONS - 1])
    noticed = None
    if not rivals:
        mutation = await _measure_mutants(attempts[-1], suite, state, context)
        if not mutation.shows_weak_tests:
            return None
        noticed = (sum(mutant.killed for mutant in mutation.mutants), len(mutation.mutants))
    task = context.task
    texts = {path: decode_text(content) for path, content in task.files.items()}
    baseline = context.candidates.baseline_verdict(state)
    failing = sorted(baseline.failed) if baseline is not None else []
    sources = [source for name in failing if (source := get_test_source(name, task.files))]
    brief = ChoiceBrief(
        statement=task.statement,
        language=task.language,
        files=_make_excerpts(versions, texts, is_python=LANGUAGES[task.language].parsed),
        tests=list(dict.fromkeys(sources))[:MAX_SHOWN_TESTS],
        versions=[render_change(repair.proposal.path, repair.text, texts) for repair in versions],
        calls=select_answers(plausible.compared_calls, [plausible.repairs.index(r) for r in versions]),
        noticed=noticed,
    )
    return _Question(versions=versions, brief=brief)


async def _measure_mutants(
    attempt: Attempt, suite: Suite, state: LoopState, context: RunContext
) -> MutationResult:
    """Return how well the tests guard a repair; a measurement that takes too long shows nothing."""
    return await measure_mutants(
        context.candidates.load(attempt.blob),
        context.candidates.load_verdict(attempt.verdict),
        context.candidates.baseline_verdict(state),
        suite,
        context,
        timeout_s=min(MAX_CHOICE_MUTATION_S, context.budget.remaining_s() or MAX_CHOICE_MUTATION_S),
    )


def _make_excerpts(
    versions: Sequence[Repair], texts: Mapping[str, str], *, is_python: bool
) -> dict[str, str]:
    """Return path -> the unchanged code around the changes of the repairs."""
    excerpts: dict[str, str] = {}
    for path in dict.fromkeys(repair.proposal.path for repair in versions):
        changed = sorted(
            {
                line
                for repair in versions
                if repair.proposal.path == path
                # Seen from the repair: lines of the unchanged code that it replaces.
                for line in find_changed_lines(repair.text, texts[path])
            }
        )
        excerpt = make_excerpt(texts[path], changed) if is_python else _cut_around(texts[path], changed)
        excerpts[path] = excerpt if excerpt is not None else texts[path]
    return excerpts


def _cut_around(text: str, lines: Sequence[int]) -> str:
    """Return the lines of a file near some lines."""
    first = max(0, min(lines, default=1) - UNPARSED_EXCERPT_LINES)
    last = max(lines, default=1) + UNPARSED_EXCERPT_LINES
    return "".join(text.splitlines(keepends=True)[first:last])


async def _ask(question: _Question, state: LoopState, context: RunContext) -> RepairChoice | None:
    """Return the model's choice; `None` if it cannot be asked or does not answer."""
    call = make_role_call("repair_chooser", state, context)
    return await call.parse_or_degrade(
        partial(draft_choice_prompt, question.brief),
        lambda reply: read_choice(reply, len(question.versions)),
    )


async def _judge_choice(
    choice: RepairChoice,
    question: _Question,
    plausible: PlausibleRepairs,
    best: Attempt,
    suite: Suite,
    state: LoopState,
    context: RunContext,
) -> Attempt | None:
    """Return the candidate that the model chose or wrote, judged; `None` if it wrote nothing usable."""
    if choice.number == 1:
        return best
    if choice.number:
        proposal = propose_repair(question.versions[choice.number - 1], plausible, context)
        verdict = await judge(context.candidates.load(proposal.blob), suite, context)
        return record_verdict(proposal, verdict, context.candidates.baseline_verdict(state), context)
    files = _read_written_files(choice.text, suite, context)
    if not files:
        return None
    candidate = Candidate(files=files, origin="repair", label="written in place of the search's repairs")
    if candidate.hash == best.candidate:
        return best
    return await judge_at_once(candidate, Lineage.beginning(SEARCH_ROUND), suite, state, context)


def _read_written_files(text: str, suite: Suite, context: RunContext) -> dict[str, str]:
    """Return the files that a reply changes: path -> text. Protected files stay as they are."""
    texts = {
        path: decode_text(content) for path, content in context.task.files.items() if b"\0" not in content
    }
    protected = find_protected_paths(texts, suite)
    change = read_change(text, texts, protected=protected, may_create=False)
    return change.files


async def rank_equal_candidates(suite: Suite, state: LoopState, context: RunContext) -> LoopState:
    """Rank the best candidates by how many of them behave in the same way, and return the new state.

    Only code that passes every deciding check is compared: other candidates differ in their failures already.
    """
    attempts = judged_attempts(state)
    best = find_best(attempts)
    if best is None or not best.solved or context.task.kind != "write":
        return state
    equals = [
        attempt
        for attempt in attempts
        if attempt.solved and (attempt.passed, attempt.sent_back) == (best.passed, best.sent_back)
    ]
    are_ranked = all(attempt.rank is not None for attempt in equals)
    if len({attempt.fingerprint for attempt in equals}) < 2 or are_ranked:
        return state
    proposals = select_events(context.ledger.events, CandidateProposed)
    async with context.budget.time_limit():
        comparison = await compare_candidates(
            [context.candidates.load(attempt.blob) for attempt in equals],
            suite,
            hints=load_generated_checks(role_contributions(state), context),
            drawn=Counter(proposal.candidate for _, proposal in proposals),
            seed=context.settings.model.seed,
        )
    context.ledger.append(
        CandidatesCompared(
            candidates=tuple(attempt.candidate for attempt in equals),
            preferred=comparison.preferred,
            reason=render_comparison(comparison),
            calls=comparison.calls,
            differ=tuple(
                DifferingCall(call=disagreement.call, answers=disagreement.answers)
                for disagreement in comparison.disagreements
            ),
        )
    )
    # A candidate in no cluster did not finish the calls, and ranks after its equals.
    clusters = enumerate(reversed(comparison.clusters), 1)
    ranks = {candidate: rank for rank, cluster in clusters for candidate in cluster}
    ranked = [
        replace(attempt, rank=ranks.get(attempt.candidate, 0)) if attempt in equals else attempt
        for attempt in attempts
    ]
    return with_judged_attempts(state, ranked)
