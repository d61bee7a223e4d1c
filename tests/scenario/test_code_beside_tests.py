"""A project whose only file holds the code and its tests: healed, verified and judged, with the tests protected."""

from __future__ import annotations

from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from judgement.conftest import run_git
from prepared_suites import prepare_python_suite
from project_files import write_files
from suture.api import HealOptions, heal, judge, verify
from suture.core.records import Candidate
from suture.core.settings import ModelSettings, PathSettings, Settings
from suture.errors import MalformedReply
from suture.judge import check_candidate, find_protected_files
from suture.loop.evaluation.move_candidates import drop_protected_files
from suture.models import NO_MODEL
from suture.sandbox import Sandbox

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]
TEXT = """def total(prices, discount=0):
    result = 0
    for price in prices:
        result -= price
    return result * (100 - discount) / 100


def test_total():
    assert total([1, 2, 3]) == 6


def test_discount():
    assert total([100], 10) == 90
"""
RIGHT = TEXT.replace("-= price", "+= price")
CHEATING = TEXT.replace("== 6", "== -6").replace("== 90", "== -90")


async def test_a_candidate_may_change_the_code_and_not_the_tests(tmp_path: Path, sandbox: Sandbox) -> None:
    suite, _ = await prepare_python_suite(write_files(tmp_path, {"test_cart.py": TEXT}), sandbox)
    assert suite.test_files == ("test_cart.py",)
    assert not find_protected_files({"test_cart.py": RIGHT}, suite)
    verdict = await check_candidate(Candidate(files={"test_cart.py": RIGHT}, origin="repair"), suite)
    assert (len(verdict.passed), verdict.failed) == (2, frozenset())
    verdict = await check_candidate(Candidate(files={"test_cart.py": CHEATING}, origin="repair"), suite)
    assert len(verdict.failed) == 2
    assert "protected_file" in {note.code for note in verdict.notes}
    with pytest.raises(MalformedReply, match=r"changes tests in test_cart\.py"):
        drop_protected_files({"test_cart.py": CHEATING}, suite)


@pytest.mark.heavy
async def test_the_search_heals_the_code_beside_its_tests(tmp_path: Path, sandbox: Sandbox) -> None:
    project = write_files(tmp_path / "project", {"test_cart.py": TEXT})
    settings = Settings(
        model=ModelSettings(name=NO_MODEL),
        paths=PathSettings(home=tmp_path / "home", cache=tmp_path / "cache"),
    )
    result = await heal(project, HealOptions(test=BARE_PYTEST, settings=settings, sandbox=sandbox))
    assert result.outcome == "healed"
    assert "+        result += price" in result.diff
    (certificate,) = (tmp_path / "home" / "runs").glob("*/certificate.json")
    claims = [claim async for claim in verify(certificate, settings=settings, sandbox=sandbox)]
    assert all(claim.ok for claim in claims), claims


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (RIGHT, set()),
        (
            RIGHT.replace("- discount)", "- 0 * discount)").replace("== 90", "== 100"),
            {"failing_test_weakened"},
        ),
    ],
)
async def test_a_change_of_code_and_tests_in_one_file_is_judged_by_the_old_tests(
    text: str, codes: set[str], tmp_path: Path
) -> None:
    write_files(tmp_path, {"test_cart.py": TEXT})
    run_git(tmp_path, "init", "-q", "-b", "main")
    run_git(tmp_path, "add", "-A")
    run_git(tmp_path, "commit", "-q", "-m", "The cart")
    write_files(tmp_path, {"test_cart.py": text})
    judgement = await judge(tmp_path)
    assert {finding.code for finding in judgement.findings if finding.severity == "reject"} == codes
    assert judgement.outcome == ("rejected" if codes else "accepted")
