"""Time heal runs and judgements of generated projects by their numbers of files and of tests.

    python benchmarks/project_sizes.py --files 1000 10000 100000 --tests 100 2000 20000 --rows sizes.jsonl
    python benchmarks/project_sizes.py --print --rows sizes.jsonl

Projects with many files have 100 tests, and those with many tests a file for each 20 of them. Each is run by pytest
alone, healed without a model, and judged. CPU seconds say something on a busy machine, too.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from row_files import append_row, read_rows
from run_program import run_program
from script_exit import run_script

TIMEOUT_S = 3600
FEW_TESTS = 100
TESTS_PER_MODULE = 20
FILES_PER_FOLDER = 50
CODE = """def compute_{0}(value):
    total = {0}
    for number in range(value):
        total += number
    return total
"""
TEST = "def test_{0}():\n    assert {1}.compute_{0}(4) == {0} + 6\n"
GIT = ("git", "-c", "user.name=sizes", "-c", "user.email=sizes@localhost")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One command in one project.

    Attributes:
        command: `pytest`, `heal` or `judge`.
        exit_code: Of the command; 124 if it did not end in time.
        wall_s: Wall-clock seconds.
        cpu_s: CPU seconds of the command and of all that it waited for.
        memory_mb: Memory of the largest process, in MiB.
        load: Processes that wanted the processor when the command began.
    """

    files: int
    tests: int
    command: str
    exit_code: int
    wall_s: float
    cpu_s: float
    memory_mb: int
    load: float


def main() -> int:
    """Measure the projects, or print the rows so far."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--files", type=int, nargs="*", default=())
    parser.add_argument("--tests", type=int, nargs="*", default=())
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--print", action="store_true")
    wanted = parser.parse_args()
    if not wanted.print:
        sizes = [(count, FEW_TESTS) for count in wanted.files] + [(0, count) for count in wanted.tests]
        for files, tests in sizes:
            measure_project(files, tests, wanted.rows)
    print("files\ttests\tcommand\texit\twall s\tCPU s\tMiB")
    for row in read_rows(wanted.rows, Row):
        values = (row.files, row.tests, row.command, row.exit_code, row.wall_s, row.cpu_s, row.memory_mb)
        print("\t".join(map(str, values)))
    return 0


def measure_project(files: int, tests: int, rows: Path) -> None:
    """Run all commands in one project, and append their rows."""
    suture = str(Path(sys.executable).with_name("suture"))
    commands = {
        "pytest": [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        "heal": [suture, "heal", ".", "--test", "python -m pytest -q", "--set", "model.name=none"],
        "judge": [suture, "judge", ".", "--test", "python -m pytest -q"],
    }
    with tempfile.TemporaryDirectory(prefix="project-sizes-") as folder:
        root = Path(folder) / "project"
        write_project(root, files, tests)
        variables = {
            **os.environ,
            "PYTHONDONTWRITEBYTECODE": "1",
            "SUTURE_PATHS_HOME": f"{folder}/home",
            "SUTURE_PATHS_CACHE": f"{folder}/cache",
        }
        measure_command(
            "doctor", [suture, "doctor"], root, variables, files, tests
        )  # attacks the sandbox once
        for name, command in commands.items():
            row = measure_command(name, command, root, variables, files, tests)
            append_row(rows, row)
            print(f"{files} files, {tests} tests, {name}: {row.wall_s} s", flush=True)


def write_project(root: Path, files: int, tests: int) -> None:
    """Write and commit a project of which one function is wrong; another one is changed and not committed."""
    (root / "shop").mkdir(parents=True)
    (root / "shop/__init__.py").write_text("")
    for start in range(0, tests, TESTS_PER_MODULE):
        numbers, name = range(start, min(tests, start + TESTS_PER_MODULE)), f"part_{start}"
        (root / f"shop/{name}.py").write_text("\n\n".join(map(CODE.format, numbers)))
        texts = "\n\n".join(TEST.format(number, name) for number in numbers)
        (root / f"test_{name}.py").write_text(f"from shop import {name}\n\n\n{texts}")
    for number in range(files):
        folder = root / f"packages/group_{number // FILES_PER_FOLDER // 20}/part_{number // FILES_PER_FOLDER}"
        if number % FILES_PER_FOLDER == 0:
            folder.mkdir(parents=True)
        (folder / f"module_{number}.py").write_text(f"VALUE = {number}\n")
    module = root / "shop/part_0.py"
    text = module.read_text()
    module.write_text(text.replace("+=", "-=", 1))
    run_program(["git", "init", "-q"], root)
    run_program([*GIT, "add", "-A"], root)
    run_program([*GIT, "commit", "-qm", "project"], root)
    module.write_text(module.read_text().replace("return total", "return total + 0", 1))


def measure_command(
    name: str, command: Sequence[str], root: Path, variables: dict[str, str], files: int, tests: int
) -> Row:
    """Run one command to its end, and return its row."""
    load, started_s = os.getloadavg()[0], time.monotonic()
    with subprocess.Popen(
        ["timeout", str(TIMEOUT_S), *command],
        cwd=root,
        env=variables,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return Row(
        files=files,
        tests=tests,
        command=name,
        exit_code=process.returncode,
        wall_s=round(time.monotonic() - started_s, 1),
        cpu_s=round(used.ru_utime + used.ru_stime, 1),
        memory_mb=used.ru_maxrss >> 10,
        load=round(load, 1),
    )


if __name__ == "__main__":
    sys.exit(run_script(main))
