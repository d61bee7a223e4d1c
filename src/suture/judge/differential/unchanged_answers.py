"""Find repairs that change nothing outside of a test run, although failing tests newly pass.

However such code recognises a run of tests, a call that looks like one of an ordinary program answers as before. A
repair may show only where tests look at more than answers, so tests that replace things or watch the process say
nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping

from suture.judge.differential.example_calls import NO_EFFECT_MARK, ObservedAnswer
from suture.judge.differential.recorded_calls import PlannedCall, get_function_name
from suture.project.python_source.parsing import parse_module

Answers = tuple[ObservedAnswer, ObservedAnswer]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def find_unchanged_functions(
    before: Mapping[str, str],
    after: Mapping[str, str],
    answers: Mapping[PlannedCall, Answers],
    unrepeatable: Collection[tuple[str, str]],
) -> Iterator[tuple[str, str]]:
    """Yield (path, function) of the changed functions if all of them answer all examples as before.

    Nothing is yielded if a change may show elsewhere, or if a call of a changed function cannot be made again.

    Args:
        before: Path -> text of the changed Python files before the change.
        after: Path -> text of these files after the change.
        answers: The answers to the calls of the tests that newly pass, before and after the change.
        unrepeatable: (path, function) of calls that these tests make and that have no answers here.
    """
    changed: list[tuple[str, str]] = []
    for path, text in after.items():
        names = _list_changed_functions(before.get(path, ""), text)
        if names is None:
            return
        changed += ((path, name) for name in names)
    for place in changed:
        pairs = [pair for call, pair in answers.items() if (call[0], get_function_name(call[1])) == place]
        if place in unrepeatable or not pairs or any(map(_shows_change, pairs)):
            return
    yield from changed


def _shows_change(answers: Answers) -> bool:
    """Return whether an answer differs, or would not show a change."""
    old, new = answers
    return old.key != new.key or new.raises or new.key.startswith(NO_EFFECT_MARK)


def _list_changed_functions(before: str, after: str) -> list[str] | None:
    """Return the functions and methods that a change alters; `None` if it alters anything else that was there."""
    old, new = parse_module(before), parse_module(after)
    return None if old is None or new is None else _compare_bodies(old.body, new.body, "")


def _compare_bodies(
    old_body: Iterable[ast.stmt], new_body: Iterable[ast.stmt], prefix: str
) -> list[str] | None:
    old, new = ({_get_key(node): node for node in body} for body in (old_body, new_body))
    changed: list[str] = []
    for key, before in old.items():
        after = new.get(key)
        if after is not None and ast.dump(before) == ast.dump(after):
            continue
        inner: list[str] | None = None
        if isinstance(before, FUNCTIONS) and isinstance(after, FUNCTIONS):
            inner = [prefix + before.name]
        elif isinstance(before, ast.ClassDef) and isinstance(after, ast.ClassDef) and not prefix:
            inner = _compare_bodies(before.body, after.body, f"{before.name}.")
        if inner is None:
            return None
        changed += inner
    return changed


def _get_key(node: ast.stmt) -> str:
    """Return what identifies a statement of a module in both versions: its name, or else its source."""
    if isinstance(node, ast.ClassDef):
        head = [*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)]
        return f"class {node.name} {list(map(ast.dump, head))}"
    return f"def {node.name}" if isinstance(node, FUNCTIONS) else ast.dump(node)
