"""Read the literals in changed code: a function's limits and steps, and values that a change adds."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import chain

from suture.core.records import Candidate
from suture.judge.differential.driver_versions import find_driven_language
from suture.judge.differential.recorded_calls import get_function_name
from suture.judge.extraction.literal_calls import list_function_literals
from suture.judge.suite import Suite
from suture.project.python_source.parsing import parse_module
from suture.project.python_source.scopes import FUNCTIONS
from suture.project.workspace import decode_text, overlay_candidate


def list_literals(candidate: Candidate, suite: Suite, path: str, function: str) -> list[object]:
    """Return the literals in a function before and after the change, which may be its limits and steps."""
    is_driven = find_driven_language(path) is not None
    name = function if is_driven else get_function_name(function).rpartition(".")[2]
    return list(dict.fromkeys(chain.from_iterable(_read_literals(candidate, suite, path, name))))


def find_added_literals(candidate: Candidate, suite: Suite, path: str, function: str) -> frozenset[str]:
    """Return the literals that a change adds to a file, or to a function of another language than Python, as source.

    It is empty if as many others disappear: then the limits and steps that the code had may have other values.
    """
    name = function if find_driven_language(path) is not None else None
    before, after = ({*map(repr, values)} for values in _read_literals(candidate, suite, path, name))
    added = after - before
    return frozenset(added) if len(added) > len(before - after) else frozenset()


def _read_literals(
    candidate: Candidate, suite: Suite, path: str, name: str | None
) -> tuple[list[object], list[object]]:
    """Return the literals in the functions of a name before and after the change; those of whole files without one."""
    before = suite.task.files
    paths = (path,) if path else tuple(candidate.files)
    if (language := find_driven_language(path)) is not None and name is not None:
        texts = decode_text(before.get(path, b"")), candidate.files[path]
        old, new = (list_function_literals(text, path, language, name) for text in texts)
        return old, new
    after = overlay_candidate(before, candidate.files)
    old, new = (
        [value for file in paths for value in _list_python_literals(decode_text(files.get(file, b"")), name)]
        for files in (before, after)
    )
    return old, new


def _list_python_literals(source: str, name: str | None) -> Iterator[object]:
    tree = parse_module(source)
    if tree is None:
        return iter(())
    named = [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS) and node.name == name]
    bodies = [tree] if name is None else named
    return (part.value for body in bodies for part in ast.walk(body) if isinstance(part, ast.Constant))
