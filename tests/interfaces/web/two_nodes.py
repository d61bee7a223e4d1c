"""A Ray cluster of two nodes on this machine, either of which can be killed, and a counting model."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from interfaces.web.real_server import Server, make_environ
from models.openai_stub import chat_completion
from models.reply_bodies import openai_stream

START_S = 120.0
RAY_SETTINGS = {
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_failure_threshold": "3",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
}
"""Ray notices a dead node within seconds and sends no usage statistics."""
NAME = re.compile(r"\bdouble_\d+\b")


def make_task(number: int) -> str:
    """Return a different task for each number, so that no two runs send the same prompt."""
    return f"Write a function double_{number}(n) that doubles a number. For example: double_{number}(4) == 8"


class CountingModel:
    """A server with OpenAI's protocol that counts its requests.

    Its first reply to each run is wrong, every later one is correct.

    Args:
        pause_s: How long a reply takes.
    """

    def __init__(self, pause_s: float) -> None:
        self.reply_counts: Counter[str] = Counter()
        self.request_counts: Counter[str] = Counter()
        self.first_prompts: dict[str, str] = {}
        """The first prompt of each run, by the name of the function to write."""
        self.second_replies_allowed = threading.Event()
        """Second and later replies wait until this event is set."""
        self.disconnects = 0
        """How many callers hung up before their reply."""
        self._pause_s = pause_s
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def repeated_prompts(self) -> dict[str, int]:
        """Return the prompts that were answered more than once."""
        return {prompt[-200:]: count for prompt, count in self.reply_counts.items() if count > 1}

    def __enter__(self) -> CountingModel:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.second_replies_allowed.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                prompt = self.rfile.read(int(self.headers["content-length"])).decode()
                name = NAME.findall(prompt)[0]
                with model._lock:
                    model.request_counts[prompt] += 1
                    is_second = model.first_prompts.setdefault(name, prompt) != prompt
                time.sleep(model._pause_s)
                while (
                    not (hung_up := self._hung_up())
                    and is_second
                    and not model.second_replies_allowed.wait(0.05)
                ):
                    pass
                if hung_up:
                    with model._lock:
                        model.disconnects += 1
                    return
                text = f"```python\ndef {name}(n):\n    return {2 if is_second else 4} * n\n```"
                is_stream = json.loads(prompt).get("stream", False)
                stream = openai_stream({"content": text})
                body = stream.body if is_stream else json.dumps(chat_completion(text)).encode()
                assert isinstance(body, bytes)
                with model._lock:
                    model.reply_counts[prompt] += 1
                self.send_response(200)
                self.send_header("content-type", "text/event-stream" if is_stream else "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(body)

            def _hung_up(self) -> bool:
                return bool(select.select([self.connection], [], [], 0)[0])

            def log_message(self, format: str, *args: object) -> None:
                """Keep quiet."""

        return Handler


class Node:
    """A node of the cluster, whose processes are found by the home in their environment.

    Args:
        folder: The node's own folder, which contains its home.
        environ: Additional environment variables of its workers.
        options: The options of `ray start`.
    """

    def __init__(self, folder: Path, environ: dict[str, str], *options: str) -> None:
        folder.mkdir()
        self.home = folder / "home"
        self._environ_entry = f"SUTURE_HOME={self.home}".encode()
        with (folder / "output").open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", *options],
                cwd=folder,
                env={**make_environ(folder), **RAY_SETTINGS, **environ},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def kill(self) -> None:
        """Kill all processes of the node and wait until their connections are closed."""
        killed = set[int]()
        for _ in range(3):  # repeated, because a process can be forked meanwhile
            for pid in self.pids():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                killed.add(pid)
        self.process.wait(30)
        while any(map(_has_files, killed)):
            time.sleep(0.05)

    def pids(self) -> list[int]:
        """Return the ids of the node's processes."""
        found_pids = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and self._environ_entry in (entry / "environ").read_bytes().split(
                    b"\0"
                ):
                    found_pids.append(int(entry.name))
        return found_pids


def _has_files(pid: int) -> bool:
    """Return whether a killed process may still hold connections: it is neither gone nor a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


class TwoNodes:
    """A cluster of two nodes, and servers that share it.

    Args:
        folder: The folder for the files of all nodes and servers.
        url: The address of the PostgreSQL database.
        model: The server that answers model calls.
        cpus: The number of CPUs of each node.
    """

    def __init__(self, folder: Path, url: str, model: CountingModel, *, cpus: int) -> None:
        self._folder = folder
        self._environ = {
            "SUTURE_DATABASE_URL": url,
            "OPENAI_API_KEY": "sk-stub",
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        self._model = model
        self._cpus = cpus
        self._ray_folder = Path(tempfile.mkdtemp(prefix="ray-"))  # a socket's path has at most 107 characters
        self._nodes: list[Node] = []
        self.address = ""

    def __enter__(self) -> TwoNodes:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.address = f"127.0.0.1:{port}"
        common = (
            "--node-ip-address=127.0.0.1",
            f"--num-cpus={self._cpus}",
            "--object-store-memory=100000000",
        )
        head = ("--head", f"--port={port}", f"--temp-dir={self._ray_folder}", "--include-dashboard=false")
        self.head = self._node("head", *head, *common)
        self._wait_for(port)
        self.second = self._node("second", f"--address={self.address}", *common)
        return self

    def _node(self, name: str, *options: str) -> Node:
        node = Node(self._folder / name, self._environ, *options)
        self._nodes.append(node)
        return node

    def _wait_for(self, port: int) -> None:
        deadline_s = time.monotonic() + START_S
        while time.monotonic() < deadline_s:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return
            time.sleep(0.1)
        raise RuntimeError((self._folder / "head" / "output").read_text())

    def __exit__(self, *_: object) -> None:
        for node in reversed(self._nodes):
            if node.pids():
                node.kill()
        shutil.rmtree(self._ray_folder, ignore_errors=True)

    @contextlib.contextmanager
    def server(self, name: str, *options: str) -> Iterator[Server]:
        """Start another server of this cluster, with its own home."""
        server_folder = self._folder / name
        server_folder.mkdir()
        settings = {
            "serve.executor": "ray",
            "serve.ray_address": self.address,
            "store.runs": "database",
            "model.base_url": self._model.base_url,
            "model.retries": "0",
            "loop.samples": "1",
        }
        flags = [flag for key, value in settings.items() for flag in ("--set", f"{key}={value}")]
        with Server(
            server_folder, "--model", "openai:stub", *flags, *options, environ=self._environ
        ) as server:
            yield server
