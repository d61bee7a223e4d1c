"""What triage says of whole projects: real runs of their tests behind the wall."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from repos.conftest import EXPECTED, project
from suture.core.records import Candidate, Verdict
from suture.core.settings import SandboxSettings
from suture.errors import SandboxUnavailable
from suture.judge import Suite, TriageResult, check_candidate, prepare_suite, triage_failures
from suture.loop.intake.heal_task import build_heal_task
from suture.sandbox import BubblewrapSandbox, RunRequest, Sandbox, discover_programs

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(600)]
UNWANTED = " -p no:hypothesispytest -p no:langsmith_plugin"
AS_IT_IS = Candidate(files={}, origin="user")
LUCK = 12
"""Times that a flaky project is looked at: one look may see it fail three times, or not at all."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox(require: Callable[[str, bool, str], None]) -> AsyncIterator[Sandbox]:
    opened = BubblewrapSandbox()
    try:
        await opened.run(RunRequest(argv=("true",)))
    except SandboxUnavailable as fault:
        require("bubblewrap", False, str(fault))
    yield opened
    await opened.close()


async def judged(root: Path, sandbox: Sandbox, **changed: bytes) -> tuple[Suite, Verdict]:
    is_python = "needs" not in EXPECTED[root.name]
    task, _ = build_heal_task(root, test=f"python -m pytest -q{UNWANTED}" if is_python else None)
    task = replace(task, files={**task.files, **changed})
    python = discover_programs(root, {"VIRTUAL_ENV": sys.prefix, "PATH": os.defpath}, task.language)
    endless = root.name == "time_out" and not changed
    settings = SandboxSettings(test_timeout_s=20 if endless else 120)
    suite = await prepare_suite(task, sandbox, settings, python)
    return suite, await check_candidate(AS_IT_IS, suite)


async def look(root: Path, sandbox: Sandbox) -> TriageResult:
    """Triage of a project that fails; of a flaky one until it is seen to waver."""
    for _ in range(LUCK):
        suite, verdict = await judged(root, sandbox)
        found = await triage_failures(suite, verdict) if verdict.failed else None
        if found is not None and (found.cause or not root.name.endswith("flaky")):
            return found
    raise AssertionError(f"in {LUCK} looks it never failed as it should")


@pytest.mark.heavy
async def test_each_project_gets_its_cause(expected: dict[str, Any], sandbox: Sandbox) -> None:
    found = await look(expected["root"], sandbox)
    assert (found.cause or "code") == expected["triage"], found
    assert expected.get("says", "") in found.reason


async def test_what_never_ran_for_want_of_a_package_is_not_the_codes(sandbox: Sandbox) -> None:
    changed = {"test_fine.py": b"def test_fine(): ...\n"}
    suite, verdict = await judged(project("missing_package")["root"], sandbox, **changed)
    found = await triage_failures(suite, verdict)
    assert "test_fine.py::test_fine" in verdict.failed
    assert (found.cause, found.code_failures) == ("environment", ())


SHOP = "def total(prices):\n    return -sum(prices)\n\n\ndef stored():\n    import no_such_store\n"
TOTAL = "from shop import stored, total\n\n\ndef test_total():\n    assert total([1]) == 1\n\n\n"


@pytest.mark.parametrize(
    ("beside", "end"),
    [
        ("def test_stored():\n    import no_such_store\n", "environment"),
        ("def test_stored(store_of_plugin): ...\n", "environment"),
        ("def test_stored():\n    stored()\n", None),
        ("def test_stored():\n    open('no_such_file')\n", None),
    ],
)
async def test_beside_a_fault_of_the_code_only_what_stays_ends_a_run(
    beside: str, end: str | None, tmp_path: Path, sandbox: Sandbox
) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "test_shop.py").write_text(TOTAL + beside)
    task, _ = build_heal_task(tmp_path, test=f"python -m pytest -q{UNWANTED}")
    python = discover_programs(tmp_path, {"VIRTUAL_ENV": sys.prefix, "PATH": os.defpath}, task.language)
    suite = await prepare_suite(task, sandbox, SandboxSettings(test_timeout_s=120), python)
    found = await triage_failures(suite, await check_candidate(AS_IT_IS, suite))
    assert [one.test for one in found.not_code] == ["test_shop.py::test_stored"]
    assert (found.cause, found.code_failures) == (None, ("test_shop.py::test_total",))
    assert found.ending_cause == end


async def test_the_fix_of_a_code_fault_mends_it(mendable: dict[str, Any], sandbox: Sandbox) -> None:
    path, wrong, right = mendable["fix"]
    text = (mendable["root"] / path).read_text()
    assert text.count(wrong) == 1
    _, verdict = await judged(mendable["root"], sandbox, **{path: text.replace(wrong, right).encode()})
    assert verdict.all_passed, verdict.failed
