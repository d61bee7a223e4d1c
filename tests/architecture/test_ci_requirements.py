"""CI requires what it can have: a test that skips for want of something is skipped nowhere unseen."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

from attacks.backends import BACKENDS, BY_HAND
from attacks.matrix import ROWS

TESTS = Path(__file__).parents[1]
SCRIPT = TESTS.parent / ".ci" / "run"
NOT_IN_CI = {
    "crun": "it refuses machines that have both versions of control groups, as many build machines do",
}
"""Word -> why CI may do without."""


def words() -> set[str]:
    """Everything that a test may skip for want of, by its word of `SUTURE_REQUIRE`."""
    walls = (*BACKENDS.values(), *BY_HAND.values())
    found = {sandbox_requirement.requirement for sandbox_requirement in walls} | {
        row.needs for row in ROWS.values()
    }
    expected = tomllib.loads((TESTS / "repos" / "expected.toml").read_text())
    found |= {project["needs"] for project in expected.values() if "needs" in project}
    for path in TESTS.rglob("*.py"):
        if path.is_relative_to(TESTS / "repos" / "projects"):
            continue
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "require":
                found |= {str(word.value) for word in node.args[:1] if isinstance(word, ast.Constant)}
    return found - {""}


def test_ci_requires_everything_that_a_test_may_skip_for_want_of() -> None:
    lists = re.findall(r'^\s*required="(?:\$required,)?(.*)"$', SCRIPT.read_text(), re.MULTILINE)
    required = {word for words in lists for word in words.split(",")}
    assert required | set(NOT_IN_CI) == words()
    assert not required & set(NOT_IN_CI)
