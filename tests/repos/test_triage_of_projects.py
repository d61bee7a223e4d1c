"""Triage of whole projects, with real runs of their tests in the sandbox."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from repos.conftest import EXPECTED, project
from requirements import CachingSandbox, Require
from suture.core.records import Candidate, Verdict
from suture.core.settings import SandboxSettings
from suture.errors import SandboxUnavailable
from suture.judge import Suite, TriageResult, check_candidate, prepare_suite, triage_failures
from suture.loop.intake.heal_task import build_heal_task
from suture.sandbox import RunRequest, Sandbox, discover_programs

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(600)]
PLUGIN_OPTIONS = " -p no:hypothesispytest -p no:langsmith_plugin"
UNCHANGED = Candidate(files={}, origin="user")
MAX_FLAKY_RUNS = 60
"""Runs of triage on a flaky project: one in four shows it (a failure, then a pass); 60 miss it once in 30 million."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox(require: Require, shared_cache: Path) -> AsyncIterator[Sandbox]:
    opened_sandbox = CachingSandbox(shared_cache)
    try:
        await opened_sandbox.run(RunRequest(argv=("true",)))
    except SandboxUnavailable as fault:
        require("bubblewrap", False, str(fault))
    yield opened_sandbox
    await opened_sandbox.close()


async def run_tests(root: Path, sandbox: Sandbox, **changes: bytes) -> tuple[Suite, Verdict]:
    is_python = "needs" not in EXPECTED[root.name]
    task, _ = build_heal_task(root, test=f"python -m pytest -q{PLUGIN_OPTIONS}" if is_python else None)
    task = replace(task, files={**task.files, **changes})
    python = discover_programs(root, {"VIRTUAL_ENV": sys.prefix, "PATH": os.defpath}, task.language)
    endless = root.name == "time_out" and not changes
    settings = SandboxSettings(test_timeout_s=20 if endless else 120)
    suite = await prepare_suite(task, sandbox, settings, python)
    return suite, await check_candidate(UNCHANGED, suite)


async def run_triage(root: Path, sandbox: Sandbox) -> TriageResult:
    """Return the triage of a failing project. A flaky project is repeated until its flakiness shows."""
    for _ in range(MAX_FLAKY_RUNS):
        suite, verdict = await run_tests(root, sandbox)
        triage = await triage_failures(suite, verdict) if verdict.failed else None
        if triage is not None and (triage.cause or not root.name.endswith("flaky")):
            return triage
    raise AssertionError(f"the project did not fail as expected in {MAX_FLAKY_RUNS} runs")


@pytest.mark.heavy
async def test_triage_finds_the_cause_of_each_project(expected: dict[str, Any], sandbox: Sandbox) -> None:
    triage = await run_triage(expected["root"], sandbox)
    assert (triage.cause or "code") == expected["triage"], triage
    assert expected.get("says", "") in triage.reason


async def test_a_test_without_its_package_is_an_environment_fault(sandbox: Sandbox) -> None:
    changed = {"test_fine.py": b"def test_fine(): ...\n"}
    suite, verdict = await run_tests(project("missing_package")["root"], sandbox, **changed)
    triage = await triage_failures(suite, verdict)
    assert "test_fine.py::test_fine" in verdict.failed
    assert (triage.cause, triage.code_failures) == ("environment", ())


SHOP = "def total(prices):\n    return -sum(prices)\n\n\ndef stored():\n    import no_such_store\n"
TOTAL = "from shop import stored, total\n\n\ndef test_total():\n    assert total([1]) == 1\n\n\n"


@pytest.mark.parametrize(
    ("other_test", "ending_cause"),
    [
        ("def test_stored():\n    import no_such_store\n", "environment"),
        ("def test_stored(store_of_plugin): ...\n", "environment"),
        ("def test_stored():\n    stored()\n", None),
        ("def test_stored():\n    open('no_such_file')\n", None),
    ],
)
async def test_an_environment_fault_beside_a_code_fault_may_end_a_run(
    other_test: str, ending_cause: str | None, tmp_path: Path, sandbox: Sandbox
) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "test_shop.py").write_text(TOTAL + other_test)
    task, _ = build_heal_task(tmp_path, test=f"python -m pytest -q{PLUGIN_OPTIONS}")
    python = discover_programs(tmp_path, {"VIRTUAL_ENV": sys.prefix, "PATH": os.defpath}, task.language)
    suite = await prepare_suite(task, sandbox, SandboxSettings(test_timeout_s=120), python)

    triage = await triage_failures(suite, await check_candidate(UNCHANGED, suite))

    assert [failure.test for failure in triage.not_code] == ["test_shop.py::test_stored"]
    assert (triage.cause, triage.code_failures) == (None, ("test_shop.py::test_total",))
    assert triage.ending_cause == ending_cause


async def test_the_fix_of_a_code_fault_repairs_it(repairable: dict[str, Any], sandbox: Sandbox) -> None:
    path, wrong, right = repairable["fix"]
    text = (repairable["root"] / path).read_text()
    assert text.count(wrong) == 1
    _, verdict = await run_tests(repairable["root"], sandbox, **{path: text.replace(wrong, right).encode()})
    assert verdict.all_passed, verdict.failed
