"""Results of new code that a person confirms: as source to edit, as checks, and as a part of the task."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from suture.core.ledger import Event, last_payload
from suture.core.ledger.kinds import ExamplesConfirmed, ProposedExample
from suture.core.records import Check, Task
from suture.errors import UsageError
from suture.judge import extract_asserts

EXAMPLES_FILE = "examples.py"
"""The name under which a person edits proposed results; no file of this name is written anywhere."""


def render_examples(examples: Sequence[ProposedExample], call: str = "") -> str:
    """Return proposed results as asserts to edit; those on which the versions differ are comments.

    Args:
        call: If nothing is proposed, a call of the code to complete, such as `show(text)`.
    """
    if not examples:
        return f"# Write at least one call with the result that you know, such as:\n# assert {call or 'f(2)'} == ...\n"
    lines = ["# Correct the results, delete calls that should not decide, and add your own."]
    differing = [example for example in examples if len(example.answers) > 1]
    lines += render_agreed(examples)
    if differing:
        lines.append("# The versions differ here. Remove the # before the result that is right.")
        lines += [f"# {line}" for example in differing for line in _render_asserts(example)]
    return "\n".join(lines) + "\n"


def render_agreed(examples: Iterable[ProposedExample]) -> list[str]:
    """Return the asserts of the calls on which all versions agree."""
    return [line for example in examples if len(example.answers) == 1 for line in _render_asserts(example)]


def _render_asserts(example: ProposedExample) -> Iterator[str]:
    for answer in example.answers:
        yield f"assert {example.call} == {answer}"


def render_typed_example(typed: str) -> str:
    """Return the assert of a call that a person typed with its result, such as `f(2) == 4`."""
    return f"assert {typed.strip().removeprefix('assert ')}\n"


def find_typed_example(typed: str, examples: Iterable[ProposedExample]) -> ProposedExample | None:
    """Return the proposed example whose call a person typed with a result; the call may contain `==` itself.

    Spaces do not matter.
    """
    line = "".join(typed.removeprefix("assert ").split())
    return next((one for one in examples if line.startswith(f"{''.join(one.call.split())}==")), None)


def read_examples(text: str) -> tuple[Check, ...]:
    """Return the checks that a person wrote or confirmed.

    Raises:
        UsageError: The source is not valid Python, or contains no assert.
    """
    checks = extract_asserts(text, provenance="user")
    if not checks:
        raise UsageError(
            "there is no call with its result", remedy="write at least one, such as: assert double(2) == 4"
        )
    return checks


def add_confirmed_examples(task: Task, events: Iterable[Event]) -> Task:
    """Return a task with the results that a person confirmed in its run; unchanged if there are none."""
    confirmed = last_payload(tuple(events), ExamplesConfirmed)
    if confirmed is None:
        return task
    return replace(task, checks=(*task.checks, *read_examples("\n".join(confirmed.asserts))))


def rename_calls(text: str, name: str, new_name: str) -> str:
    """Return asserts that call a function under another name; versions may give it different names."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == name:
            node.id = new_name
    return "\n".join(map(ast.unparse, tree.body)) + "\n"
