"""What a linter newly finds on changed lines: ruff, where the project's environment or ours has it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from suture.core.settings import SandboxSettings
from suture.judge.certificates.certificate import Lint
from suture.judge.coverage.changed_statements import changed_lines
from suture.judge.sandbox_programs import drop_private_files, make_program_limits
from suture.project.languages import Interpreter
from suture.project.workspace import text_of
from suture.sandbox import BOX, Mount, RunRequest, Sandbox

INSIDE = "/tmp/ruff"
MOST_FINDINGS = 50
"""In a certificate; a change that brings more is known for what it is."""
NOT_FOUND = "ruff is neither in the project's environment nor beside Suture nor on PATH"


def find_ruff(interpreter: Interpreter | None) -> Path | None:
    """The linter, and where it comes from first: the project's environment, Suture's own, PATH."""
    folders = [Path(interpreter.prefix) / "bin"] if interpreter else []
    folders.append(Path(sys.prefix) / "bin")
    for folder in folders:
        program = Path(os.path.realpath(folder / "ruff"))
        # A project's environment may hold a link to a file of the user's, which would be shown.
        inside = program.parent == Path(os.path.realpath(folder))
        if inside and program.is_file() and os.access(program, os.X_OK):
            return program
    found = shutil.which("ruff")
    return Path(found).resolve() if found else None


async def lint_changes(
    before: Mapping[str, bytes],
    after: Mapping[str, bytes],
    sandbox: Sandbox,
    settings: SandboxSettings,
    interpreter: Interpreter | None,
) -> Lint:
    """Lint the changed Python files by the project's own rules; the linter runs behind the wall.

    Args:
        before: The project as it was.
        after: The project as it is.
        sandbox: Where programs run.
        settings: The group `sandbox`: time and memory for each program.
        interpreter: The project's, whose environment may hold the linter.

    Raises:
        SandboxError: The wall failed.
    """
    changed = [path for path in after if path.endswith(".py") and before.get(path) != after[path]]
    if not changed:
        return Lint(absent="no Python file was changed")
    ruff = find_ruff(interpreter)
    if ruff is None:
        return Lint(absent=NOT_FOUND)
    now = await ruff_findings(ruff, after, changed, sandbox, settings)
    then = await ruff_findings(ruff, before, [path for path in changed if path in before], sandbox, settings)
    if now is None or then is None:
        return Lint(tool="ruff", absent="ruff did not end well on this project")
    known = Counter((path, text) for path, _, text in then)
    lines = {path: changed_lines(text_of(before.get(path, b"")), text_of(after[path])) for path in changed}
    fresh: list[str] = []
    for path, line, text in now:
        if known[path, text] > 0:
            known[path, text] -= 1
        elif line in lines[path]:
            fresh.append(f"{path}:{line}: {text}")
    return Lint(tool="ruff", findings=tuple(fresh[:MOST_FINDINGS]))


async def ruff_findings(
    ruff: Path,
    files: Mapping[str, bytes],
    paths: list[str],
    sandbox: Sandbox,
    settings: SandboxSettings,
) -> list[tuple[str, int, str]] | None:
    """What the linter says of some files of a project, behind the wall.

    Args:
        ruff: The linter's program.
        files: The project's files, path -> content.
        paths: The files to lint.
        sandbox: Where programs run.
        settings: The group `sandbox`: time and memory for each program.

    Returns:
        Path, line and text of each finding; `None` where the linter did not end well.

    Raises:
        SandboxError: The wall failed.
    """
    if not paths:
        return []
    options = ("check", "--quiet", "--no-cache", "--exit-zero", "--output-format=json", "--")
    result = await sandbox.run(
        RunRequest(
            argv=(INSIDE, *options, *sorted(paths)),
            files=drop_private_files(files),
            mounts=(Mount(source=str(ruff), target=INSIDE),),
            limits=make_program_limits(settings, settings.check_wall_s),
        )
    )
    if result.status != "ok":
        return None
    try:
        return [
            (
                str(found["filename"]).removeprefix(f"{BOX}/"),
                int(found["location"]["row"]),
                " ".join(f"{found.get('code') or 'syntax'} {found['message']}".split()),
            )
            for found in json.loads(result.stdout)
        ]
    except (ValueError, KeyError, TypeError):
        return None
