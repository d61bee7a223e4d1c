"""A run that an error or its user stopped is resumed where it was; a real server dies and comes back."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from interfaces.cli.conftest import Cli
from models.openai_stub import Answer, OpenAIStub, chat_completion

pytestmark = pytest.mark.usefixtures("sandbox")

TASK = "Write a function double(n).\n\n>>> double(2)\n4\n>>> double(5)\n10\n"
RIGHT = Answer(body=chat_completion("```python\ndef double(n):\n    return 2 * n\n```"))
WRONG = Answer(body=chat_completion("```python\ndef double(n):\n    return 4\n```"))
GONE = Answer(body=b"", silent=True)
"""The server dies in the middle of a call: the connection closes without a word."""


def run_at(stub: OpenAIStub, cli: Cli, **environ: str) -> Result:
    given = {"SUTURE_MODEL_BASE_URL": stub.base_url, "OPENAI_API_KEY": "sk-old", "SUTURE_MODEL_RETRIES": "0"}
    return cli("run", TASK, "--model", "openai:stub", env={**given, **environ})


def port_of(stub: OpenAIStub) -> int:
    return int(stub.address.rpartition(":")[2])


def test_a_run_whose_model_server_died_goes_on_when_it_is_back(cli: Cli, home: Path) -> None:
    with OpenAIStub() as stub:
        stub.answer(WRONG, GONE)
        stopped = run_at(stub, cli)
    assert stopped.exit_code == 6, stopped.stderr
    assert "infra_error" in stopped.stderr
    assert "suture resume" in stopped.stderr
    assert "suture fork" in stopped.stderr
    (ledger,) = home.glob("runs/*/ledger.jsonl")
    before = ledger.read_text()
    with OpenAIStub(port_of(stub)) as stub:
        stub.answer(RIGHT)
        done = cli("resume", "last", env={"OPENAI_API_KEY": "sk-old"})
        asked = len(stub.requests)
    assert done.exit_code == 0, done.stderr
    assert done.stdout == "def double(n):\n    return 2 * n\n"
    assert asked >= 1
    assert ledger.read_text().startswith(before)
    assert before.count('"label":"sample 1, greedy"') == ledger.read_text().count(
        '"label":"sample 1, greedy"'
    )
    assert "healed" in cli("show", "--list").stdout
    shown = cli("show", "last", "--json").stdout
    assert '"outcome": "healed"' in shown
    assert cli("resume", "last").exit_code == 2  # it has ended of its own now


def test_a_run_that_met_no_server_goes_on_when_there_is_one(cli: Cli) -> None:
    with OpenAIStub() as stub:
        pass
    refused = run_at(stub, cli)
    assert refused.exit_code == 3, refused.stderr
    assert "no connection is accepted" in refused.stderr
    assert "suture resume" in refused.stderr
    again = cli("resume", "last", env={"OPENAI_API_KEY": "sk-old"})
    assert again.exit_code == 3, again.stderr  # it may be tried as often as one likes
    with OpenAIStub(port_of(stub)) as stub:
        stub.answer(RIGHT)
        done = cli("resume", "last", env={"OPENAI_API_KEY": "sk-old"})
    assert done.exit_code == 0, done.stderr


def test_a_refused_key_is_named_and_the_run_goes_on_with_another(cli: Cli) -> None:
    with OpenAIStub() as stub:
        stub.answer(Answer(status=401, body={"error": {"message": "no such key"}}), RIGHT)
        refused = run_at(stub, cli)
        assert refused.exit_code == 3, refused.stderr
        assert "OPENAI_API_KEY" in refused.stderr
        assert "suture resume" in refused.stderr
        done = cli("resume", "last", env={"OPENAI_API_KEY": "sk-new"})
        assert stub.keys[-1] == "Bearer sk-new"
    assert done.exit_code == 0, done.stderr


def test_a_wrong_address_ends_at_once_and_is_named(cli: Cli) -> None:
    page = Answer(body=b"<!doctype html><title>It works</title>")
    for answer in (page, Answer(status=404, body=b"<html>")):
        with OpenAIStub() as stub:
            stub.answer(answer)
            refused = run_at(stub, cli)
        assert refused.exit_code == 3, refused.stderr
        assert "is this an OpenAI-compatible address?" in refused.stderr
        assert len(stub.requests) == 1


@pytest.mark.heavy
def test_a_run_that_its_user_stopped_goes_on(
    environ: dict[str, str], tmp_path: Path, home: Path, cli: Cli
) -> None:
    with OpenAIStub() as stub:
        stub.answer(WRONG, Answer(body=b"", slow=True))
        process = subprocess.Popen(
            [sys.executable, "-m", "suture.interfaces.cli", "run", TASK, "--model", "openai:stub"],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**environ, "SUTURE_MODEL_BASE_URL": stub.base_url, "OPENAI_API_KEY": "k"},
            cwd=tmp_path,
            preexec_fn=hears_interrupts,
        )
        wait_for(lambda: len(stub.requests) > 1, process)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors.decode()
    assert b"suture resume" in errors
    with OpenAIStub(port_of(stub)) as stub:
        stub.answer(RIGHT)
        done = cli("resume", "last", env={"OPENAI_API_KEY": "k"})
    assert done.exit_code == 0, done.stderr


def test_a_run_that_ended_of_its_own_does_not_go_on(cli: Cli) -> None:
    with OpenAIStub() as stub:
        stub.answer(WRONG)
        stuck = run_at(stub, cli, SUTURE_BUDGET_ATTEMPTS="1")
    assert stuck.exit_code in (1, 4), stuck.stderr
    refused = cli("resume", "last", env={"OPENAI_API_KEY": "k"})
    assert refused.exit_code == 2
    assert "suture fork" in refused.stderr


def hears_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def wait_for(happened: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    while not happened():
        assert process.poll() is None, process.communicate()[1].decode()
        time.sleep(0.05)
