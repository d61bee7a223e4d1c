"""Measure the quality of the code that a run accepted."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from suture.api.past_runs import load_recorded_run
from suture.core.ledger import load_result
from suture.core.settings import Settings
from suture.errors import UsageError
from suture.judge import prepare_suite
from suture.judge.quality import QualityResult, QualitySubject, measure_quality
from suture.project.languages import LANGUAGES
from suture.project.languages.diagnostics import find_runtime_language
from suture.sandbox import Sandbox, discover_programs, open_sandbox
from suture.sandbox.packages import packages_for_task


async def measure_run_quality(
    run: str | Path = "last",
    *,
    names: Sequence[str] = (),
    settings: Settings | None = None,
    sandbox: Sandbox | None = None,
) -> dict[str, QualityResult]:
    """Measure the code that a run ended with, and return each evaluator's result. They decide nothing.

    Args:
        run: `last`, an id, the unique start or end of one, or a run folder.
        names: The evaluators by name; empty for all.
        settings: Settings for keys and folders; by default from the environment and the settings files.
        sandbox: The sandbox; by default that of the recorded settings.

    Raises:
        UsageError: There is no such run or evaluator, or the run has no Python code to measure.
        PrerequisiteError: There is no sandbox, or no Python.
        SandboxError: The sandbox failed.
        StorageError: The run folder is damaged.
    """
    recorded = load_recorded_run(run, settings)
    result, task = load_result(recorded.folder), recorded.task
    if result is None or result.candidate is None or not result.candidate.files:
        raise UsageError(
            f"run {recorded.folder.id} has no code to measure: it wrote or changed nothing",
            remedy="name another run: `suture history` lists them",
        )
    facts = LANGUAGES[task.language]
    if not facts.parsed:
        raise UsageError(f"the code of run {recorded.folder.id} is {facts.label}; only Python is measured")
    interpreter = recorded.interpreter or discover_programs(
        recorded.project, os.environ, find_runtime_language(task)
    )
    run_settings = recorded.settings
    opened = sandbox or open_sandbox(
        run_settings.sandbox, keys=run_settings.keys, cache=run_settings.paths.cache
    )
    try:
        packages = packages_for_task(task, run_settings, may_fetch=False)
        suite = await prepare_suite(task, opened, run_settings.sandbox, interpreter, packages=packages)
        subject = QualitySubject(files=result.candidate.files, suite=suite, interpreter=interpreter)
        return await measure_quality(subject, names)
    finally:
        if opened is not sandbox:
            await opened.close()
