"""Summarise a run's state and budget for the policy."""

from __future__ import annotations

from typing import cast

from suture.core.records import FaultCause, Task
from suture.core.settings import Settings
from suture.loop.context import RunContext, coder_role
from suture.loop.evaluation.flaky_repairs import list_diagnoses
from suture.loop.policy.attempts import Progress
from suture.loop.roles.generated_tests import accepts_generated_tests
from suture.loop.state import LoopState, judged_attempts, proposed_attempts
from suture.models import find_profile
from suture.mutation import has_grammar
from suture.project.languages import find_search_command


def is_searchable(task: Task, settings: Settings) -> bool:
    """Return whether existing code can be searched for a repair without a model, before anything else proposes one.

    Python tests must be able to run one by one with pytest. For another language its grammar must be known.
    """
    can_use_pytest = find_search_command(task.test_command, task.files) is not None
    is_supported = can_use_pytest or has_grammar(task.language) or bool(task.tools)
    is_wanted = settings.repair.enabled and not settings.proposer.command
    return is_wanted and task.kind == "heal" and is_supported


def asks_for_examples(state: LoopState, context: RunContext) -> bool:
    """Return whether a person can still be asked which results of the code are right, because nothing else says so."""
    can_ask = context.spec.asks_user and not state.get("asked_examples")
    return can_ask and not state["checks"] and accepts_generated_tests(context)


def _may_repair_flaky(state: LoopState, context: RunContext) -> bool:
    """Return whether a model is asked to repair flaky tests: the source of no other test shows that it is to blame."""
    may_ask = state["cause"] == "flaky" and context.has_model and not context.spec.has_proposer
    return may_ask and any(not diagnosis.statement for diagnosis in list_diagnoses(context))


def summarise_progress(state: LoopState, context: RunContext) -> Progress:
    """Return the numbers and codes that the policy decides by."""
    last_round = [attempt for attempt in proposed_attempts(state) if attempt.round == state["round"] - 1]
    all_failed = all(attempt.fault for attempt in last_round)
    profile = find_profile(context.models.for_role(coder_role(state, context)).model.name, context.settings)
    stronger = context.models.escalation
    return Progress(
        kind=context.task.kind,
        round=state["round"],
        attempts=judged_attempts(state),
        samples_asked=state["samples_asked"],
        repairs_asked=state["repairs_asked"],
        attempts_left=context.budget.remaining_attempts(),
        checks=state["checks"],
        faults=tuple(attempt.fault for attempt in last_round) if all_failed else (),
        last_fault_message=last_round[-1].fault_message if last_round else "",
        last_refusal=last_round[-1].refusal if last_round else None,
        can_search=is_searchable(context.task, context.settings) and not state.get("searched", True),
        has_searched=state.get("searched", False),
        cause=cast(FaultCause, state["cause"]) if state["cause"] else None,
        cause_detail=state["cause_detail"],
        is_investigated=state.get("investigated", False),
        may_repair_flaky=_may_repair_flaky(state, context),
        # Decisions are numbered from 1, and 0 means that none was rejected.
        rejected_last=0 < state["rejected_decision"] == state["decisions"],
        attempts_used=context.budget.spend().attempts,
        has_untrusted_tests=bool(state["contributions"].get("generated")),
        has_model=context.has_model,
        can_escalate=context.models.escalation is not None and not state.get("escalated"),
        escalated=state.get("escalated", 0),
        program_turns=context.settings.proposer.turns if context.spec.has_proposer else 0,
        has_statement=bool(context.task.statement.strip()),
        agents_asked=state.get("agents_asked", 0),
        can_use_tools=profile.tools,
        is_capable=context.has_model and profile.is_capable,
        asks_for_examples=asks_for_examples(state, context),
        asks_at_once=context.spec.asks_at_once,
        is_escalation_capable=stronger is not None
        and find_profile(stronger.model.name, context.settings).is_capable,
    )
