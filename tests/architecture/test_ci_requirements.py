"""CI requires every optional tool that it can have, so no test is skipped there unnoticed."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

from attacks.backends import BACKENDS, MANUAL_BACKENDS
from attacks.matrix import ROWS

TESTS = Path(__file__).parents[1]
SCRIPT = TESTS.parent / ".ci" / "run"
NOT_IN_CI = {
    "crun": "it refuses machines that have both versions of control groups, as many build machines do",
    "inspect_ai": "its fsspec is older than the one that the locked huggingface-hub needs",
}
"""Requirement -> why CI may do without it."""


def find_requirements() -> set[str]:
    """Return everything whose absence skips a test, by its name in `SUTURE_REQUIRE`."""
    backends = (*BACKENDS.values(), *MANUAL_BACKENDS.values())
    requirements = {backend.requirement for backend in backends} | {row.needs for row in ROWS.values()}
    projects = tomllib.loads((TESTS / "repos" / "expected.toml").read_text())
    requirements |= {project["needs"] for project in projects.values() if "needs" in project}
    for path in TESTS.rglob("*.py"):
        source = path.read_bytes()
        # Parsing is slow, and most files require nothing.
        if path.is_relative_to(TESTS / "repos" / "projects") or b"require" not in source:
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "require":
                requirements |= {str(name.value) for name in node.args[:1] if isinstance(name, ast.Constant)}
    return requirements - {""}


def test_ci_requires_everything_whose_absence_skips_a_test() -> None:
    lists = re.findall(r'^\s*required="(?:\$required,)?(.*)"$', SCRIPT.read_text(), re.MULTILINE)
    required = {name for names in lists for name in names.split(",")}
    assert required | set(NOT_IN_CI) == find_requirements()
    assert not required & set(NOT_IN_CI)
