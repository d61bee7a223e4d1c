"""Plan the calls of functions and methods that can be made again, from the calls that tests made."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

from suture.judge.trials.trial_records import ObservedCall
from suture.project.python_source.parsing import parse_module

PlannedCall = tuple[str, str, str]
"""Path, top-level function, and arguments as the source of a tuple. The path is empty for the task's own module.

`Price.label/1` stands for a method of an object that is made with the first argument; the method gets the others."""
METHOD_ARGUMENTS = re.compile(r"\(<(?:\w+\.)*(\w+) object at (0x[0-9a-fA-F]+)>(?:, (.*)|,)\)", re.DOTALL)
"""How `trials/inside/line_tracer.py` records the arguments of a method: class, address, and the other arguments."""


def get_function_name(name: str) -> str:
    """Return the name of a planned call's function or method, without the number of constructor arguments."""
    return name.partition("/")[0]


def plan_calls(recorded: Iterable[ObservedCall], texts: Mapping[str, str]) -> Iterator[PlannedCall]:
    """Yield the calls of top-level functions, and of methods of objects whose constructor is known.

    What happened to an object between its constructor and the call is left out.

    Args:
        texts: Path -> source of the files whose functions count.
    """
    trees = {path: parse_module(text) for path, text in texts.items()}
    bodies = {path: tree.body for path, tree in trees.items() if tree is not None}
    constructors: dict[tuple[str, str], str] = {}  # (class, address) -> arguments
    for call in recorded:
        body = bodies.get(call.path, [])
        method = METHOD_ARGUMENTS.fullmatch(call.arguments)
        if method is None:
            if call.arguments and _has_function(body, call.function):
                yield call.path, call.function, call.arguments
            continue
        class_name, address, arguments = method[1], method[2], method[3] or ""
        if call.function == "__init__":
            constructors[class_name, address] = arguments
            continue
        owner = _find_class(body, class_name)
        if owner is None or not _has_function(owner.body, call.function):
            continue
        made_with = constructors.get((class_name, address), "" if _needs_no_arguments(owner) else None)
        count = _count_arguments(made_with)
        if count is not None:
            joined = ", ".join(filter(None, (made_with, arguments)))
            yield call.path, f"{class_name}.{call.function}/{count}", f"({joined},)" if joined else "()"


def _has_function(body: Iterable[ast.stmt], name: str) -> bool:
    return any(isinstance(node, ast.FunctionDef) and node.name == name for node in body)


def _find_class(body: Iterable[ast.stmt], name: str) -> ast.ClassDef | None:
    return next((node for node in body if isinstance(node, ast.ClassDef) and node.name == name), None)


def _needs_no_arguments(owner: ast.ClassDef) -> bool:
    """Whether a class has no constructor of its own, and no base or decorator that may give it one."""
    return not (
        _has_function(owner.body, "__init__") or owner.bases or owner.keywords or owner.decorator_list
    )


def _count_arguments(arguments: str | None) -> int | None:
    """Return the number of arguments; `None` if they are unknown or no literals."""
    if arguments is None:
        return None
    try:
        return len(ast.literal_eval(f"({arguments},)" if arguments else "()"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
