"""The search examines unchanged code while triage asks the model; for the user's own runner that is the rerun."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from suture.core.records import CheckOutcome, Task, Verdict
from suture.core.settings import RepairSettings, SandboxSettings
from suture.judge import Suite
from suture.loop.evaluation.search_setup import start_baseline
from suture.loop.services.search_prefetch import SearchPrefetch

NAME = "a.test.js::adds"
FILES = {"a.js": b"exports.add = (a, b) => a - b;\n", "a.test.js": b"test('adds', () => {});\n"}
SEEN = {"event": "baseline", "tests": [{"id": NAME, "status": "failed", "lines": {"a.js": [1]}, "ms": 1}]}


class Command:
    """A command whose look has seen one test fail."""

    interpreter = SimpleNamespace(source_roots=())

    async def run_helper_program(self, *args: Any, **more: Any) -> bytes:
        return json.dumps(SEEN).encode()


class Context:
    """The parts of a run's context that starting a baseline run uses."""

    recipe = SimpleNamespace(mutate=True)
    budget = SimpleNamespace(remaining_s=lambda: 100.0)
    settings = SimpleNamespace(repair=RepairSettings())
    has_model = False
    ledger = SimpleNamespace(events=())

    def __init__(self, task: Task) -> None:
        self.task = task
        self.prefetch = SearchPrefetch()


@pytest.mark.parametrize(("argv", "is_rerun"), [(("npx", "jest"), True), (("node", "--test"), False)])
async def test_what_fails_under_the_users_own_runner_has_failed_again(
    argv: tuple[str, ...], is_rerun: bool
) -> None:
    task = Task(statement="", kind="heal", files=FILES, test_command=argv, language="javascript")
    suite = Suite(
        task=task,
        sandbox=cast(Any, None),
        settings=SandboxSettings(),
        command=cast(Any, Command()),
        test_files=("a.test.js",),
    )
    failed = (CheckOutcome(check_id=NAME, status="failed"),)
    context: Any = Context(task)
    failed_again = start_baseline(suite, Verdict(candidate="c", outcomes=failed, evidence="nonce"), context)
    assert (failed_again is not None) == is_rerun
    if failed_again is not None:
        assert await failed_again() == {NAME}
    texts = {"a.js": FILES["a.js"].decode()}
    look = await context.prefetch.take_baseline(suite, texts)
    assert look is not None
    assert (await look.spectrum()).target_tests == (NAME,)
    assert await context.prefetch.take_baseline(suite, {"a.js": "another"}) is None
