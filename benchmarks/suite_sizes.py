"""Count what a heal run costs in generated projects with many tests, as CPU seconds and as runs of the whole suite.

    python benchmarks/suite_sizes.py --tests 100 1000 2000 5000 20000 --rows suites.jsonl
    python benchmarks/suite_sizes.py --print --rows suites.jsonl

The tests are trivial, 50 in a file, and one fails because of one wrong operator. CPU seconds say something on a busy
machine, too. Those of all sandboxed processes need a control group that this process may create; without one the rows
lack what stays warm between programs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from row_files import append_row, read_rows
from run_program import run_program
from script_exit import run_script

TIMEOUT_S = 7200
TESTS_PER_MODULE = 50
MODULE = """def compute_{0}(value):
    total = {0}
    for number in range(value):
        total += number
    return total
"""
TEST = "def test_{0}():\n    assert {1}.compute_{0}(4) == {0} + 6\n"
COMMAND = ["python", "-m", "pytest", "-q"]
CGROUPS = {
    "/sys/fs/cgroup/cgroup.controllers": ("cpu.stat", 1e-6),
    "/sys/fs/cgroup/cpuacct/cgroup.procs": ("cpuacct.usage", 1e-9),
}
"""A file of the hierarchy -> (the file of a group that has its CPU time, its unit in seconds)."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One project.

    Attributes:
        plain_first_cpu_s: CPU seconds of pytest alone when there is no bytecode, as in the first run in the sandbox.
        plain_cpu_s: The same when its bytecode exists.
        baseline_cpu_s: CPU seconds of the sandboxed run on the unchanged code.
        heal_cpu_s: CPU seconds of the whole heal run.
        own_cpu_s: CPU seconds of Suture's own process among these.
        suite_runs: How often all tests ran.
        collections: How often all tests were collected besides.
        memory_mb: Memory of Suture's own process, in MiB.
        ledger_bytes: Size of the ledger.
    """

    tests: int
    label: str
    outcome: str
    plain_first_cpu_s: float
    plain_cpu_s: float
    baseline_cpu_s: float
    heal_cpu_s: float
    own_cpu_s: float
    suite_runs: int
    collections: int
    memory_mb: int
    ledger_bytes: int


def main() -> int:
    """Measure the projects, or print the rows so far."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tests", type=int, nargs="*", default=())
    parser.add_argument("--rows", type=Path, default=Path("suite_sizes.jsonl"))
    parser.add_argument("--label", default="", help="what the rows are of, such as a commit")
    parser.add_argument("--print", action="store_true")
    parser.add_argument("--heal", type=Path, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.heal is not None:
        print(json.dumps(asyncio.run(heal_once(wanted.heal))))
        return 0
    if not wanted.print:
        for tests in wanted.tests:
            append_row(wanted.rows, measure_project(tests, wanted.label))
    print("tests\tlabel\tplain, first\tplain\tbaseline\tto plain, first\tto plain", end="\t")
    print("heal\town\tsuite runs\tcollections\tMiB\tledger kB")
    for row in read_rows(wanted.rows, Row):
        plain = (row.plain_first_cpu_s, row.plain_cpu_s)
        ratios = (round(row.baseline_cpu_s / max(0.01, cpu_s), 2) for cpu_s in plain)
        costs = (*plain, row.baseline_cpu_s, *ratios, row.heal_cpu_s, row.own_cpu_s)
        counts = (row.suite_runs, row.collections, row.memory_mb, row.ledger_bytes >> 10)
        print("\t".join(map(str, (row.tests, row.label, *costs, *counts))))
    return 0


def write_project(root: Path, tests: int) -> None:
    """Write a project of which one function is wrong."""
    (root / "shop").mkdir(parents=True)
    (root / "shop/__init__.py").write_text("")
    for start in range(0, tests, TESTS_PER_MODULE):
        numbers, name = range(start, min(tests, start + TESTS_PER_MODULE)), f"part_{start}"
        (root / f"shop/{name}.py").write_text("\n\n".join(map(MODULE.format, numbers)))
        texts = "\n\n".join(TEST.format(number, name) for number in numbers)
        (root / f"test_{name}.py").write_text(f"from shop import {name}\n\n\n{texts}")
    module = root / "shop/part_0.py"
    module.write_text(module.read_text().replace("+=", "-=", 1))


def measure_project(tests: int, label: str) -> Row:
    """Run pytest alone and then a heal run in one project."""
    with tempfile.TemporaryDirectory(prefix="suite-sizes-") as folder:
        root = Path(folder) / "project"
        write_project(root, tests)
        plain_first_cpu_s, plain_cpu_s = measure_plain_run(root), measure_plain_run(root)
        variables = {"SUTURE_PATHS_HOME": f"{folder}/home", "SUTURE_PATHS_CACHE": f"{folder}/cache"}
        command = [sys.executable, str(Path(__file__).resolve()), "--heal", str(root)]
        output = run_program(command, root, variables, timeout_s=TIMEOUT_S)
        values = json.loads(output.splitlines()[-1])
    row = Row(
        tests=tests,
        label=label,
        plain_first_cpu_s=round(plain_first_cpu_s, 2),
        plain_cpu_s=round(plain_cpu_s, 2),
        **values,
    )
    print(asdict(row), flush=True)
    return row


def measure_plain_run(root: Path) -> float:
    """Return the CPU seconds of pytest without Suture."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    script = f"{sys.executable} -m pytest -q -p no:cacheprovider -p no:langsmith_plugin > pytest.log || true"
    run_program(["/bin/sh", "-c", script], root, timeout_s=TIMEOUT_S)
    (root / "pytest.log").unlink()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


async def heal_once(root: Path) -> dict[str, Any]:
    """Heal in this process, and return the values of a row that it knows."""
    from suture.api import HealOptions, heal
    from suture.core.settings import load_settings
    from suture.sandbox import open_sandbox

    settings = load_settings(root).settings
    model = settings.model.model_copy(update={"name": "none"})
    settings = settings.model_copy(update={"model": model})
    sandbox = open_sandbox(settings.sandbox, keys=settings.keys, cache=settings.paths.cache)
    with CpuMeter() as meter:
        await sandbox.capabilities()  # attacks the sandbox once
        counting = CountingSandbox(sandbox)
        try:
            options = HealOptions(test=" ".join(COMMAND), settings=settings, sandbox=counting)
            result = await heal(root, options)
        finally:
            await sandbox.close()
        all_cpu_s = meter.read_s()
    ledgers = settings.paths.home.glob("runs/*/ledger.jsonl")
    return {
        "outcome": result.outcome,
        "baseline_cpu_s": round(counting.cpu_s_of_runs[0], 2),
        "heal_cpu_s": round(all_cpu_s or time.process_time() + sum(counting.cpu_s_of_runs), 2),
        "own_cpu_s": round(time.process_time(), 2),
        "suite_runs": counting.suite_runs,
        "collections": counting.collections,
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
        "ledger_bytes": sum(path.stat().st_size for path in ledgers),
    }


class CpuMeter:
    """The CPU seconds of this process and of all its descendants, by a control group that exists until the exit."""

    def __init__(self) -> None:
        self._usage: tuple[Path, float] | None = None

    def __enter__(self) -> CpuMeter:
        for file, (name, unit_s) in CGROUPS.items():
            if not Path(file).exists():
                continue
            group = Path(file).parent / f"suite-sizes-{os.getpid()}"
            try:
                group.mkdir()
                (group / "cgroup.procs").write_text(str(os.getpid()))
            except OSError:
                with suppress(OSError):
                    group.rmdir()
                continue
            self._usage = group / name, unit_s
            break
        return self

    def __exit__(self, *error: object) -> None:
        if self._usage is not None:
            group = self._usage[0].parent
            with suppress(OSError):  # a group with processes stays
                (group.parent / "cgroup.procs").write_text(str(os.getpid()))
                group.rmdir()

    def read_s(self) -> float:
        """Return the seconds so far; 0 if no control group can be made."""
        if self._usage is None:
            return 0.0
        path, unit_s = self._usage
        return float(path.read_text().removeprefix("usage_usec").split()[0]) * unit_s


class CountingSandbox:
    """A sandbox that counts how often all tests run in it.

    Attributes:
        cpu_s_of_runs: CPU seconds of each program.
    """

    def __init__(self, sandbox: Any) -> None:
        self._sandbox = sandbox
        self.cpu_s_of_runs: list[float] = []
        self.suite_runs = 0
        self.collections = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sandbox, name)

    async def run(self, request: Any) -> Any:
        """Run a program."""
        is_report = request.stdin.startswith(b"{") and not json.loads(request.stdin).get("only", True)
        collects = "--collect-only" in request.env.get("PYTEST_ADDOPTS", "")
        self.collections += is_report and collects
        self.suite_runs += is_report and not collects
        result = await self._sandbox.run(request)
        self.cpu_s_of_runs.append(result.cpu_s or 0.0)
        return result

    @asynccontextmanager
    async def open(self, request: Any) -> AsyncIterator[Any]:
        """Start a program to talk with."""
        async with self._sandbox.open(request) as channel:
            yield CountingChannel(channel, self)


class CountingChannel:
    """A conversation with a process that serves trials, whose requests are counted."""

    def __init__(self, channel: Any, counts: CountingSandbox) -> None:
        self._channel, self._counts = channel, counts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)

    async def send(self, frame: bytes) -> None:
        """Send a request."""
        request = json.loads(frame)
        operation = request.get("op")
        self._counts.collections += operation == "collect" and not request.get("test_files")
        runs_all = request.get("tests", ()) is None
        self._counts.suite_runs += operation in ("run_unchanged", "try") and runs_all
        await self._channel.send(frame)


if __name__ == "__main__":
    sys.exit(run_script(main))
