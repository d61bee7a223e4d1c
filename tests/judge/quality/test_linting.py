"""Linting a change by the rules of the project."""

from __future__ import annotations

from requirements import Require
from suture.core.settings import SandboxSettings
from suture.judge.quality.built_in_evaluators import lint_changes
from suture.judge.runners.diagnostics.lent_programs import find_ruff
from suture.sandbox import BubblewrapSandbox

BEFORE = {
    "a.py": b"import os\n\n\ndef f():\n    return 1\n",
    "pyproject.toml": b"[tool.ruff.lint]\nselect = ['F']\n",
}
AFTER = {**BEFORE, "a.py": b"import os\n\n\ndef f():\n    x = 2\n    return 1;\n"}


async def test_only_new_findings_on_changed_lines_are_reported(
    sandbox: BubblewrapSandbox, require: Require
) -> None:
    require("ruff", find_ruff(None) is not None, "ruff is not installed")
    result = await lint_changes(BEFORE, AFTER, sandbox, SandboxSettings(), None)
    assert (result.tool, result.unmeasured) == ("ruff", None)
    assert len(result.findings) == 1, result.findings  # the unused import is not new
    assert result.findings[0].startswith("a.py:5: F841 ")


async def test_a_project_that_ruff_cannot_read_is_reported_as_unmeasured(
    sandbox: BubblewrapSandbox, require: Require
) -> None:
    require("ruff", find_ruff(None) is not None, "ruff is not installed")
    broken = {"pyproject.toml": b"[tool.ruff\n"}
    result = await lint_changes({**BEFORE, **broken}, {**AFTER, **broken}, sandbox, SandboxSettings(), None)
    assert result.findings == ()
    assert result.unmeasured == "linter_failed"

    no_python = await lint_changes(BEFORE, {**BEFORE, "x.txt": b""}, sandbox, SandboxSettings(), None)
    assert no_python.unmeasured == "no_python_file"
