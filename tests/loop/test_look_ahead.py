"""A look at unchanged code begins while triage asks, and is the rerun where the runner is the user's own."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from suture.core.records import CheckOutcome, Task, Verdict
from suture.core.settings import RepairSettings, SandboxSettings
from suture.judge import Suite
from suture.loop.evaluation.search_setup import look_ahead, taken_look
from suture.search import EarlyBaseline

NAME = "a.test.js::adds"
FILES = {"a.js": b"exports.add = (a, b) => a - b;\n", "a.test.js": b"test('adds', () => {});\n"}
SEEN = {"event": "baseline", "tests": [{"id": NAME, "status": "failed", "lines": {"a.js": [1]}, "ms": 1}]}


class Command:
    """A command whose look has seen one test fail."""

    interpreter = SimpleNamespace(source_roots=())

    async def run_helper_program(self, *args: Any, **more: Any) -> bytes:
        return json.dumps(SEEN).encode()


class Context:
    """Of a run, what looking ahead asks for."""

    ready = None
    may_search = True
    recipe = SimpleNamespace(mutate=True)
    budget = SimpleNamespace(remaining_s=lambda: 100.0)
    settings = SimpleNamespace(repair=RepairSettings())
    model = SimpleNamespace(name="none")
    ledger = SimpleNamespace(events=())
    look: EarlyBaseline | None = None

    def keep_look(self, look: EarlyBaseline) -> None:
        self.look = look

    def take_look(self) -> EarlyBaseline | None:
        return self.look


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
    context: Any = Context()
    failed_again = look_ahead(suite, Verdict(candidate="c", outcomes=failed, evidence="nonce"), context)
    assert (failed_again is not None) == is_rerun
    if failed_again is not None:
        assert await failed_again() == {NAME}
    texts = {"a.js": FILES["a.js"].decode()}
    look = await taken_look(suite, texts, context)
    assert look is not None
    assert (await look.spectrum()).target_tests == (NAME,)
    assert await taken_look(suite, {"a.js": "another"}, context) is None
