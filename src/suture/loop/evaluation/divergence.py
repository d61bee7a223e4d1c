"""Where a failing call first goes wrong: its run beside that of a small change with which it goes right."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from suture.core.records import Counterexample
from suture.judge.tracing.variable_trace import RunTrace, TraceTarget, find_divergence, observe
from suture.judge.trials.trial_records import Proposal
from suture.loop.context import RunContext
from suture.mutation import apply_edits
from suture.project.python_source.parsing import parsed
from suture.project.workspace import overlay_candidate

MOST_FACTS = 3
"""Failures that are traced: each costs a run, and a prompt has room for few."""
MOST_CHANGES = 2
"""Changes, the best first, beside which a call is run."""


async def divergences(
    facts: Iterable[Counterexample],
    partial: Sequence[Proposal],
    texts: Mapping[str, str],
    context: RunContext,
) -> dict[str, str]:
    """For each fact of which it can be told, the first variable that takes another value than it should.

    It can be told where the call is one of a function at the top of a module with plain values, and gives the
    expected value with a change that the search found to help: that run is known to go right, and is the one
    that is compared. Nothing is said of other facts.

    Args:
        facts: What failed on the code as it is, most telling first.
        partial: Changes that made some failing test pass and broke none, the best first.
        texts: Path -> text of the code as it is.
        context: The run.

    Returns:
        Id of a check -> a sentence.

    Raises:
        SandboxError: The wall failed.
    """
    found: dict[str, str] = {}
    askable = [(fact, module) for fact in facts if (module := _module_of(fact, texts))]
    for fact, module in askable[:MOST_FACTS] if partial else ():
        probe = TraceTarget(
            sandbox=context.sandbox,
            settings=context.settings.sandbox,
            files=context.task.files,
            module=module,
            interpreter=context.interpreter,
        )
        good = await _going_right(fact, partial, texts, probe)
        if good is not None:
            where = find_divergence(await observe(probe, fact.call, trace=True), good)
            if where:
                found[fact.check_id] = where
    return found


async def _going_right(
    fact: Counterexample, partial: Sequence[Proposal], texts: Mapping[str, str], probe: TraceTarget
) -> RunTrace | None:
    """A run of the call that gives what is expected."""
    for change in partial[:MOST_CHANGES]:
        text = apply_edits(texts[change.path], change.edits)
        beside = replace(probe, files=overlay_candidate(probe.files, {change.path: text}))
        seen = await observe(beside, fact.call, trace=True)
        if seen.ended == "returned" and _is_same(seen.value, fact.expected):
            return seen
    return None


def _is_same(value: str, expected: str) -> bool:
    one, two = _literal(value), _literal(expected)
    return one is not None and two is not None and type(one[0]) is type(two[0]) and one == two


def _literal(text: str) -> tuple[object] | None:
    """The value of a text in a tuple of its own; `None` where it is no plain value, or one that was cut."""
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return None
    return None if "..." in text else (value,)


def _module_of(fact: Counterexample, texts: Mapping[str, str]) -> str:
    """The one file with the function that a call names at its top, where the arguments are plain values."""
    tree = parsed(fact.call)
    node = tree.body[0] if tree is not None and len(tree.body) == 1 else None
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or not fact.expected:
        return ""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    if any(_literal(ast.unparse(value)) is None for value in given):
        return ""
    name = call.func.id
    homes = [path for path, text in texts.items() if _defines(text, name)]
    return homes[0] if len(homes) == 1 else ""


def _defines(text: str, name: str) -> bool:
    tree = parsed(text)
    return tree is not None and any(isinstance(n, ast.FunctionDef) and n.name == name for n in tree.body)
