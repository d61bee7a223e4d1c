"""Kill Suture at random moments: nothing is lost, and nothing is left behind.

    python benchmarks/kills.py --moments 200 --seed 1 [--acts run serve]

Each moment starts one act from the same state, kills its process with SIGKILL, and then gives the next command.
Afterwards the project has the whole change or nothing of it, and there are no processes, mounts, control groups and
temporary files of the killed one. The acts `run` and `served run` ask a model server that gives equal requests equal
replies: a request that comes twice although its reply was in the ledger was paid twice. Half of those runs are killed
a second time while they resume. It prints a line per moment and a table, and ends with 1 if a moment failed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx

sys.path.remove(str(Path(__file__).parent))  # its `models` would hide that of the tests
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from models.reply_bodies import openai_stream
from models.test_pull_hub import HubStub
from models.tiny_wheels import CONTENT
from suture.core.ledger import read_ledger, select_events
from suture.core.ledger.kinds import ModelCalled
from suture.errors import SutureError
from suture.sandbox.execution.memory_cgroups import find_cgroup_parent

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
from suture.models.weights.weights_cache import HubFile
pull_model(make_entry(HubFile(repo="us/tiny", filename="tiny.gguf", endpoint={endpoint!r})), Path({cache!r}))
"""
TASK = "Write a function double(n).\n\n>>> double(2)\n4\n>>> double(5)\n10\n"
REPLIES = [
    f"```python\ndef double(n):\n    return {value}\n```" for value in ("n * n", "n + 2", "4", "2 * n")
]
RUN = ("run", TASK, "--model", "openai:stub")
TEMPORARY_NAMES = (".suture-*", ".partial-*", ".new-*", ".making-*", ".gone-*", "*.partial")
SUTURE = (sys.executable, "-m", "suture.interfaces.cli")
HEAL = (*SUTURE, "heal", "--model", "none", "--apply", ".")
SERVED_RUNS_S = {"serve": 8.0, "served run": 8.0}
"""Act with a server -> about how many seconds its run takes."""
PATIENCE_S = 300.0
LEFT_BEHIND_S = 5.0
"""How long the sandbox of a killed process may take to end."""


class PaidModel(ThreadingHTTPServer):
    """A model server that gives equal requests equal replies, and a new request the next reply of the script."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), PaidModelHandler)
        self.lock = threading.Lock()
        self.requests: list[bytes] = []

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that were killed."""

    @property
    def url(self) -> str:
        """The address for the setting `model.base_url`."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def count_repeated(self) -> int:
        """Return how many requests were equal to an earlier one."""
        return len(self.requests) - len(set(self.requests))

    def count_unstored(self, place: Place) -> int:
        """Return how many requests have no reply in a ledger."""
        return len(self.requests) - place.count_paid_replies()

    def choose_reply(self, request: bytes) -> str:
        """Record a request, and return its reply."""
        with self.lock:
            self.requests.append(request)
            number = list(dict.fromkeys(self.requests)).index(request)
        return REPLIES[min(number, len(REPLIES) - 1)]


class PaidModelHandler(BaseHTTPRequestHandler):
    """Answers chat completions with streams."""

    server: PaidModel

    def do_GET(self) -> None:
        """Refuse everything but chat completions."""
        self.send_error(404)

    def do_POST(self) -> None:
        """Answer with a stream."""
        reply = self.server.choose_reply(self.rfile.read(int(self.headers["content-length"])))
        answer = openai_stream({"content": reply})
        assert isinstance(answer.body, bytes)
        # The count of the prompt's tokens must be plausible.
        body = answer.body.replace(b'"prompt_tokens": 11', b'"prompt_tokens": 400')
        self.send_response(200)
        for name, value in {**answer.headers, "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Do not log requests."""


@dataclass(frozen=True)
class Place:
    """A folder with a project, a state folder and a cache.

    Attributes:
        model: The model server of the paid runs.
        cgroup: The control group of this process; `None` if the machine permits none, so that none is left behind.
        memories: The keys of all memories that `memory learn` creates.
    """

    folder: Path
    model: PaidModel
    cgroup: Path | None
    memories: set[str] = field(default_factory=set)

    @property
    def project(self) -> Path:
        """The folder of the project."""
        return self.folder / "project"

    @property
    def ledgers(self) -> list[Path]:
        """The ledgers of all runs."""
        return list((self.folder / "home" / "runs").glob("*/ledger.jsonl"))

    @property
    def environment(self) -> dict[str, str]:
        """The variables of all processes."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "SUTURE_HOME": str(self.folder / "home"),
            "SUTURE_PATHS_CACHE": str(self.folder / "cache"),
            "TMPDIR": str(self.folder / "tmp"),
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            "NO_PROXY": "127.0.0.1",
            "OPENAI_API_KEY": "k",
            "SUTURE_MODEL_BASE_URL": self.model.url,
            "SUTURE_MODEL_RETRIES": "0",
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

    def read_json(self, *arguments: str) -> Any:
        """Return the JSON answer of a command; `None` if it fails."""
        command = (*SUTURE, *arguments, "--json")
        done = subprocess.run(
            command,
            cwd=self.project,
            env=self.environment,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return json.loads(done.stdout) if done.returncode == 0 else None

    def count_paid_replies(self) -> int:
        """Return how many replies the ledgers have that were paid for."""
        events = (event for ledger in self.ledgers for event in read_ledger(ledger).events)
        return sum(not called.replayed for _, called in select_events(events, ModelCalled))

    def is_fixed(self) -> bool:
        """Return whether the project has the change, or nothing of it."""
        code = (self.project / "prices.py").read_text()
        assert code == BROKEN or "- 1" not in code, code
        return code != BROKEN

    def find_remains(self) -> list[str]:
        """Return what a killed process has left: temporary files, mounts, control groups and processes."""
        folders = [self.folder / name for name in ("project", "home", "cache", "pulled")]
        remains = [
            str(path.relative_to(self.folder))
            for folder in folders
            for name in TEMPORARY_NAMES
            for path in folder.rglob(name)
        ]
        remains += [str(path.relative_to(self.folder)) for path in (self.folder / "tmp").iterdir()]
        remains += [
            line for line in Path("/proc/mounts").read_text().splitlines() if str(self.folder) in line
        ]
        if self.cgroup is not None:
            remains += [f"control group {group.name}" for group in self.cgroup.glob("suture-*")]
        return remains + [f"process {pid}" for pid in self.find_processes()]

    def find_processes(self) -> list[str]:
        """Return the ids of the processes that work here."""
        marker = f"SUTURE_HOME={self.folder / 'home'}".encode()
        found = []
        for process in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                if marker in process.read_bytes():
                    found.append(process.parent.name)
        return found

    def wait_until_ended(self) -> None:
        """Wait until the processes of a killed one have ended, too."""
        deadline_s = time.monotonic() + LEFT_BEHIND_S
        while self.find_processes() and time.monotonic() < deadline_s:
            time.sleep(0.05)


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


def _list_memories(place: Place) -> set[str]:
    return {item["key"] for item in place.read_json("memory", "list") or ()}


def _check_memory(place: Place) -> bool:
    return place.suture("memory", "learn") == 0 and _list_memories(place) == place.memories


def _finish_paid_run(place: Place, kill_after_s: float | None) -> bool:
    """Resume a killed run, or start it again if it had not begun; return whether no reply was paid twice.

    Args:
        kill_after_s: The run is killed once more after these seconds.
    """
    for wait_s in (kill_after_s, None) if kill_after_s else (None,):
        place.wait_until_ended()
        unstored = place.model.count_unstored(place)
        has_begun = any(read_ledger(ledger).events for ledger in place.ledgers)
        process = place.start(*SUTURE, *(("resume", "last") if has_begun else RUN))
        _wait_or_kill(process, wait_s)
    shown = place.read_json("show", "last")
    return (
        shown is not None
        and shown["outcome"] == "healed"
        and place.model.count_unstored(place) == unstored
        and place.model.count_repeated() <= unstored
    )


@contextmanager
def _running_hub() -> Iterator[str]:
    with HubStub() as hub:
        threading.Thread(target=hub.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{hub.server_address[1]}"
        hub.shutdown()


def _make_acts(place: Place, endpoint: str, chance: random.Random) -> dict[str, Act]:
    tests, cache = str(Path(__file__).parents[1] / "tests"), str(place.folder / "pulled")
    pull = (sys.executable, "-c", PULL.format(tests=tests, endpoint=endpoint, cache=cache))

    def check_pull(place: Place) -> bool:
        process = place.start(*pull)
        process.communicate(timeout=PATIENCE_S)
        return (Path(cache) / "models" / "tiny.gguf").read_bytes() == CONTENT

    def check_run(place: Place) -> bool:
        return _finish_paid_run(place, chance.choice((None, chance.uniform(0.5, 4))))

    return {
        "first heal": Act(HEAL, "new", _check_heal),
        "heal": Act(HEAL, "broken", _check_heal),
        "apply": Act((*SUTURE, "apply"), "healed", _check_apply),
        "undo": Act((*SUTURE, "undo"), "applied", _check_undo),
        "memory": Act((*SUTURE, "memory", "learn"), "healed", _check_memory),
        "pull": Act(pull, "broken", check_pull),
        "run": Act((*SUTURE, *RUN), "broken", check_run),
    }


def _kill_server(place: Place, wait_s: float, request: dict[str, str], model: str) -> bool:
    """Kill a server with a run; return whether the next server ends that run, and no other, and pays nothing twice."""
    options = ("serve", "--port", "0", "--model", model, "--root", str(place.project))
    run, unstored = "", 0
    for is_last in (False, True):
        server = place.start(*SUTURE, *options)
        assert server.stdout is not None
        url = server.stdout.readline().decode().strip()
        if not run:
            run = httpx.post(f"{url}/v1/runs", json=request, timeout=60).json()["run"]
        if not is_last:
            time.sleep(wait_s)
            server.kill()
            place.wait_until_ended()
            unstored = place.model.count_unstored(place)
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
    return (
        state["outcome"] == "healed"
        and [each["run"] for each in runs] == [run]
        and place.model.count_unstored(place) == unstored
        and place.model.count_repeated() <= unstored
    )


def _prepare(place: Place) -> None:
    """Make the three states from which acts start: a broken project, one with a healed run, one with it applied."""
    place.project.mkdir()
    (place.project / "prices.py").write_text(BROKEN)
    (place.project / "test_prices.py").write_text(TESTS)
    (place.folder / "home").mkdir()
    (place.folder / "tmp").mkdir()
    states = (("broken", ()), ("healed", ("heal", "--model", "none", ".")), ("applied", ("apply",)))
    for state, arguments in states:
        if arguments and (code := place.suture(*arguments)) != 0:
            raise SystemExit(f"{' '.join(arguments)} ended with {code}")
        for name in ("project", "home"):
            shutil.copytree(place.folder / name, place.folder / state / name, symlinks=True)
    place.suture("memory", "learn")
    place.memories.update(_list_memories(place))
    assert place.memories, "no memory is learned from a healed run"


def _restore(place: Place, state: str) -> None:
    """Bring back a state; `new` is a broken project on a machine where no sandbox was tested yet."""
    source = place.folder / ("broken" if state == "new" else state)
    for name in ("project", "home"):
        shutil.rmtree(place.folder / name)
        shutil.copytree(source / name, place.folder / name, symlinks=True)
    for name in ("pulled", "tmp", *(["cache"] if state == "new" else [])):
        shutil.rmtree(place.folder / name, ignore_errors=True)
    (place.folder / "tmp").mkdir()
    place.model.requests.clear()


def _wait_or_kill(process: subprocess.Popen[bytes], wait_s: float | None) -> None:
    """Wait until a process ends, and kill it if it takes longer."""
    try:
        process.communicate(timeout=wait_s or PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate(timeout=PATIENCE_S)


def _measure_acts(place: Place, acts: dict[str, Act]) -> Iterator[tuple[str, float]]:
    """Yield each act with the seconds that it takes if nothing kills it."""
    for name, act in acts.items():
        _restore(place, act.state)
        start_s = time.monotonic()
        _wait_or_kill(place.start(*act.argv), None)
        yield name, time.monotonic() - start_s
        if name == "run":
            assert (len(place.model.requests), place.model.count_repeated()) == (len(REPLIES), 0)
            assert place.model.count_unstored(place) == 0
    yield from SERVED_RUNS_S.items()


def _kill_once(place: Place, acts: dict[str, Act], name: str, wait_s: float) -> bool:
    if name not in acts:
        is_paid = name != "serve"
        request = {"kind": "write", "task": TASK} if is_paid else {"kind": "heal", "path": str(place.project)}
        return _kill_server(place, wait_s, request, "openai:stub" if is_paid else "none")
    _wait_or_kill(place.start(*acts[name].argv), wait_s)
    return acts[name].check(place)


@contextmanager
def _own_cgroup() -> Iterator[Path | None]:
    """Enter a control group in which those of the sandboxes are made, so that others' are not counted."""
    parent, reason = find_cgroup_parent()
    if parent is None or parent.version != "cgroup1":
        print(f"control groups are not counted: {reason or 'only those of version 1 can be'}")
        yield None
        return
    group = parent.folder / f"kills-{os.getpid()}"
    group.mkdir()
    (group / "cgroup.procs").write_text(str(os.getpid()))
    try:
        yield group
    finally:
        (parent.folder / "cgroup.procs").write_text(str(os.getpid()))
        with suppress(OSError):
            for each in (*group.glob("suture-*"), group):
                each.rmdir()


@contextmanager
def _running_model() -> Iterator[PaidModel]:
    with PaidModel() as model:
        threading.Thread(target=model.serve_forever, daemon=True).start()
        yield model
        model.shutdown()


def _run_moments(place: Place, acts: dict[str, Act], options: argparse.Namespace) -> Counter[tuple[str, str]]:
    """Print a line per moment, and return the numbers of the table: (act, column) -> number."""
    chance, counts = random.Random(options.seed), Counter[tuple[str, str]]()
    durations_s = {
        name: took_s
        for name, took_s in _measure_acts(place, acts)
        if not options.acts or name in options.acts
    }
    for number in range(options.moments):
        name = list(durations_s)[number % len(durations_s)]
        wait_s = durations_s[name] * chance.uniform(0.1, 1)
        _restore(place, acts[name].state if name in acts else "broken")
        try:
            is_whole = _kill_once(place, acts, name, wait_s)
        except (AssertionError, SutureError, httpx.HTTPError, subprocess.TimeoutExpired, OSError) as fault:
            is_whole = False
            print(f"{type(fault).__name__}: {fault}")
        deadline_s = time.monotonic() + LEFT_BEHIND_S
        while (remains := place.find_remains()) and time.monotonic() < deadline_s:
            time.sleep(0.1)
        unstored, repeated = place.model.count_unstored(place), place.model.count_repeated()
        if options.keep and (remains or not is_whole):
            for folder in ("project", "home", "tmp", "cache"):
                kept = options.keep / f"{number}" / folder
                shutil.copytree(place.folder / folder, kept, symlinks=True, dirs_exist_ok=True)
        counts[name, "moments"] += 1
        counts[name, "whole"] += is_whole
        counts[name, "clean"] += not remains
        counts[name, "held"] += is_whole and not remains
        counts[name, "replies lost with their connection"] += unstored
        counts[name, "asked again"] += repeated
        print(
            f"{number:3} {name:10} killed after {wait_s:5.2f} s: {'whole' if is_whole else 'NOT WHOLE'} "
            f"{len(place.model.requests)} requests, {unstored} unstored, {repeated} repeated {remains}",
            flush=True,
        )
    return counts


def main() -> int:
    """Run all moments, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--moments", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--acts", nargs="+", default=(), help="only these acts")
    parser.add_argument("--keep", type=Path, help="where the folders of moments are copied that failed")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="suture-kills-") as folder,
        _running_hub() as endpoint,
        _running_model() as model,
        _own_cgroup() as cgroup,
    ):
        place = Place(Path(folder), model, cgroup)
        _prepare(place)
        acts = _make_acts(place, endpoint, random.Random(options.seed + 1))
        counts = _run_moments(place, acts, options)
    columns = list(dict.fromkeys(column for _, column in counts))
    print(f"\n| act | {' | '.join(columns)} |\n|---|{'---:|' * len(columns)}")
    for act in dict.fromkeys(act for act, _ in counts):
        print(f"| {act} | {' | '.join(str(counts[act, column]) for column in columns)} |")
    held = sum(count for (_, column), count in counts.items() if column == "held")
    print(f"\n{held} of {options.moments} held")
    return 0 if held == options.moments else 1


if __name__ == "__main__":
    raise SystemExit(main())
