"""A pass counts only if a second run passes too, and a sandbox fault does not lose other verdicts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from suture.api import HealOptions, heal
from suture.core.ledger import Event, find_run, read_ledger
from suture.core.records import CheckOutcome, CheckStatus, Verdict, VerdictNote
from suture.core.settings import (
    CertificationSettings,
    PathSettings,
    RepairSettings,
    SandboxSettings,
    Settings,
)
from suture.errors import BudgetExceeded, SandboxBroken
from suture.loop.evaluation.judging import gather_verdicts
from suture.loop.evaluation.repeated_runs import merge_runs
from suture.sandbox import BubblewrapSandbox, Capabilities, Channel, RunRequest, RunResult
from suture.testing import ScriptedModel

BUGGY = "def answer():\n    return 41\n"
FOUND_BY_SEARCH = BUGGY.replace("41", "42")
WRITTEN_BY_MODEL = "def answer():\n    return 6 * 7\n"
TESTS = (
    "import os\n\nfrom deep import answer\n\n\n"
    "def test_answer():\n    assert answer() in (40, 42)\n    assert 'UNLUCKY' not in os.environ\n"
)

BeforeRun = Callable[[str, int, RunRequest], Awaitable[RunRequest]]


class InterceptingSandbox:
    """A real sandbox that calls a function before each run of the deciding suite.

    Args:
        sandbox: The real sandbox.
        before: Receives the text of `deep.py`, how often that text was judged (this run included), and the
            request; returns the request to run.
    """

    name = "intercepting"

    def __init__(self, sandbox: BubblewrapSandbox, before: BeforeRun) -> None:
        self._sandbox = sandbox
        self._before = before
        self.judged: list[str] = []

    async def run(self, request: RunRequest) -> RunResult:
        text = request.files.get("deep.py", b"").decode()
        is_verdict = any("suture_report" in path for path in request.files)
        if is_verdict and "--collect-only" not in request.env.get("PYTEST_ADDOPTS", ""):
            self.judged.append(text)
            request = await self._before(text, self.judged.count(text), request)
        return await self._sandbox.run(request)

    def open(self, request: RunRequest) -> AbstractAsyncContextManager[Channel]:
        return self._sandbox.open(request)

    async def capabilities(self) -> Capabilities:
        return await self._sandbox.capabilities()

    async def close(self) -> None:
        await self._sandbox.close()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "deep.py").write_text(BUGGY)
    (root / "test_deep.py").write_text(TESTS)
    return root


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        paths=PathSettings(home=tmp_path / "home", cache=tmp_path / "no-weights"),
        sandbox=SandboxSettings(test_timeout_s=90),
        certification=CertificationSettings(seconds=0),
        repair=RepairSettings(seconds=100),
    )


def read_events(settings: Settings, run_id: str, kind: str) -> list[Event]:
    events = read_ledger(find_run(settings.paths.home, run_id).ledger_path).events
    return [event for event in events if event.kind == kind]


async def test_a_repair_that_passes_only_once_is_not_delivered(
    project: Path, settings: Settings, sandbox: BubblewrapSandbox
) -> None:
    (project / "test_deep.py").write_text(TESTS.replace("(40, 42)", "(42,)"))

    async def fail_second_run(text: str, number: int, request: RunRequest) -> RunRequest:
        is_second_run = text not in (BUGGY, WRITTEN_BY_MODEL) and number == 2
        return replace(request, env={**request.env, "UNLUCKY": "1"}) if is_second_run else request

    intercepting = InterceptingSandbox(sandbox, fail_second_run)
    model = ScriptedModel([f"```python\n{WRITTEN_BY_MODEL}```"])

    result = await heal(
        project, HealOptions(test=BARE_PYTEST, settings=settings, sandbox=intercepting, model=model)
    )

    assert result.outcome == "healed", result.reason
    assert result.candidate is not None
    assert dict(result.candidate.files) == {"deep.py": WRITTEN_BY_MODEL}
    unconfirmed = read_events(settings, result.run_id, "candidate.unconfirmed")
    assert unconfirmed
    assert {tuple(event.data["checks"]) for event in unconfirmed} == {("test_deep.py::test_answer",)}
    unconfirmed_hashes = {event.data["candidate"] for event in unconfirmed}
    checked = {
        event.data["candidate"]: event.data
        for event in read_events(settings, result.run_id, "candidate.checked")
    }
    assert {
        (checked[candidate]["passed"], checked[candidate]["failed"], checked[candidate]["runs"])
        for candidate in unconfirmed_hashes
    } == {(0, 1, 2)}
    assert [checked[result.candidate.hash][key] for key in ("passed", "failed", "runs")] == [1, 0, 2]
    assert intercepting.judged.count(WRITTEN_BY_MODEL) == 2


async def test_a_sandbox_fault_does_not_lose_other_verdicts(
    project: Path, settings: Settings, sandbox: BubblewrapSandbox
) -> None:
    has_broken = asyncio.Event()

    async def break_once(text: str, number: int, request: RunRequest) -> RunRequest:
        if text == FOUND_BY_SEARCH:
            has_broken.set()
            raise SandboxBroken("the sandbox broke")
        if text != BUGGY:
            await has_broken.wait()
        return request

    result = await heal(
        project,
        HealOptions(test=BARE_PYTEST, settings=settings, sandbox=InterceptingSandbox(sandbox, break_once)),
    )

    proposed = read_events(settings, result.run_id, "candidate.proposed")
    checked = read_events(settings, result.run_id, "candidate.checked")
    # The unchanged code was checked too, and one candidate was never checked.
    assert len(proposed) == len(checked) == 2
    assert result.outcome == "healed"
    assert (result.reason.cut_short_by, result.reason.detail) == ("fault", "the sandbox broke")
    assert result.candidate is not None
    assert result.candidate.files["deep.py"] not in (BUGGY, FOUND_BY_SEARCH)


async def test_a_fault_is_raised_after_all_verdicts_have_ended() -> None:
    ended: list[str] = []

    async def succeed() -> str:
        await asyncio.sleep(0.01)
        ended.append("slow")
        return "slow"

    async def fail(fault: Exception) -> str:
        raise fault

    out_of_time = BudgetExceeded("seconds", used=2, limit=1)
    assert await gather_verdicts([fail(out_of_time), succeed()]) == ["slow"]

    with pytest.raises(BudgetExceeded):
        await gather_verdicts([fail(out_of_time)])
    ended.clear()
    with pytest.raises(SandboxBroken, match="fell") as caught:
        await gather_verdicts([fail(out_of_time), fail(SandboxBroken("fell")), succeed()])
    assert ended == ["slow"]
    assert [note.split(":")[1].strip() for note in caught.value.__notes__] == ["BudgetExceeded"]
    assert await gather_verdicts([]) == []


def make_verdict(**statuses: CheckStatus) -> Verdict:
    outcomes = tuple(CheckOutcome(check_id=name, status=status) for name, status in statuses.items())
    return Verdict(candidate="c", outcomes=outcomes, evidence="nonce", wall_s=len(outcomes))


def test_a_check_passes_only_if_it_passes_in_both_runs() -> None:
    first = make_verdict(a="passed", b="passed", c="passed", d="passed", e="skipped")
    merged = merge_runs(first, make_verdict(a="passed", b="timeout", c="skipped", e="skipped"))

    assert {outcome.check_id: outcome.status for outcome in merged.outcomes} == {
        "a": "passed",
        "b": "timeout",
        "c": "failed",
        "d": "failed",
        "e": "skipped",
    }
    assert (sorted(merged.failed), merged.evidence, merged.wall_s) == (["b", "c", "d"], "nonce", 5.0)
    assert merged.notes == (VerdictNote(code="not_repeated", subjects=("b", "c", "d")),)
    assert merge_runs(first, first) == first
