"""The debugger: looks for the cause of a failure with tools, then says it as a `Diagnosis`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from suture.agents.prompting.fitting import Draft, PromptPart
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.prompting.prompt_parts import (
    attempts_part,
    facts_part,
    files_part,
    output_part,
    task_text,
)
from suture.agents.roles.coder import RepairBrief
from suture.agents.tools.react_loop import (
    Action,
    AgentTool,
    AskDraft,
    OnStep,
    Trail,
    act,
    steps_part,
    tools_text,
)
from suture.core.ledger.kinds import ToolStep
from suture.core.records import Diagnosis, FaultCategory, Strategy
from suture.errors import MalformedReply
from suture.models.structured_output import describe_schema


class DiagnosisReply(BaseModel):
    """A `Diagnosis` as a model writes it: the cause first, so that the label follows from it."""

    model_config = ConfigDict(frozen=True, title="Diagnosis")

    root_cause: str = Field(min_length=1, max_length=400, description="what goes wrong, and in which line")
    category: FaultCategory
    strategy: Strategy
    confidence: float = Field(ge=0, le=1)

    def record(self) -> Diagnosis:
        """The diagnosis as the run keeps it."""
        return Diagnosis(**self.model_dump())


def diagnosis_draft(brief: RepairBrief, prompt: Prompt) -> Draft:
    """The question, before it is cut to the room there is."""
    texts = {"task": _task(brief), "format": describe_schema(DiagnosisReply)}
    return Draft(prompt=prompt, template="diagnose", texts=texts, parts=_parts(brief))


MOST_STEPS = 5
"""Two or three looks tell nearly all that a small model can make use of."""
TRACE = "trace_call"
AskDiagnosis = Callable[[Draft], Awaitable[DiagnosisReply]]
"""Fits a prompt, and asks the role's model for the answer's type."""


@dataclass(frozen=True, kw_only=True)
class Investigation:
    """What the debugger found, and how."""

    diagnosis: Diagnosis
    trail: Trail


async def investigate(
    brief: RepairBrief,
    prompt: Prompt,
    tools: Sequence[AgentTool],
    *,
    ask: AskDraft,
    conclude: AskDiagnosis,
    most_steps: int = MOST_STEPS,
    on_step: OnStep | None = None,
) -> Investigation:
    """Look for the cause of a failure with tools, a bounded number of times, and say what it is.

    The first failing call is traced before the model is asked: that costs no reply, and a small model would
    not come to it.

    Args:
        brief: The failing code, its facts and what was tried.
        prompt: The prompt file `debugger`.
        tools: What it may look with.
        ask: Asks for one step.
        conclude: Asks for the diagnosis, once.
        most_steps: The most replies before that.
        on_step: Told of each step.

    Raises:
        MalformedReply: No reply was an action, or no diagnosis came; none is made up.
        BudgetExceeded: There was no budget for another call.
        ModelError: The model failed.
        SandboxError: A tool's wall failed.
    """
    trail = await act(
        lambda steps: step_draft(brief, prompt, tools, steps),
        tools,
        ask,
        most_steps=most_steps,
        on_step=on_step,
        first=_first_look(brief, tools),
    )
    if trail.ended == "malformed" and not trail.acted:
        raise MalformedReply(
            f"the debugger never took a step: {trail.steps[-1].observation}", remedy="take a stronger model"
        )
    answer = await conclude(_conclusion_draft(brief, prompt, trail.steps))
    return Investigation(diagnosis=answer.record(), trail=trail)


def step_draft(
    brief: RepairBrief, prompt: Prompt, tools: Sequence[AgentTool], steps: Sequence[ToolStep]
) -> Draft:
    """The question for the next step, before it is cut to the room there is."""
    # A small model repeats an example: this one shows it something.
    texts = {"task": _task(brief), "tools": tools_text(tools), "example": _failing_call(brief) or "1 + 2"}
    return Draft(prompt=prompt, template="step", texts=texts, parts=_parts(brief, steps))


def _first_look(brief: RepairBrief, tools: Sequence[AgentTool]) -> tuple[Action, ...]:
    call = _failing_call(brief)
    return (Action(tool=TRACE, input=call),) if call and TRACE in {tool.name for tool in tools} else ()


def _failing_call(brief: RepairBrief) -> str:
    return next((fact.call for fact in brief.facts if "(" in fact.call), "")


def _conclusion_draft(brief: RepairBrief, prompt: Prompt, steps: Sequence[ToolStep]) -> Draft:
    texts = {"task": _task(brief), "format": describe_schema(DiagnosisReply)}
    seen = [step for step in steps if step.tool]
    return Draft(prompt=prompt, template="conclude", texts=texts, parts=_parts(brief, seen))


def _task(brief: RepairBrief) -> str:
    return f"{task_text(brief.statement)}\n" if brief.statement else ""


def _parts(brief: RepairBrief, steps: Sequence[ToolStep] | None = None) -> dict[str, PromptPart]:
    return {
        "history": attempts_part(brief.history),
        **({"steps": steps_part(steps)} if steps is not None else {}),
        "facts": facts_part(brief.facts),
        "output": output_part(brief.output) if not brief.facts else PromptPart(pieces=()),
        "files": files_part(brief.files),
    }
