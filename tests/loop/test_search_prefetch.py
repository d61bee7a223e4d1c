"""What a run begins before it is needed: the first tests as it is opened, and the search's baseline during triage."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from failing_projects import make_failing_project
from suture.core.records import CheckOutcome, Task, Verdict
from suture.core.settings import ModelSettings, PathSettings, RepairSettings, SandboxSettings, Settings
from suture.judge import Suite
from suture.loop import RunSpec, open_run
from suture.loop.evaluation.search_setup import start_baseline
from suture.loop.services.suite_provider import SearchPrefetch
from suture.models import open_role_models
from suture.sandbox import Sandbox
from suture.search import SearchLimits

NAME = "a.test.js::adds"
FILES = {"a.js": b"exports.add = (a, b) => a - b;\n", "a.test.js": b"test('adds', () => {});\n"}
BASELINE_EVENT = {
    "event": "baseline",
    "tests": [{"id": NAME, "status": "failed", "lines": {"a.js": [1]}, "ms": 1}],
}


class StubCommand:
    """A test command whose baseline run reports one failing test."""

    interpreter = SimpleNamespace(source_roots=())
    opened_data = frozenset[str]()
    has_services = False

    async def run_helper_program(self, *args: Any, **options: Any) -> bytes:
        return json.dumps(BASELINE_EVENT).encode()


class StubContext:
    """The parts of a run's context that starting a baseline run uses."""

    recipe = SimpleNamespace(mutate=True)
    budget = SimpleNamespace(remaining_s=lambda: 100.0)
    settings = SimpleNamespace(repair=RepairSettings(), proposer=SimpleNamespace(command=""))
    has_model = False
    has_capable_model = False
    ledger = SimpleNamespace(events=())

    def __init__(self, task: Task) -> None:
        self.task = task
        self.prefetch = SearchPrefetch()


@pytest.mark.parametrize(("argv", "is_rerun"), [(("npx", "jest"), True), (("node", "--test"), False)])
async def test_a_baseline_under_the_users_runner_is_the_rerun(argv: tuple[str, ...], is_rerun: bool) -> None:
    task = Task(statement="", kind="heal", files=FILES, test_command=argv, language="javascript")
    suite = Suite(
        task=task,
        sandbox=cast(Any, None),
        settings=SandboxSettings(),
        command=cast(Any, StubCommand()),
        test_files=("a.test.js",),
    )
    failed = (CheckOutcome(check_id=NAME, status="failed"),)
    context: Any = StubContext(task)
    rerun = start_baseline(suite, Verdict(candidate="c", outcomes=failed, evidence="nonce"), context)

    assert (rerun is not None) == is_rerun

    if rerun is not None:
        assert await rerun() == {NAME}
    assert suite.command is not None
    project = make_failing_project(suite.command, FILES, {"a.js": FILES["a.js"].decode()}, *failed)
    session = await context.prefetch.open_session(project, suite, SearchLimits())
    assert session is not None
    assert (await session.start().run_failing_tests()).target_tests == (NAME,)
    await session.close()
    assert await context.prefetch.open_session(project, suite, SearchLimits()) is None


async def test_the_first_tests_run_while_a_run_is_opened(tmp_path: Path, sandbox: Sandbox) -> None:
    files = {
        "calc.py": b"def add(a, b):\n    return a - b\n",
        "test_calc.py": b"import calc\n\ndef test(): assert calc.add(1, 2) == 3\n",
    }
    settings = Settings(paths=PathSettings(home=tmp_path / "home"), model=ModelSettings(name="none"))
    spec = RunSpec(
        task=Task(statement="", kind="heal", files=files, test_command=("python", "-m", "pytest", "-q")),
        settings=settings,
        project=tmp_path,
        models=open_role_models(settings),
        sandbox=sandbox,
    )

    async with open_run(spec) as (context, _):
        assert context.prefetch.first_tests is not None
        first = await context.prefetch.first_tests
        assert first.verdict is not None
        assert first.triage is not None
        assert {*first.triage.code_failures} == first.verdict.failed == {"test_calc.py::test"}
        suite = await context.suites.load()
        assert suite.test_files == ("test_calc.py",)
        assert not context.ledger.events  # the start of the run is the first one

    async with open_run(spec) as (context, _):
        unused = context.prefetch.first_tests
    assert unused is not None
    assert unused.cancelled()
