"""Would the search without a model mend what fresh samples left unsolved? An experiment on the policy.

    SUTURE_DATA=... python benchmarks/search_on_samples.py FOLDER [--arm best_of_k] [--seconds 12]

FOLDER is a benchmark of `suture bench run`. For each task whose run found no code that passes the visible
checks, the search gets the run's candidates one after the other, those that passed most checks first, and the
visible checks as its tests, until something passes them. The hidden checks then say whether that is right. No
token is spent.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ending import exit_code_of

from suture.api import HealOptions, heal
from suture.bench import Problem, grade_code, build_task
from suture.bench.rows import BenchmarkRow
from suture.bench.running.bench_folder import BenchFolder
from suture.core.ledger import find_run, read_ledger, select_events
from suture.core.ledger.kinds import CandidateProposed
from suture.core.records import Candidate, Check, decode_record
from suture.core.settings import BudgetSettings, PathSettings, RepairSettings, SandboxSettings, Settings
from suture.errors import SutureError
from suture.sandbox import Sandbox, open_sandbox

COMMAND = ("python", "-m", "pytest", "-q")
TEST_WALL_S = 5


@dataclass(frozen=True, kw_only=True)
class Mended:
    """What the search made of one task's candidates.

    Attributes:
        tried: Candidates that it was given.
        label: The change that passed the visible checks; empty where none did.
        confidence: Suture's own, of that change.
        right: Whether the hidden checks pass, too.
    """

    tried: int
    label: str = ""
    confidence: float = 0.0
    right: bool = False


async def measure(folder: BenchFolder, arm: str, seconds: float) -> None:
    """Search task by task, and print each and the sums."""
    problems = {(problem.dataset, problem.id): problem for problem in folder.plan().problems()}
    rows = [row for row in folder.rows() if row.arm == arm]
    open_rows = [row for row in rows if not any(step.claimed for step in row.steps)]
    sandbox = open_sandbox(Settings().sandbox)
    found: list[Mended] = []
    try:
        for row in open_rows:
            found.append(await _mended(problems[row.dataset, row.problem], row, folder, seconds, sandbox))
            print(f"{row.problem}: {found[-1]}", flush=True)
    finally:
        await sandbox.close()
    passing = [mended for mended in found if mended.label]
    print(
        f"{len(rows)} tasks, {len(open_rows)} without code that passes the visible checks; the search makes "
        f"{len(passing)} of them pass, {sum(mended.right for mended in passing)} are right"
    )


async def _mended(
    problem: Problem, row: BenchmarkRow, folder: BenchFolder, seconds: float, sandbox: Sandbox
) -> Mended:
    task = build_task(problem, row.regime)
    tried = 0
    for code in _codes(row, folder, task.module):
        tried += 1
        with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as project:
            files = {task.module: code, "test_visible.py": _tests(task.checks, task.module)}
            for path, text in files.items():
                (Path(project) / path).write_text(text, "utf-8")
            settings = Settings(
                # No weights lie there: no model is found, and none is asked.
                paths=PathSettings(home=Path(home), cache=Path(home) / "no-models"),
                sandbox=SandboxSettings(test_timeout_s=TEST_WALL_S),
                budget=BudgetSettings(seconds=2 * seconds),
                repair=RepairSettings(seconds=seconds),
            )
            try:
                result = await heal(project, HealOptions(test=COMMAND, settings=settings))
            except SutureError:
                continue  # the search did not suffice, and there is no model to go on with
        if result.outcome == "healed" and result.candidate is not None:
            grade = await grade_code(problem, result.candidate.files, sandbox, settings.sandbox)
            label, confidence = result.candidate.label, round(result.confidence, 3)
            return Mended(tried=tried, label=label, confidence=confidence, right=grade.right)
    return Mended(tried=tried)


def _codes(row: BenchmarkRow, folder: BenchFolder, module: str) -> Iterator[str]:
    """The code of a run's candidates, each once, those that passed most visible checks first."""
    run = find_run(folder.path, row.run)
    proposed = select_events(read_ledger(run.ledger_path).events, CandidateProposed)
    blobs = {one.candidate: one.blob for _, one in proposed}
    seen = set()
    for step in sorted(row.steps, key=lambda step: -step.passed):
        code = decode_record(Candidate, run.load_json(blobs[step.candidate])).files.get(module, "")
        if code.strip() and code not in seen:
            seen.add(code)
            yield code


def _tests(checks: tuple[Check, ...], module: str) -> str:
    """The visible checks as tests of pytest's."""
    parts = [f"from {module.removesuffix('.py')} import *"]
    for number, check in enumerate(checks):
        body = "\n".join(f"    {line}" for line in check.source.splitlines())
        parts.append(f"def test_{number}():\n{body}")
    return "\n\n\n".join(parts) + "\n"


def main() -> None:
    """Read the flags."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--arm", default="best_of_k")
    parser.add_argument("--seconds", type=float, default=12, help="the most of each search")
    options = parser.parse_args()
    asyncio.run(measure(BenchFolder(options.folder), options.arm, options.seconds))


if __name__ == "__main__":
    sys.exit(exit_code_of(main))
