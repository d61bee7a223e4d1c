"""Asking what packages brought: advice, checks and repairs, under the same rules as our own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

from suture.agents import RepairBrief
from suture.core.ledger.kinds import Advised, TestsWritten
from suture.core.records import Candidate, Check, Provenance, Task
from suture.errors import SutureError
from suture.judge import Suite
from suture.judge import protected_files as refused_files
from suture.loop.calls.helper_call import Consultation, degrade, is_given_up
from suture.loop.calls.model_call import Question, ask
from suture.loop.context import RunContext
from suture.loop.evaluation.judging import judge, judged_attempt
from suture.loop.policy.progress import Attempt
from suture.loop.proposing import Lineage, propose_candidate
from suture.loop.recipes.recipe import Adviser, CheckSource, Mender
from suture.loop.state import LoopState, tried_in, with_tried
from suture.models import Message, Sampling

T = TypeVar("T")


def brought_checks(context: RunContext) -> tuple[Check, ...]:
    """Checks of the packages' sources, which nobody trusts yet; given checks are the user's alone."""
    checks: list[Check] = []
    for name, source in context.extensions.check_sources.items():
        found = _brought(name, partial(_untrusted, source, context.task), 0, context)
        if found is None:
            continue
        sources = tuple(check.source for check in found)
        context.ledger.append(TestsWritten(role=name, tests=sources, dropped={}))
        checks += found
    return tuple(checks)


def _brought(name: str, make: Callable[[], T], number: int, context: RunContext) -> T | None:
    """What a package makes; `None` where it is degraded, now or before."""
    if is_given_up(name, context):
        return None
    try:
        return make()
    except Exception as fault:  # whatever a package raises is its own fault, and no reason to end a run
        degrade(name, number, fault, context)
        return None


def _untrusted(source: CheckSource, task: Task) -> list[Check]:
    return [replace(check, trust=0.0, provenance=_generated(check)) for check in source(task)]


async def advice_of(brief: RepairBrief, number: int, context: RunContext) -> tuple[str, ...]:
    """What each adviser says of a candidate that is to be mended; one that fails is degraded."""
    said: list[str] = []
    for name, adviser in context.extensions.advisers.items():
        asked = Consultation(helper=name, context=context, round=number)
        advice = await asked.or_none(partial(_advised, adviser, brief))
        if advice:
            context.ledger.append(Advised(role=name, said=advice))
            said += advice
    return tuple(said)


async def _advised(adviser: Adviser, brief: RepairBrief, asked: Consultation) -> tuple[str, ...]:
    context = asked.context

    async def put(text: str) -> str:
        seat = context.models.for_role("critic")
        question = Question(
            role="critic",
            messages=(Message(role="user", content=text),),
            prompt="",
            sampling=Sampling(max_tokens=seat.max_tokens, index=asked.round),
            helper=asked.helper,
        )
        return (await ask(question, context)).text

    try:
        return tuple(map(str, await adviser(brief, put)))
    except SutureError:
        raise  # of what it asked us for
    except Exception as fault:
        degrade(asked.helper, asked.round, fault, context)
        return ()


async def mended(
    brief: RepairBrief, entry: Attempt, suite: Suite, state: LoopState, context: RunContext
) -> LoopState:
    """The state with what the menders make of a failing candidate, judged; that costs no attempt.

    Raises:
        BudgetExceeded: The time is up.
        SandboxError: The wall failed.
    """
    for name, mender in context.extensions.menders.items():
        written = _brought(name, partial(_texts, mender, brief), state["round"], context)
        if not written or refused_files(written, suite):
            continue
        parent = context.candidate(entry.blob)
        candidate = Candidate(
            files={**parent.files, **written}, origin="mutation", parent=parent.hash, label=f"by {name}"
        )
        if candidate.hash in {one.candidate for one in tried_in(state)}:
            continue
        lineage = Lineage(round=entry.round, start=entry.start, depth=entry.depth + 1)
        proposal = propose_candidate(candidate, lineage, context)
        verdict = await judge(candidate, suite, context)
        judged = judged_attempt(proposal, verdict, context.base_verdict(state), context)
        state = with_tried(state, (*tried_in(state), judged))
    return state


def _texts(mender: Mender, brief: RepairBrief) -> dict[str, str]:
    """What a mender would write.

    Raises:
        TypeError: It is no mapping of path to text.
    """
    written = dict(mender(brief) or {})
    if not all(isinstance(part, str) for pair in written.items() for part in pair):
        raise TypeError("a mender answers path -> text, or None")
    return written


def _generated(check: Check) -> Provenance:
    return check.provenance if check.provenance in ("adversarial", "property") else "spec"
