"""A pipeline does not heal by a repair between which and others the tests do not decide."""

from __future__ import annotations

from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from interfaces.ci.failing_pipelines import FailingPipeline, make_repository
from suture.core.settings import Settings
from suture.interfaces.ci import HealRequest, heal_in_pipeline
from suture.interfaces.ci.ci_pipeline import Pipeline
from suture.sandbox import BubblewrapSandbox

FILES = {
    "joining.py": "def joined(a, b):\n    return a - b\n",
    "test_joining.py": "from joining import joined\n\n\ndef test_joined():\n    assert joined(2, 2) == 4\n",
}


@pytest.mark.heavy
@pytest.mark.parametrize("strict", [None, False])
async def test_a_pipeline_is_strict_unless_a_setting_says_otherwise(
    tmp_path: Path, sandbox: BubblewrapSandbox, strict: bool | None
) -> None:
    folder = tmp_path / "checkout"
    make_repository(FailingPipeline(name="", outcome="", status=0, files=FILES), folder)
    settings = Settings.model_validate(
        {
            "paths": {"home": tmp_path / "home"},
            "model": {"name": "none"},
            "repair": {"candidates": 60},
            "loop": {"strict": strict},
            "ci": {"confidence": 0, "new_only": False},
        }
    )
    request = HealRequest(root=folder, test=BARE_PYTEST)
    report = await heal_in_pipeline(request, Pipeline(), settings, print, sandbox=sandbox)

    assert report.diff
    if strict is None:
        assert (report.outcome, report.exit_code) == ("not_healed", 1)
        assert "your tests do not decide" in report.detail
    else:
        assert report.outcome == "healed"
