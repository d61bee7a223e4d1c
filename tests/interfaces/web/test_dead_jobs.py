"""A job whose process dies before it writes a line of its run has an end, and can be requested again."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from suture.core.settings import Settings
from suture.interfaces.web.problem_details import RequestRefused
from suture.interfaces.web.request_guard import LOCAL
from suture.interfaces.web.route_dependencies import require_ledger
from suture.interfaces.web.run_views import run_details
from suture.interfaces.web.web_service import open_web_service


async def test_the_key_of_a_job_that_died_before_it_began_starts_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nkill -9 $$\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    settings = Settings.model_validate({"paths": {"home": str(tmp_path / "home")}})
    service, journal = open_web_service(settings, {}, needs_token=False)

    jobs = []
    for _ in range(2):
        jobs.append(service.submit(LOCAL, "write", {"task": "x"}, key="one"))
        assert service.submit(LOCAL, "write", {"task": "x"}, key="one") == jobs[-1]
        end = await asyncio.wait_for(service.pool.ended(jobs[-1]), 10)
        assert (end.exit_code, end.fault) == (6, "ProcessDied")
    assert jobs[0].id != jobs[1].id

    described = run_details(service.pool, service.job_folder(jobs[0]), settings)
    assert (described.state, (described.error or {})["fault"]) == ("refused", "ProcessDied")
    with pytest.raises(RequestRefused, match=r"ended before it began: .* \(signal 9\)"):
        require_ledger(service, jobs[0].run)
    await service.pool.close()
    journal.close()
