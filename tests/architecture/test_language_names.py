"""Code asks a language what it can do: only `suture.project.languages` compares languages by name."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from architecture.source_imports import SOURCE, source_files
from suture.project.languages.language_table import BUILT_IN_LANGUAGES

ALLOWED = (
    "src/suture/bench/",  # a data set is in one language
    "src/suture/project/languages/",
    "src/suture/project/safety/dependencies.py",  # the names of package indexes
    "src/suture/project/safety/manifests.py",  # Poetry lists the version of Python beside packages
    "src/suture/sandbox/packages/additions/python_adder.py",  # Poetry, as above
    "src/suture/sandbox/runtimes/environments.py",  # Poetry, as above
)


def language_names(node: ast.expr | None) -> set[str]:
    """Return the names of languages that an expression holds, alone or in a tuple, list or set."""
    parts = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    return {str(part.value) for part in parts if isinstance(part, ast.Constant)} & BUILT_IN_LANGUAGES.keys()


def find_comparisons(nodes: Iterable[ast.AST]) -> Iterator[int]:
    """Yield the lines on which a value is compared with a language's name, or looked up by it."""
    for node in nodes:
        names: list[str] = []
        if isinstance(node, ast.Compare):
            names = [name for side in (node.left, *node.comparators) for name in language_names(side)]
        elif isinstance(node, ast.Dict):
            # One name alone is a key of something else, such as `python` in a request.
            names = [name for key in node.keys for name in language_names(key)][1:]
        elif isinstance(node, ast.Subscript):
            names = [*language_names(node.slice)]
            if names and not ast.unparse(node.value).isupper():
                continue
        elif isinstance(node, ast.MatchValue):
            names = [*language_names(node.value)]
            node = node.value
        if names and isinstance(node, ast.expr):
            yield node.lineno


def test_no_other_package_compares_languages_by_name() -> None:
    comparisons = [
        f"{file.path}:{line}"
        for file in source_files(SOURCE)
        if not f"src/suture/{file.path}".startswith(ALLOWED)
        for line in find_comparisons(file.nodes)
    ]
    assert comparisons == []
