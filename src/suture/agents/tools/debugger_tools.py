"""The tools that a run hands to its roles: code behind the wall, and what can be read of a candidate."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from suture.agents.tools.react_loop import Action, AgentTool
from suture.judge.tracing.variable_trace import Probe, first_divergence, observe, render_trace
from suture.project.python_source.functions import describe_function
from suture.project.python_source.parsing import parsed
from suture.project.workspace import text_of, unified_diff

LONGEST_CODE = 4000
LONGEST_DIFF = 3000


@dataclass(frozen=True, kw_only=True)
class Iteration:
    """A candidate that was tried, as `diff_iterations` compares it.

    Attributes:
        label: A few words for people, such as `sample 2`.
        files: What it writes, path -> text.
        failed: Ids of the checks that it failed.
    """

    label: str
    files: Mapping[str, str]
    failed: frozenset[str] = field(default_factory=frozenset)


def debugger_tools(
    probe: Probe,
    iterations: Sequence[Iteration] = (),
    *,
    setup: str = "",
    reference: Mapping[str, bytes] | None = None,
) -> tuple[AgentTool, ...]:
    """The debugger's tools.

    Args:
        probe: Where its code runs: beside the failing candidate.
        iterations: What was tried, oldest first, the failing candidate last.
        setup: What stands before the failing call in its test, such as imports.
        reference: The project with a candidate that passes the failing test, where one is known.

    Returns:
        `trace_call`, `run_snippet`, `inspect_function`, and with two iterations `diff_iterations`.
    """
    sources = {path: text_of(content) for path, content in probe.files.items() if path.endswith(".py")}

    async def trace_call(action: Action) -> str:
        return await _traced(action.given, setup, probe, reference)

    async def run_snippet(action: Action) -> str:
        return await _ran(action.given, setup, probe)

    async def inspect_function(action: Action) -> str:
        return describe_function(action.input.partition("(")[0], sources)

    async def diff_iterations(action: Action) -> str:
        return _compared(action.input, iterations)

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
    if len(iterations) > 1:
        numbers = f"two of the numbers 1 to {len(iterations)}"
        usage = f"the input is {numbers}, such as `1 {len(iterations)}`; shows how those attempts differ"
        tools.append(AgentTool(name="diff_iterations", usage=usage, run=diff_iterations))
    return tuple(tools)


def setup_of(test: str) -> str:
    """What a test needs to be read: its imports, definitions and plain values; nothing of it calls the code.

    Args:
        test: The source of a check; what is no Python has no setup.
    """
    tree = parsed(test)
    return "\n".join(ast.unparse(node) for node in (tree.body if tree is not None else ()) if _is_setup(node))


def _is_setup(node: ast.stmt) -> bool:
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        return not any(isinstance(part, ast.Call) for part in ast.walk(node))
    return isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))


async def _traced(code: str, setup: str, probe: Probe, reference: Mapping[str, bytes] | None) -> str:
    refused = _refused(code)
    if refused:
        return refused
    seen = await observe(probe, code, setup=setup, trace=True)
    text = render_trace(seen, probe.files)
    if reference is None:
        return text
    good = await observe(replace(probe, files=reference), code, setup=setup, trace=True)
    divergence = first_divergence(seen, good)
    return f"{text}\nCompared with code that passes: {divergence}" if divergence else text


async def _ran(code: str, setup: str, probe: Probe) -> str:
    refused = _refused(code)
    if refused:
        return refused
    return render_trace(await observe(probe, code, setup=setup), {}) or "It printed nothing."


def _refused(code: str) -> str:
    if not code.strip():
        return "There was no input."
    if len(code) > LONGEST_CODE:
        return f"The input has {len(code)} characters, and may have {LONGEST_CODE}."
    return ""


def _compared(wanted: str, iterations: Sequence[Iteration]) -> str:
    numbers = [int(word) for word in re.findall("[0-9]{1,6}", wanted)][:2]
    if len(numbers) < 2:
        numbers = [len(iterations) - 1, len(iterations)]
    if not all(1 <= number <= len(iterations) for number in numbers):
        return f"There are the attempts 1 to {len(iterations)}."
    old, new = (iterations[number - 1] for number in numbers)
    diff = unified_diff(_as_bytes(old), _as_bytes(new))
    if len(diff) > LONGEST_DIFF:
        diff = f"{diff[:LONGEST_DIFF]}\n... cut ..."
    mended, broken = sorted(old.failed - new.failed), sorted(new.failed - old.failed)
    lines = [f"from attempt {numbers[0]} ({old.label}) to attempt {numbers[1]} ({new.label}):"]
    lines.append(diff or "the code is the same")
    lines += [f"now passes: {check}" for check in mended[:10]]
    lines += [f"now fails: {check}" for check in broken[:10]]
    return "\n".join(lines)


def _as_bytes(iteration: Iteration) -> dict[str, bytes]:
    return {path: text.encode("utf-8", "surrogateescape") for path, text in iteration.files.items()}
