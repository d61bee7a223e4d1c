"""A repair that the search has found is not lost if there is no time left for its verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from project_files import write_files
from suture.api import HealOptions, heal, resume
from suture.core.ledger import RunFolder
from suture.core.settings import load_settings
from suture.errors import BudgetExceeded, UsageError
from suture.interfaces.narrative.result_text import render_full_result
from suture.loop.nodes import search_repairs

pytestmark = [pytest.mark.timeout(300), pytest.mark.heavy]
FILES = {
    "tax.py": "def gross(net):\n    return net - net // 5\n",
    "test_tax.py": "from tax import gross\n\ndef test_gross():\n    assert gross(100) == 120\n"
    "\ndef test_zero():\n    assert gross(0) == 0\n",
}


async def test_resume_verifies_a_repair_for_which_there_was_no_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = write_files(tmp_path / "project", FILES)
    overrides = {"paths.home": str(tmp_path / "state"), "model.name": "none", "budget.seconds": "120"}
    settings = load_settings(project, overrides).settings

    async def run_out_of_time(*arguments: object, **options: object) -> object:
        limits = settings.budget
        raise BudgetExceeded("seconds", limits.seconds, limits.seconds)

    with monkeypatch.context() as patch:
        patch.setattr(search_repairs, "judge", run_out_of_time)
        result = await heal(project, HealOptions(test=BARE_PYTEST, settings=settings))
    assert result.outcome == "budget_exhausted"
    assert result.reason.notes == ("repair_unverified",)
    (path,) = (tmp_path / "state" / "runs").iterdir()
    shown = "\n".join(render_full_result(result, settings.budget, RunFolder(path)))
    assert "Found, not verified yet:" in shown
    assert "+    return net + net // 5" in shown
    assert f"suture resume {result.run_id}" in shown

    verified = await resume(result.run_id, settings=settings)
    assert verified.outcome == "healed"
    assert "+    return net + net // 5" in verified.diff
    with pytest.raises(UsageError, match="has ended"):
        await resume(result.run_id, settings=settings)
