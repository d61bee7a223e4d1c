"""What a certificate says of a healed project, and that it can be replayed."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from judge.certificates.conftest import CODE, COMMAND, FIXED, NOISY, Healed
from suture.api import HealOptions, heal, verify
from suture.core.ledger import find_run, read_ledger
from suture.core.records import Result, decode_record
from suture.core.settings import CertificationSettings, LoopSettings, Settings
from suture.errors import Cancelled, UsageError
from suture.judge.certificates import Certificate, ReplayedClaim
from suture.judge.certificates.certificate import parse_certificate
from suture.judge.tuning import SELECTED_MUTANTS
from suture.sandbox import BubblewrapSandbox, Capabilities, Channel, RunRequest, RunResult
from suture.testing import ScriptedModel


def certificate_of(run_id: str, settings: Settings) -> Certificate:
    path = find_run(settings.paths.home, run_id).path / "certificate.json"
    return parse_certificate(path.read_bytes())


async def findings(
    name: str | Path, settings: Settings, sandbox: BubblewrapSandbox, project: Path | None = None
) -> list[ReplayedClaim]:
    return [f async for f in verify(name, project=project, settings=settings, sandbox=sandbox)]


async def test_a_healed_project_has_a_small_diff_and_a_certificate_that_replays(
    healed: Healed, settings: Settings, sandbox: BubblewrapSandbox, project: Path, tmp_path: Path
) -> None:
    result = await healed()
    assert (result.outcome, dict(result.candidate.files if result.candidate else {})) == (
        "healed",
        {"shop/prices.py": FIXED},
    ), result.reason
    assert "start from nothing" not in result.diff
    said = certificate_of(result.run_id, settings)
    assert said.fixed == ("tests/test_prices.py::test_cheapest", "tests/test_prices.py::test_discount")
    assert (said.newly_failing, said.evidence, said.diff) == ((), "nonce", result.diff)
    assert said.before["tests/test_prices.py::test_adds"] == "passed"
    assert set(said.after.values()) == {"passed"}
    assert said.coverage.changed == said.coverage.covered == {"shop/prices.py": (9, 15)}
    assert said.mutation.unmeasured == "mutant_limit"
    assert (len(said.mutation.mutants), said.mutation.selected) == (4, SELECTED_MUTANTS)
    assert said.mutation.generated >= SELECTED_MUTANTS
    assert said.mutation.min_score == said.mutation.killed / SELECTED_MUTANTS > 0
    minimal = said.claims.minimal
    assert (minimal.edits, minimal.is_minimal) == (2, True)
    assert minimal.edits_found > 2
    assert 0.3 < result.confidence == said.confidence < 1
    assert (said.claims.model, said.claims.attempts) == ("scripted:replies", 1)

    replayed = await findings(result.run_id, settings, sandbox)
    assert [f.name for f in replayed] == [
        *("project", "diff", "files", "before", "after", "coverage", "mutation", "confidence")
    ]
    assert all(f.ok for f in replayed), replayed

    stranger = shutil.copy(find_run(settings.paths.home, result.run_id).path / "certificate.json", tmp_path)
    with pytest.raises(UsageError, match=r"does not have the project.s files"):
        await findings(stranger, settings, sandbox)
    (project / "README.md").write_text("new since then\n")
    assert all(f.ok for f in await findings(stranger, settings, sandbox, project))
    (project / "tests" / "test_more.py").write_text("def test_more():\n    assert False\n")
    (last,) = await findings(stranger, settings, sandbox, project)
    assert (last.ok, last.detail) == (False, "1 further file(s) may change the result: tests/test_more.py")
    (project / "tests" / "test_more.py").unlink()
    (project / "shop" / "prices.py").write_text(FIXED)  # the change is in it already
    assert all(f.ok for f in await findings(stranger, settings, sandbox, project))
    (project / "shop" / "prices.py").write_text(CODE + "\n# edited\n")
    (last,) = await findings(stranger, settings, sandbox, project)
    assert (last.name, last.ok) == ("project", False)


async def test_without_time_the_certificate_says_what_was_not_measured(
    healed: Healed, settings: Settings, sandbox: BubblewrapSandbox
) -> None:
    quick = settings.model_copy(update={"certification": CertificationSettings(seconds=0)})
    result = await healed(using=quick)
    said = certificate_of(result.run_id, settings)
    assert said.coverage.unmeasured == said.mutation.unmeasured == said.claims.lint.unmeasured == "no_time"
    assert (said.mutation.selected, said.mutation.min_score) == (None, 0.0)
    assert "start from nothing" in said.diff
    assert all(f.ok for f in await findings(result.run_id, settings, sandbox))


async def test_a_command_that_is_no_pytest_is_certified_by_its_exit_status(
    healed: Healed, settings: Settings, sandbox: BubblewrapSandbox, project: Path
) -> None:
    (project / "tests" / "__init__.py").write_text("")
    (project / "tests" / "test_prices.py").write_text(
        "import unittest\nfrom shop.prices import cheapest, total\n\n\nclass Prices(unittest.TestCase):\n"
        "    def test_all(self):\n"
        "        self.assertEqual((cheapest([2, 1]), total([60, 40], 10)), (1, 90))\n"
    )
    command = "python -m unittest -q tests.test_prices"
    result = await healed(test=command)
    assert result.outcome == "healed", result.reason
    said = certificate_of(result.run_id, settings)
    assert (said.evidence, said.fixed) == ("exit_status", (command,))
    assert said.coverage.covered == {"shop/prices.py": (9, 15)}
    assert all(f.ok for f in await findings("last", settings, sandbox))


async def test_weak_evidence_abstains_and_nothing_is_applied(
    healed: Healed, settings: Settings, project: Path, sandbox: BubblewrapSandbox
) -> None:
    strict = settings.model_copy(update={"loop": LoopSettings(abstain_below=0.99)})
    result = await healed(using=strict, apply=True)
    assert result.outcome == "not_healed"
    assert result.reason.notes == ("low_confidence",)
    assert result.verdict is not None
    assert result.verdict.all_passed
    assert (project / "shop" / "prices.py").read_text() == CODE
    with pytest.raises(UsageError, match="has no certificate"):
        await findings(result.run_id, settings, sandbox)


async def test_only_what_was_named_may_change(healed: Healed, project: Path) -> None:
    (project / "other.py").write_text("x = 1\n")
    result = await healed(only=["other.py"])
    assert result.outcome != "healed"
    assert result.diff == ""
    with pytest.raises(UsageError, match="--only"):
        await healed(only=["tests/"])
    assert (await healed(only=["shop/"])).outcome == "healed"


@pytest.mark.heavy
async def test_the_ledger_tells_of_the_certificate_before_the_end(healed: Healed, settings: Settings) -> None:
    result = await healed()
    events = read_ledger(find_run(settings.paths.home, result.run_id).ledger_path).events
    kinds = [event.kind for event in events]
    assert kinds.index("certificate.written") < kinds.index("run.finished")
    told = next(event.data for event in events if event.kind == "certificate.written")
    assert (told["edits"], told["statements"], told["covered"]) == (2, 2, 2)


class WaitingSandbox:
    """A real wall, but for code that is neither the project's nor the model's: that never ends."""

    name = "waiting"

    def __init__(self, sandbox_requirement: BubblewrapSandbox) -> None:
        self._wall = sandbox_requirement
        self.waits = asyncio.Event()

    async def run(self, request: RunRequest) -> RunResult:
        code = request.files.get("shop/prices.py")
        if code is not None and code not in (CODE.encode(), NOISY.encode()):
            self.waits.set()
            await asyncio.Event().wait()
        return await self._wall.run(request)

    def open(self, request: RunRequest) -> AbstractAsyncContextManager[Channel]:
        return self._wall.open(request)

    async def capabilities(self) -> Capabilities:
        return await self._wall.capabilities()

    async def close(self) -> None:
        await self._wall.close()


@pytest.mark.heavy
async def test_no_run_of_the_proof_outlives_its_time(
    project: Path, settings: Settings, sandbox: BubblewrapSandbox
) -> None:
    short = settings.model_copy(update={"certification": CertificationSettings(seconds=17)})
    sandbox_requirement = WaitingSandbox(sandbox)
    model = ScriptedModel([f"### shop/prices.py\n```python\n{NOISY}\n```"])
    result = await heal(
        project, HealOptions(test=COMMAND, settings=short, model=model, sandbox=sandbox_requirement)
    )
    assert sandbox_requirement.waits.is_set()
    assert (result.outcome, dict(result.candidate.files if result.candidate else {})) == (
        "healed",
        {"shop/prices.py": NOISY},
    )
    assert not certificate_of(result.run_id, settings).claims.minimal.is_minimal


async def test_a_run_that_is_stopped_while_it_is_proved_is_cancelled(
    project: Path, settings: Settings, sandbox: BubblewrapSandbox
) -> None:
    sandbox_requirement = WaitingSandbox(sandbox)
    model = ScriptedModel([f"### shop/prices.py\n```python\n{NOISY}\n```"])
    run = asyncio.create_task(
        heal(
            project,
            HealOptions(
                test=COMMAND, settings=settings, model=model, sandbox=sandbox_requirement, apply=True
            ),
        )
    )
    await sandbox_requirement.waits.wait()
    run.cancel()
    with pytest.raises(Cancelled):
        await run
    folder = find_run(settings.paths.home, "last")
    event = read_ledger(folder.ledger_path).events[-1]
    result = decode_record(Result, folder.load_json(event.data["result"]))
    assert (event.kind, result.outcome) == ("run.finished", "cancelled")
    assert dict(result.candidate.files if result.candidate else {}) == {"shop/prices.py": NOISY}
    assert (project / "shop" / "prices.py").read_text() == CODE
