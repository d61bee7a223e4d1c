"""Call the extensions of installed packages, which contribute checks, advice and repairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

from suture.agents.calling.model_call import ModelQuestion, ask
from suture.agents.calling.role_call import RoleCall, is_suspended, record_degradation
from suture.agents.roles.coder import RepairBrief
from suture.core.ledger.kinds import AdviceGiven, TestsWritten
from suture.core.records import Candidate, Check, Task
from suture.errors import SutureError
from suture.judge import Suite, find_protected_files
from suture.loop.briefing import make_role_call
from suture.loop.context import RunContext
from suture.loop.evaluation.judging import judge_at_once
from suture.loop.policy.attempts import Attempt
from suture.loop.recipes.recipe_files import Adviser, CheckSource, Fixer
from suture.loop.services.candidate_store import Lineage
from suture.loop.state import LoopState, add_judged_attempt, judged_attempts
from suture.models import Message, Sampling

T = TypeVar("T")


def collect_extension_checks(context: RunContext) -> tuple[Check, ...]:
    """Return the checks of the packages' check sources, all with trust 0."""
    checks: list[Check] = []
    for name, source in context.extensions.check_sources.items():
        written = _call_extension(name, partial(_write_checks, source, context.task), 0, context)
        if written is None:
            continue
        sources = tuple(check.source for check in written)
        context.ledger.append(TestsWritten(role=name, tests=sources, dropped={}))
        checks += written
    return tuple(checks)


def _call_extension(name: str, call: Callable[[], T], round_: int, context: RunContext) -> T | None:
    """Return what an extension returns; `None` if it is suspended or fails now."""
    if is_suspended(name, context.ledger.events):
        return None
    try:
        return call()
    except Exception as fault:  # An extension may raise anything, and that must not end the run.
        record_degradation(name, round_, fault, context.ledger)
        return None


def _write_checks(source: CheckSource, task: Task) -> list[Check]:
    """Return the checks of a source without trust; none of them may claim that the user wrote it."""
    return [
        replace(
            check,
            trust=0.0,
            provenance=check.provenance if check.provenance in ("adversarial", "property") else "spec",
        )
        for check in source(task)
    ]


async def collect_advice(brief: RepairBrief, state: LoopState, context: RunContext) -> tuple[str, ...]:
    """Return the remarks of every adviser on a candidate to repair; an adviser that fails is degraded."""
    remarks: list[str] = []
    for name, adviser in context.extensions.advisers.items():
        call = make_role_call(name, state, context)
        advice = await call.run_or_degrade(partial(_ask_adviser, adviser, brief))
        if advice:
            context.ledger.append(AdviceGiven(role=name, advice=advice))
            remarks += advice
    return tuple(remarks)


async def _ask_adviser(adviser: Adviser, brief: RepairBrief, call: RoleCall) -> tuple[str, ...]:
    async def ask_text(text: str) -> str:
        critic = call.calls.models.for_role("critic")
        question = ModelQuestion(
            role="critic",
            messages=(Message(role="user", content=text),),
            prompt="",  # the adviser brings its own prompt, and no prompt file
            sampling=Sampling(max_tokens=critic.max_tokens, index=call.round),
            helper=call.helper,
        )
        return (await ask(question, call.calls)).text

    try:
        return tuple(map(str, await adviser(brief, ask_text)))
    except SutureError:
        raise  # It comes from the question that the adviser asked through us.
    except Exception as fault:
        record_degradation(call.helper, call.round, fault, call.calls.ledger)
        return ()


async def try_fixers(
    brief: RepairBrief, attempt: Attempt, suite: Suite, state: LoopState, context: RunContext
) -> LoopState:
    """Return the state with the judged repairs of the fixers, which use up no attempt of the budget."""
    for name, fixer in context.extensions.fixers.items():
        written = _call_extension(name, partial(_run_fixer, fixer, brief), state["round"], context)
        if not written or find_protected_files(written, suite):
            continue
        parent = context.candidates.load(attempt.blob)
        # A fixer uses no model, so its repairs have the origin of those of the search.
        candidate = Candidate(
            files={**parent.files, **written}, origin="mutation", parent=parent.hash, label=f"by {name}"
        )
        if any(candidate.hash == judged.candidate for judged in judged_attempts(state)):
            continue
        lineage = Lineage(round=attempt.round, start=attempt.start, depth=attempt.depth + 1)
        state = add_judged_attempt(state, await judge_at_once(candidate, lineage, suite, state, context))
    return state


def _run_fixer(fixer: Fixer, brief: RepairBrief) -> dict[str, str]:
    """Return the files that a fixer would write."""
    written = dict(fixer(brief) or {})
    if not all(isinstance(part, str) for pair in written.items() for part in pair):
        raise TypeError("a fixer returns path -> text, or None")
    return written
