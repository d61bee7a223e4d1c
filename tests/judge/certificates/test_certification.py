"""Certificates of healed projects: their contents, and replaying them."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from judge.certificates.conftest import CODE, COMMAND, FIXED, NOISY, RunHeal, SandboxWrapper
from suture.api import HealOptions, heal, verify
from suture.core.ledger import find_run, read_ledger
from suture.core.records import Result, decode_record
from suture.core.settings import CertificationSettings, LoopSettings, Settings
from suture.errors import Cancelled, UsageError
from suture.judge.certificates import Certificate, ReplayedClaim
from suture.judge.certificates.certificate import parse_certificate
from suture.judge.tuning import SELECTED_MUTANTS
from suture.sandbox import BubblewrapSandbox, RunRequest, RunResult
from suture.testing import ScriptedModel


def load_certificate(run_id: str, settings: Settings) -> Certificate:
    path = find_run(settings.paths.home, run_id).path / "certificate.json"
    return parse_certificate(path.read_bytes())


async def replay_claims(
    name: str | Path, settings: Settings, sandbox: BubblewrapSandbox, project: Path | None = None
) -> list[ReplayedClaim]:
    return [claim async for claim in verify(name, project=project, settings=settings, sandbox=sandbox)]


async def test_a_healed_project_has_a_minimal_diff_and_a_certificate_that_replays(
    run_heal: RunHeal, settings: Settings, sandbox: BubblewrapSandbox, project: Path, tmp_path: Path
) -> None:
    result = await run_heal()
    assert (result.outcome, dict(result.candidate.files if result.candidate else {})) == (
        "healed",
        {"shop/prices.py": FIXED},
    ), result.reason
    assert "start from nothing" not in result.diff
    certificate = load_certificate(result.run_id, settings)
    assert certificate.fixed == ("tests/test_prices.py::test_cheapest", "tests/test_prices.py::test_discount")
    assert (certificate.newly_failing, certificate.evidence, certificate.diff) == ((), "nonce", result.diff)
    assert certificate.before["tests/test_prices.py::test_adds"] == "passed"
    assert set(certificate.after.values()) == {"passed"}
    assert certificate.coverage.changed == certificate.coverage.covered == {"shop/prices.py": (9, 15)}
    assert certificate.mutation.unmeasured == "mutant_limit"
    assert (len(certificate.mutation.mutants), certificate.mutation.selected) == (4, SELECTED_MUTANTS)
    assert certificate.mutation.generated >= SELECTED_MUTANTS
    assert certificate.mutation.min_score == certificate.mutation.killed / SELECTED_MUTANTS > 0
    minimal = certificate.claims.minimal
    assert (minimal.edits, minimal.is_minimal) == (2, True)
    assert minimal.edits_found > 2
    assert 0.3 < result.confidence == certificate.confidence < 1
    assert (certificate.claims.model, certificate.claims.attempts) == ("scripted:replies", 1)

    replayed = await replay_claims(result.run_id, settings, sandbox)
    assert [claim.name for claim in replayed] == [
        "project",
        "diff",
        "files",
        "before",
        "after",
        "coverage",
        "mutation",
        "signs",
        "confidence",
    ]
    assert all(claim.ok for claim in replayed), replayed

    copy = shutil.copy(find_run(settings.paths.home, result.run_id).path / "certificate.json", tmp_path)
    with pytest.raises(UsageError, match=r"does not have the project.s files"):
        await replay_claims(copy, settings, sandbox)
    (project / "README.md").write_text("new since then\n")
    assert all(claim.ok for claim in await replay_claims(copy, settings, sandbox, project))
    (project / "tests" / "test_more.py").write_text("def test_more():\n    assert False\n")
    (last,) = await replay_claims(copy, settings, sandbox, project)
    assert (last.ok, last.detail) == (False, "1 further file(s) may change the result: tests/test_more.py")
    (project / "tests" / "test_more.py").unlink()
    (project / "shop" / "prices.py").write_text(FIXED)  # the change is already applied
    assert all(claim.ok for claim in await replay_claims(copy, settings, sandbox, project))
    (project / "shop" / "prices.py").write_text(CODE + "\n# edited\n")
    (last,) = await replay_claims(copy, settings, sandbox, project)
    assert (last.name, last.ok) == ("project", False)


async def test_the_certificate_lists_what_was_not_measured_for_lack_of_time(
    run_heal: RunHeal, settings: Settings, sandbox: BubblewrapSandbox
) -> None:
    quick_settings = settings.model_copy(update={"certification": CertificationSettings(seconds=0)})
    result = await run_heal(run_settings=quick_settings)
    certificate = load_certificate(result.run_id, settings)

    assert (
        certificate.coverage.unmeasured
        == certificate.mutation.unmeasured
        == certificate.claims.lint.unmeasured
        == "certification_seconds"
    )
    assert certificate.claims.examples_unmeasured == "no_time"
    assert (certificate.mutation.selected, certificate.mutation.min_score) == (None, 0.0)
    assert "start from nothing" in certificate.diff
    assert all(claim.ok for claim in await replay_claims(result.run_id, settings, sandbox))


async def test_a_command_other_than_pytest_is_certified_by_its_exit_status(
    run_heal: RunHeal, settings: Settings, sandbox: BubblewrapSandbox, project: Path
) -> None:
    (project / "tests" / "__init__.py").write_text("")
    (project / "tests" / "test_prices.py").write_text(
        "import unittest\nfrom shop.prices import cheapest, total\n\n\nclass Prices(unittest.TestCase):\n"
        "    def test_all(self):\n"
        "        self.assertEqual((cheapest([2, 1]), total([60, 40], 10)), (1, 90))\n"
    )
    command = "python -m unittest -q tests.test_prices"
    result = await run_heal(test=command)
    assert result.outcome == "healed", result.reason

    certificate = load_certificate(result.run_id, settings)
    assert (certificate.evidence, certificate.fixed) == ("exit_status", (command,))
    assert certificate.coverage.covered == {"shop/prices.py": (9, 15)}
    assert all(claim.ok for claim in await replay_claims("last", settings, sandbox))


async def test_a_change_with_weak_evidence_is_not_applied(
    run_heal: RunHeal, settings: Settings, project: Path, sandbox: BubblewrapSandbox
) -> None:
    strict_settings = settings.model_copy(update={"loop": LoopSettings(abstain_below=0.99)})
    result = await run_heal(run_settings=strict_settings, apply=True)

    assert result.outcome == "not_healed"
    assert result.reason.notes == ("low_confidence",)
    assert result.verdict is not None
    assert result.verdict.all_passed
    assert (project / "shop" / "prices.py").read_text() == CODE
    with pytest.raises(UsageError, match="has no certificate"):
        await replay_claims(result.run_id, settings, sandbox)


async def test_only_allowed_paths_may_change(run_heal: RunHeal, project: Path) -> None:
    (project / "other.py").write_text("x = 1\n")
    result = await run_heal(only=["other.py"])

    assert result.outcome != "healed"
    assert result.diff == ""
    with pytest.raises(UsageError, match="--only"):
        await run_heal(only=["tests/"])
    assert (await run_heal(only=["shop/"])).outcome == "healed"


@pytest.mark.heavy
async def test_the_certificate_event_precedes_the_end_of_the_run(
    run_heal: RunHeal, settings: Settings
) -> None:
    result = await run_heal()
    events = read_ledger(find_run(settings.paths.home, result.run_id).ledger_path).events
    kinds = [event.kind for event in events]
    assert kinds.index("certificate.written") < kinds.index("run.finished")
    event_data = next(event.data for event in events if event.kind == "certificate.written")
    assert (event_data["edits"], event_data["statements"], event_data["covered"]) == (2, 2, 2)


class WaitingSandbox(SandboxWrapper):
    """A sandbox in which any code but the project's own and the model's never ends."""

    name = "waiting"

    def __init__(self, sandbox: BubblewrapSandbox) -> None:
        super().__init__(sandbox)
        self.waits = asyncio.Event()

    async def run(self, request: RunRequest) -> RunResult:
        code = request.files.get("shop/prices.py")
        if code is not None and code not in (CODE.encode(), NOISY.encode()):
            self.waits.set()
            await asyncio.Event().wait()
        return await super().run(request)


@pytest.mark.heavy
async def test_certification_keeps_its_time_limit(
    project: Path, settings: Settings, sandbox: BubblewrapSandbox
) -> None:
    short_settings = settings.model_copy(update={"certification": CertificationSettings(seconds=17)})
    waiting_sandbox = WaitingSandbox(sandbox)
    model = ScriptedModel([f"### shop/prices.py\n```python\n{NOISY}\n```"])

    result = await heal(
        project, HealOptions(test=COMMAND, settings=short_settings, model=model, sandbox=waiting_sandbox)
    )

    assert waiting_sandbox.waits.is_set()
    assert (result.outcome, dict(result.candidate.files if result.candidate else {})) == (
        "healed",
        {"shop/prices.py": NOISY},
    )
    assert not load_certificate(result.run_id, settings).claims.minimal.is_minimal


async def test_a_run_stopped_during_certification_is_cancelled(
    project: Path, settings: Settings, sandbox: BubblewrapSandbox
) -> None:
    waiting_sandbox = WaitingSandbox(sandbox)
    model = ScriptedModel([f"### shop/prices.py\n```python\n{NOISY}\n```"])
    run = asyncio.create_task(
        heal(
            project,
            HealOptions(test=COMMAND, settings=settings, model=model, sandbox=waiting_sandbox, apply=True),
        )
    )
    await waiting_sandbox.waits.wait()
    run.cancel()
    with pytest.raises(Cancelled):
        await run

    folder = find_run(settings.paths.home, "last")
    event = read_ledger(folder.ledger_path).events[-1]
    result = decode_record(Result, folder.load_json(event.data["result"]))
    assert (event.kind, result.outcome) == ("run.finished", "cancelled")
    assert dict(result.candidate.files if result.candidate else {}) == {"shop/prices.py": NOISY}
    assert (project / "shop" / "prices.py").read_text() == CODE
