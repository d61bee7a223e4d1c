"""A real server in its own process, on a free port."""

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
RIGHT = "```python\ndef double(n):\n    return 2 * n\n```"
PATIENCE_S = 250.0


def environ_of(folder: Path) -> dict[str, str]:
    """The environment of a server: nothing of the tester's but PATH."""
    return {
        "HOME": str(folder),
        "PATH": os.environ["PATH"],
        "SUTURE_HOME": str(folder / "home"),
        "SUTURE_PATHS_CACHE": str(folder / "cache"),
        "SUTURE_CERTIFICATION_SECONDS": "0",  # what a proof is worth is measured elsewhere
    }


class Server:
    """`suture serve`, started and stopped.

    Args:
        folder: Where it works; its home lies there.
        options: Of the command line.
        environ: More of its environment.
    """

    def __init__(self, folder: Path, *options: str, environ: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.home = folder / "home"
        self._options = options
        self._environ = {**environ_of(folder), **(environ or {})}
        self._process: subprocess.Popen[str] | None = None
        self.url = ""

    def start(self) -> None:
        with (self.folder / "stderr").open("a") as words:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "suture.interfaces.cli", "serve", "--port", "0", *self._options],
                cwd=self.folder,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=words,
                text=True,
            )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        assert self.url, self.words()

    def stop(self, number: int = signal.SIGTERM) -> int:
        assert self._process is not None
        self._process.send_signal(number)
        code = self._process.wait(PATIENCE_S)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None
        return code

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command beside the server, such as `token add`."""
        return subprocess.run(
            [sys.executable, "-m", "suture.interfaces.cli", "serve", *arguments],
            cwd=self.folder,
            env=self._environ,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def words(self) -> str:
        return (self.folder / "stderr").read_text()

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self.stop()

    def call(self, method: str, path: str, **more: Any) -> httpx.Response:
        return httpx.request(method, self.url + path, timeout=PATIENCE_S, **more)

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.call("GET", path, **more)

    def post(self, path: str, plain: Any = None, **more: Any) -> httpx.Response:
        return self.call("POST", path, **({"json": plain} if plain is not None else {}), **more)

    def run(self, **asked: Any) -> str:
        answer = self.post("/v1/runs", asked)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["run"])

    def events(self, run: str, last: int | None = None) -> Iterator[dict[str, Any]]:
        """Every event until the stream ends; the last one's kind is `end`."""
        headers = {} if last is None else {"Last-Event-ID": str(last)}
        with httpx.stream(
            "GET", f"{self.url}/v1/runs/{run}/events", headers=headers, timeout=PATIENCE_S
        ) as s:
            assert s.status_code == 200
            yield from told_events(s.iter_lines())

    def shown(self, run: str) -> dict[str, Any]:
        answer = self.get(f"/v1/runs/{run}")
        assert answer.status_code == 200, answer.text
        plain: dict[str, Any] = answer.json()
        return plain

    def until(self, run: str, *states: str) -> dict[str, Any]:
        """The run, when it stands as wanted."""
        until_s = time.monotonic() + PATIENCE_S
        while (shown := self.shown(run))["state"] not in states:
            assert time.monotonic() < until_s, shown
            time.sleep(0.1)
        return shown


def told_events(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """The events of a stream: `id`, `event`, and `data` as JSON."""
    event: dict[str, Any] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            event[name] = value
        else:
            if "event" in event:
                yield {**event, "data": json.loads(event["data"])}
            event = {}


def scripted(folder: Path, *replies: str) -> str:
    """The name of a model that answers so."""
    path = folder / "script.json"
    path.write_text(json.dumps(replies))
    return f"scripted:{path}"


def ledger_of(home: Path, run: str) -> list[dict[str, Any]]:
    """A run's events, as they lie on disk."""
    text = (home / "runs" / run / "ledger.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def job_processes() -> list[int]:
    """The processes that do the jobs of servers which this process has started."""
    return [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit()
        and b"suture.interfaces.jobs.job_main" in _read(entry / "cmdline")
        and os.getpid() in (parent := _parent(entry), _parent(Path("/proc") / str(parent)))
    ]


def _parent(process: Path) -> int:
    """The process that has started another one; 0 where that is gone."""
    after = _read(process / "stat").rpartition(b")")[2].split()
    return int(after[1]) if len(after) > 1 else 0


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
