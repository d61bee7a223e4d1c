"""`suture resume` continues a run that an error or its user stopped, with a real server that fails."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import Result

from interfaces.cli.conftest import Cli
from interfaces.cli.real_terminal import restore_interrupts, wait_until
from models.openai_stub import Answer, OpenAIStub
from models.reply_bodies import openai_stream

pytestmark = pytest.mark.usefixtures("sandbox")

TASK = "Write a function double(n).\n\n>>> double(2)\n4\n>>> double(5)\n10\n"


def stream_code(code: str) -> Answer:
    """Return a streamed answer with code, and a plausible count of the prompt's tokens."""
    answer = openai_stream({"content": f"```python\n{code}\n```"})
    assert isinstance(answer.body, bytes)
    return replace(answer, body=answer.body.replace(b'"prompt_tokens": 11', b'"prompt_tokens": 400'))


CORRECT_ANSWER = stream_code("def double(n):\n    return 2 * n")
WRONG_ANSWER = stream_code("def double(n):\n    return 4")
DROPPED_CONNECTION = Answer(body=b"", silent=True)
"""The server dies during a call: the connection closes without a response."""


def run_with_stub(stub: OpenAIStub, cli: Cli, **environ: str) -> Result:
    """Run the task with the stub server as its model."""
    model_environ = {
        "SUTURE_MODEL_BASE_URL": stub.base_url,
        "OPENAI_API_KEY": "sk-old",
        "SUTURE_MODEL_RETRIES": "0",
    }
    return cli("run", TASK, "--model", "openai:stub", env={**model_environ, **environ})


def get_port(stub: OpenAIStub) -> int:
    """Return the port of a stub server."""
    return int(stub.address.rpartition(":")[2])


def test_a_run_resumes_when_its_model_server_is_back(cli: Cli, home: Path) -> None:
    with OpenAIStub() as stub:
        stub.answer(WRONG_ANSWER, DROPPED_CONNECTION)
        first_result = run_with_stub(stub, cli)
    assert first_result.exit_code == 6, first_result.stderr
    assert "Broke off: " in first_result.stderr
    assert "suture resume" in first_result.stderr
    assert "suture fork" in first_result.stderr

    (ledger,) = home.glob("runs/*/ledger.jsonl")
    before = ledger.read_text()
    with OpenAIStub(get_port(stub)) as stub:
        stub.answer(CORRECT_ANSWER)
        result = cli("resume", "last", env={"OPENAI_API_KEY": "sk-old"})
        request_count = len(stub.requests)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "def double(n):\n    return 2 * n\n"
    assert request_count >= 1
    assert ledger.read_text().startswith(before)
    assert before.count('"label":"patch 1"') == ledger.read_text().count('"label":"patch 1"')
    assert "healed" in cli("show", "--list").stdout

    run_json = cli("show", "last", "--json").stdout
    assert '"outcome": "healed"' in run_json
    assert cli("resume", "last").exit_code == 2  # a finished run cannot be resumed


def test_a_run_without_a_server_resumes_when_the_server_starts(cli: Cli) -> None:
    with OpenAIStub() as stub:
        pass
    refusal = run_with_stub(stub, cli)
    assert refusal.exit_code == 3, refusal.stderr
    assert "no connection is accepted" in refusal.stderr
    assert "suture resume" in refusal.stderr

    second_attempt = cli("resume", "last", env={"OPENAI_API_KEY": "sk-old"})
    assert second_attempt.exit_code == 3, second_attempt.stderr  # resuming may be tried any number of times

    with OpenAIStub(get_port(stub)) as stub:
        stub.answer(CORRECT_ANSWER)
        result = cli("resume", "last", env={"OPENAI_API_KEY": "sk-old"})
    assert result.exit_code == 0, result.stderr


def test_a_run_with_a_refused_key_resumes_with_another_key(cli: Cli) -> None:
    with OpenAIStub() as stub:
        stub.answer(Answer(status=401, body={"error": {"message": "no such key"}}), CORRECT_ANSWER)
        refusal = run_with_stub(stub, cli)
        assert refusal.exit_code == 3, refusal.stderr
        assert "OPENAI_API_KEY" in refusal.stderr
        assert "suture resume" in refusal.stderr

        result = cli("resume", "last", env={"OPENAI_API_KEY": "sk-new"})
        assert stub.keys[-1] == "Bearer sk-new"
    assert result.exit_code == 0, result.stderr


def test_a_wrong_address_ends_the_run_after_one_request(cli: Cli) -> None:
    page = Answer(body=b"<!doctype html><title>It works</title>")
    for answer in (page, Answer(status=404, body=b"<html>")):
        with OpenAIStub() as stub:
            stub.answer(answer)
            refusal = run_with_stub(stub, cli)
        assert refusal.exit_code == 3, refusal.stderr
        assert "is this an OpenAI-compatible address?" in refusal.stderr
        assert len(stub.requests) == 1


@pytest.mark.heavy
def test_a_run_that_its_user_stopped_can_be_resumed(
    environ: dict[str, str], tmp_path: Path, home: Path, cli: Cli
) -> None:
    with OpenAIStub() as stub:
        stub.answer(WRONG_ANSWER, Answer(body=b"", slow=True))
        process = subprocess.Popen(
            [sys.executable, "-m", "suture.interfaces.cli", "run", TASK, "--model", "openai:stub"],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**environ, "SUTURE_MODEL_BASE_URL": stub.base_url, "OPENAI_API_KEY": "k"},
            cwd=tmp_path,
            preexec_fn=restore_interrupts,
        )
        wait_until(lambda: len(stub.requests) > 1, process)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors.decode()
    assert b"suture resume" in errors

    with OpenAIStub(get_port(stub)) as stub:
        stub.answer(CORRECT_ANSWER)
        result = cli("resume", "last", env={"OPENAI_API_KEY": "k"})
    assert result.exit_code == 0, result.stderr


def test_a_finished_run_cannot_be_resumed(cli: Cli) -> None:
    with OpenAIStub() as stub:
        stub.answer(WRONG_ANSWER)
        first_attempt = run_with_stub(stub, cli, SUTURE_BUDGET_ATTEMPTS="1")
    assert first_attempt.exit_code in (1, 4), first_attempt.stderr

    refusal = cli("resume", "last", env={"OPENAI_API_KEY": "k"})
    assert refusal.exit_code == 2
    assert "suture fork" in refusal.stderr
