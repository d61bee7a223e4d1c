"""llama.cpp's OpenAI-compatible server in a child process on loopback."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import secrets
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from suture.core.installation import format_install_command
from suture.errors import ModelError, PrerequisiteError
from suture.models.tuning import (
    HEALTH_POLL_S,
    HEALTH_TIMEOUT_S,
    SERVER_EXIT_WAIT_S,
    SERVER_START_TIMEOUT_S,
    TOKEN_COUNT_TIMEOUT_S,
)

QUOTED_STDERR_BYTES = 1500
"""Characters of the end of the server's output that a message quotes. Chosen by judgement; not measured."""


@dataclass(frozen=True, kw_only=True)
class LlamaServerOptions:
    """How a model is served.

    Attributes:
        context_tokens: Context size of each slot.
        slots: Replies that are generated in parallel.
        threads: Threads for generating replies.
        batch_threads: Threads for evaluating prompts.
        cache_mb: MiB for the evaluated prompts that no slot holds any more.
        port: The port; 0 chooses a free one.
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
        url: The base URL, without `/v1`.
        key: The API key that callers must send.
        slots: Replies that are generated in parallel.
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
        """Return the child's process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Return whether the child is running."""
        return self._process.poll() is None

    @property
    def port(self) -> int:
        """Return the port that it listens on."""
        return urlsplit(self.url).port or 80

    def wait(self) -> int:
        """Wait for the child to end, and return its exit status."""
        return self._process.wait()

    def exits_within(self, seconds: float) -> bool:
        """Return whether the child has ended or ends within `seconds`."""
        try:
            self._process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def stderr_tail(self) -> str:
        """Return the end of the child's stderr."""
        return _read_tail(self._log)

    def count_tokens(self, messages: Sequence[Mapping[str, Any]]) -> int:
        """Return the tokens of a prompt, including those of the model's chat template.

        Args:
            messages: The prompt as OpenAI's protocol sends it.

        Raises:
            ModelError: The server does not answer.
        """
        import httpx

        headers = {"Authorization": f"Bearer {self.key}"}
        try:
            with httpx.Client(
                base_url=self.url, headers=headers, trust_env=False, timeout=TOKEN_COUNT_TIMEOUT_S
            ) as client:
                response = client.post("/apply-template", json={"messages": messages})
                prompt = response.raise_for_status().json()["prompt"]
                request = {"content": prompt, "add_special": True, "parse_special": True}
                response = client.post("/tokenize", json=request)
                return len(response.raise_for_status().json()["tokens"])
        except (httpx.HTTPError, ValueError, KeyError) as fault:
            raise ModelError(f"the embedded server cannot count tokens: {fault}") from fault

    def stop(self) -> None:
        """End the server; safe to call twice. A forked copy of this object does nothing."""
        if os.getpid() == self._owner_pid:
            _kill(self._process, self._log)


def start_llama_server(
    options: LlamaServerOptions, *, key: str | None = None, timeout_s: float = SERVER_START_TIMEOUT_S
) -> LlamaServer:
    """Load a model and serve it; return once the server is healthy.

    If it is killed while it loads, it is started again once.

    Args:
        options: How the model is served.
        key: The API key that callers must send; random by default.
        timeout_s: Maximum seconds until the server reports its address, and then until it is healthy.
    """
    if importlib.util.find_spec("xllamacpp") is None:
        raise PrerequisiteError(
            "`local:` models need the package 'xllamacpp'", remedy=format_install_command("local")
        )
    key = key or secrets.token_urlsafe(32)
    try:
        return _start_once(options, key, timeout_s)
    except _KilledWhileLoading:
        pass
    try:
        return _start_once(options, key, timeout_s)
    except _KilledWhileLoading as fault:
        raise ModelError(fault.message, remedy=fault.remedy) from fault


class _KilledWhileLoading(ModelError):
    """The server process was killed before it answered, such as for memory that another program needed."""


def _start_once(options: LlamaServerOptions, key: str, timeout_s: float) -> LlamaServer:
    # A file and not a pipe: a full pipe that nothing reads blocks the server. `_kill` closes the file.
    log = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the server
    # -P: the user's working directory must not shadow modules. A new session keeps Ctrl-C from the server.
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
            raise _start_error(process, log, options.model_path)
    except BaseException:
        _kill(process, log)
        raise
    return LlamaServer(process, log, url, key, slots=options.slots)


def _send_options(process: subprocess.Popen[bytes], options: LlamaServerOptions, key: str) -> None:
    assert process.stdin is not None
    message = {**asdict(options), "model_path": str(options.model_path), "key": key, "parent": os.getpid()}
    try:
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
    except BrokenPipeError:
        pass  # the child died before it read this; waiting for its address reports that


def _await_url(process: subprocess.Popen[bytes], timeout_s: float) -> str | None:
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], timeout_s)
    line = process.stdout.readline() if ready else b""
    return str(json.loads(line)["url"]) if line else None


def _await_health(process: subprocess.Popen[bytes], url: str, timeout_s: float) -> bool:
    """Return whether the server answers before it ends or the time is over."""
    import httpx

    deadline_s = time.monotonic() + timeout_s
    with httpx.Client(trust_env=False, timeout=HEALTH_TIMEOUT_S) as client:
        while process.poll() is None and time.monotonic() < deadline_s:
            try:
                if client.get(f"{url}/health").status_code == 200:
                    return True
            except httpx.TransportError:
                pass  # not listening yet
            time.sleep(HEALTH_POLL_S)
    return False


def _start_error(process: subprocess.Popen[bytes], log: IO[bytes], model_path: Path) -> ModelError:
    try:
        outcome = f"ended with {process.wait(timeout=SERVER_EXIT_WAIT_S)}"
    except subprocess.TimeoutExpired:
        outcome = "gave no answer in time"
    message = f"the server of {model_path.name!r} {outcome}: {_read_tail(log)}"
    if process.poll() == -signal.SIGKILL:
        remedy = "it was killed, most likely because memory ran out: lower model.context_tokens"
        return _KilledWhileLoading(message, remedy=remedy)
    return ModelError(message, remedy="if the file is damaged, `suture models rm` it and `pull` it again")


def _read_tail(log: IO[bytes]) -> str:
    log.seek(max(0, log.seek(0, os.SEEK_END) - QUOTED_STDERR_BYTES))
    return log.read().decode("utf-8", "replace").strip() or "it printed nothing"


def _kill(process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout, log):
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):  # bytes that the child never read
                pipe.close()
