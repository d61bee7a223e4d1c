"""A real sandbox with small limits, and the data sets if they are available."""

from __future__ import annotations

import gzip
import json
import os
import shlex
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from bare_pytest import BARE_PYTEST
from requirements import find_bubblewrap
from suture.core.records import Candidate, Check, Task, Verdict
from suture.core.settings import SandboxSettings
from suture.judge import Suite, check_candidate, prepare_suite
from suture.sandbox import Requirement, Sandbox, discover_interpreter, open_sandbox

Judge = Callable[..., Any]
Prepare = Callable[..., Any]
PYTEST = BARE_PYTEST
PYTHON = discover_interpreter(None, {"VIRTUAL_ENV": sys.prefix})


@pytest.fixture(scope="session")
def sandbox_settings() -> SandboxSettings:
    return SandboxSettings(check_timeout_s=20, test_timeout_s=90)


@pytest.fixture(scope="session")
def bubblewrap() -> Requirement:
    return find_bubblewrap()


@pytest.fixture
async def sandbox(
    bubblewrap: Requirement, require: Callable[[str, bool, str], None], sandbox_settings: SandboxSettings
) -> AsyncIterator[Sandbox]:
    require("bubblewrap", bubblewrap.ok, f"{bubblewrap.detail} ({bubblewrap.remedy})")
    opened = open_sandbox(sandbox_settings)
    yield opened
    await opened.close()


@pytest.fixture
def judge(sandbox: Sandbox, sandbox_settings: SandboxSettings) -> Judge:
    """`await judge(code, *asserts)` answers the verdict on one module."""

    async def run(code: str, *programs: str, check_timeout_s: float | None = None, **task: Any) -> Verdict:
        settings = sandbox_settings
        if check_timeout_s is not None:
            settings = settings.model_copy(update={"check_timeout_s": check_timeout_s})
        checks = tuple(Check(id=str(n), provenance="user", source=p) for n, p in enumerate(programs))
        suite = await prepare_suite(Task(**{"statement": "", "checks": checks, **task}), sandbox, settings)
        return await check_candidate(Candidate(files={"solution.py": code}, origin="sample"), suite)

    return run


@pytest.fixture
def prepare(sandbox: Sandbox, sandbox_settings: SandboxSettings) -> Prepare:
    """`await prepare({"calc.py": ...}, "pytest -q")` answers the suite of a project and its command."""

    async def run(files: Mapping[str, str], command: str = PYTEST) -> Suite:
        given = {path: text.encode() for path, text in files.items()}
        task = Task(statement="", kind="heal", files=given, test_command=tuple(shlex.split(command)))
        return await prepare_suite(task, sandbox, sandbox_settings, PYTHON)

    return run


@pytest.fixture(scope="session")
def data_set() -> Callable[[str], list[dict[str, Any]]]:
    """`data_set("humaneval")` answers its tasks, or skips."""

    def read(name: str) -> list[dict[str, Any]]:
        folder = os.environ.get("SUTURE_DATA")
        if not folder:
            pytest.skip("SUTURE_DATA is not set")
        with gzip.open(Path(folder) / name / "tasks.jsonl.gz", "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    return read
