"""Run a real server in its own process, on a free port."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx

TASK = "Write a function double(n) that doubles a number. For example: double(4) == 8"
CORRECT_REPLY = "```python\ndef double(n):\n    return 2 * n\n```"
PATIENCE_S = 250.0


def make_environ(folder: Path) -> dict[str, str]:
    """Return the environment of a server, which takes only PATH from the developer."""
    return {
        "HOME": str(folder),
        "PATH": os.environ["PATH"],
        "SUTURE_HOME": str(folder / "home"),
        "SUTURE_PATHS_CACHE": str(folder / "cache"),
        "SUTURE_CERTIFICATION_SECONDS": "0",  # other tests cover certification
    }


class Server:
    """A `suture serve` process that a test starts, calls and stops.

    Args:
        folder: The current folder of the server; its home is inside.
        options: The options of the command line.
        environ: Additional variables of its environment.
    """

    def __init__(self, folder: Path, *options: str, environ: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.home = folder / "home"
        self._options = options
        self._environ = {**make_environ(folder), **(environ or {})}
        self._process: subprocess.Popen[str] | None = None
        self.url = ""

    def start(self) -> None:
        """Start the server and read its address."""
        with (self.folder / "stderr").open("a") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "suture.interfaces.cli", "serve", "--port", "0", *self._options],
                cwd=self.folder,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        assert self.url, self.read_stderr()

    @property
    def pid(self) -> int:
        """The id of the running process."""
        assert self._process is not None
        return self._process.pid

    def stop(self, signal_number: int = signal.SIGTERM) -> int:
        """Send a signal to the server and return its exit code."""
        assert self._process is not None
        self._process.send_signal(signal_number)
        exit_code = self._process.wait(PATIENCE_S)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None
        return exit_code

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of `suture serve`, such as `token add`."""
        return subprocess.run(
            [sys.executable, "-m", "suture.interfaces.cli", "serve", *arguments],
            cwd=self.folder,
            env=self._environ,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def read_stderr(self) -> str:
        """Return everything that the server has written to stderr."""
        return (self.folder / "stderr").read_text()

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self.stop()

    def call(self, method: str, path: str, **keywords: Any) -> httpx.Response:
        return httpx.request(method, self.url + path, timeout=PATIENCE_S, **keywords)

    def get(self, path: str, **keywords: Any) -> httpx.Response:
        return self.call("GET", path, **keywords)

    def post(self, path: str, body: Any = None, **keywords: Any) -> httpx.Response:
        return self.call("POST", path, **({"json": body} if body is not None else {}), **keywords)

    def run(self, **request: Any) -> str:
        """Start a run and return its id."""
        response = self.post("/v1/runs", request)
        assert response.status_code == 202, response.text
        return str(response.json()["run"])

    def events(self, run: str, last: int | None = None) -> Iterator[dict[str, Any]]:
        """Yield every event until the stream ends; the kind of the last one is `end`."""
        headers = {} if last is None else {"Last-Event-ID": str(last)}
        with httpx.stream(
            "GET", f"{self.url}/v1/runs/{run}/events", headers=headers, timeout=PATIENCE_S
        ) as stream:
            assert stream.status_code == 200
            yield from parse_events(stream.iter_lines())

    def get_run(self, run: str) -> dict[str, Any]:
        """Return a run as the server describes it."""
        response = self.get(f"/v1/runs/{run}")
        assert response.status_code == 200, response.text
        body: dict[str, Any] = response.json()
        return body

    def wait_for_state(self, run: str, *states: str) -> dict[str, Any]:
        """Wait until a run has one of the states, and return its description."""
        deadline_s = time.monotonic() + PATIENCE_S
        while (description := self.get_run(run))["state"] not in states:
            assert time.monotonic() < deadline_s, description
            time.sleep(0.1)
        return description


def parse_events(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """Parse the lines of an event stream into dicts with `id`, `event` and decoded `data`."""
    event: dict[str, Any] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            event[name] = value
        else:
            if "event" in event:
                yield {**event, "data": json.loads(event["data"])}
            event = {}


def write_scripted_model(folder: Path, *replies: str) -> str:
    """Write the replies of a scripted model and return the model's name."""
    path = folder / "script.json"
    path.write_text(json.dumps(replies))
    return f"scripted:{path}"


def read_events(home: Path, run: str) -> list[dict[str, Any]]:
    """Return the events in the ledger file of a run."""
    text = (home / "runs" / run / "ledger.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def job_processes() -> list[int]:
    """Return the ids of the job processes of all servers that this process has started."""
    return [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit()
        and b"suture.interfaces.jobs.job_main" in _read(entry / "cmdline")
        and os.getpid() in (parent := _parent(entry), _parent(Path("/proc") / str(parent)))
    ]


def _parent(process: Path) -> int:
    """Return the id of a process's parent, or 0 if the process has ended."""
    fields = _read(process / "stat").rpartition(b")")[2].split()
    return int(fields[1]) if len(fields) > 1 else 0


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
