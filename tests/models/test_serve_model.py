"""`suture models serve` with a real server and a real client; no process is left after a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from suture.core.settings.schema import Settings

pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]
KEY = "a-key-of-our-own"


@pytest.fixture
def served_model(local_settings: Settings) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command as a process, and the address that it prints."""
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    overrides = ("model.threads=1", "model.context_tokens=1024", f"paths.cache={local_settings.paths.cache}")
    arguments = ["models", "serve", local_settings.model.name, "--port", "0", "--json"]
    command = [
        sys.executable,
        "-m",
        "suture.interfaces.cli",
        *arguments,
        *(option for override in overrides for option in ("--set", override)),
    ]
    environment = {**os.environ, "SUTURE_KEYS_SERVE": KEY}
    environment.pop("PYTHONUNBUFFERED", None)  # as in a user's shell, where a pipe is buffered
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield process, read_address(process)
        finally:
            process.kill()  # or leaving the context would wait for it


def read_address(process: subprocess.Popen[str]) -> str:
    """Return the address from the JSON object that the command prints."""
    assert process.stdout is not None
    output = ""
    while not output.rstrip().endswith("}"):
        line = process.stdout.readline()
        assert line, "the command ended before it printed its address"
        output += line
    answer = json.loads(output)
    assert answer["key"] == KEY
    return str(answer["url"])


def ask(url: str, key: str) -> httpx.Response:
    """Send one call to the served model."""
    messages = [{"role": "user", "content": "Say hi."}]
    body = {"model": "any", "messages": messages, "max_tokens": 2}
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.post(f"{url}/chat/completions", json=body, headers=headers, trust_env=False, timeout=300)


def find_child(pid: int) -> int:
    """Return the id of the only child of a process."""
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)


def test_a_served_model_needs_its_key_and_ends_with_its_parent(
    served_model: tuple[subprocess.Popen[str], str],
) -> None:
    process, url = served_model
    answer = ask(url, KEY)
    assert answer.json()["usage"]["completion_tokens"] == 2
    assert ask(url, "another").status_code == 401

    server = find_child(process.pid)
    process.kill()
    while Path(f"/proc/{server}").exists() and "Z" not in Path(f"/proc/{server}/stat").read_text().split():
        time.sleep(0.05)


def test_a_server_that_dies_at_once_is_not_restarted_for_ever(
    served_model: tuple[subprocess.Popen[str], str],
) -> None:
    process, _ = served_model
    os.kill(find_child(process.pid), signal.SIGKILL)
    assert process.wait() == 6
