"""Gate: let the user's own program work, judge its change, and report back until the change is accepted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from langgraph.runtime import Runtime

from suture.agents.conversation.task_briefing import TaskBriefing, make_briefing
from suture.agents.conversation.user_program import ProgramTurn, explain_no_change, run_user_program
from suture.core.ledger import in_round_branch, select_events
from suture.core.ledger.kinds import ChangeJudged, ProposerRan
from suture.core.records import Candidate, Reason
from suture.core.records.finding_text import list_reasons
from suture.core.records.judgement import Judgement
from suture.loop.context import RunContext
from suture.loop.judgement import JudgeTools, ProposedChange, find_recorded_runs, judge_change
from suture.loop.nodes.propose import RoundBranch
from suture.loop.state import LoopState, ended_state
from suture.loop.tuning import MAX_GATE_REASONS
from suture.project.workspace import decode_text, overlay_candidate, unified_diff

BASE = "the files as they were"
"""What a change is compared with, for people."""


async def gate(state: RoundBranch, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """Run the user's program turn by turn on its own change, and judge the change after each turn.

    Each turn of the program and each judgement are in the ledger, so that a resumed run repeats none of them.
    """
    context, run_state = runtime.context, state["state"]
    turns = context.settings.proposer.turns
    files: Mapping[str, bytes] = context.task.files
    briefing = _make_first_briefing(run_state, context)
    reasons: tuple[str, ...] = ()
    for number in range(1, turns + 1):
        with in_round_branch(run_state["round"], number):
            ran = await _run_turn(number, files, briefing, context)
            changed = _apply_turn(files, ran, context)
            if changed == files:
                return _end_without_change(ran, reasons, context)
            files = changed
            judgement = await _judge_turn(number, files, context)
        if judgement.outcome == "not_comparable" and judgement.reason not in FAILING_REASONS:
            detail = judgement.detail.strip() or judgement.reason
            return ended_state("infra_error", Reason(code="not_comparable", detail=detail))
        reasons = list_gate_reasons(judgement)
        if not reasons:
            return ended_state("healed", Reason(code="change_accepted", count=number))
        restored = [f"{path} must not change and is as it was" for path in ran.restored]
        briefing = _make_next_briefing(briefing, judgement, (*reasons, *restored))
    return _reject(turns, reasons)


FAILING_REASONS = ("fails_anyway", "nothing_passes")
"""Why a change is not comparable although its program may continue: everything that it was asked to fix still fails."""


def list_gate_reasons(judgement: Judgement) -> tuple[str, ...]:
    """Return why a change is not accepted; nothing if it is accepted and every test passes."""
    still_failing = judgement.tests.still_failing
    reasons = [*list_reasons(judgement, MAX_GATE_REASONS)]
    reasons += [f"{test} still fails" for test in still_failing[:MAX_GATE_REASONS]]
    if len(still_failing) > MAX_GATE_REASONS:
        reasons.append(f"and {len(still_failing) - MAX_GATE_REASONS} more tests still fail")
    if judgement.reason == "fails_anyway":
        reasons.append("the test command still fails")
    if judgement.reason == "no_change":
        reasons.append("nothing differs from the files as they were")
    return tuple(reasons)


def _make_first_briefing(state: LoopState, context: RunContext) -> TaskBriefing:
    baseline = context.candidates.baseline_verdict(state)
    return make_briefing(context.task, baseline, context.trust_threshold, state["hints"])


def _make_next_briefing(
    briefing: TaskBriefing, judgement: Judgement, reasons: tuple[str, ...]
) -> TaskBriefing:
    """Return the briefing after a turn. What the tests saw before the change may no longer hold."""
    tests = judgement.tests
    return replace(
        briefing,
        reasons=reasons,
        failing=(*tests.still_failing, *tests.newly_failing),
        facts=(),
        output=judgement.detail,
        judged_by_exit_status=judgement.reason == "fails_anyway",
    )


async def _run_turn(
    number: int, files: Mapping[str, bytes], briefing: TaskBriefing, context: RunContext
) -> ProposerRan:
    turn = ProgramTurn(
        number=number,
        files=files,
        briefing=briefing,
        diff=unified_diff(context.task.files, files),
        suite=await context.suites.load(),
        calls=context.calls,
    )
    return await run_user_program(turn)


def _apply_turn(files: Mapping[str, bytes], ran: ProposerRan, context: RunContext) -> Mapping[str, bytes]:
    """Return the files after a turn."""
    changes: dict[str, str | None] = context.folder.load_json(ran.changes)
    texts = {path: text for path, text in changes.items() if text is not None}
    deleted = changes.keys() - texts.keys()
    return {path: content for path, content in overlay_candidate(files, texts).items() if path not in deleted}


async def _judge_turn(number: int, files: Mapping[str, bytes], context: RunContext) -> Judgement:
    """Judge everything that has changed since the run began, and record the judgement."""
    recorded = (judged for _, judged in select_events(context.ledger.events, ChangeJudged))
    earlier = next((judged for judged in recorded if judged.turn == number), None)
    if earlier is not None:
        return context.folder.load_record(Judgement, earlier.judgement)
    change = ProposedChange(context.task.files, files)
    tools = JudgeTools(
        sandbox=context.sandbox,
        settings=context.settings.sandbox,
        interpreter=context.interpreter,
        recorded_runs=find_recorded_runs(context.settings),
    )
    async with context.budget.time_limit():
        judgement = await judge_change(change, context.task, tools, context.settings, base=BASE)
    texts = {path: decode_text(files[path]) for path in change.changed if path in files}
    candidate = Candidate(files=texts, origin="repair", label=f"proposer, turn {number}")
    context.ledger.append(
        ChangeJudged(
            turn=number,
            outcome=judgement.outcome,
            codes=tuple(finding.code for finding in judgement.findings if finding.severity == "reject"),
            failing=len(judgement.tests.still_failing) + len(judgement.tests.newly_failing),
            judgement=context.folder.save_record(judgement),
            candidate=context.candidates.save(candidate),
            seconds=judgement.seconds,
        )
    )
    return judgement


def _end_without_change(ran: ProposerRan, reasons: tuple[str, ...], context: RunContext) -> dict[str, Any]:
    """End the run after a turn that achieved nothing: another one would hardly achieve more."""
    explanation = explain_no_change(ran, context.calls)
    if not reasons:
        return ended_state("not_healed", Reason(code="agent_failed", detail=explanation))
    return _reject(ran.turn, (f"{reasons[0]}; then {explanation}",))


def _reject(turns: int, reasons: tuple[str, ...]) -> dict[str, Any]:
    reason = Reason(code="change_rejected", count=turns, detail=reasons[0])
    return ended_state("not_healed", reason)
