"""What is started early is what the run then needs."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from requirements import Require
from suture.core.records import Task
from suture.core.settings import Settings
from suture.judge import prepare_suite
from suture.judge.runners import early_start
from suture.judge.runners.early_start import has_pytest_tests, open_early_sandbox
from suture.sandbox import BubblewrapSandbox, Requirement, RunRequest, RunResult, discover_interpreter


class RecordingSandbox(BubblewrapSandbox):
    """Records what was prepared and what ran."""

    prepared: list[RunRequest]
    ran: list[RunRequest]

    async def prepare_runs(self, request: RunRequest, count: int) -> None:
        self.prepared.append(request)

    async def run(self, request: RunRequest) -> RunResult:
        self.ran.append(request)
        return await super().run(request)


@pytest.fixture
def recording(
    sandbox_requirement: Requirement, require: Require, monkeypatch: pytest.MonkeyPatch
) -> RecordingSandbox:
    """Return the sandbox that `open_early_sandbox` opens."""
    require("bubblewrap", sandbox_requirement.ok, sandbox_requirement.detail)
    recording = RecordingSandbox()
    recording.prepared, recording.ran = [], []

    def open_recording(settings: Any, **options: Any) -> RecordingSandbox:
        return recording

    monkeypatch.setattr(early_start, "open_sandbox", open_recording)
    return recording


async def open_and_wait(settings: Settings, project: Path, test: str | None) -> None:
    async with open_early_sandbox(settings, project, test):
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait([task])


def get_zygote_fields(request: RunRequest) -> tuple[Any, ...]:
    """Return what decides in which process a request runs."""
    return request.argv[:2], request.mounts, request.limits, request.preload


@pytest.mark.parametrize("test", [None, "pytest -q -p no:randomly tests"])
async def test_the_first_run_needs_what_was_started(
    recording: RecordingSandbox, settings: Settings, tmp_path: Path, test: str | None
) -> None:
    source = "def test_one():\n    assert True\n"
    project = tmp_path / "project"
    (project / "tests").mkdir(parents=True)
    (project / "tests" / "test_one.py").write_text(source)
    command = tuple((test or "python -m pytest -q").split())
    await open_and_wait(settings, project, test)

    files = {"tests/test_one.py": source.encode()}
    task = Task(statement="", kind="heal", files=files, test_command=command)
    interpreter = discover_interpreter(project, os.environ)
    await prepare_suite(task, recording, settings.sandbox, interpreter, run=True)
    assert [get_zygote_fields(request) for request in recording.prepared] == [
        get_zygote_fields(recording.ran[0])
    ]
    await recording.close()


@pytest.mark.parametrize(
    ("names", "test"),
    [(["app.js", "app.test.js"], None), (["test_one.py"], "make test"), (["test_one.py"], "sh -c 'x")],
)
async def test_other_projects_start_nothing(
    recording: RecordingSandbox, settings: Settings, tmp_path: Path, names: list[str], test: str | None
) -> None:
    for name in names:
        (tmp_path / name).write_text("")
    await open_and_wait(settings, tmp_path, test)
    assert not recording.prepared


def test_tests_are_found_in_folders_but_not_among_packages(tmp_path: Path) -> None:
    (tmp_path / "node_modules" / "gyp").mkdir(parents=True)
    (tmp_path / "node_modules" / "gyp" / "test_gyp.py").write_text("")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "test_hidden.py").write_text("")
    assert not has_pytest_tests(tmp_path)
    (tmp_path / "source" / "deep").mkdir(parents=True)
    (tmp_path / "source" / "deep" / "codec_test.py").write_text("")
    assert has_pytest_tests(tmp_path)
