"""A language is asked for what it can do: only `suture.project.languages` knows one by its name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import suture
from suture.project.languages.known import OURS

SOURCE = Path(suture.__file__).parent
NOT_OF_A_LANGUAGE = {
    "safety/python_manifests.py": "a requirement that Poetry writes beside packages",
    "safety/dependencies.py": "indexes of packages",
    "sandbox/mounts/environments.py": "a requirement that Poetry writes beside packages",
    "sandbox/conformance/lifetimes.py": "what every sandbox can run",
}


def names_in(node: ast.expr | None) -> set[str]:
    """The names of languages that an expression writes out, alone or in a tuple, list or set."""
    parts = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    return {str(part.value) for part in parts if isinstance(part, ast.Constant)} & OURS.keys()


def asked_by_name(tree: ast.AST) -> Iterator[int]:
    """The lines on which a value is compared with a language's name, or looked up by it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            written = [name for side in (node.left, *node.comparators) for name in names_in(side)]
        elif isinstance(node, ast.Dict):
            written = [name for key in node.keys for name in names_in(key)]
            written = written[1:]  # one alone is a key of something else, such as `python` in a request
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value).isupper():
            written = [*names_in(node.slice)]
        elif isinstance(node, ast.MatchValue):
            written = [*names_in(node.value)]
        else:
            continue
        if written:
            yield node.lineno if isinstance(node, ast.expr) else node.value.lineno


def test_no_other_room_asks_for_a_language_by_its_name() -> None:
    found = [
        f"{path}:{line}"
        for file in sorted(SOURCE.rglob("*.py"))
        if (path := file.relative_to(SOURCE).as_posix()) not in NOT_OF_A_LANGUAGE
        and not path.startswith(("languages/", "evals/"))
        for line in asked_by_name(ast.parse(file.read_text("utf-8")))
    ]
    assert found == []
