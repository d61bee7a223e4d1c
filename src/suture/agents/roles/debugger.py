"""The debugger: investigates a failure with tools and states its cause as a `Diagnosis`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, Field

from suture.agents.prompting.fitting import PromptDraft, PromptPart
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.prompting.prompt_parts import attempts_part, render_optional_task
from suture.agents.roles.coder import RepairBrief, failing_code_parts
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


class DiagnosisReply(BaseModel, frozen=True, title="Diagnosis"):
    """A `Diagnosis` as a model writes it: the cause comes first, so that the category follows from it."""

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
    texts = {"task": render_optional_task(brief.statement), "format": describe_schema(DiagnosisReply)}
    return PromptDraft(prompt=prompt, template="diagnose", texts=texts, parts=_parts(brief))


TRACE_TOOL = "trace_call"


@dataclass(frozen=True, kw_only=True)
class Investigation:
    """The diagnosis of a failure and the tool steps that led to it."""

    diagnosis: Diagnosis
    trail: ToolTrail


async def investigate(
    brief: RepairBrief,
    prompt: Prompt,
    tools: Sequence[AgentTool],
    *,
    ask: AskDraft,
    conclude: Callable[[PromptDraft], Awaitable[DiagnosisReply]],
    max_steps: int = MAX_DEBUGGER_STEPS,
    on_step: OnStep | None = None,
) -> Investigation:
    """Investigate a failure with tools up to a number of steps, and state its cause.

    The first failing call is traced before the model is called: that costs no reply, and a small model would
    not ask for it.

    Args:
        ask: Asks the model for one step.
        conclude: Asks the model for the diagnosis.
        max_steps: Maximum number of replies before the diagnosis.

    Raises:
        MalformedReply: No reply was an action, or there was no diagnosis.
    """
    task = render_optional_task(brief.statement)
    # Only a text with a bracket can be a call, and only a call can be traced.
    failing_call = next((fact.call for fact in brief.facts if "(" in fact.call), "")
    can_trace = bool(failing_call) and TRACE_TOOL in {tool.name for tool in tools}

    def draft_step(steps: Sequence[ToolStep]) -> PromptDraft:
        # A small model repeats the example, so the example is a call that tells it something.
        texts = {"task": task, "tools": render_tools(tools), "example": failing_call or "1 + 2"}
        return PromptDraft(prompt=prompt, template="step", texts=texts, parts=_parts(brief, steps))

    trail = await run_tool_loop(
        draft_step,
        tools,
        ask,
        max_steps=max_steps,
        on_step=on_step,
        initial_actions=[ToolAction(tool=TRACE_TOOL, input=failing_call)] if can_trace else [],
    )
    if trail.ending == "malformed" and not any(step.tool and step.chosen for step in trail.steps):
        raise MalformedReply(
            f"the debugger never took a step: {trail.steps[-1].observation}", remedy="take a stronger model"
        )
    texts = {"task": task, "format": describe_schema(DiagnosisReply)}
    tool_steps = [step for step in trail.steps if step.tool]
    answer = await conclude(
        PromptDraft(prompt=prompt, template="conclude", texts=texts, parts=_parts(brief, tool_steps))
    )
    return Investigation(diagnosis=answer.record(), trail=trail)


def _parts(brief: RepairBrief, steps: Sequence[ToolStep] | None = None) -> dict[str, PromptPart]:
    parts = {"history": attempts_part(brief.history), **failing_code_parts(brief)}
    return parts if steps is None else {**parts, "steps": steps_part(steps)}
