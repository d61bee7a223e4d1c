"""Find tests that look at more than what functions answer, or change what surrounds them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

from suture.project.python_source.parsing import parse_module
from suture.project.python_source.scopes import FUNCTIONS

WATCHING_WORDS = re.compile(
    r"(?i)mock|patch|environ|setenv|caplog|capsys|capfd|capture|assertLogs|warn|freeze|\btime\b|seed|random"
    r"|chdir|tmp|tempfile|stderr|logging|signature|__doc__|__name__|\bis not\b|\bassertIs|\bassert [^=\n]* is "
)
"""Words of a test that inspects the process or replaces parts of it."""
SET_UP = re.compile(r"(?:async)?(?:set_?up|tear_?down)\w*|pytest\w+", re.IGNORECASE)
"""Names of what runs for tests that do not name it."""


def watch_process(tests: Mapping[str, str], ids: Iterable[str]) -> bool:
    """Return whether any of these tests, or a helper it uses, inspects the process or replaces parts of it.

    Args:
        tests: Path -> text of the project's tests.
        ids: Ids of the tests as pytest gives them. A test that is not found may do anything that its file does.
    """
    definitions = [pair for path, text in tests.items() for pair in _list_definitions(path, text)]
    wanted = {id_.partition("[")[0].rpartition("::")[2] for id_ in ids}
    if wanted - {name for name, _ in definitions}:
        return any(WATCHING_WORDS.search(text) for path, text in tests.items() if path.endswith(".py"))
    waiting = [
        text for name, text in definitions if name in wanted or SET_UP.fullmatch(name) or "autouse" in text
    ]
    examined: set[str] = set()
    while waiting:
        text = waiting.pop()
        if text in examined:
            continue
        examined.add(text)
        if WATCHING_WORDS.search(text):
            return True
        words = set(re.findall(r"\w+", text))
        waiting += [text for name, text in definitions if name in words]
    return False


def _list_definitions(path: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield (name, source) of the functions and variables of a test file and of its classes."""
    tree = parse_module(text) if path.endswith(".py") else None
    bodies = [tree.body] if tree is not None else []
    while bodies:
        for node in bodies.pop():
            if isinstance(node, ast.ClassDef):
                bodies.append(node.body)
            elif isinstance(node, FUNCTIONS):
                yield node.name, ast.unparse(node)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                yield from ((part.id, ast.unparse(node)) for part in targets if isinstance(part, ast.Name))
