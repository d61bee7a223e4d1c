"""The debugger: investigates a failure with tools and states its cause as a `Diagnosis`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from suture.agents.prompting.fitting import PromptDraft, PromptPart
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.prompting.prompt_parts import (
    attempts_part,
    facts_part,
    files_part,
    output_part,
    render_task,
)
from suture.agents.roles.coder import RepairBrief
from suture.agents.tools.react_loop import (
    AgentTool,
    AskDraft,
    OnStep,
    ToolAction,
    ToolTrail,
    render_tools,
    run_tool_loop,
    steps_part,
)
from suture.agents.tuning import MAX_DEBUGGER_STEPS
from suture.core.ledger.kinds import ToolStep
from suture.core.records import Diagnosis, FaultCategory, Strategy
from suture.errors import MalformedReply
from suture.models.structured_output import describe_schema


class DiagnosisReply(BaseModel):
    """A `Diagnosis` as a model writes it: the cause comes first, so that the category follows from it."""

    model_config = ConfigDict(frozen=True, title="Diagnosis")

    root_cause: str = Field(min_length=1, max_length=400, description="what goes wrong, and in which line")
    category: FaultCategory
    strategy: Strategy
    confidence: float = Field(ge=0, le=1)

    def record(self) -> Diagnosis:
        """Return the `Diagnosis`."""
        return Diagnosis(
            root_cause=self.root_cause,
            category=self.category,
            strategy=self.strategy,
            confidence=self.confidence,
        )


def draft_diagnosis_prompt(brief: RepairBrief, prompt: Prompt) -> PromptDraft:
    """Return the prompt for a diagnosis without tools."""
    texts = {"task": _task(brief), "format": describe_schema(DiagnosisReply)}
    return PromptDraft(prompt=prompt, template="diagnose", texts=texts, parts=_parts(brief))


TRACE = "trace_call"
AskDiagnosis = Callable[[PromptDraft], Awaitable[DiagnosisReply]]
"""Fits a prompt and asks the role's model for a diagnosis."""


@dataclass(frozen=True, kw_only=True)
class Investigation:
    """The diagnosis, and the steps that led to it."""

    diagnosis: Diagnosis
    trail: ToolTrail


async def investigate(
    brief: RepairBrief,
    prompt: Prompt,
    tools: Sequence[AgentTool],
    *,
    ask: AskDraft,
    conclude: AskDiagnosis,
    max_steps: int = MAX_DEBUGGER_STEPS,
    on_step: OnStep | None = None,
) -> Investigation:
    """Investigate a failure with tools up to a number of steps, and state its cause.

    The first failing call is traced before the model is called: that costs no reply, and a small model would
    not ask for it.

    Args:
        brief: The failing code, its counterexamples and earlier attempts.
        prompt: The prompt file `debugger`.
        tools: The tools that it may use.
        ask: Asks for one step.
        conclude: Asks for the diagnosis, once.
        max_steps: Maximum number of replies before the diagnosis.
        on_step: Called after each step.

    Raises:
        MalformedReply: No reply was an action, or there was no diagnosis.
        BudgetExceeded: There was no budget for another call.
        ModelError: The model failed.
        SandboxError: The sandbox of a tool failed.
    """
    trail = await run_tool_loop(
        lambda steps: draft_step_prompt(brief, prompt, tools, steps),
        tools,
        ask,
        max_steps=max_steps,
        on_step=on_step,
        initial_actions=_initial_actions(brief, tools),
    )
    if trail.ending == "malformed" and not trail.used_tools:
        raise MalformedReply(
            f"the debugger never took a step: {trail.steps[-1].observation}", remedy="take a stronger model"
        )
    answer = await conclude(_conclusion_draft(brief, prompt, trail.steps))
    return Investigation(diagnosis=answer.record(), trail=trail)


def draft_step_prompt(
    brief: RepairBrief, prompt: Prompt, tools: Sequence[AgentTool], steps: Sequence[ToolStep]
) -> PromptDraft:
    """Return the prompt for the next step."""
    # A small model repeats the example, so the example is a call that tells it something.
    texts = {"task": _task(brief), "tools": render_tools(tools), "example": _failing_call(brief) or "1 + 2"}
    return PromptDraft(prompt=prompt, template="step", texts=texts, parts=_parts(brief, steps))


def _initial_actions(brief: RepairBrief, tools: Sequence[AgentTool]) -> tuple[ToolAction, ...]:
    call = _failing_call(brief)
    return (ToolAction(tool=TRACE, input=call),) if call and TRACE in {tool.name for tool in tools} else ()


def _failing_call(brief: RepairBrief) -> str:
    return next((fact.call for fact in brief.facts if "(" in fact.call), "")


def _conclusion_draft(brief: RepairBrief, prompt: Prompt, steps: Sequence[ToolStep]) -> PromptDraft:
    texts = {"task": _task(brief), "format": describe_schema(DiagnosisReply)}
    seen = [step for step in steps if step.tool]
    return PromptDraft(prompt=prompt, template="conclude", texts=texts, parts=_parts(brief, seen))


def _task(brief: RepairBrief) -> str:
    return f"{render_task(brief.statement)}\n" if brief.statement else ""


def _parts(brief: RepairBrief, steps: Sequence[ToolStep] | None = None) -> dict[str, PromptPart]:
    return {
        "history": attempts_part(brief.history),
        **({"steps": steps_part(steps)} if steps is not None else {}),
        "facts": facts_part(brief.facts),
        "output": output_part(brief.output) if not brief.facts else PromptPart(pieces=()),
        "files": files_part(brief.files),
    }
