"""`suture models serve`: a real server, a real client, and no process left after a kill."""

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
def served(local_settings: Settings) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command as a process, and the address that it prints."""
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    sets = ("model.threads=1", "model.context_tokens=1024", f"paths.cache={local_settings.paths.cache}")
    words = ["models", "serve", local_settings.model.name, "--port", "0", "--json"]
    command = [
        sys.executable,
        "-m",
        "suture.interfaces.cli",
        *words,
        *(word for s in sets for word in ("--set", s)),
    ]
    environment = {**os.environ, "SUTURE_KEYS_SERVE": KEY}
    environment.pop("PYTHONUNBUFFERED", None)  # a user's pipe is buffered
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield process, address_told_by(process)
        finally:
            process.kill()  # or leaving the context would wait for it


def address_told_by(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    said = ""
    while not said.rstrip().endswith("}"):
        line = process.stdout.readline()
        assert line, "it ended before it told its address"
        said += line
    told = json.loads(said)
    assert told["key"] == KEY
    return str(told["url"])


def ask(url: str, key: str) -> httpx.Response:
    messages = [{"role": "user", "content": "Say hi."}]
    body = {"model": "any", "messages": messages, "max_tokens": 2}
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.post(f"{url}/chat/completions", json=body, headers=headers, trust_env=False, timeout=300)


def child_of(pid: int) -> int:
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)


def test_a_served_model_needs_its_key_and_ends_with_its_parent(
    served: tuple[subprocess.Popen[str], str],
) -> None:
    process, url = served
    answer = ask(url, KEY)
    assert answer.json()["usage"]["completion_tokens"] == 2
    assert ask(url, "another").status_code == 401
    server = child_of(process.pid)
    process.kill()
    while Path(f"/proc/{server}").exists() and "Z" not in Path(f"/proc/{server}/stat").read_text().split():
        time.sleep(0.05)


def test_a_server_that_dies_at_once_is_not_started_for_ever(
    served: tuple[subprocess.Popen[str], str],
) -> None:
    process, _ = served
    os.kill(child_of(process.pid), signal.SIGKILL)
    assert process.wait() == 6
