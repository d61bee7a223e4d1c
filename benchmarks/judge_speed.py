"""Time judgements of a change of one function, as ratios to one run of the tests outside the sandbox.

    python benchmarks/judge_speed.py --generated 10 1000 5000 --rows rows.jsonl
    python benchmarks/judge_speed.py REPOSITORY... --install . pytest --rows rows.jsonl
    python benchmarks/judge_speed.py --print --rows rows.jsonl

Each project is judged by processes of their own: completely with an empty cache (`cold`), completely again (`full`),
and quickly (`quick`). Besides the wall clock, the CPU seconds of Suture and of all sandboxed programs count: these say
something on a busy machine, too. They lack what warm interpreters take to start.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from row_files import append_row, read_rows
from run_program import run_program
from script_exit import run_script

from suture.errors import SutureError

TIMEOUT_S = 1800
KINDS = ("cold", "full", "quick")
TESTS_PER_MODULE = 20
MODULE = """def compute_{0}(value):
    total = {0}
    for number in range(value):
        total += number
    return total
"""
TEST = "def test_{0}():\n    assert {1}.compute_{0}(4) == {0} + 6\n"


@dataclass(frozen=True, kw_only=True)
class Row:
    """The judgement of one project in one way.

    Attributes:
        kind: One of `KINDS`.
        ran: Tests that ran with the change, of `tests`.
        wall_s: From the start of the process to the verdict.
        cpu_s: The same in CPU seconds, of Suture and of the sandboxed programs.
        steps: Step -> wall-clock seconds; `start` is what comes before the first one.
        suite_wall_s: Of one run of the tests outside the sandbox.
        suite_cpu_s: The same in CPU seconds.
        load: Processes that wanted the processor when the judgement began.
    """

    project: str
    kind: str
    outcome: str
    ran: int
    tests: int
    wall_s: float
    cpu_s: float
    steps: dict[str, float]
    suite_wall_s: float
    suite_cpu_s: float
    load: float


def main() -> int:
    """Measure the projects, or print the rows so far."""
    wanted = _parse_arguments()
    if wanted.judge:
        print(json.dumps(asyncio.run(judge_once(Path.cwd(), wanted.judge, wanted.test, wanted.started_s))))
        return 0
    if not wanted.print:
        for count in wanted.generated:
            with prepare_generated(count) as root:
                measure_project(f"generated-{count}", root, sys.executable, wanted)
        for repository in wanted.repositories:
            with prepare_clone(repository, wanted.install) as root:
                name = repository.parent.name if repository.name == "repo" else repository.name
                measure_project(name, root, str(root / ".venv/bin/python"), wanted)
    print_rows(read_rows(wanted.rows, Row))
    return 0


@contextmanager
def prepare_generated(count: int) -> Iterator[Path]:
    """Write a project with so many tests, of a function each, and commit it."""
    with tempfile.TemporaryDirectory(prefix="judge-speed-") as folder:
        root = Path(folder)
        (root / "shop").mkdir()
        (root / "shop/__init__.py").write_text("")
        for start in range(0, count, TESTS_PER_MODULE):
            numbers, name = range(start, min(count, start + TESTS_PER_MODULE)), f"part_{start}"
            (root / f"shop/{name}.py").write_text("\n\n".join(map(MODULE.format, numbers)))
            tests = "\n\n".join(TEST.format(number, name) for number in numbers)
            (root / f"test_{name}.py").write_text(f"from shop import {name}\n\n\n{tests}")
        run_program(["git", "init", "-q"], root)
        _commit(root)
        yield root


@contextmanager
def prepare_clone(repository: Path, packages: Sequence[str]) -> Iterator[Path]:
    """Clone a project, and install it into an environment in the clone."""
    with tempfile.TemporaryDirectory(prefix="judge-speed-") as folder:
        root = Path(folder) / "project"
        run_program(["git", "clone", "-q", str(repository), str(root)], Path(folder))
        (root / ".git/info/exclude").write_text(".venv\n__pycache__\n*.egg-info\nbuild\n")
        run_program([sys.executable, "-m", "venv", ".venv"], root)
        run_program([".venv/bin/python", "-m", "pip", "install", "-q", "-e", *packages], root)
        yield root


def measure_project(name: str, root: Path, python: str, wanted: argparse.Namespace) -> None:
    """Change one function of a project, judge the change in each way, and append the rows."""
    changed = change_function(root)
    with tempfile.TemporaryDirectory(prefix="judge-cache-") as cache:
        variables = {"SUTURE_PATHS_CACHE": cache, "SUTURE_SANDBOX_PYTHON": python}
        command = [sys.executable, str(Path(__file__).resolve()), "--test", wanted.test, "--judge"]
        run_program(
            [*command, "warm-up"], root, variables, timeout_s=TIMEOUT_S
        )  # attacks the sandbox once, and compiles Suture
        for kind in KINDS:
            suite_wall_s, suite_cpu_s = time_suite(root, python, wanted.test)
            load = os.getloadavg()[0]
            started_s = time.monotonic()
            output = run_program(
                [*command, kind, "--started-s", str(started_s)], root, variables, timeout_s=TIMEOUT_S
            )
            values = json.loads(output.splitlines()[-1])
            row = Row(
                project=name,
                kind=kind,
                wall_s=round(time.monotonic() - started_s, 2),
                suite_wall_s=suite_wall_s,
                suite_cpu_s=suite_cpu_s,
                load=round(load, 1),
                **values,
            )
            append_row(wanted.rows, row)
            print(f"{name} {kind}: {row.outcome}, {row.ran} of {row.tests} tests, {changed}", flush=True)


def change_function(root: Path) -> str:
    """Insert a statement into the first function that a test names, and return the place."""
    files = [Path(name) for name in run_program(["git", "ls-files", "*.py"], root).splitlines()]
    tests = [path for path in files if "test" in path.name]
    text = "\n".join((root / path).read_text() for path in tests)
    for path in files:
        if path in tests or {"tests", "test", "docs", "examples", "setup.py"} & {*path.parts}:
            continue
        lines = (root / path).read_text().splitlines(keepends=True)
        for node in ast.parse("".join(lines)).body:
            if isinstance(node, ast.FunctionDef) and len(node.body) > 1 and f"{node.name}(" in text:
                last = node.body[-1]
                indent = " " * last.col_offset
                lines.insert(last.lineno - 1, f"{indent}changed = {last.lineno}\n{indent}del changed\n")
                (root / path).write_text("".join(lines))
                return f"{path}::{node.name}"
    raise SutureError(f"no test of {root} names a function")


def time_suite(root: Path, python: str, test: str) -> tuple[float, float]:
    """Return the wall-clock and CPU seconds of one run of the tests outside the sandbox."""
    before, started_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [python, *test.split()[1:], "-p", "no:cacheprovider"]
    subprocess.run(command, cwd=root, capture_output=True, check=False, timeout=TIMEOUT_S)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return round(time.monotonic() - started_s, 2), round(cpu_s, 2)


async def judge_once(root: Path, kind: str, test: str, started_s: float) -> dict[str, Any]:
    """Judge in this process, and return the values of a row that it knows.

    Args:
        started_s: When the process started, on the monotonic clock.
    """
    from suture.core.settings import load_settings
    from suture.judge.runners.early_start import open_early_sandbox

    settings = load_settings(root).settings
    begun_s = {"start": started_s}

    def note_step(step: str) -> None:
        begun_s.setdefault(step, time.monotonic())

    async with open_early_sandbox(settings, root, test) as sandbox:
        if kind == "warm-up":
            await sandbox.capabilities()
            return {}
        measured = MeasuredSandbox(sandbox)
        judging = await asyncio.to_thread(import_module, "suture.api.judging")  # as `suture judge` does
        judgement = await judging.judge(
            root,
            judging.JudgeOptions(
                test=test,
                settings=settings,
                sandbox=measured,
                quick=kind == "quick",
                on_step=note_step,
            ),
        )
    times = [*begun_s.values(), time.monotonic()]
    return {
        "outcome": judgement.outcome,
        "ran": judgement.scope.ran,
        "tests": judgement.scope.total,
        "cpu_s": round(time.process_time() + measured.cpu_s, 2),
        "steps": {
            step: round(end - start, 2) for step, start, end in zip(begun_s, times, times[1:], strict=False)
        },
    }


class MeasuredSandbox:
    """A sandbox that adds up the CPU seconds of its programs."""

    def __init__(self, sandbox: Any) -> None:
        self._sandbox = sandbox
        self.cpu_s = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sandbox, name)

    async def run(self, request: Any) -> Any:
        """Run a program."""
        result = await self._sandbox.run(request)
        self.cpu_s += result.cpu_s or 0.0
        return result


def print_rows(rows: Sequence[Row]) -> None:
    """Print the ratios of each row, and where its time goes."""
    for row in rows:
        wall, cpu = row.wall_s / max(0.01, row.suite_wall_s), row.cpu_s / max(0.01, row.suite_cpu_s)
        steps = ", ".join(f"{step} {seconds:.1f}" for step, seconds in row.steps.items())
        print(
            f"{row.project:<16} {row.kind:<6} {row.ran:>5} of {row.tests:<5} {row.wall_s:7.1f} s,"
            f" {wall:5.2f} times the suite; CPU {row.cpu_s:6.1f} s, {cpu:5.2f} times; load {row.load}; {steps}"
        )


def _commit(root: Path) -> None:
    author = ["-c", "user.name=Benchmark", "-c", "user.email=benchmark@example.org"]
    run_program(["git", "add", "-A"], root)
    run_program(["git", *author, "commit", "-qm", "Base"], root)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("repositories", type=Path, nargs="*", help="clones of projects")
    parser.add_argument(
        "--generated", type=int, nargs="*", default=[], help="generated projects by their tests"
    )
    parser.add_argument(
        "--install", nargs="+", default=[".", "pytest"], help="what pip installs, the project first"
    )
    parser.add_argument("--test", default="python -m pytest -q", help="the test command")
    parser.add_argument("--rows", type=Path, default=Path("judge_speed.jsonl"), help="file of the results")
    parser.add_argument("--print", action="store_true", help="only print the results so far")
    parser.add_argument("--started-s", type=float, default=0.0, help=argparse.SUPPRESS)
    parser.add_argument("--judge", choices=("warm-up", *KINDS), help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(run_script(main))
