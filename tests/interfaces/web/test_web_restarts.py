"""A server is stopped or killed during a run: the next server continues it, and nothing is done twice."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from interfaces.web.real_server import PATIENCE_S, TASK, Server, ledger_of
from models.openai_stub import Answer, OpenAIStub, chat_completion

pytestmark = [pytest.mark.usefixtures("sandbox"), pytest.mark.timeout(300)]

RIGHT = Answer(body=chat_completion("```python\ndef double(n):\n    return 2 * n\n```"))
WRONG = Answer(body=chat_completion("```python\ndef double(n):\n    return 4 * n\n```"))
NEVER = Answer(body=b"", slow=True)


def server_at(folder: Path, stub: OpenAIStub) -> Server:
    options = ("--model", "openai:stub", "--set", f"model.base_url={stub.base_url}")
    more = ("--set", "model.retries=0", "--set", "serve.max_concurrent_runs=1", "--set", "loop.samples=1")
    return Server(folder, *options, *more, environ={"OPENAI_API_KEY": "sk-old"})


def wait_for_requests(stub: OpenAIStub, count: int) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while len(stub.requests) < count:
        assert time.monotonic() < until_s, len(stub.requests)
        time.sleep(0.05)


@pytest.mark.heavy
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_what_ran_goes_on_and_what_waited_is_done(tmp_path: Path, how: signal.Signals) -> None:
    with OpenAIStub() as stub:
        stub.answer(WRONG, NEVER)
        server = server_at(tmp_path, stub)
        with server:
            running = server.run(kind="write", task=TASK)
            waiting = server.run(kind="write", task=TASK)
            wait_for_requests(stub, 2)
            code = server.stop(how)
            assert code == (0 if how == signal.SIGTERM else -signal.SIGKILL)
            before = ledger_of(server.home, running)
            stub.answer(RIGHT)
            server.start()
            events = list(server.events(running, before[-1]["seq"]))
            assert server.until(running, "ended")["outcome"] == "healed"
            assert server.until(waiting, "ended")["outcome"] == "healed"
            listed = [run["run"] for run in server.get("/v1/runs").json()["runs"]]
        assert len(stub.requests) <= 5  # the first reply was on disk: it is not asked for again
    assert sorted(listed) == sorted([running, waiting])
    after = ledger_of(server.home, running)
    assert after[: len(before)] == before
    kinds = [event["kind"] for event in after]
    assert kinds.count("run.started") == 1
    assert kinds.count("run.resumed") == 1
    assert [event["event"] for event in events[:-1]] == kinds[len(before) :]
    first = [event for event in after if event["kind"] == "candidate.proposed"]
    assert len({event["data"]["candidate"] for event in first}) == 2
    assert "sk-old" not in server.words()


def test_what_its_caller_has_cancelled_does_not_go_on(tmp_path: Path) -> None:
    with OpenAIStub() as stub:
        stub.answer(NEVER)
        server = server_at(tmp_path, stub)
        with server:
            run = server.run(kind="write", task=TASK)
            wait_for_requests(stub, 1)
            assert server.post(f"/v1/runs/{run}/cancel").status_code == 202
            assert server.until(run, "ended")["outcome"] == "cancelled"
            server.stop()
            server.start()
            assert server.shown(run)["outcome"] == "cancelled"
            stub.answer(RIGHT)
            assert server.post(f"/v1/runs/{run}/resume").status_code == 202
            assert server.until(run, "ended")["outcome"] == "healed"


@pytest.mark.heavy
def test_two_servers_do_not_share_a_home(tmp_path: Path) -> None:
    with Server(tmp_path, "--model", "none") as server:
        second = server.command("--port", "0", "--model", "none")
    assert second.returncode == 2
    assert "another server" in second.stderr


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (("--host", "0.0.0.0"), 2, "token add"),
        (("--set", "sandbox.backend=unsafe-subprocess"), 2, "without a sandbox"),
        (("--set", "sandbox.minimum_level=none"), 2, "without a sandbox"),
        (("--host", "no.such.host.invalid"), 2, "token"),
    ],
)
def test_a_server_that_may_not_be_does_not_start(
    tmp_path: Path, options: tuple[str, ...], code: int, says: str
) -> None:
    done = Server(tmp_path).command("--port", "0", "--model", "none", *options)
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert done.stdout == ""
