"""The program that compares agents on polyglot exercises: equal tokens, and hidden tests before the second attempt."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from suture.bench.folder_tasks import FolderRow
from suture.bench.folder_tasks.measuring import read_folder_rows
from suture.bench.folder_tasks.polyglot import load_polyglot_tasks

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
TESTS = """import unittest

from double import double


class DoubleTest(unittest.TestCase):
    def test_secret_number(self):
        self.assertEqual(double(1734), 3468)
"""
AGENT = """#!{python}
import json, os, sys, urllib.request
from pathlib import Path

message = sys.argv[-1]
if Path("double_test.py").exists() != ("3468" in message):
    sys.exit(5)
request = {{"messages": [{{"role": "user", "content": message}}]}}
urllib.request.urlopen(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(request).encode())
operator = "+" if "3468" in message else "*"
Path("double.py").write_text(f"def double(number):\\n    return number {{operator}} number\\n")
"""


def load(module: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import a benchmark's module."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module(module)


def send(url: str, **request: Any) -> int:
    """Send a chat request, and return the status of its answer."""
    body = json.dumps({"messages": [], **request}).encode()
    try:
        with urllib.request.urlopen(f"{url}/chat/completions", body) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refusal:
        return refusal.code


def test_the_proxy_shortens_replies_and_refuses_calls_when_the_tokens_are_spent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proxy, agents = load("model_proxy", monkeypatch), load("gated_agents", monkeypatch)
    with (
        agents.serve([{"content": "a"}] * 9) as server,
        proxy.counting_proxy(server.base_url) as (url, counts),
    ):
        counts.max_tokens, counts.max_reply_tokens = 1000, 50
        assert [send(url), send(url, max_completion_tokens=20)] == [200, 200]
        assert [json.loads(request)["max_tokens"] for request in server.requests] == [50, 20]
        counts.max_tokens = counts.tokens + 12
        assert [send(url), send(url, model="long name " * 9)] == [200, 401]
        assert json.loads(server.requests[-1])["max_tokens"] < 12
    assert (counts.calls, counts.refused) == (3, 1)


def test_the_proxy_counts_rejected_requests_and_calls_without_an_answer_separately(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proxy, agents = load("model_proxy", monkeypatch), load("gated_agents", monkeypatch)
    with agents.serve([]) as server, proxy.counting_proxy(server.base_url) as (url, counts):
        assert send(url) == 400
    with proxy.counting_proxy(server.base_url) as (url, unanswered):
        assert send(url) == 502
    assert (counts.rejected, counts.failed) == (1, 0)
    assert (unanswered.rejected, unanswered.failed) == (0, 1)


async def attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tokens: int) -> FolderRow:
    """Let an agent attempt an exercise that it solves once it sees the tests."""
    polyglot, agents = load("polyglot_agents", monkeypatch), load("gated_agents", monkeypatch)
    program = tmp_path / "agents" / "mini" / "bin" / "mini"
    program.parent.mkdir(parents=True)
    program.write_text(AGENT.format(python=sys.executable))
    program.chmod(0o755)
    exercise = tmp_path / "set" / "python" / "exercises" / "practice" / "double"
    lists = {"solution": ["double.py"], "test": ["double_test.py"]}
    texts = {
        ".docs/instructions.md": "Write `double`.",
        ".meta/config.json": json.dumps({"files": lists}),
        "double.py": "def double(number):\n    pass\n",
        "double_test.py": TESTS,
    }
    for path, text in texts.items():
        (exercise / path).parent.mkdir(parents=True, exist_ok=True)
        (exercise / path).write_text(text)
    with agents.serve([{"content": "a"}] * 9) as server:
        wanted = argparse.Namespace(
            arm="mini",
            model="local:qwen2.5-coder-1.5b",
            server=server.base_url,
            tokens=tokens,
            seconds=60,
            programs=tmp_path / "agents",
            out=tmp_path / "out",
        )
        await polyglot.measure_arm(load_polyglot_tasks(tmp_path / "set"), wanted)
    (row,) = read_folder_rows(tmp_path / "out" / "mini")
    return row


@pytest.mark.usefixtures("sandbox", "active_bare_python")
async def test_another_agent_sees_the_tests_only_in_its_second_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = await attempt(tmp_path, monkeypatch, tokens=8000)
    assert not row.fault
    assert [attempt.reward for attempt in row.attempts] == [0.0, 1.0]
    assert [(attempt.calls, attempt.completion_tokens) for attempt in row.attempts] == [(1, 1), (1, 1)]


@pytest.mark.usefixtures("sandbox", "active_bare_python")
async def test_an_attempt_without_tokens_ends_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = await attempt(tmp_path, monkeypatch, tokens=4)
    assert [attempt.outcome for attempt in row.attempts] == ["budget_exhausted"] * 2
    assert [(attempt.reward, attempt.calls) for attempt in row.attempts] == [(0.0, 0)] * 2
