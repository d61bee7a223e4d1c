"""After a server was stopped or killed, the next server continues its runs without repeating work."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from interfaces.web.real_server import PATIENCE_S, TASK, Server, read_events
from models.openai_stub import Answer, OpenAIStub
from models.reply_bodies import openai_stream

pytestmark = [pytest.mark.usefixtures("sandbox"), pytest.mark.timeout(300)]

CORRECT_ANSWER = openai_stream({"content": "```python\ndef double(n):\n    return 2 * n\n```"})
WRONG_ANSWER = openai_stream({"content": "```python\ndef double(n):\n    return 4 * n\n```"})
UNANSWERED = Answer(body=b"", slow=True)


def make_server(folder: Path, stub: OpenAIStub) -> Server:
    """Return a server that calls the stub model and runs one job at a time."""
    options = ("--model", "openai:stub", "--set", f"model.base_url={stub.base_url}")
    settings = ("--set", "model.retries=0", "--set", "serve.max_concurrent_runs=1", "--set", "loop.samples=1")
    return Server(folder, *options, *settings, environ={"OPENAI_API_KEY": "sk-old"})


def wait_for_requests(stub: OpenAIStub, count: int) -> None:
    """Wait until the stub model has received this many requests."""
    deadline_s = time.monotonic() + PATIENCE_S
    while len(stub.requests) < count:
        assert time.monotonic() < deadline_s, len(stub.requests)
        time.sleep(0.05)


@pytest.mark.heavy
@pytest.mark.parametrize("stop_signal", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_running_and_waiting_runs_continue_after_a_restart(
    tmp_path: Path, stop_signal: signal.Signals
) -> None:
    with OpenAIStub() as stub:
        stub.answer(WRONG_ANSWER, UNANSWERED)
        server = make_server(tmp_path, stub)

        with server:
            running_run = server.run(kind="write", task=TASK)
            waiting_run = server.run(kind="write", task=TASK)
            wait_for_requests(stub, 2)
            exit_code = server.stop(stop_signal)
            assert exit_code == (0 if stop_signal == signal.SIGTERM else -signal.SIGKILL)

            before = read_events(server.home, running_run)
            stub.answer(CORRECT_ANSWER)
            server.start()
            events = list(server.events(running_run, before[-1]["seq"]))
            assert server.wait_for_state(running_run, "ended")["outcome"] == "healed"
            assert server.wait_for_state(waiting_run, "ended")["outcome"] == "healed"

            listed_runs = [run["run"] for run in server.get("/v1/runs").json()["runs"]]

        assert len(stub.requests) <= 5  # the first reply is on disk and is not requested again
    assert sorted(listed_runs) == sorted([running_run, waiting_run])

    after = read_events(server.home, running_run)
    assert after[: len(before)] == before

    kinds = [event["kind"] for event in after]
    assert kinds.count("run.started") == 1
    assert kinds.count("run.resumed") == 1
    assert [event["event"] for event in events[:-1]] == kinds[len(before) :]

    candidates = [event for event in after if event["kind"] == "candidate.proposed"]
    assert len({event["data"]["candidate"] for event in candidates}) == 2
    assert "sk-old" not in server.read_stderr()


def test_a_cancelled_run_continues_only_when_it_is_resumed(tmp_path: Path) -> None:
    with OpenAIStub() as stub:
        stub.answer(UNANSWERED)
        server = make_server(tmp_path, stub)
        with server:
            run = server.run(kind="write", task=TASK)
            wait_for_requests(stub, 1)
            assert server.post(f"/v1/runs/{run}/cancel").status_code == 202
            assert server.wait_for_state(run, "ended")["outcome"] == "cancelled"

            server.stop()
            server.start()
            assert server.get_run(run)["outcome"] == "cancelled"

            stub.answer(CORRECT_ANSWER)
            assert server.post(f"/v1/runs/{run}/resume").status_code == 202
            assert server.wait_for_state(run, "ended")["outcome"] == "healed"


@pytest.mark.heavy
def test_a_second_server_refuses_the_same_home(tmp_path: Path) -> None:
    with Server(tmp_path, "--model", "none") as server:
        second = server.command("--port", "0", "--model", "none")
    assert second.returncode == 2
    assert "another server" in second.stderr


@pytest.mark.parametrize(
    ("options", "exit_code", "message"),
    [
        (("--host", "0.0.0.0"), 2, "token add"),
        (("--set", "sandbox.backend=unsafe-subprocess"), 2, "without a sandbox"),
        (("--set", "sandbox.minimum_level=none"), 2, "without a sandbox"),
        (("--host", "no.such.host.invalid"), 2, "token"),
    ],
)
def test_a_server_with_unsafe_settings_does_not_start(
    tmp_path: Path, options: tuple[str, ...], exit_code: int, message: str
) -> None:
    result = Server(tmp_path).command("--port", "0", "--model", "none", *options)
    assert result.returncode == exit_code, result.stderr
    assert message in result.stderr
    assert result.stdout == ""
