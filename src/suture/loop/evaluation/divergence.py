"""Find where a failing call first goes wrong, by comparison with a partial repair on which it goes right."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from suture.core.records import Counterexample
from suture.judge.tracing.variable_trace import RunTrace, TraceTarget, find_divergence, run_traced_code
from suture.judge.trials.trial_records import Proposal
from suture.loop.context import RunContext
from suture.loop.tuning import MAX_DIVERGENCE_CHANGES, MAX_DIVERGENCE_FACTS
from suture.mutation import apply_edits
from suture.project.python_source.parsing import parse_module
from suture.project.workspace import overlay_candidate


async def find_divergences(
    facts: Iterable[Counterexample],
    partial: Sequence[Proposal],
    texts: Mapping[str, str],
    context: RunContext,
) -> dict[str, str]:
    """Return the first variable that takes a wrong value in each failing call: check id -> a sentence.

    A call can be traced if it calls a function at the top level of a module with literals. It must return the
    expected value on one of the partial repairs, because the two runs are compared.

    Args:
        facts: The failures on the user's code, the most informative first.
        partial: Changes that made some failing test pass and broke none, the best first.
        texts: The user's code: path -> text.
    """
    divergences: dict[str, str] = {}
    traceable = [(fact, module) for fact in facts if (module := _find_called_module(fact, texts))]
    for fact, module in traceable[:MAX_DIVERGENCE_FACTS] if partial else ():
        target = TraceTarget(
            sandbox=context.sandbox,
            settings=context.settings.sandbox,
            files=context.task.files,
            module=module,
            interpreter=context.interpreter,
        )
        expected_trace = await _trace_expected_run(fact, partial, texts, target)
        if expected_trace is not None:
            failing_trace = await run_traced_code(target, fact.call, trace=True)
            divergence = find_divergence(failing_trace, expected_trace)
            if divergence:
                divergences[fact.check_id] = divergence
    return divergences


async def _trace_expected_run(
    fact: Counterexample, partial: Sequence[Proposal], texts: Mapping[str, str], target: TraceTarget
) -> RunTrace | None:
    """Return the trace of the call on a partial repair on which it returns the expected value, if any."""
    for change in partial[:MAX_DIVERGENCE_CHANGES]:
        text = apply_edits(texts[change.path], change.edits)
        repaired_target = replace(target, files=overlay_candidate(target.files, {change.path: text}))
        trace = await run_traced_code(repaired_target, fact.call, trace=True)
        if trace.ending == "returned" and _is_same(trace.value, fact.expected):
            return trace
    return None


def _is_same(value: str, expected: str) -> bool:
    """Return whether two texts are literals of the same type and value."""
    if not (_is_literal(value) and _is_literal(expected)):
        return False
    actual_value, expected_value = ast.literal_eval(value), ast.literal_eval(expected)
    return type(actual_value) is type(expected_value) and bool(actual_value == expected_value)


def _is_literal(text: str) -> bool:
    """Return whether a text is a literal that was not cut."""
    try:
        ast.literal_eval(text)
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return False
    return "..." not in text


def _find_called_module(fact: Counterexample, texts: Mapping[str, str]) -> str:
    """Return the only file that defines the called function at its top level; empty if there is none, or if
    an argument of the call is not a literal.
    """
    tree = parse_module(fact.call)
    node = tree.body[0] if tree is not None and len(tree.body) == 1 else None
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or not fact.expected:
        return ""
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    if not all(_is_literal(ast.unparse(argument)) for argument in arguments):
        return ""
    name = call.func.id
    modules = [path for path, text in texts.items() if _defines(text, name)]
    return modules[0] if len(modules) == 1 else ""


def _defines(text: str, name: str) -> bool:
    tree = parse_module(text)
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef)) if tree else ()
    return any(function.name == name for function in functions)
