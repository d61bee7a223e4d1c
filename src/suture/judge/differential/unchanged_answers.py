"""Find repairs that change nothing outside of a test run, although failing tests newly pass.

However such code recognises a run of tests, a call that looks like one of an ordinary program answers as before. A
repair may show only where tests look at more than answers, so tests that replace things or watch the process say
nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping

from suture.judge.differential.example_calls import NO_EFFECT_MARK, ObservedAnswer
from suture.judge.differential.recorded_calls import PlannedCall
from suture.project.python_source.parsing import parse_module

Answers = tuple[ObservedAnswer, ObservedAnswer]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
WATCHING_WORDS = re.compile(
    r"(?i)mock|patch|environ|setenv|caplog|capsys|capfd|capture|assertLogs|warn|freeze|\btime\b|seed|random"
    r"|chdir|tmp|tempfile|stderr|logging|signature|__doc__|__name__|\bis not\b|\bassertIs|\bassert [^=\n]* is "
)
"""Words of a test that looks at more than what a function answers, or that changes what surrounds it."""


def find_unchanged_functions(
    before: Mapping[str, str],
    after: Mapping[str, str],
    answers: Mapping[PlannedCall, Answers],
    unrepeatable: Collection[tuple[str, str]],
    tests: Mapping[str, str],
) -> Iterator[tuple[str, str]]:
    """Yield (path, function) of the changed functions if all of them answer all examples as before.

    Nothing is yielded if a change may show elsewhere, or if a call of a changed function cannot be made again.

    Args:
        before: Path -> text of the changed Python files before the change.
        after: The same after the change.
        answers: The answers to the calls of the tests that newly pass, before and after the change.
        unrepeatable: (path, function) of calls that these tests make with arguments that are no literals.
        tests: The project's tests, path -> text.
    """
    if any(WATCHING_WORDS.search(text) for path, text in tests.items() if path.endswith(".py")):
        return
    changed: list[tuple[str, str]] = []
    for path, text in after.items():
        names = _list_changed_functions(before.get(path, ""), text)
        if names is None:
            return
        changed += ((path, name) for name in names)
    for place in changed:
        pairs = [pair for call, pair in answers.items() if call[:2] == place]
        if place in unrepeatable or not pairs or any(map(_shows_change, pairs)):
            return
    yield from changed


def _shows_change(answers: Answers) -> bool:
    """Return whether an answer is another one, or no answer in which a change would show."""
    old, new = answers
    return old.key != new.key or new.raises or new.key.startswith(NO_EFFECT_MARK)


def _list_changed_functions(before: str, after: str) -> list[str] | None:
    """Return the plain functions that a change alters; `None` if it alters anything else that was there before."""
    old_tree, new_tree = parse_module(before), parse_module(after)
    if old_tree is None or new_tree is None:
        return None
    old = {_get_key(node): node for node in old_tree.body}
    new = {_get_key(node): node for node in new_tree.body}
    altered = [node for key, node in old.items() if key not in new or ast.dump(node) != ast.dump(new[key])]
    if any(not isinstance(node, ast.FunctionDef) or _get_key(node) not in new for node in altered):
        return None
    return [node.name for node in altered if isinstance(node, ast.FunctionDef)]


def _get_key(node: ast.stmt) -> str:
    """Return what identifies a statement of a module in both versions: its name, or else its text."""
    return f"def {node.name}" if isinstance(node, (*FUNCTIONS, ast.ClassDef)) else ast.dump(node)
