"""What better selection among the drawn replies could bring at most, and what repairs brought.

    SUTURE_DATA=... python benchmarks/selection_bound.py FOLDER [--arm NAME]...

FOLDER is a benchmark of `suture bench run`. Its rows hold grades of the first candidate and of those that
led; here every candidate of every run is graded. *Bound*: tasks of which any candidate is right, so what a
perfect choice among them would solve. No model is asked.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from ending import exit_code_of

from suture.bench import Problem, grade_code
from suture.bench.rows import BenchmarkRow
from suture.bench.running.bench_folder import BenchFolder
from suture.core.ledger import find_run, read_ledger, select_events
from suture.core.ledger.kinds import CandidateProposed
from suture.core.records import Candidate, decode_record
from suture.core.settings import Settings
from suture.sandbox import Sandbox, open_sandbox


async def measure(folder: BenchFolder, arms: tuple[str, ...]) -> None:
    """Grade all, and print a line for each arm."""
    problems = {(problem.dataset, problem.id): problem for problem in folder.plan().problems()}
    items_by_id: dict[str, list[BenchmarkRow]] = defaultdict(list)
    for row in folder.rows():
        if (not arms or row.arm in arms) and not row.fault:
            items_by_id[row.arm].append(row)
    known: dict[tuple[str, str], bool] = {}
    settings = Settings()
    sandbox = open_sandbox(settings.sandbox)
    print("arm: tasks, solved, bound; of further candidates (by origin): drawn, passing, right")
    try:
        for arm, rows in items_by_id.items():
            bound, told = 0, Counter[tuple[str, str]]()
            for row in rows:
                right = await _rights(problems[row.dataset, row.problem], row, folder, known, sandbox)
                bound += any(right.values())
                for step in row.steps[1:]:
                    facts = {"drawn": True, "passing": step.claimed, "right": right[step.candidate]}
                    told.update((step.origin, name) for name, so in facts.items() if so)
            print(f"{arm}: {len(rows)}, {sum(map(_solved, rows))}, {bound}; {_words(told)}", flush=True)
    finally:
        await sandbox.close()


async def _rights(
    problem: Problem, row: BenchmarkRow, folder: BenchFolder, known: dict[tuple[str, str], bool], sandbox: Sandbox
) -> dict[str, bool]:
    """Candidate -> whether the hidden checks pass."""
    run = find_run(folder.path, row.run)
    for _, proposed in select_events(read_ledger(run.ledger_path).events, CandidateProposed):
        key = (problem.id, proposed.candidate)
        if key not in known:
            candidate = decode_record(Candidate, run.load_json(proposed.blob))
            known[key] = (await grade_code(problem, candidate.files, sandbox, Settings().sandbox)).right
    return {step.candidate: known.get((problem.id, step.candidate), False) for step in row.steps}


def _solved(row: BenchmarkRow) -> bool:
    leading = [step for step in row.steps if step.leads]
    return bool(leading) and leading[-1].grade is not None and leading[-1].grade.standing == "right"


def _words(told: Mapping[tuple[str, str], int]) -> str:
    origins: Iterable[str] = sorted({origin for origin, _ in told})
    return "; ".join(
        f"{origin} {', '.join(str(told.get((origin, name), 0)) for name in ('drawn', 'passing', 'right'))}"
        for origin in origins
    )


def main() -> None:
    """Read the flags."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--arm", action="append", default=[], help="only this one; may be repeated")
    options = parser.parse_args()
    asyncio.run(measure(BenchFolder(options.folder), tuple(options.arm)))


if __name__ == "__main__":
    sys.exit(exit_code_of(main))
