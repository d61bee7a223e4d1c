"""Show a person results of new code that no test and no example judges, and verify it by those that they confirm.

Where no guessed call returns a value, the person is asked for a call and its result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from suture.core.ledger import select_events
from suture.core.ledger.kinds import ExamplesConfirmed, ReviewAsked
from suture.core.records import Reason, ReasonCode, content_hash, encode_record
from suture.judge import check_candidate
from suture.judge.differential.proposed_examples import find_main_function, propose_examples
from suture.loop.context import RunContext
from suture.loop.policy.attempts import Attempt
from suture.loop.review.examples import EXAMPLES_FILE, read_examples, rename_calls, render_agreed
from suture.loop.roles.generated_tests import judge_again
from suture.loop.services.suite_provider import add_checks
from suture.loop.state import LoopState, encode_attempts, ended_state, judged_attempts


async def confirm_examples(state: LoopState, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """Ask which results of the code are right, and judge every candidate by the confirmed ones."""
    context = runtime.context
    attempts = [attempt for attempt in judged_attempts(state) if not attempt.blocked]
    question = await _make_question(attempts, state, context)
    has_generated_tests = bool(state["contributions"].get("generated"))
    if not question.examples and has_generated_tests:  # They may still earn trust.
        return {"asked_examples": True}
    # LangGraph runs this node again from its start when the answer is there: so far, nothing was changed.
    answer: Mapping[str, Any] = interrupt(encode_record(question))
    if answer["choice"] == "abort":
        return ended_state("cancelled", Reason(code="stopped_by_reviewer"))
    if answer["choice"] == "reject":
        code: ReasonCode = "results_rejected" if question.examples else "no_shown_result"
        return ended_state("not_healed", Reason(code=code))
    text = "\n".join(render_agreed(question.examples))
    if answer["choice"] == "edit":
        text = context.candidates.load(answer["blob"]).files[EXAMPLES_FILE]
    text, same_named = await _choose_function_name(text, question, attempts, context)
    context.ledger.append(ExamplesConfirmed(asserts=tuple(check.source for check in read_examples(text))))
    suite = await context.suites.load()
    judged = [
        await judge_again(attempt, suite, context) if attempt.candidate in same_named else attempt
        for attempt in judged_attempts(state)
    ]
    checks = sum(check.trust >= context.trust_threshold for check in suite.task.checks)
    return {"asked_examples": True, "moves": [], "judged": encode_attempts(judged), "checks": checks}


async def _make_question(attempts: Sequence[Attempt], state: LoopState, context: RunContext) -> ReviewAsked:
    """Return the question about results of the candidates; the recorded one if it was asked already."""
    key = content_hash({"stage": "examples", "candidates": [attempt.candidate for attempt in attempts]})
    for _, asked in select_events(context.ledger.events, ReviewAsked):
        if asked.key == key:
            return asked
    async with context.budget.time_limit():
        candidates = [context.candidates.load(attempt.blob) for attempt in attempts]
        proposed = await propose_examples(
            candidates, await context.suites.load(), seed=context.settings.repair.seed
        )
    return ReviewAsked(
        key=key,
        stage="examples",
        decision=state["decisions"],
        round=state["round"],
        candidate=attempts[0].candidate,
        blob=attempts[0].blob,
        verdict=attempts[0].verdict,
        examples=proposed.examples,
        raising_calls=proposed.raising_calls,
    )


async def _choose_function_name(
    text: str, question: ReviewAsked, attempts: Sequence[Attempt], context: RunContext
) -> tuple[str, frozenset[str]]:
    """Return the asserts as they call the function, and the hashes of the candidates that give it this name.

    The task names no function, so that each candidate may have chosen another name. The name of the first candidate
    that passes the asserts counts. Candidates with other names would fail only because of their names.
    """
    path, entry_point = context.task.module, context.task.entry_point
    candidates = {attempt.candidate: context.candidates.load(attempt.blob) for attempt in attempts}
    # The question shows the first candidate.
    shown = find_main_function(candidates[question.candidate].files.get(path, ""), entry_point)
    shown_name = shown.name if shown else ""
    names: dict[str, list[str]] = {shown_name: []}
    for candidate in candidates.values():
        function = find_main_function(candidate.files.get(path, ""), entry_point)
        names.setdefault(function.name if function else shown_name, []).append(candidate.hash)
    suite = await context.suites.load()
    for name, hashes in names.items() if len(names) > 1 else ():
        renamed = rename_calls(text, shown_name, name)
        suite_with_examples = add_checks(suite, read_examples(renamed))
        for hash_ in hashes:
            async with context.budget.time_limit():
                verdict = await check_candidate(candidates[hash_], suite_with_examples)
            if not verdict.failed:
                return renamed, frozenset(hashes)
    return text, frozenset(names[shown_name])
