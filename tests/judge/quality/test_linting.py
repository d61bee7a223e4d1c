from __future__ import annotations

from requirements import Require
from suture.core.settings import SandboxSettings
from suture.judge.quality.linting import find_ruff, lint_changes
from suture.sandbox import BubblewrapSandbox

BEFORE = {
    "a.py": b"import os\n\n\ndef f():\n    return 1\n",
    "pyproject.toml": b"[tool.ruff.lint]\nselect = ['F']\n",
}
AFTER = {**BEFORE, "a.py": b"import os\n\n\ndef f():\n    x = 2\n    return 1;\n"}


async def test_new_findings_on_changed_lines_by_the_projects_own_rules(
    sandbox: BubblewrapSandbox, require: Require
) -> None:
    require("ruff", find_ruff(None) is not None, "ruff is not installed")
    found = await lint_changes(BEFORE, AFTER, sandbox, SandboxSettings(), None)
    assert (found.tool, found.unmeasured) == ("ruff", None)
    assert len(found.findings) == 1, found.findings  # the unused import is not new
    assert found.findings[0].startswith("a.py:5: F841 ")


async def test_a_project_that_ruff_cannot_read_is_said_not_raised(
    sandbox: BubblewrapSandbox, require: Require
) -> None:
    require("ruff", find_ruff(None) is not None, "ruff is not installed")
    broken = {"pyproject.toml": b"[tool.ruff\n"}
    found = await lint_changes({**BEFORE, **broken}, {**AFTER, **broken}, sandbox, SandboxSettings(), None)
    assert found.findings == ()
    assert found.unmeasured == "linter_failed"
    nothing = await lint_changes(BEFORE, {**BEFORE, "x.txt": b""}, sandbox, SandboxSettings(), None)
    assert nothing.unmeasured == "no_python_file"
