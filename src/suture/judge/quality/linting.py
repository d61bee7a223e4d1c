"""New findings of ruff on changed lines, if the project's environment or Suture's has it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from suture.core.records import UnmeasuredReason
from suture.core.settings import SandboxSettings
from suture.judge.coverage.coverage_run import find_changed_lines
from suture.judge.runners.diagnostics.lent_programs import find_ruff
from suture.judge.sandbox_programs import drop_private_files, make_program_limits
from suture.judge.tuning import MAX_LINT_FINDINGS
from suture.project.languages import Interpreter
from suture.project.workspace import decode_text
from suture.sandbox import BOX, Mount, RunRequest, Sandbox

RUFF_IN_SANDBOX = "/tmp/ruff"


@dataclass(frozen=True, kw_only=True)
class LintResult:
    """New findings of a linter on changed lines.

    Attributes:
        tool: Name of the linter; empty if there was none to run.
        unmeasured: Why it did not run to its end; `None` if it did.
        findings: The new findings, as `path:line: text`.
    """

    tool: str = ""
    unmeasured: UnmeasuredReason | None = None
    findings: tuple[str, ...] = ()


async def lint_changes(
    before: Mapping[str, bytes],
    after: Mapping[str, bytes],
    sandbox: Sandbox,
    settings: SandboxSettings,
    interpreter: Interpreter | None,
) -> LintResult:
    """Lint the changed Python files by the project's own rules; the linter runs inside the sandbox.

    The environment of the project's interpreter may have the linter.
    """
    changed = [path for path in after if path.endswith(".py") and before.get(path) != after[path]]
    if not changed:
        return LintResult(unmeasured="no_python_file")
    ruff = find_ruff(interpreter)
    if ruff is None:
        return LintResult(unmeasured="no_linter")
    findings_after = await run_ruff(ruff, after, changed, sandbox, settings)
    existing = [path for path in changed if path in before]
    findings_before = await run_ruff(ruff, before, existing, sandbox, settings)
    if findings_after is None or findings_before is None:
        return LintResult(tool="ruff", unmeasured="linter_failed")
    # Lines move, so findings are matched by their file and text, each as often as it occurred before.
    old_counts = Counter((path, text) for path, _, text in findings_before)
    changed_lines = {
        path: find_changed_lines(decode_text(before.get(path, b"")), decode_text(after[path]))
        for path in changed
    }
    new_findings: list[str] = []
    for path, line, text in findings_after:
        if old_counts[path, text] > 0:
            old_counts[path, text] -= 1
        elif line in changed_lines[path]:
            new_findings.append(f"{path}:{line}: {text}")
    return LintResult(tool="ruff", findings=tuple(new_findings[:MAX_LINT_FINDINGS]))


async def run_ruff(
    ruff: Path, files: Mapping[str, bytes], paths: list[str], sandbox: Sandbox, settings: SandboxSettings
) -> list[tuple[str, int, str]] | None:
    """Run ruff on some files of a project, and return (path, line, text) of each finding; `None` if it failed."""
    if not paths:
        return []
    options = ("check", "--quiet", "--no-cache", "--exit-zero", "--output-format=json", "--")
    result = await sandbox.run(
        RunRequest(
            argv=(RUFF_IN_SANDBOX, *options, *sorted(paths)),
            files=drop_private_files(files),
            mounts=(Mount(source=str(ruff), target=RUFF_IN_SANDBOX),),
            limits=make_program_limits(settings, settings.check_timeout_s),
        )
    )
    if result.status != "ok":
        return None
    try:
        return [
            (
                str(finding["filename"]).removeprefix(f"{BOX}/"),
                int(finding["location"]["row"]),
                " ".join(f"{finding.get('code') or 'syntax'} {finding['message']}".split()),
            )
            for finding in json.loads(result.stdout)
        ]
    except (ValueError, KeyError, TypeError):
        return None
