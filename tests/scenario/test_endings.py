"""Whatever ends a run, its result has the best candidate that was judged."""

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
HALF = "```python\ndef add(a, b):\n    return 3\n```"
HANGS = "```python\ndef add(a, b):\n    while True:\n        pass\n```"
SLEEPS = "```python\nimport time\n\n\ndef add(a, b):\n    time.sleep(100)\n```"


def last_result(settings: Settings) -> Result:
    folder = find_run(settings.paths.home, "last")
    event = read_ledger(folder.ledger_path).events[-1]
    assert event.kind == "run.finished"
    return decode_record(Result, folder.load_json(event.data["result"]))


@pytest.mark.heavy
async def test_a_right_candidate_of_a_round_that_ran_out_of_time_is_not_lost(settings: Settings) -> None:
    began_s = time.monotonic()
    await solve(TASK, WriteOptions(settings=settings, model=ScriptedModel([HALF, *[RIGHT] * 4])))
    seconds = 2 + 4 * (time.monotonic() - began_s)  # the honest part takes less than a quarter of it
    short = settings.model_copy(
        update={
            "budget": BudgetSettings(attempts=8, seconds=seconds),
            "sandbox": SandboxSettings(check_timeout_s=100),
        }
    )
    model = ScriptedModel([HALF, RIGHT, SLEEPS, SLEEPS, SLEEPS])
    result = await solve(TASK, WriteOptions(settings=short, model=model))
    assert result.outcome == "healed"
    assert result.candidate is not None
    assert "a + b" in result.candidate.files["solution.py"]


async def test_a_cancelled_run_keeps_its_best_candidate(settings: Settings) -> None:
    judged, hanging = asyncio.Event(), asyncio.Event()

    def listen(event: Event) -> None:
        if event.kind == "candidate.checked":
            judged.set()
        if event.kind == "candidate.proposed" and judged.is_set():
            hanging.set()

    slow = ScriptedModel([HALF, *[HANGS] * 9])
    run = asyncio.create_task(solve(TASK, WriteOptions(settings=settings, model=slow, on_event=listen)))
    await hanging.wait()
    run.cancel()
    with pytest.raises(Cancelled):
        await run
    result = last_result(settings)
    assert result.outcome == "cancelled"
    assert result.candidate is not None
    assert "return 3" in result.candidate.files["solution.py"]


async def test_a_key_that_is_refused_later_loses_nothing(settings: Settings) -> None:
    model = ScriptedModel([HALF, *[ModelAuthError("refused")] * 4])
    with pytest.raises(ModelAuthError):
        await solve(TASK, WriteOptions(settings=settings, model=model))
    assert last_result(settings).candidate is not None


class BreakingSandbox:
    """A real sandbox that breaks at the third use."""

    name = "breaking"

    def __init__(self) -> None:
        self._wall = BubblewrapSandbox()
        self._uses = 0

    async def capabilities(self) -> Capabilities:
        return await self._wall.capabilities()

    async def run(self, request: RunRequest) -> RunResult:
        return await self._wall.run(request)

    @asynccontextmanager
    async def open(self, request: RunRequest) -> AsyncIterator[Channel]:
        self._uses += 1
        if self._uses > 2:
            raise SandboxBroken("the sandbox broke")
        async with self._wall.open(request) as channel:
            yield channel

    async def close(self) -> None:
        await self._wall.close()


async def test_a_sandbox_that_breaks_is_an_infrastructure_error_with_the_best_so_far(
    settings: Settings,
) -> None:
    sandbox_requirement = BreakingSandbox()
    result = await solve(
        TASK,
        WriteOptions(
            settings=settings, model=ScriptedModel([HALF, *[RIGHT] * 4]), sandbox=sandbox_requirement
        ),
    )
    await sandbox_requirement.close()
    assert result.outcome == "infra_error"
    assert (result.reason.code, result.reason.detail) == ("fault", "the sandbox broke")
    assert result.candidate is not None
    model = ScriptedModel([RIGHT] * 4)
    again = await resume("last", settings=settings, model=model)  # in a sandbox that works
    assert again.outcome == "healed"
    assert again.run_id == result.run_id


async def test_untrusted_facts_stay_out_of_every_prompt(settings: Settings) -> None:
    guess = Check(
        id="guess", provenance="spec", source="assert merge_intervals([[7, 7]]) == 987654", trust=0.2
    )
    task = replace(example_task(), checks=(*example_task().checks, guess))
    wrong = [f"```python\ndef merge_intervals(intervals):\n    return {n}\n```" for n in range(20)]
    model = ScriptedModel(wrong)
    await solve(task, WriteOptions(settings=settings, model=model))
    assert len(model.calls) > 5
    assert not [call for call in model.calls if "987654" in call.messages[-1].content]


async def test_an_existing_file_is_refused_before_anything_is_paid(
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


async def test_a_project_whose_tests_are_all_skipped_ends_at_once(settings: Settings) -> None:
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


async def test_what_is_judged_is_what_is_applied(settings: Settings) -> None:
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
