"""The debugger: investigates a failure with tools and states its cause as a `Diagnosis`."""

from __future__ import annotations

import ast
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

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
    ToolLoopResult,
    render_tools,
    run_tool_loop,
    steps_part,
)
from suture.agents.tuning import MAX_DEBUGGER_STEPS, MAX_DIFF_CHARS, MAX_TOOL_CODE_CHARS
from suture.core.ledger.kinds import ToolStep
from suture.core.records import Diagnosis, FaultCategory, Strategy
from suture.errors import MalformedReply
from suture.judge.tracing.variable_trace import TraceTarget, find_divergence, render_trace, run_traced_code
from suture.models.structured_output import describe_schema
from suture.project.python_source.functions import describe_function
from suture.project.python_source.parsing import parse_module
from suture.project.workspace import decode_text, unified_diff


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
    trail: ToolLoopResult


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
    # Only a string with a bracket can be a call, and only a call can be traced.
    failing_call = next((fact.call for fact in brief.facts if "(" in fact.call), "")
    can_trace = bool(failing_call) and TRACE_TOOL in {tool.name for tool in tools}

    def draft_step(steps: Sequence[ToolStep]) -> PromptDraft:
        # A small model repeats the example, so the example is an informative call.
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


@dataclass(frozen=True, kw_only=True)
class ComparedAttempt:
    """An attempt that the tool `diff_iterations` can compare, with the ids of the checks that it failed."""

    label: str
    files: Mapping[str, str]
    failed: frozenset[str] = field(default_factory=frozenset)


def make_debugger_tools(
    probe: TraceTarget,
    attempts: Sequence[ComparedAttempt] = (),
    *,
    setup: str = "",
    reference: Mapping[str, bytes] | None = None,
) -> tuple[AgentTool, ...]:
    """Return the tools `trace_call`, `run_snippet`, `inspect_function`, and `diff_iterations` if it is useful.

    Args:
        probe: The failing candidate; code runs in a copy of its files.
        attempts: The attempts so far, oldest first, the failing candidate last.
        setup: The code before the failing call in its test, such as imports.
        reference: The project with a candidate that passes the failing test, if one is known.
    """
    sources = {path: decode_text(content) for path, content in probe.files.items() if path.endswith(".py")}

    async def trace_call(action: ToolAction) -> str:
        return _input_error(action.content) or await _trace(action.content, setup, probe, reference)

    async def run_snippet(action: ToolAction) -> str:
        if error := _input_error(action.content):
            return error
        trace = await run_traced_code(probe, action.content, setup=setup)
        return render_trace(trace, {}) or "It printed nothing."

    async def inspect_function(action: ToolAction) -> str:
        return describe_function(action.input.partition("(")[0], sources)

    async def diff_iterations(action: ToolAction) -> str:
        return _compare(action.input, attempts)

    tools = [
        AgentTool(
            name="trace_call",
            usage="the input is one call; shows the value of each variable, line by line",
            run=trace_call,
        ),
        AgentTool(
            name="run_snippet",
            usage="the input is an expression or a ```python block; shows its value and what it prints",
            run=run_snippet,
        ),
        AgentTool(
            name="inspect_function",
            usage="the input is a function's name; shows its signature, docstring, complexity and source",
            run=inspect_function,
        ),
    ]
    if len(attempts) > 1:
        numbers = f"two of the numbers 1 to {len(attempts)}"
        usage = f"the input is {numbers}, such as `1 {len(attempts)}`; shows how those attempts differ"
        tools.append(AgentTool(name="diff_iterations", usage=usage, run=diff_iterations))
    return tuple(tools)


def find_test_setup(test: str) -> str:
    """Return the imports, definitions and plain values of a test; nothing that calls the code under test."""
    tree = parse_module(test)
    return "\n".join(ast.unparse(node) for node in (tree.body if tree is not None else ()) if _is_setup(node))


def _is_setup(node: ast.stmt) -> bool:
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        return not any(isinstance(part, ast.Call) for part in ast.walk(node))
    return isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))


async def _trace(code: str, setup: str, probe: TraceTarget, reference: Mapping[str, bytes] | None) -> str:
    failing_trace = await run_traced_code(probe, code, setup=setup, trace=True)
    text = render_trace(failing_trace, probe.files)
    if reference is None:
        return text
    passing_trace = await run_traced_code(replace(probe, files=reference), code, setup=setup, trace=True)
    divergence = find_divergence(failing_trace, passing_trace)
    return f"{text}\nCompared with code that passes: {divergence}" if divergence else text


def _input_error(code: str) -> str:
    if not code.strip():
        return "There was no input."
    if len(code) > MAX_TOOL_CODE_CHARS:
        return f"The input has {len(code)} characters, and may have {MAX_TOOL_CODE_CHARS}."
    return ""


def _compare(text: str, attempts: Sequence[ComparedAttempt]) -> str:
    numbers = [int(word) for word in re.findall("[0-9]{1,6}", text)][:2]
    if len(numbers) < 2:  # By default, the last two attempts, of which the second is the failing one.
        numbers = [len(attempts) - 1, len(attempts)]
    if not all(1 <= number <= len(attempts) for number in numbers):
        return f"There are the attempts 1 to {len(attempts)}."
    old, new = (attempts[number - 1] for number in numbers)
    diff = unified_diff(_as_bytes(old), _as_bytes(new))
    if len(diff) > MAX_DIFF_CHARS:
        diff = f"{diff[:MAX_DIFF_CHARS]}\n... cut ..."
    repaired, broken = sorted(old.failed - new.failed), sorted(new.failed - old.failed)
    lines = [
        f"from attempt {numbers[0]} ({old.label}) to attempt {numbers[1]} ({new.label}):",
        diff or "the code is the same",
    ]
    lines += [f"now passes: {check}" for check in repaired[:10]]
    lines += [f"now fails: {check}" for check in broken[:10]]
    return "\n".join(lines)


def _as_bytes(attempt: ComparedAttempt) -> dict[str, bytes]:
    return {path: text.encode("utf-8", "surrogateescape") for path, text in attempt.files.items()}
