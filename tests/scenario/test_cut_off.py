"""A test suite that takes longer than its time limit is reported as cut off, not as failing."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from run_events import read_events
from suture.api import HealOptions, WriteOptions, heal, solve
from suture.core.ledger import find_run
from suture.core.ledger.kinds import CandidateChecked, SearchStarted
from suture.core.settings import load_settings
from suture.interfaces.narrative.run_progress_text import ProgressNarrator, render_short_result
from suture.testing import ScriptedModel

pytestmark = pytest.mark.timeout(120)

SLOW = (
    "import time\nimport pytest\nfrom sums import total\n\n\n"
    "@pytest.mark.parametrize('n', range(100))\n"
    "def test_slow(n):\n    time.sleep(0.2)\n    assert total([n]) == (n or 7)\n"
)


@pytest.mark.heavy
async def test_tests_not_reached_do_not_count_as_failed(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "sums.py").write_text("def total(values):\n    return sum(values)\n")
    (project / "test_sums.py").write_text(SLOW)
    overrides = {"paths.home": str(tmp_path / "state"), "model.name": "none", "sandbox.test_timeout_s": "8"}
    settings = load_settings(project, overrides).settings

    result = await heal(project, HealOptions(test=BARE_PYTEST, settings=settings))

    assert result.outcome == "budget_exhausted"
    message = re.fullmatch(
        r"your tests were cut off after \d+ s: (\d+) passed, 1 failed, (\d+) were not reached; "
        r"all of them may take \d+ s",
        result.reason.detail,
    )
    assert message is not None
    assert re.fullmatch(
        r"--seconds \d+ --set sandbox.test_timeout_s=\d+, or name fewer tests with --test",
        result.reason.remedy,
    )
    end = list(render_short_result(result, find_run(settings.paths.home, result.run_id)))
    assert f"Start it again: {result.reason.remedy}" in end
    passed, unreached = map(int, message.groups())
    assert passed + unreached == 99
    assert passed
    events = read_events(settings.paths.home, result.run_id)
    assert not any(isinstance(event.payload, SearchStarted) for event in events)
    (checked,) = (event for event in events if isinstance(event.payload, CandidateChecked))
    assert ProgressNarrator().lines_for(checked) == (
        f"Your code: {passed} pass, 1 fail, {unreached} not reached.",
    )


async def test_the_time_budget_of_heal_starts_at_the_users_request(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "sums.py").write_text("def total(values):\n    return sum(values)\n")
    (project / "test_sums.py").write_text(
        "from sums import total\n\n\ndef test_it():\n    assert total([1]) == 2\n"
    )
    overrides = {"paths.home": str(tmp_path / "state"), "model.name": "none", "budget.seconds": "100"}
    settings = load_settings(project, overrides).settings

    result = await heal(project, HealOptions(settings=settings, requested_at_s=time.time() - 99.9))

    assert result.outcome == "budget_exhausted"
    assert result.reason.detail.startswith("the first run of your tests had not ended after 100 s")
    assert "--seconds 200" in result.reason.remedy
    assert result.spend.seconds == pytest.approx(100, abs=20)


async def test_the_time_budget_of_solve_starts_at_the_users_request(tmp_path: Path) -> None:
    overrides = {"paths.home": str(tmp_path / "state"), "budget.seconds": "100"}
    settings = load_settings(tmp_path, overrides).settings
    model = ScriptedModel(["```python\ndef double(n):\n    return 2 * n\n```"])
    task = "Write a function double(n). double(4) == 8."

    result = await solve(
        task, WriteOptions(settings=settings, model=model, requested_at_s=time.time() - 99.9)
    )

    assert result.outcome == "budget_exhausted"
    assert result.spend.seconds == pytest.approx(100, abs=20)
