"""What it is worth to prefer the largest cluster among candidates that pass the same visible checks.

SUTURE_DATA=... python benchmarks/distinguishing.py --first 164

The candidates are recorded first answers of five models to HumanEval. Those that pass the visible checks are
compared on inputs that no check has; the recorded verdict of the hidden tests, which the comparison never
sees, says who was right.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
from pathlib import Path

from data_files import read_data
from ending import exit_code_of
from trust import WEAKER, build_task

from suture.core.records import Candidate
from suture.core.settings import load_settings
from suture.judge import check_candidate, prepare_suite
from suture.judge.differential.behaviour_comparison import compare_candidates, render_comparison
from suture.judge.trust.check_matrix import is_viable
from suture.sandbox import open_sandbox


async def run(first: int, models: tuple[str, ...]) -> None:
    """Compare task by task, and print each difference and the sums."""
    settings = load_settings(Path.cwd(), {}).settings
    tasks, seeds = read_data("humaneval/tasks"), read_data("recordings/ldb_seeds")
    sandbox = open_sandbox(settings.sandbox)
    compared = apart = split_right = 0
    by_chance = by_cluster = 0.0
    try:
        for record in tasks[:first]:
            task = build_task(record)
            suite = await prepare_suite(task, sandbox, settings.sandbox)
            right: dict[str, bool] = {}
            candidates: list[Candidate] = []
            for seed in seeds:
                if seed["task_id"] != record["id"] or (models and seed["model"] not in models):
                    continue
                candidate = Candidate(files={task.module: seed["attempts"][0]}, origin="sample")
                if candidate.hash not in right and is_viable(await check_candidate(candidate, suite)):
                    right[candidate.hash] = seed["verdicts"][0]["base"] == "pass"
                    candidates.append(candidate)
            if len(candidates) < 2:
                continue
            random.Random(record["id"]).shuffle(candidates)
            found = await compare_candidates(candidates, suite)
            compared += bool(found.clusters)
            apart += len(found.clusters) > 1
            chance = sum(right.values()) / len(right)
            if found.preferred is None or not 0 < chance < 1:
                continue
            split_right += 1
            by_chance += chance
            by_cluster += right[found.preferred]
            print(
                f"{record['id']:14} right {sum(right.values())} of {len(right)} "
                f"preferred {'right' if right[found.preferred] else 'WRONG'}: {render_comparison(found)}",
                flush=True,
            )
    finally:
        await sandbox.close()
    print(f"{compared} tasks compared, {apart} with more than one behaviour")
    print(
        f"where some candidates are right and some wrong ({split_right} tasks): "
        f"a random one is right in {by_chance:.1f}, the preferred one in {by_cluster:.0f}"
    )


def main() -> None:
    """Read the flags."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--first", type=int, default=164)
    parser.add_argument("--weaker", action="store_true", help="only the three weaker models")
    options = parser.parse_args()
    asyncio.run(run(options.first, WEAKER if options.weaker else ()))


if __name__ == "__main__":
    sys.exit(exit_code_of(main))
