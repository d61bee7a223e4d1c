"""However a run ends, its result contains the best candidate that was judged."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from bare_pytest import BARE_PYTEST
from suture.api import HealOptions, WriteOptions, example_task, heal, resume, solve
from suture.core.ledger import Event, find_run, read_ledger
from suture.core.records import Check, Result, decode_record, render_reason
from suture.core.settings import BudgetSettings, SandboxSettings, Settings
from suture.errors import Cancelled, ModelAuthError, SandboxBroken, UsageError
from suture.sandbox import BubblewrapSandbox, Capabilities, Channel, RunRequest, RunResult
from suture.testing import ScriptedModel

TASK = "Write a function add(a, b) that adds two numbers.\n\n>>> add(1, 2)\n3\n>>> add(-1, 1)\n0\n"
RIGHT = "```python\ndef add(a, b):\n    return a + b\n```"
HALF_RIGHT = "```python\ndef add(a, b):\n    return 3\n```"
HANGS = "```python\ndef add(a, b):\n    while True:\n        pass\n```"
SLEEPS = "```python\nimport time\n\n\ndef add(a, b):\n    time.sleep(100)\n```"


def read_last_result(settings: Settings) -> Result:
    folder = find_run(settings.paths.home, "last")
    event = read_ledger(folder.ledger_path).events[-1]
    assert event.kind == "run.finished"
    return decode_record(Result, folder.load_json(event.data["result"]))


@pytest.mark.heavy
async def test_a_right_candidate_of_a_timed_out_round_is_delivered(settings: Settings) -> None:
    began_s = time.monotonic()
    await solve(TASK, WriteOptions(settings=settings, model=ScriptedModel([HALF_RIGHT, *[RIGHT] * 4])))
    # The candidates that do not sleep take less than a quarter of this.
    seconds = 2 + 4 * (time.monotonic() - began_s)
    limited = settings.model_copy(
        update={
            "budget": BudgetSettings(attempts=8, seconds=seconds),
            "sandbox": SandboxSettings(check_timeout_s=100),
        }
    )
    model = ScriptedModel([HALF_RIGHT, RIGHT, SLEEPS, SLEEPS, SLEEPS])

    result = await solve(TASK, WriteOptions(settings=limited, model=model))

    assert result.outcome == "healed"
    assert result.candidate is not None
    assert "a + b" in result.candidate.files["solution.py"]


async def test_a_cancelled_run_reports_its_best_candidate(settings: Settings) -> None:
    has_judged, is_hanging = asyncio.Event(), asyncio.Event()

    def listen(event: Event) -> None:
        if event.kind == "candidate.checked":
            has_judged.set()
        if event.kind == "candidate.proposed" and has_judged.is_set():
            is_hanging.set()

    slow = ScriptedModel([HALF_RIGHT, *[HANGS] * 9])
    run = asyncio.create_task(solve(TASK, WriteOptions(settings=settings, model=slow, on_event=listen)))
    await is_hanging.wait()
    run.cancel()

    with pytest.raises(Cancelled):
        await run
    result = read_last_result(settings)
    assert result.outcome == "cancelled"
    assert result.candidate is not None
    assert "return 3" in result.candidate.files["solution.py"]


async def test_a_key_refused_later_loses_no_candidate(settings: Settings) -> None:
    model = ScriptedModel([HALF_RIGHT, *[ModelAuthError("refused")] * 4])
    with pytest.raises(ModelAuthError):
        await solve(TASK, WriteOptions(settings=settings, model=model))
    assert read_last_result(settings).candidate is not None


class BreakingSandbox:
    """A real sandbox that breaks when it is opened for the third time."""

    name = "breaking"

    def __init__(self) -> None:
        self._sandbox = BubblewrapSandbox()
        self._uses = 0

    async def capabilities(self) -> Capabilities:
        return await self._sandbox.capabilities()

    async def run(self, request: RunRequest) -> RunResult:
        return await self._sandbox.run(request)

    @asynccontextmanager
    async def open(self, request: RunRequest) -> AsyncIterator[Channel]:
        self._uses += 1
        if self._uses > 2:
            raise SandboxBroken("the sandbox broke")
        async with self._sandbox.open(request) as channel:
            yield channel

    async def close(self) -> None:
        await self._sandbox.close()


async def test_a_broken_sandbox_is_an_infrastructure_error_with_the_best_candidate(
    settings: Settings,
) -> None:
    breaking = BreakingSandbox()
    result = await solve(
        TASK,
        WriteOptions(settings=settings, model=ScriptedModel([HALF_RIGHT, *[RIGHT] * 4]), sandbox=breaking),
    )

    await breaking.close()

    assert result.outcome == "infra_error"
    assert (result.reason.code, result.reason.detail) == ("fault", "the sandbox broke")
    assert result.candidate is not None
    model = ScriptedModel([RIGHT] * 4)
    resumed = await resume("last", settings=settings, model=model)  # in a sandbox that works
    assert resumed.outcome == "healed"
    assert resumed.run_id == result.run_id


async def test_untrusted_checks_appear_in_no_prompt(settings: Settings) -> None:
    guess = Check(
        id="guess", provenance="spec", source="assert merge_intervals([[7, 7]]) == 987654", trust=0.2
    )
    task = replace(example_task(), checks=(*example_task().checks, guess))
    wrong = [f"```python\ndef merge_intervals(intervals):\n    return {n}\n```" for n in range(20)]
    model = ScriptedModel(wrong)

    await solve(task, WriteOptions(settings=settings, model=model))

    assert len(model.calls) > 5
    assert not [call for call in model.calls if "987654" in call.messages[-1].content]


async def test_an_existing_file_is_refused_before_any_model_call(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.paths.home.mkdir(parents=True)
    monkeypatch.chdir(settings.paths.home)
    (settings.paths.home / "solution.py").write_text("mine = 1\n")
    model = ScriptedModel([RIGHT])

    with pytest.raises(UsageError, match="exists already"):
        await solve(TASK, WriteOptions(settings=settings, model=model, apply=True))
    assert not model.calls
    assert (settings.paths.home / "solution.py").read_text() == "mine = 1\n"


async def test_a_project_with_only_skipped_tests_ends_at_once(settings: Settings) -> None:
    project = settings.paths.home.parent / "project"
    project.mkdir()
    (project / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    skipped = "import pytest\n\n\n@pytest.mark.skip\ndef test_add():\n    assert False\n"
    (project / "test_calc.py").write_text(skipped)
    model = ScriptedModel([RIGHT])

    result = await heal(project, HealOptions(test=BARE_PYTEST, settings=settings, model=model))

    assert result.outcome == "not_healed"
    assert "skipped" in render_reason(result.reason)
    assert not model.calls


async def test_only_the_judged_files_are_applied(settings: Settings) -> None:
    project = settings.paths.home.parent / "project"
    project.mkdir()
    (project / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (project / "checks.py").write_text("import calc\n\n\ndef test_add():\n    assert calc.add(1, 2) == 3\n")
    before = (project / "checks.py").read_bytes()
    gutted = "### checks.py\n```python\nimport calc\n\n\ndef test_add():\n    assert True\n```\n"
    right = "### calc.py\n```python\ndef add(a, b):\n    return a + b\n```"
    model = ScriptedModel([gutted, gutted + right, gutted, gutted, gutted])
    command = f"{BARE_PYTEST} checks.py"

    result = await heal(project, HealOptions(test=command, settings=settings, model=model, apply=True))

    assert result.outcome == "healed"
    assert result.candidate is not None
    assert list(result.candidate.files) == ["calc.py"]
    assert (project / "checks.py").read_bytes() == before
    assert not [call for call in model.calls if "### checks.py" in call.messages[-1].content]
