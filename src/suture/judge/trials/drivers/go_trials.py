"""Tries candidates on the tests of Go packages: all are compiled into one program, which runs once for each.

This runs inside the sandbox and may use the standard library only. It reads `plan.json` and appends one JSON
line per result to `trials`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))

import go_schemata  # type: ignore[import-not-found,unused-ignore]  # noqa: E402  (it lies beside this file)

ENDED = re.compile(r"^\s*--- (PASS|FAIL|SKIP): (\S+)", re.MULTILINE)
BEGUN = re.compile(r"^=== RUN\s+(\S+)", re.MULTILINE)
BLOCK = re.compile(r"^(.+\.go):(\d{1,9})\.\d+,(\d{1,9})\.\d+ \d+ (\d{1,18})$", re.MULTILINE)
"""A line of Go's coverage profile: file, first line, last line, number of runs."""
STATUS = {"PASS": "passed", "FAIL": "failed", "SKIP": "skipped"}
MAX_TRACED_TESTS = 80
"""Tests of a package whose lines are recorded; each needs a run of its own."""
MAX_COMPILATIONS = 12
"""Compilations of one plan; after each, the candidates that the compiler rejects are left out."""
# The next three numbers are chosen by judgement; not measured.
PARALLEL_TRIALS = 2
TRACE_TIMEOUT_S = 10.0
MIN_TRIAL_S = 0.2
MAX_STACK_CHARS = 4000  # as in `suture.judge.trials.tuning`
SCRATCH = tempfile.gettempdir()


class Trials:
    """The trials of one plan."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan, self.common = plan, plan["common"]
        self.end_s = time.monotonic() + plan["seconds"]
        self.began_s = time.monotonic()
        self.first_passing: int | None = None

    def report(self, line: dict[str, Any]) -> None:
        """Append a line to the results."""
        with (HERE / "trials").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def remaining_s(self) -> float:
        """Return the seconds that are left, at least a tenth."""
        return max(0.1, float(self.end_s) - time.monotonic())

    def program(self, folder: str) -> str:
        """Return the path of the compiled tests of a package."""
        return f"{SCRATCH}/suture-{re.sub('[^A-Za-z0-9]', '_', folder)}.test"

    def compile(self, folder: str, *options: str) -> subprocess.CompletedProcess[str]:
        """Compile the tests of a package."""
        argv = ("go", "test", "-c", "-vet=off", *options, "-o", self.program(folder), f"./{folder}")
        environment = {**os.environ, "GOFLAGS": "-p=4"}
        return subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    def run(self, folder: str, number: int, timeout_s: float, *options: str) -> tuple[int, str]:
        """Run the compiled tests of a package; return the exit code (-1 for a timeout) and the output."""
        environment = {**os.environ, "SUTURE_MUTANT": str(number)}
        argv = (self.program(folder), "-test.v", *options)
        try:
            done = subprocess.run(
                argv,
                cwd=ROOT / folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=max(0.1, min(timeout_s, self.remaining_s())),
                check=False,
            )
        except subprocess.TimeoutExpired as timeout:
            return -1, (timeout.stdout or b"").decode("utf-8", "replace")
        return done.returncode, done.stdout.decode("utf-8", "replace")

    def run_baseline(self, folders: list[str]) -> None:
        """Report how each test ends on the unchanged code, and which lines it runs."""
        tests: list[dict[str, Any]] = []
        for folder in folders:
            if self.compile(folder, "-cover", "-coverpkg=./...").returncode:
                continue
            began_s = time.monotonic()
            _, output = self.run(folder, 0, self.remaining_s())  # 0 selects the unchanged code
            # An entry without an id has the time of all tests of the package.
            tests.append({"id": "", "ms": 1000 * (time.monotonic() - began_s)})
            outcomes = read_outcomes(output)
            leaves = [
                name for name in outcomes if not any(other.startswith(f"{name}/") for other in outcomes)
            ]
            leaves.sort(key=lambda name: outcomes[name] != "failed")  # their lines matter most
            for count, name in enumerate(leaves):
                lines: dict[str, list[int]] = {}
                # Less than a second is not worth a run, by judgement.
                if count < MAX_TRACED_TESTS and self.remaining_s() > 1:
                    lines = self.trace_lines(folder, name)
                tests.append(
                    {
                        "id": f"{folder}::{name}",
                        "status": outcomes[name],
                        "lines": lines,
                        "stack": output[:MAX_STACK_CHARS] if outcomes[name] == "failed" else "",
                    }
                )
        self.report({"event": "baseline", "tests": tests})

    def trace_lines(self, folder: str, name: str) -> dict[str, list[int]]:
        """Return path -> the lines that a test runs."""
        profile = Path(SCRATCH, "suture.cover")
        profile.unlink(missing_ok=True)
        pattern = "/".join(f"^{re.escape(part)}$" for part in name.split("/"))
        self.run(folder, 0, TRACE_TIMEOUT_S, "-test.run", pattern, f"-test.coverprofile={profile}")
        text = profile.read_text("utf-8") if profile.exists() else ""
        found: dict[str, set[int]] = {}
        for match in BLOCK.finditer(text):
            path = match[1].removeprefix(self.common["module"]).lstrip("/")
            if match[4] != "0":
                found.setdefault(path, set()).update(range(int(match[2]), int(match[3]) + 1))
        return {path: sorted(lines) for path, lines in found.items()}

    def try_candidates(self, jobs: list[dict[str, Any]]) -> None:
        """Compile all candidates that can be compiled, then run them in the order of the plan."""
        folders = list(dict.fromkeys(name.partition("::")[0] for name in self.common["target_tests"]))
        compilable = dict(enumerate(jobs))
        for _ in range(MAX_COMPILATIONS):
            body_lines = go_schemata.write_candidates(compilable, self.common["texts"], ROOT)
            # `-e` has the compiler report all errors, and not only the first ten.
            results = [self.compile(folder, "-gcflags=-e") for folder in folders]
            failed = [result for result in results if result.returncode]
            if not failed:
                break
            outputs = (result.stderr + result.stdout for result in failed)
            rejected = set().union(*(go_schemata.find_rejected(output, body_lines) for output in outputs))
            if not rejected or self.remaining_s() < 1:
                return
            for number in rejected:
                del compilable[number]
                self.report({"event": "trial", "number": number, "passes": False, "not_compiled": True})
        else:
            return
        others = dict.fromkeys(name.partition("::")[0] for name in self.common["expected_passes"])
        later = [folder for folder in others if folder not in folders]  # packages without a target test
        later = [folder for folder in later if not self.compile(folder).returncode]
        waiting = iter(sorted(compilable))
        with ThreadPoolExecutor(PARALLEL_TRIALS) as pool:
            workers = [pool.submit(self.work, waiting, folders, later) for _ in range(PARALLEL_TRIALS)]
            for worker in workers:
                worker.result()

    def work(self, waiting: Any, folders: list[str], later: list[str]) -> None:
        """Try waiting candidates until none is left, time is up, or enough rivals were tried."""
        while self.remaining_s() > MIN_TRIAL_S:
            number = next(waiting, None)
            if number is None:
                return
            rivals = number - self.first_passing if self.first_passing is not None else 0
            passed_ms = 1000 * (time.monotonic() - self.began_s)
            if rivals > self.plan["max_rivals"] and passed_ms > self.plan["linger_ms"]:
                return
            self.report({"event": "trial", "number": number, **self.try_candidate(number, folders, later)})

    def try_candidate(self, number: int, folders: list[str], later: list[str]) -> dict[str, Any]:
        """Run the target tests alone, then all tests of all packages."""
        timeout_s, targets = self.plan["trial_timeout_ms"] / 1000, self.common["target_tests"]
        passed: set[str] = set()
        for folder in folders:
            own = {
                name.partition("::")[2].split("/")[0] for name in targets if name.startswith(f"{folder}::")
            }
            pattern = f"^({'|'.join(map(re.escape, sorted(own)))})$"
            code, output = self.run(folder, number + 1, timeout_s, "-test.run", pattern)
            outcomes = read_outcomes(output)
            passed |= {f"{folder}::{name}" for name, status in outcomes.items() if status == "passed"}
            missing = next((n for n in targets if n.startswith(f"{folder}::") and n not in passed), "")
            if missing or code < 0:
                return self.failure(code, missing, passed)
        for folder in [*folders, *later]:
            code, output = self.run(folder, number + 1, timeout_s)
            statuses = {f"{folder}::{name}": status for name, status in read_outcomes(output).items()}
            wrong = {name for name, status in statuses.items() if status == "failed"}
            wrong -= {*self.common["ignored_failures"]}
            expected = [name for name in self.common["expected_passes"] if name.startswith(f"{folder}::")]
            lost = {name for name in expected if statuses.get(name) != "passed"}
            if wrong or lost:
                return self.failure(code, min(wrong | lost), passed)
        self.first_passing = number if self.first_passing is None else self.first_passing
        return {"passes": True}

    @staticmethod
    def failure(code: int, failed_test: str, passed: set[str]) -> dict[str, Any]:
        """Return the report of a candidate that does not pass."""
        return {
            "passes": False,
            "timed_out": code < 0,
            "failed_test": failed_test,
            "passed_tests": sorted(passed),
        }


def read_outcomes(output: str) -> dict[str, str]:
    """Return name -> status of each test that started; one that never ended counts as failed."""
    outcomes = dict.fromkeys(BEGUN.findall(output), "failed")
    outcomes.update({name: STATUS[status] for status, name in ENDED.findall(output)})
    return outcomes


def main() -> None:
    """Carry out the plan."""
    plan = json.loads((HERE / "plan.json").read_text("utf-8"))
    trials = Trials(plan)
    for job in plan["jobs"]:
        if "test_files" in job:
            trials.run_baseline(job["test_files"])
    jobs = [job for job in plan["jobs"] if "body" in job]
    if jobs:
        trials.try_candidates(jobs)


if __name__ == "__main__":
    main()
