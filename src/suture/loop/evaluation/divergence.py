"""Find where a failing call first goes wrong, by comparing it with a run on a partial repair that goes
right.
"""

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
    """Return, for each failure where that is possible, the first variable that takes a wrong value.

    It is possible where a function at the top of a module is called with plain values, and returns the
    expected value with one of the partial repairs: the run on that repair goes right, and is compared with.

    Args:
        facts: The failures on the user's code, the most informative first.
        partial: Changes that made some failing test pass and broke none, the best first.
        texts: The user's code: path -> text.
        context: The run.

    Returns:
        Id of a check -> a sentence.

    Raises:
        SandboxError: The sandbox failed.
    """
    found: dict[str, str] = {}
    traceable = [(fact, module) for fact in facts if (module := _find_called_module(fact, texts))]
    for fact, module in traceable[:MAX_DIVERGENCE_FACTS] if partial else ():
        probe = TraceTarget(
            sandbox=context.sandbox,
            settings=context.settings.sandbox,
            files=context.task.files,
            module=module,
            interpreter=context.interpreter,
        )
        good = await _find_good_run(fact, partial, texts, probe)
        if good is not None:
            where = find_divergence(await run_traced_code(probe, fact.call, trace=True), good)
            if where:
                found[fact.check_id] = where
    return found


async def _find_good_run(
    fact: Counterexample, partial: Sequence[Proposal], texts: Mapping[str, str], probe: TraceTarget
) -> RunTrace | None:
    """Return a run of the call on a partial repair that returns the expected value; `None` if there is
    none.
    """
    for change in partial[:MAX_DIVERGENCE_CHANGES]:
        text = apply_edits(texts[change.path], change.edits)
        beside = replace(probe, files=overlay_candidate(probe.files, {change.path: text}))
        seen = await run_traced_code(beside, fact.call, trace=True)
        if seen.ending == "returned" and _is_same(seen.value, fact.expected):
            return seen
    return None


def _is_same(value: str, expected: str) -> bool:
    first, second = _literal(value), _literal(expected)
    if first is None or second is None:
        return False
    return type(first[0]) is type(second[0]) and first == second


def _literal(text: str) -> tuple[object] | None:
    """Return the value of a literal in a tuple; `None` if the text is not a literal, or was cut."""
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return None
    return None if "..." in text else (value,)


def _find_called_module(fact: Counterexample, texts: Mapping[str, str]) -> str:
    """Return the only file that defines the called function at its top level; empty if there is none.

    Empty too if an argument of the call is not a plain value.
    """
    tree = parse_module(fact.call)
    node = tree.body[0] if tree is not None and len(tree.body) == 1 else None
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or not fact.expected:
        return ""
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    if any(_literal(ast.unparse(value)) is None for value in arguments):
        return ""
    name = call.func.id
    modules = [path for path, text in texts.items() if _defines(text, name)]
    return modules[0] if len(modules) == 1 else ""


def _defines(text: str, name: str) -> bool:
    tree = parse_module(text)
    return tree is not None and any(isinstance(n, ast.FunctionDef) and n.name == name for n in tree.body)
