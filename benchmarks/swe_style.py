"""Solve tasks in SWE-bench's form by `heal`, and grade them externally; records and repositories are local.

    python benchmarks/swe_style.py own FOLDER
    python benchmarks/swe_style.py solve TASKS.jsonl --repos DIR --out PREDICTIONS [--recipe R] [--model M]
    python benchmarks/swe_style.py grade TASKS.jsonl PREDICTIONS.jsonl --repos DIR

`own` makes ten tasks from the projects in `tests/repos` and `examples`: a repository each, with the fault
committed and the tests as `test_patch`. `solve` shows the tests to the solver, which the original does not allow:
state this beside each number. `grade` grades anybody's predictions, and with `--gold` the references.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path

from script_exit import run_script
from swe_format import (
    SweTask,
    apply_patch,
    format_prediction,
    grade_patch,
    read_commit_files,
    read_predictions,
    read_tasks,
)

from suture.api import HealOptions, heal
from suture.core.records import Candidate, Task
from suture.core.settings import Settings, load_settings
from suture.judge import check_candidate, prepare_suite
from suture.project.languages import Interpreter
from suture.project.workspace import decode_text, unified_diff
from suture.sandbox import Sandbox, discover_interpreter, open_sandbox

ROOT = Path(__file__).parents[1]
COMMAND = ("python", "-m", "pytest", "-q")
WHO = ("-c", "user.name=own", "-c", "user.email=own@localhost", "-c", "commit.gpgsign=false")


def main() -> int:
    """Run the command line, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("act", choices=("own", "solve", "grade"))
    parser.add_argument("tasks", type=Path)
    parser.add_argument("predictions", type=Path, nargs="?")
    parser.add_argument("--repos", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--recipe", default="adaptive")
    parser.add_argument("--model", default="none")
    parser.add_argument("--gold", action="store_true", help="grade the references instead")
    given = parser.parse_args()
    acts = {"own": _own, "solve": _solve, "grade": _grade}
    asyncio.run(acts[given.act](given))
    return 0


async def _own(given: argparse.Namespace) -> None:
    """Make ten tasks of our own."""
    settings = Settings()
    sandbox, python = open_sandbox(settings.sandbox), discover_interpreter(ROOT, os.environ)
    lines = []
    try:
        for name, (tree, fixed) in list(_faults().items())[:10]:
            tests = {path: text for path, text in tree.items() if "test" in Path(path).name}
            code = {path: text for path, text in tree.items() if path not in tests}
            commit = _committed(given.tasks / "repos" / f"own__{name}", code)
            before = await _passed(tree, {}, sandbox, settings, python)
            after = await _passed(
                tree, {p: decode_text(t) for p, t in fixed.items()}, sandbox, settings, python
            )
            record = {
                "instance_id": f"own__{name}-1",
                "repo": f"own/{name}",
                "base_commit": commit,
                "problem_statement": "",
                "patch": unified_diff(code, {**code, **fixed}),
                "test_patch": unified_diff(code, tree),
                "FAIL_TO_PASS": json.dumps(sorted(after - before)),
                "PASS_TO_PASS": json.dumps(sorted(after & before)),
            }
            lines.append(json.dumps(record))
            print(f"{record['instance_id']}: {len(after - before)} to fix, {len(after & before)} to keep")
    finally:
        await sandbox.close()
    (given.tasks / "tasks.jsonl").write_text("\n".join(lines) + "\n")


def _faults() -> dict[str, tuple[dict[str, bytes], dict[str, bytes]]]:
    """Return name -> the broken project, and the files that repair it."""
    found = {}
    for folder, told in (
        (ROOT / "tests/repos/projects", tomllib.loads((ROOT / "tests/repos/expected.toml").read_text())),
        (ROOT / "examples", tomllib.loads((ROOT / "tests/examples/fixes.toml").read_text())),
    ):
        for name, what in told.items():
            fix = what.get("fix") or [what.get("file"), what.get("wrong"), what.get("right")]
            if not all(fix or ()) or what.get("needs") or not (folder / name).is_dir():
                continue
            paths = (
                p for p in sorted((folder / name).rglob("*")) if p.is_file() and "__pycache__" not in p.parts
            )
            tree = {p.relative_to(folder / name).as_posix(): p.read_bytes() for p in paths}
            tree = {path: text for path, text in tree.items() if not path.startswith(".")}
            path, wrong, right = fix
            found[name] = (tree, {path: tree[path].replace(wrong.encode(), right.encode(), 1)})
    return found


def _committed(folder: Path, files: Mapping[str, bytes]) -> str:
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    for words in (("init", "-q"), ("add", "-A"), (*WHO, "commit", "-qm", "the fault")):
        subprocess.run(("git", *words), cwd=folder, check=True)
    done = subprocess.run(
        ("git", "rev-parse", "HEAD"), cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


async def _passed(
    tree: Mapping[str, bytes],
    changed: Mapping[str, str],
    sandbox: Sandbox,
    settings: Settings,
    python: Interpreter,
) -> frozenset[str]:
    task = Task(statement="", kind="heal", files=tree, test_command=COMMAND)
    suite = await prepare_suite(task, sandbox, settings.sandbox, python)
    return (await check_candidate(Candidate(files=changed, origin="user"), suite)).passed


async def _solve(given: argparse.Namespace) -> None:
    with given.out.open("a") as out:
        for task in read_tasks(given.tasks):
            patch = await _patch_for(task, given)
            out.write(format_prediction(task, f"suture-{given.recipe}-{given.model}-tests", patch))
            out.flush()


async def _patch_for(task: SweTask, given: argparse.Namespace) -> str:
    files = read_commit_files(task, given.repos)
    with tempfile.TemporaryDirectory(prefix="swe-") as made:
        project = Path(made) / "project"
        for path, content in apply_patch(files, task.test_patch).items():
            (project / path).parent.mkdir(parents=True, exist_ok=True)
            (project / path).write_bytes(content)
        settings = load_settings(project, {"loop.recipe": given.recipe, "model.name": given.model}).settings
        words = "" if given.model == "none" else task.problem_statement
        result = await heal(project, HealOptions(test=" ".join(COMMAND), bug_report=words, settings=settings))
    print(f"{task.instance_id}: {result.outcome}, {result.spend.tokens} tokens, {result.spend.seconds:.0f} s")
    return result.diff if result.outcome == "healed" else ""


async def _grade(given: argparse.Namespace) -> None:
    settings = Settings()
    tasks = read_tasks(given.tasks)
    predictions = {task.instance_id: task.patch for task in tasks}
    if not given.gold:
        predictions = read_predictions(given.predictions)
    sandbox, python, resolved = open_sandbox(settings.sandbox), discover_interpreter(ROOT, os.environ), 0
    try:
        for task in tasks:
            files = read_commit_files(task, given.repos)
            patch = predictions.get(task.instance_id, "")
            graded = await grade_patch(task, files, patch, sandbox, settings.sandbox, python, command=COMMAND)
            resolved += graded.resolved
            why = graded.note or f"{len(graded.failed)} of the tests fail"
            print(f"{task.instance_id}: {'resolved' if graded.resolved else f'not resolved: {why}'}")
    finally:
        await sandbox.close()
    print(f"{resolved} of {len(tasks)} resolved")


if __name__ == "__main__":
    sys.exit(run_script(main))
