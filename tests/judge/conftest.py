"""Fixtures of the judge's tests: a real sandbox with small limits, settings of whole runs, and the data sets."""

from __future__ import annotations

import gzip
import json
import os
import shlex
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from bare_pytest import BARE_PYTEST
from requirements import Require, find_bubblewrap
from suture.core.records import Candidate, Check, Language, Task, Verdict
from suture.core.settings import (
    BudgetSettings,
    CertificationSettings,
    PathSettings,
    RepairSettings,
    SandboxSettings,
    Settings,
)
from suture.judge import Suite, check_candidate, prepare_suite
from suture.project.languages import LANGUAGES
from suture.sandbox import Requirement, Sandbox, discover_interpreter, open_sandbox

Judge = Callable[..., Any]
Prepare = Callable[..., Any]
DataSet = Callable[[str], list[dict[str, Any]]]
PYTEST = BARE_PYTEST
PYTHON = discover_interpreter(None, {"VIRTUAL_ENV": sys.prefix})


@pytest.fixture(scope="session")
def sandbox_settings() -> SandboxSettings:
    return SandboxSettings(check_timeout_s=20, test_timeout_s=90)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Return settings of whole runs: their home is the test's own folder, and they run few mutants."""
    return Settings(
        paths=PathSettings(home=tmp_path / "home"),
        budget=BudgetSettings(attempts=4, seconds=600),
        certification=CertificationSettings(mutants=4, seconds=300),
        repair=RepairSettings(enabled=False),
    )


def require_language(language: Language, require: Require) -> None:
    """Skip the test if the program of a language is not installed."""
    program = LANGUAGES[language].program
    require(program, shutil.which(program) is not None, "it is not on PATH")


@pytest.fixture(scope="session")
def bubblewrap() -> Requirement:
    return find_bubblewrap()


@pytest.fixture
async def sandbox(
    bubblewrap: Requirement, require: Require, sandbox_settings: SandboxSettings, shared_cache: Path
) -> AsyncIterator[Sandbox]:
    require("bubblewrap", bubblewrap.ok, f"{bubblewrap.detail} ({bubblewrap.remedy})")
    sandbox = open_sandbox(sandbox_settings, cache=shared_cache)
    yield sandbox
    await sandbox.close()


@pytest.fixture
def judge(sandbox: Sandbox, sandbox_settings: SandboxSettings) -> Judge:
    """Return a function: `await judge(code, *asserts)` returns the verdict on one module."""

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
    """Return a function: `await prepare({"calc.py": ...}, "pytest -q")` returns the suite of a project."""

    async def run(files: Mapping[str, str], command: str = PYTEST) -> Suite:
        contents = {path: text.encode() for path, text in files.items()}
        task = Task(statement="", kind="heal", files=contents, test_command=tuple(shlex.split(command)))
        return await prepare_suite(task, sandbox, sandbox_settings, PYTHON)

    return run


@pytest.fixture(scope="session")
def data_set() -> DataSet:
    """Return a function: `data_set("humaneval")` returns the tasks of a data set, or skips the test."""

    def read(name: str) -> list[dict[str, Any]]:
        folder = os.environ.get("SUTURE_DATA")
        if not folder:
            pytest.skip("SUTURE_DATA is not set")
        with gzip.open(Path(folder) / name / "tasks.jsonl.gz", "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    return read
