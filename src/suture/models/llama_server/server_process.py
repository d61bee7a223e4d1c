"""llama.cpp's own OpenAI-compatible server, in a child process on loopback."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import secrets
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from suture.errors import ModelError, PrerequisiteError

START_TIMEOUT_S = 300.0
"""A gigabyte from a slow disk takes its time."""
COUNT_TIMEOUT_S = 60.0
"""Counting takes milliseconds, but the server may be busy with replies."""
QUOTED_STDERR_BYTES = 1500


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """How to serve a model.

    Attributes:
        model_path: The weights, a GGUF file.
        context_tokens: Context of each slot.
        slots: Replies drawn at the same time.
        threads: Threads that write replies.
        batch_threads: Threads that read prompts.
        cache_mb: MiB for prompts that a slot has left.
        host: The address to listen at.
        port: The port; 0 takes a free one.
    """

    model_path: Path
    context_tokens: int
    slots: int
    threads: int
    batch_threads: int
    cache_mb: int = 0
    host: str = "127.0.0.1"
    port: int = 0


class LlamaServer:
    """A running server. It ends with `stop`, and with this process however that ends.

    Attributes:
        url: Its address, without `/v1`.
        key: Its random API key.
        slots: Replies that it draws at the same time.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], log: IO[bytes], url: str, key: str, *, slots: int
    ) -> None:
        self.url = url
        self.key = key
        self.slots = slots
        self._process = process
        self._log = log
        self._owner_pid = os.getpid()

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the child still runs."""
        return self._process.poll() is None

    @property
    def port(self) -> int:
        """The port that it listens at."""
        return urlsplit(self.url).port or 80

    def wait(self) -> int:
        """Wait for the child to end; answers its exit status."""
        return self._process.wait()

    def dies_within(self, seconds: float) -> bool:
        """Whether the child has ended, or ends so soon."""
        try:
            self._process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def last_words(self) -> str:
        """The end of what the child said on stderr."""
        return _last_words(self._log)

    def count_tokens(self, messages: Sequence[Mapping[str, str]]) -> int:
        """The tokens of a prompt, those of the model's chat template included.

        Raises:
            ModelError: The server does not answer.
        """
        import httpx

        # A lone surrogate has no place in UTF-8; one character stands for it here as in a real call.
        sent = [
            {name: text.encode("utf-8", "replace").decode() for name, text in m.items()} for m in messages
        ]
        headers = {"Authorization": f"Bearer {self.key}"}
        try:
            with httpx.Client(
                base_url=self.url, headers=headers, trust_env=False, timeout=COUNT_TIMEOUT_S
            ) as ask:
                filled = ask.post("/apply-template", json={"messages": sent}).raise_for_status()
                text = {"content": filled.json()["prompt"], "add_special": True, "parse_special": True}
                counted = ask.post("/tokenize", json=text).raise_for_status()
                return len(counted.json()["tokens"])
        except (httpx.HTTPError, ValueError, KeyError) as fault:
            raise ModelError(f"the embedded server cannot count tokens: {fault}") from fault

    def stop(self) -> None:
        """End the server; safe to call twice. A forked copy of this object leaves it alone."""
        if os.getpid() == self._owner_pid:
            _end(self._process, self._log)


def start_server(
    options: ServerOptions, *, key: str | None = None, timeout_s: float = START_TIMEOUT_S
) -> LlamaServer:
    """Load a model and serve it; answers when the server does.

    Args:
        options: Weights, threads, slots and context of the server.
        key: What callers must show; a random one where not given.
        timeout_s: The most seconds until it answers.

    Raises:
        PrerequisiteError: `xllamacpp` is not installed.
        ModelError: The server did not come up; the message holds the end of what it said.
    """
    if importlib.util.find_spec("xllamacpp") is None:
        raise PrerequisiteError(
            "`local:` models need the package 'xllamacpp'", remedy='pip install "suture[local]"'
        )
    key = key or secrets.token_urlsafe(32)
    # Not a pipe: one that nobody reads stops the server when it is full. `_end` closes the file.
    log = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the server
    # -P: the user's working directory must not shadow modules. A session of its own: Ctrl-C is for us.
    process = subprocess.Popen(
        [sys.executable, "-P", str(Path(__file__).with_name("server_child.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        start_new_session=True,
    )
    try:
        _send_options(process, options, key)
        url = _await_url(process, timeout_s)
        if url is None or not _await_health(process, url, timeout_s):
            raise ModelError(_obituary(process, log, options.model_path), remedy=_remedy(process))
    except BaseException:
        _end(process, log)
        raise
    return LlamaServer(process, log, url, key, slots=options.slots)


def _send_options(process: subprocess.Popen[bytes], options: ServerOptions, key: str) -> None:
    assert process.stdin is not None
    line = {**asdict(options), "model_path": str(options.model_path), "key": key, "parent": os.getpid()}
    try:
        process.stdin.write(json.dumps(line).encode() + b"\n")
        process.stdin.flush()
    except BrokenPipeError:
        pass  # it died before it read; waiting for its address will find that out


def _await_url(process: subprocess.Popen[bytes], timeout_s: float) -> str | None:
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], timeout_s)
    line = process.stdout.readline() if ready else b""
    return str(json.loads(line)["url"]) if line else None


def _await_health(process: subprocess.Popen[bytes], url: str, timeout_s: float) -> bool:
    import httpx

    deadline_s = time.monotonic() + timeout_s
    with httpx.Client(trust_env=False, timeout=5) as client:
        while process.poll() is None and time.monotonic() < deadline_s:
            try:
                if client.get(f"{url}/health").status_code == 200:
                    return True
            except httpx.TransportError:
                pass  # not listening yet
            time.sleep(0.05)
    return False


def _obituary(process: subprocess.Popen[bytes], log: IO[bytes], model_path: Path) -> str:
    try:
        code: int | None = process.wait(timeout=1)
    except subprocess.TimeoutExpired:
        code = None
    how = "gave no answer in time" if code is None else f"ended with {code}"
    return f"the server of {model_path.name!r} {how}: {_last_words(log)}"


def _last_words(log: IO[bytes]) -> str:
    log.seek(max(0, log.seek(0, os.SEEK_END) - QUOTED_STDERR_BYTES))
    return log.read().decode("utf-8", "replace").strip() or "it said nothing"


def _remedy(process: subprocess.Popen[bytes]) -> str:
    if process.poll() == -9:
        return "it was killed, most likely for want of memory: lower model.context_tokens"
    return "if the file is damaged, `suture models rm` it and `pull` it again"


def _end(process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout, log):
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):  # bytes that the child never read
                pipe.close()
