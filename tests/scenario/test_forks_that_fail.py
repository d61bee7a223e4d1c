"""A fork that cannot start ends with a final event and a useful error."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from bare_pytest import BARE_PYTEST
from run_events import read_events
from suture.api import HealOptions, fork_from_iteration, heal
from suture.core.ledger import find_run, read_ledger
from suture.core.settings import CertificationSettings, Settings
from suture.errors import Cancelled, PrerequisiteError, SandboxBroken, StorageError
from suture.loop.resume.recorded_run import load_fork_origin
from suture.sandbox import Sandbox
from suture.testing import ScriptedModel

CODE = "def double(n):\n    return n * n\n"
TEST = "from code_of_mine import double\n\n\ndef test_double():\n    assert double(3) == 6\n"
REPAIRED = {"code_of_mine.py": "def double(n):\n    return n + n\n"}


class BrokenSandbox:
    """A sandbox that raises a given error when it is used."""

    name = "fallen"

    def __init__(self, fault: BaseException) -> None:
        self._fault = fault

    async def run(self, *_: Any, **__: Any) -> Any:
        raise self._fault

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""


async def test_a_fork_that_cannot_collect_its_tests_records_its_end(
    settings: Settings, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "code_of_mine.py").write_text(CODE)
    (project / "test_it.py").write_text(TEST)
    quick = settings.model_copy(update={"certification": CertificationSettings(seconds=0)})
    model = ScriptedModel([f"### code_of_mine.py\n```python\n{CODE}x = 1\n```"], repeat_last=True)
    first = await heal(project, HealOptions(test=BARE_PYTEST, settings=quick, model=model))

    async def fork(fault: BaseException) -> Any:
        broken_sandbox = cast(Sandbox, BrokenSandbox(fault))
        return await fork_from_iteration(
            first.run_id, 0, candidate=REPAIRED, settings=quick, model=model, sandbox=broken_sandbox
        )

    def read_last_event() -> tuple[str, Any]:
        events = read_events(settings.paths.home)
        assert events[0].kind == "run.started"
        assert len(events) == 2
        return events[-1].kind, events[-1].data.get("outcome") or events[-1].data["message"]

    with pytest.raises(PrerequisiteError, match="no pytest"):
        await fork(PrerequisiteError("no pytest"))
    assert read_last_event() == ("run.failed", "no pytest")
    assert (await fork(SandboxBroken("it fell"))).outcome == "infra_error"
    assert read_last_event() == ("run.finished", "infra_error")

    with pytest.raises(Cancelled):
        await fork(asyncio.CancelledError())
    assert read_last_event() == ("run.finished", "cancelled")
    folder = find_run(settings.paths.home, "last")
    with pytest.raises(StorageError, match="ended while it began"):
        load_fork_origin(folder, read_ledger(folder.ledger_path).events)
