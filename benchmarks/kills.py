"""Kill Suture at random moments: nothing is lost, and nothing is left behind.

    python benchmarks/kills.py --moments 60 --seed 1

Each moment starts one act (heal, apply, undo, memory, pull, serve) from the same state, kills its process with
SIGKILL, and then gives the next command. Afterwards the project has the whole change or nothing of it, and there are
no processes, mounts and temporary files of the killed one. It prints a line per moment, and ends with 1 if one failed.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

sys.path.remove(str(Path(__file__).parent))  # its `models` would hide that of the tests
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from models.test_pull_hub import HubStub
from models.tiny_wheels import CONTENT

BROKEN = "def total(prices):\n    return sum(prices) - 1\n"
TESTS = """import unittest
from prices import total


class Totals(unittest.TestCase):
    def test_two(self):
        self.assertEqual(total([1, 2]), 3)
"""
PULL = """import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from models.tiny_wheels import make_entry
from suture.models.weights.download import pull_model
from suture.models.weights.model_catalogue import HubFile
pull_model(make_entry(HubFile(repo="us/tiny", filename="tiny.gguf", endpoint={endpoint!r})), Path({cache!r}))
"""
SUTURE = (sys.executable, "-m", "suture.interfaces.cli")
PATIENCE_S = 300.0
LEFT_BEHIND_S = 5.0
"""How long the sandbox of a killed process may take to end."""


@dataclass(frozen=True)
class Place:
    """A folder with a project, a state folder and a cache."""

    folder: Path

    @property
    def project(self) -> Path:
        """The folder of the project."""
        return self.folder / "project"

    @property
    def environment(self) -> dict[str, str]:
        """The variables of all processes."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "SUTURE_HOME": str(self.folder / "home"),
            "SUTURE_PATHS_CACHE": str(self.folder / "cache"),
            "NO_PROXY": "127.0.0.1",
        }

    def start(self, *argv: str) -> subprocess.Popen[bytes]:
        """Start a process in the project."""
        return subprocess.Popen(
            argv,
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def suture(self, *arguments: str) -> int:
        """Run a command to its end, and return its exit code."""
        process = self.start(*SUTURE, *arguments)
        process.communicate(timeout=PATIENCE_S)
        return process.returncode

    def is_fixed(self) -> bool:
        """Return whether the project has the change, or nothing of it."""
        code = (self.project / "prices.py").read_text()
        assert code == BROKEN or "- 1" not in code, code
        return code != BROKEN

    def find_remains(self) -> list[str]:
        """Return what a killed process has left: temporary files, mounts and processes."""
        remains = [str(path) for path in self.project.rglob(".suture-*")]
        remains += [
            line for line in Path("/proc/mounts").read_text().splitlines() if str(self.folder) in line
        ]
        marker = f"SUTURE_HOME={self.folder / 'home'}".encode()
        for process in Path("/proc").glob("[0-9]*/environ"):
            try:
                if marker in process.read_bytes():
                    remains.append(f"process {process.parent.name}")
            except OSError:
                continue
        return remains


@dataclass(frozen=True)
class Act:
    """What is killed: how it starts, from which state, and how its whole effect is checked after the next command."""

    argv: tuple[str, ...]
    state: str
    check: Callable[[Place], bool]


def _check_heal(place: Place) -> bool:
    return place.suture("heal", "--model", "none", "--apply", ".") == 0 and place.is_fixed()


def _check_apply(place: Place) -> bool:
    undone = place.suture("undo")  # 2: there is nothing to undo
    return undone in (0, 2) and not place.is_fixed() and place.suture("apply") == 0 and place.is_fixed()


def _check_undo(place: Place) -> bool:
    return place.suture("undo") in (0, 2) and not place.is_fixed()


def _check_memory(place: Place) -> bool:
    return place.suture("memory", "learn") == 0 and place.suture("memory", "list", "--json") == 0


@contextmanager
def _running_hub() -> Iterator[str]:
    with HubStub() as hub:
        threading.Thread(target=hub.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{hub.server_address[1]}"
        hub.shutdown()


def _make_acts(place: Place, endpoint: str) -> dict[str, Act]:
    tests, cache = str(Path(__file__).parents[1] / "tests"), str(place.folder / "pulled")
    pull = (sys.executable, "-c", PULL.format(tests=tests, endpoint=endpoint, cache=cache))

    def check_pull(place: Place) -> bool:
        process = place.start(*pull)
        process.communicate(timeout=PATIENCE_S)
        return (Path(cache) / "models" / "tiny.gguf").read_bytes() == CONTENT

    return {
        "heal": Act((*SUTURE, "heal", "--model", "none", "--apply", "."), "broken", _check_heal),
        "apply": Act((*SUTURE, "apply"), "healed", _check_apply),
        "undo": Act((*SUTURE, "undo"), "applied", _check_undo),
        "memory": Act((*SUTURE, "memory", "learn"), "healed", _check_memory),
        "pull": Act(pull, "broken", check_pull),
    }


def _kill_server(place: Place, wait_s: float) -> bool:
    """Kill a server with a run; return whether the next server ends that run, and no other."""
    options = ("serve", "--port", "0", "--model", "none", "--root", str(place.project))
    run = ""
    for is_last in (False, True):
        server = place.start(*SUTURE, *options)
        assert server.stdout is not None
        url = server.stdout.readline().decode().strip()
        if not run:
            answer = httpx.post(
                f"{url}/v1/runs", json={"kind": "heal", "path": str(place.project)}, timeout=60
            )
            run = answer.json()["run"]
        if not is_last:
            time.sleep(wait_s)
            server.kill()
        else:
            deadline_s = time.monotonic() + PATIENCE_S
            while (state := httpx.get(f"{url}/v1/runs/{run}", timeout=60).json())["state"] in (
                "queued",
                "running",
            ):
                assert time.monotonic() < deadline_s, state
                time.sleep(0.2)
            runs = httpx.get(f"{url}/v1/runs", timeout=60).json()["runs"]
            server.send_signal(signal.SIGTERM)
        server.communicate(timeout=PATIENCE_S)
    return state["outcome"] == "healed" and [each["run"] for each in runs] == [run]


def _prepare(place: Place) -> None:
    """Make the three states from which acts start: a broken project, one with a healed run, one with it applied."""
    place.project.mkdir()
    (place.project / "prices.py").write_text(BROKEN)
    (place.project / "test_prices.py").write_text(TESTS)
    (place.folder / "home").mkdir()
    states = (("broken", ()), ("healed", ("heal", "--model", "none", ".")), ("applied", ("apply",)))
    for state, arguments in states:
        if arguments and (code := place.suture(*arguments)) != 0:
            raise SystemExit(f"{' '.join(arguments)} ended with {code}")
        for name in ("project", "home"):
            shutil.copytree(place.folder / name, place.folder / state / name, symlinks=True)


def _restore(place: Place, state: str) -> None:
    for name in ("project", "home"):
        shutil.rmtree(place.folder / name)
        shutil.copytree(place.folder / state / name, place.folder / name, symlinks=True)
    shutil.rmtree(place.folder / "pulled", ignore_errors=True)


def _kill_once(place: Place, act: Act, wait_s: float) -> bool:
    process = place.start(*act.argv)
    try:
        process.communicate(timeout=wait_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate(timeout=PATIENCE_S)
    return act.check(place)


def main() -> int:
    """Run all moments, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--moments", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance, failures = random.Random(options.seed), 0
    with tempfile.TemporaryDirectory(prefix="suture-kills-") as folder, _running_hub() as endpoint:
        place = Place(Path(folder))
        _prepare(place)
        acts = _make_acts(place, endpoint)
        durations_s: dict[str, float] = {"serve": 8.0}
        for name, act in acts.items():
            _restore(place, act.state)
            start_s = time.monotonic()
            place.start(*act.argv).communicate(timeout=PATIENCE_S)
            durations_s[name] = time.monotonic() - start_s
        for number in range(options.moments):
            name = list(durations_s)[number % len(durations_s)]
            wait_s = durations_s[name] * chance.uniform(0.1, 1)
            _restore(place, acts[name].state if name in acts else "broken")
            is_whole = (
                _kill_server(place, wait_s) if name == "serve" else _kill_once(place, acts[name], wait_s)
            )
            deadline_s = time.monotonic() + LEFT_BEHIND_S
            while (remains := place.find_remains()) and time.monotonic() < deadline_s:
                time.sleep(0.1)
            failures += not is_whole or bool(remains)
            print(
                f"{number:3} {name:6} killed after {wait_s:5.2f} s: {'whole' if is_whole else 'NOT WHOLE'} {remains}"
            )
    print(f"{options.moments - failures} of {options.moments} held")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
