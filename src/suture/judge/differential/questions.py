"""Calls that no trusted check makes, to ask candidates what they answer."""

from __future__ import annotations

import ast
import builtins
import random
from collections.abc import Iterator, Sequence

from suture.core.records import Check, Task
from suture.judge.differential.input_generation import edge_inputs, mutate_inputs, read_arguments
from suture.judge.extraction.prose_examples import extract_examples
from suture.project.python_source.parsing import parsed


def generate_questions(task: Task, hints: Sequence[Check], count: int, seed: int) -> tuple[str, ...]:
    """Calls of a task's function that no trusted check makes: those of the hints, then changed ones.

    Args:
        task: Its checks and the examples of its statement show how the function is called.
        hints: Other checks whose calls may be used.
        count: The most calls to make up.
        seed: Seed of the random changes.
    """
    by_function, hinted = _seeds(task, hints)
    draw = random.Random(seed)
    made = [
        _shown(name, repr(arguments))
        for name, texts in by_function.items()
        for arguments in mutate_inputs(read_arguments(texts), count, draw)
    ]
    wanted = [_shown(name, arguments) for name, arguments in hinted[: count // 2]]
    return tuple(dict.fromkeys((*wanted, *made)))[:count]


def edge_questions(task: Task, hints: Sequence[Check], count: int) -> tuple[str, ...]:
    """Calls of a task's function with arguments at the edges of their types; the arguments as above."""
    by_function, _ = _seeds(task, hints)
    return tuple(
        _shown(name, repr(arguments))
        for name, texts in by_function.items()
        for arguments in edge_inputs(read_arguments(texts), count)
    )[:count]


def _seeds(task: Task, hints: Sequence[Check]) -> tuple[dict[str, list[str]], list[tuple[str, str]]]:
    """Function -> arguments that it is called with, as source; and the calls that only the hints make."""
    given = dict.fromkeys(
        _calls_in((*task.checks, *extract_examples(task.statement, task.entry_point)), task)
    )
    hinted = [call for call in dict.fromkeys(_calls_in(hints, task)) if call not in given]
    by_function: dict[str, list[str]] = {}
    for name, arguments in (*given, *hinted):
        by_function.setdefault(name, []).append(arguments)
    return by_function, hinted


def _calls_in(checks: Sequence[Check], task: Task) -> Iterator[tuple[str, str]]:
    """The function and the tuple of arguments, as source, of each plain call with literal arguments."""
    for check in checks:
        tree = parsed(check.source)
        for node in ast.walk(tree) if tree is not None else ():
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.keywords:
                continue
            known = task.entry_point in (None, node.func.id) and not hasattr(builtins, node.func.id)
            arguments = _source_of(node.args) if known else ""
            if arguments and read_arguments([arguments]):
                yield node.func.id, arguments


def _source_of(arguments: list[ast.expr]) -> str:
    try:
        return ast.unparse(ast.Tuple(arguments, ast.Load()))
    except RecursionError:
        return ""


def _shown(name: str, arguments: str) -> str:
    return f"{name}{arguments.removesuffix(',)')})" if arguments.endswith(",)") else f"{name}{arguments}"
