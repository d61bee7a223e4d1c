"""Generate calls that no trusted check makes, to compare what candidates answer."""

from __future__ import annotations

import ast
import builtins
import random
from collections.abc import Iterator, Sequence

from suture.core.records import Check, Task
from suture.judge.differential.input_generation import edge_inputs, mutate_inputs, read_arguments
from suture.judge.extraction.prose_examples import extract_examples
from suture.project.python_source.parsing import parse_module


def generate_questions(task: Task, hints: Sequence[Check], count: int, seed: int) -> tuple[str, ...]:
    """Return calls of a task's function that no trusted check makes: those of the hints, then mutated ones.

    Args:
        task: The task; its checks and the statement's examples show how the function is called.
        hints: Other checks whose calls may be used.
    """
    by_function, hinted = _find_seeds(task, hints)
    draw = random.Random(seed)
    mutated_calls = [
        _render_call(name, repr(arguments))
        for name, texts in by_function.items()
        for arguments in mutate_inputs(read_arguments(texts), count, draw)
    ]
    hinted_calls = [_render_call(name, arguments) for name, arguments in hinted[: count // 2]]
    return tuple(dict.fromkeys((*hinted_calls, *mutated_calls)))[:count]


def edge_questions(task: Task, hints: Sequence[Check], count: int) -> tuple[str, ...]:
    """Return calls with arguments at the edges of their types; the arguments are as in `generate_questions`."""
    by_function, _ = _find_seeds(task, hints)
    return tuple(
        _render_call(name, repr(arguments))
        for name, texts in by_function.items()
        for arguments in edge_inputs(read_arguments(texts), count)
    )[:count]


def _find_seeds(task: Task, hints: Sequence[Check]) -> tuple[dict[str, list[str]], list[tuple[str, str]]]:
    """Return (function -> its arguments as source, calls that only the hints make)."""
    trusted = (*task.checks, *extract_examples(task.statement, task.entry_point))
    trusted_calls = dict.fromkeys(_iter_calls(trusted, task))
    hinted = [call for call in dict.fromkeys(_iter_calls(hints, task)) if call not in trusted_calls]
    by_function: dict[str, list[str]] = {}
    for name, arguments in (*trusted_calls, *hinted):
        by_function.setdefault(name, []).append(arguments)
    return by_function, hinted


def _iter_calls(checks: Sequence[Check], task: Task) -> Iterator[tuple[str, str]]:
    """Yield (function, tuple of arguments as source) of each plain call with literal arguments."""
    for check in checks:
        tree = parse_module(check.source)
        for node in ast.walk(tree) if tree is not None else ():
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.keywords:
                continue
            if task.entry_point not in (None, node.func.id) or hasattr(builtins, node.func.id):
                continue
            try:
                arguments = ast.unparse(ast.Tuple(node.args, ast.Load()))
            except RecursionError:
                continue
            if read_arguments([arguments]):
                yield node.func.id, arguments


def _render_call(name: str, arguments: str) -> str:
    return f"{name}{arguments.removesuffix(',)')})" if arguments.endswith(",)") else f"{name}{arguments}"
