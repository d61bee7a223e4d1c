"""The debugger's tools: run code beside a candidate in the sandbox, read its functions, compare attempts."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from suture.agents.tools.react_loop import AgentTool, ToolAction
from suture.judge.tracing.variable_trace import TraceTarget, find_divergence, render_trace, run_traced_code
from suture.project.python_source.functions import describe_function
from suture.project.python_source.parsing import parse_module
from suture.project.workspace import decode_text, unified_diff

MAX_CODE_CHARS = 4000
MAX_DIFF_CHARS = 3000


@dataclass(frozen=True, kw_only=True)
class ComparedAttempt:
    """An attempt that the tool `diff_iterations` can compare.

    Attributes:
        label: The candidate's label, such as `sample 2`.
        files: The files that it writes: path -> text.
        failed: Ids of the checks that it failed.
    """

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
    """Return the tools `trace_call`, `run_snippet`, `inspect_function`, and `diff_iterations` for two
    attempts.

    Args:
        probe: The failing candidate, beside which code runs.
        attempts: The attempts so far, oldest first, the failing candidate last.
        setup: The code before the failing call in its test, such as imports.
        reference: The project with a candidate that passes the failing test, if one is known.
    """
    sources = {path: decode_text(content) for path, content in probe.files.items() if path.endswith(".py")}

    async def trace_call(action: ToolAction) -> str:
        return await _trace(action.content, setup, probe, reference)

    async def run_snippet(action: ToolAction) -> str:
        return await _run(action.content, setup, probe)

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
    """Return the imports, definitions and plain values of a test; nothing that calls the code under test.

    Args:
        test: The source of a check. A source that is not Python has no setup.
    """
    tree = parse_module(test)
    return "\n".join(ast.unparse(node) for node in (tree.body if tree is not None else ()) if _is_setup(node))


def _is_setup(node: ast.stmt) -> bool:
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        return not any(isinstance(part, ast.Call) for part in ast.walk(node))
    return isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))


async def _trace(code: str, setup: str, probe: TraceTarget, reference: Mapping[str, bytes] | None) -> str:
    if error := _input_error(code):
        return error
    seen = await run_traced_code(probe, code, setup=setup, trace=True)
    text = render_trace(seen, probe.files)
    if reference is None:
        return text
    good = await run_traced_code(replace(probe, files=reference), code, setup=setup, trace=True)
    divergence = find_divergence(seen, good)
    return f"{text}\nCompared with code that passes: {divergence}" if divergence else text


async def _run(code: str, setup: str, probe: TraceTarget) -> str:
    if error := _input_error(code):
        return error
    return render_trace(await run_traced_code(probe, code, setup=setup), {}) or "It printed nothing."


def _input_error(code: str) -> str:
    if not code.strip():
        return "There was no input."
    if len(code) > MAX_CODE_CHARS:
        return f"The input has {len(code)} characters, and may have {MAX_CODE_CHARS}."
    return ""


def _compare(text: str, attempts: Sequence[ComparedAttempt]) -> str:
    numbers = [int(word) for word in re.findall("[0-9]{1,6}", text)][:2]
    if len(numbers) < 2:
        numbers = [len(attempts) - 1, len(attempts)]
    if not all(1 <= number <= len(attempts) for number in numbers):
        return f"There are the attempts 1 to {len(attempts)}."
    old, new = (attempts[number - 1] for number in numbers)
    diff = unified_diff(_as_bytes(old), _as_bytes(new))
    if len(diff) > MAX_DIFF_CHARS:
        diff = f"{diff[:MAX_DIFF_CHARS]}\n... cut ..."
    repaired, broken = sorted(old.failed - new.failed), sorted(new.failed - old.failed)
    lines = [f"from attempt {numbers[0]} ({old.label}) to attempt {numbers[1]} ({new.label}):"]
    lines.append(diff or "the code is the same")
    lines += [f"now passes: {check}" for check in repaired[:10]]
    lines += [f"now fails: {check}" for check in broken[:10]]
    return "\n".join(lines)


def _as_bytes(attempt: ComparedAttempt) -> dict[str, bytes]:
    return {path: text.encode("utf-8", "surrogateescape") for path, text in attempt.files.items()}
