"""Heal one-edit bugs of small Go packages by the search alone, with `go test ./...`.

    python benchmarks/go_bugs.py [--first N] [--only PACKAGE/NUMBER] [--seconds N] [--rows FILE]

Packages and bugs (`go_set/bugs.toml`) are written by hand, as slips of people. Two kinds of changes were added
after the missing edits had been examined. A repair is correct if the package's `hidden_test.go` passes, which
no run has seen.
"""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from healing import Program, RepairGrade, run_benchmark
from script_exit import run_script

from suture.core.settings import Settings
from suture.judge.sandbox_programs import make_test_limits
from suture.project.languages import program_environment
from suture.sandbox import BOX, RunRequest, Sandbox, discover_programs, mounts_for_interpreter

SET = Path(__file__).with_name("go_set")
COMMAND = ("go", "test", "./...")
HIDDEN_S = 90.0


async def grade(
    name: str, files: Mapping[str, str], folder: Path, settings: Settings, sandbox: Sandbox
) -> RepairGrade:
    """Run the hidden tests on a repair."""
    go = discover_programs(None, os.environ, "go")
    hidden = (SET / name / "hidden_test.go").read_text("utf-8")
    laid = {**go_project(name), **files, "hidden_test.go": hidden}
    result = await sandbox.run(
        RunRequest(
            argv=COMMAND,
            files={path: text.encode() for path, text in laid.items()},
            env=program_environment(go, BOX),
            mounts=mounts_for_interpreter(go),
            limits=make_test_limits(settings.sandbox, HIDDEN_S, "go"),
        )
    )
    right = result.status == "ok"
    return RepairGrade(correct=right, compared=1, agreed=int(right))


def packages() -> list[str]:
    """Return the names of the packages."""
    return sorted(path.name for path in SET.iterdir() if path.is_dir())


def go_project(name: str) -> dict[str, str]:
    """Return a correct package, with the visible tests."""
    own = {path: (SET / name / path).read_text("utf-8") for path in (f"{name}.go", f"{name}_test.go")}
    return {"go.mod": f"module example.org/{name}\n\ngo 1.19\n", **own}


def programs() -> list[Program]:
    """Return each bug in its package."""
    found = []
    for name, row in tomllib.loads((SET / "bugs.toml").read_text("utf-8")).items():
        files = go_project(name)
        for number, (right, wrong) in enumerate(row["bugs"]):
            code = files[f"{name}.go"]
            if right not in code:
                raise ValueError(f"{name} has no {right!r}")
            seeded = {**files, f"{name}.go": code.replace(right, wrong, 1)}
            found.append(
                Program(
                    name=f"{name}/{number}",
                    files=seeded,
                    grade=partial(grade, name),
                    command=COMMAND,
                    test_timeout_s=HIDDEN_S,
                )
            )
    return found


if __name__ == "__main__":
    sys.exit(run_script(partial(run_benchmark, __doc__, "go_bugs", programs)))
