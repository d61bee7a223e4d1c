"""Tries candidates on the tests of Go packages: compiled once, run many times."""

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
BLOCK = re.compile(r"^(.+\.go):(\d+)\.\d+,(\d+)\.\d+ \d+ (\d+)$", re.MULTILINE)
STATUS = {"PASS": "passed", "FAIL": "failed", "SKIP": "skipped"}
MOST_TRACED = 80
COMPILATIONS = 12
AT_ONCE = 2
SCRATCH = tempfile.gettempdir()


class Trials:
    """One plan."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan, self.common = plan, plan["common"]
        self.end_s = time.monotonic() + plan["seconds"]
        self.began_s = time.monotonic()
        self.first: int | None = None

    def tell(self, line: dict[str, Any]) -> None:
        """Write down what was seen."""
        with (HERE / "trials").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def left_s(self) -> float:
        """Seconds that are left."""
        return max(0.1, float(self.end_s) - time.monotonic())

    def program(self, folder: str) -> str:
        """Where a package's tests are compiled to."""
        return f"{SCRATCH}/suture-{re.sub('[^A-Za-z0-9]', '_', folder)}.test"

    def compiled(self, folder: str, *options: str) -> subprocess.CompletedProcess[str]:
        """Compile a package's tests."""
        out = ("go", "test", "-c", "-vet=off", *options, "-o", self.program(folder), f"./{folder}")
        environment = {**os.environ, "GOFLAGS": "-p=4"}
        return subprocess.run(out, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    def ran(self, folder: str, number: int, wall_s: float, *options: str) -> tuple[int, str]:
        """One run of a package's tests: exit code, -1 where it was late, and what it printed."""
        environment = {**os.environ, "SUTURE_MUTANT": str(number)}
        words = (self.program(folder), "-test.v", *options)
        try:
            done = subprocess.run(
                words,
                cwd=ROOT / folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=max(0.1, min(wall_s, self.left_s())),
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            return -1, (late.stdout or b"").decode("utf-8", "replace")
        return done.returncode, done.stdout.decode("utf-8", "replace")

    def look(self, folders: list[str]) -> None:
        """How each test ends on the unchanged code, and which lines it runs."""
        tests: list[dict[str, Any]] = []
        for folder in folders:
            made = self.compiled(folder, "-cover", "-coverpkg=./...")
            if made.returncode:
                continue
            began_s = time.monotonic()
            _, said = self.ran(folder, 0, self.left_s())
            tests.append({"id": "", "ms": 1000 * (time.monotonic() - began_s)})
            ended = outcomes(said)
            leaves = [name for name in ended if not any(other.startswith(f"{name}/") for other in ended)]
            leaves.sort(key=lambda name: ended[name] != "failed")
            for count, name in enumerate(leaves):
                lines: dict[str, list[int]] = {}
                if count < MOST_TRACED and self.left_s() > 1:
                    lines = self.lines_of(folder, name)
                stack = said if ended[name] == "failed" else ""
                tests.append(
                    {"id": f"{folder}::{name}", "status": ended[name], "lines": lines, "stack": stack[:4000]}
                )
        self.tell({"event": "look", "tests": tests})

    def lines_of(self, folder: str, name: str) -> dict[str, list[int]]:
        """Path -> the lines that a test runs."""
        profile = Path(SCRATCH, "suture.cover")
        profile.unlink(missing_ok=True)
        pattern = "/".join(f"^{re.escape(part)}$" for part in name.split("/"))
        self.ran(folder, 0, 10.0, "-test.run", pattern, f"-test.coverprofile={profile}")
        text = profile.read_text("utf-8") if profile.exists() else ""
        found: dict[str, set[int]] = {}
        for match in BLOCK.finditer(text):
            path = match[1].removeprefix(self.common["module"]).lstrip("/")
            if match[4] != "0":
                found.setdefault(path, set()).update(range(int(match[2]), int(match[3]) + 1))
        return {path: sorted(lines) for path, lines in found.items()}

    def try_all(self, jobs: list[dict[str, Any]]) -> None:
        """Compile what can be compiled, then run it in the order of the plan."""
        guiding = self.common["guiding"]
        folders = list(dict.fromkeys(name.partition("::")[0] for name in guiding))
        kept = dict(enumerate(jobs))
        for _ in range(COMPILATIONS):
            places = go_schemata.lay(kept, self.common["texts"], ROOT)
            made = [self.compiled(folder, "-gcflags=-e") for folder in folders]
            wrong = [done for done in made if done.returncode]
            if not wrong:
                break
            blamed = set().union(*(go_schemata.blamed(d.stderr + d.stdout, places) for d in wrong))
            if not blamed or self.left_s() < 1:
                return
            for number in blamed:
                del kept[number]
                self.tell({"event": "trial", "number": number, "ok": False, "uncompiled": True})
        else:
            return
        others = dict.fromkeys(name.partition("::")[0] for name in self.common["wanted"])
        later = [folder for folder in others if folder not in folders]
        later = [folder for folder in later if not self.compiled(folder).returncode]
        waiting = iter(sorted(kept))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for done in [pool.submit(self.take, waiting, folders, later) for _ in range(AT_ONCE)]:
                done.result()

    def take(self, waiting: Any, folders: list[str], later: list[str]) -> None:
        """Try what is left, until there is a reason to end."""
        while self.left_s() > 0.2:
            number = next(waiting, None)
            since = number - self.first if number is not None and self.first is not None else 0
            passed_ms = 1000 * (time.monotonic() - self.began_s)
            if number is None or (since > self.plan["rivals"] and passed_ms > self.plan["linger_ms"]):
                return
            self.tell({"event": "trial", "number": number, **self.attempt(number, folders, later)})

    def attempt(self, number: int, folders: list[str], later: list[str]) -> dict[str, Any]:
        """Whether a candidate passes: the failing tests alone, then all tests of all packages."""
        wall_s, guiding = self.plan["wall_ms"] / 1000, self.common["guiding"]
        passed: set[str] = set()
        for folder in folders:
            own = {
                name.partition("::")[2].split("/")[0] for name in guiding if name.startswith(f"{folder}::")
            }
            pattern = f"^({'|'.join(map(re.escape, sorted(own)))})$"
            code, said = self.ran(folder, number + 1, wall_s, "-test.run", pattern)
            passed |= {f"{folder}::{name}" for name, how in outcomes(said).items() if how == "passed"}
            missing = next((n for n in guiding if n.startswith(f"{folder}::") and n not in passed), "")
            if missing or code < 0:
                return {"ok": False, "late": code < 0, "failed": missing, "passed": sorted(passed)}
        for folder in [*folders, *later]:
            code, said = self.ran(folder, number + 1, wall_s)
            ended = {f"{folder}::{name}": how for name, how in outcomes(said).items()}
            wrong = {name for name, how in ended.items() if how == "failed"} - {*self.common["ignored"]}
            lost = {
                n for n in self.common["wanted"] if n.startswith(f"{folder}::") and ended.get(n) != "passed"
            }
            if wrong or lost:
                return {"ok": False, "late": code < 0, "failed": min(wrong | lost), "passed": sorted(passed)}
        self.first = number if self.first is None else self.first
        return {"ok": True}


def outcomes(said: str) -> dict[str, str]:
    """How each test ended; one that never did, failed."""
    ended = dict.fromkeys(BEGUN.findall(said), "failed")
    ended.update({name: STATUS[how] for how, name in ENDED.findall(said)})
    return ended


def main() -> None:
    """Carry out the plan."""
    plan = json.loads((HERE / "plan.json").read_text("utf-8"))
    trials = Trials(plan)
    for job in plan["jobs"]:
        if "files" in job:
            trials.look(job["files"])
    jobs = [job for job in plan["jobs"] if "body" in job]
    if jobs:
        trials.try_all(jobs)


if __name__ == "__main__":
    main()
