"""Drivers: programs that run in the sandbox and try many candidates in one process.

A driver reads a plan with jobs, one for each candidate, and reports one JSON line for each job. The *shell lines*
are the commands that start the project's test runner. A *harness* is a small test runner of ours, which is faster
than the project's own.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import resources
from typing import Any, TypeVar

from suture.core.records import Language
from suture.judge.trials.drivers import golang, node, whole_runners
from suture.judge.trials.drivers.driver_reports import parse_reports
from suture.judge.trials.target_tests import FailingProject
from suture.judge.trials.trial_records import Proposal
from suture.judge.trials.tuning import DRIVER_START_S, MIN_ROUND_LINGER_S, ROUND_LINGER_SHARE
from suture.project.languages import bypass_npm, find_runner, find_started_scripts

T = TypeVar("T")
DRIVERS = "suture.judge.trials.drivers"
PLAN, TRIALS = "plan.json", "trials"


@dataclass(frozen=True, kw_only=True)
class Driver:
    """How candidates are tried on the tests of one runner.

    Attributes:
        programs: The names of its files in `suture.judge.trials.drivers`.
        build_argv: Takes the Python interpreter, the shell lines and the folder of the driver, and returns the
            command line of the driver.
        build_job: Takes a candidate, the source of the file that it changes, and the language. Returns the job of
            the candidate, or `None` if the driver cannot try it.
        build_common: Takes the project's files, the test files and the shell lines. Returns the part of the
            plan that all jobs share.
        round_size: Candidates that one process tries in a round.
        parallel: Processes that run in parallel.
        max_rivals: Candidates that are tried after the first that passes.
        min_timeout_s: Minimum timeout of a trial.
        own_runner: The program of the project's own runner, if that runs the tests and stays loaded. Then a
            driver is only used for shell lines that `whole_runners` can parse. Empty if a harness runs them.
        make_interruptible: Takes the path and the source of a file, and its language. Returns the source with checks in
            its loops, by which the driver can end them. `None` if the driver cannot interrupt loops.
        extract_error: Takes what a failing test printed, and returns the error in it.
    """

    programs: tuple[str, ...]
    build_argv: Callable[[str, Sequence[str], str], tuple[str, ...]]
    build_job: Callable[[Proposal, str, Language], dict[str, Any] | None]
    build_common: Callable[[Mapping[str, bytes], Sequence[str], Sequence[str]], dict[str, Any]]
    round_size: int
    parallel: int
    max_rivals: int = 120
    min_timeout_s: float = 0.3
    own_runner: str = ""
    make_interruptible: Callable[[str, str, Language], str] | None = None
    extract_error: Callable[[str], str] = lambda output: output


def _whole_runner(program: str, programs: tuple[str, ...], min_timeout_s: float) -> Driver:
    """Return the driver of a runner that stays loaded: slower than a harness of ours, but complete."""
    return Driver(
        programs=programs,
        build_argv=whole_runners.build_argv,
        build_job=whole_runners.build_job,
        build_common=partial(whole_runners.build_common, program),
        round_size=80,
        parallel=2,
        max_rivals=10,
        min_timeout_s=min_timeout_s,
        own_runner=program,
    )


# The sizes of rounds and the timeouts are chosen by judgement and not measured.
DRIVERS_BY_RUNNER: Mapping[str, Driver] = {
    "node:test": Driver(
        programs=node.PROGRAMS,
        build_argv=node.build_argv,
        build_job=node.build_job,
        build_common=node.build_common,
        round_size=400,
        parallel=2,
        make_interruptible=node.make_interruptible,
    ),
    "go test": Driver(
        programs=golang.PROGRAMS,
        build_argv=golang.build_argv,
        build_job=golang.build_job,
        build_common=golang.build_common,
        round_size=600,
        parallel=1,
        extract_error=golang.extract_error,
    ),
    "Jest": _whole_runner("jest", whole_runners.JEST, min_timeout_s=3.0),
    "Vitest": _whole_runner("vitest", whole_runners.VITEST, min_timeout_s=3.0),
    "mocha": _whole_runner("mocha", whole_runners.MOCHA, min_timeout_s=1.0),
    "tape": _whole_runner("tape", whole_runners.TAPE, min_timeout_s=1.0),
}
"""Name of a runner -> its driver; for all other runners each trial is a run of the whole command."""


def find_driver(argv: Sequence[str], files: Mapping[str, bytes], language: Language) -> Driver | None:
    """Return the driver for a test command; `None` if each trial needs a run of the command."""
    runner = find_runner(argv, files, language)
    lines = shell_lines(argv, files)
    # Runners that report no single tests to a verdict (`STATUS_ONLY`) are known only to `whole_runners`.
    name = runner.name if runner is not None else whole_runners.find_unreported(lines)
    driver = DRIVERS_BY_RUNNER.get(name)
    if (
        driver is not None
        and driver.own_runner
        and whole_runners.parse_start(lines, driver.own_runner) is None
    ):
        return None
    return driver


def shell_lines(argv: Sequence[str], files: Mapping[str, bytes]) -> list[str]:
    """Return what a shell runs for a command: the command itself, or the package scripts that it starts."""
    script_argv = bypass_npm(argv, files)
    if script_argv is not None and script_argv[0] == "/bin/sh":
        return [script_argv[-1]]  # `npm run NAME` runs that script only, not also `test`
    scripts = [script for script in find_started_scripts(argv, files) if script]
    if len(scripts) == 1 and "--" in argv:
        scripts = [f"{scripts[0]} {shlex.join(argv[argv.index('--') + 1 :])}"]
    return scripts or [shlex.join(argv)]


async def run_driver(
    driver: Driver, project: FailingProject, plan: Mapping[str, Any], seconds: float
) -> list[dict[str, Any]]:
    """Run a driver on a project, and return the valid lines of its report.

    Args:
        project: The project, whose command's sandbox and toolchain are used.

    Raises:
        SandboxError: The sandbox failed.
    """
    lines = shell_lines(project.argv, project.files)
    folder = resources.files(DRIVERS)
    programs = {name: folder.joinpath(name).read_bytes() for name in driver.programs}
    plan_json = json.dumps({**plan, "seconds": seconds}).encode("ascii")
    report = await project.command.run_helper_program(
        lambda python, driver_folder: driver.build_argv(python, lines, driver_folder),
        project.files,
        {**programs, PLAN: plan_json},
        collect=TRIALS,
        wall_s=seconds + DRIVER_START_S,
    )
    return list(parse_reports(report))


async def run_rounds(
    rounds: Sequence[Coroutine[Any, Any, list[T]]], passes: Callable[[Sequence[T]], bool]
) -> list[T]:
    """Run rounds in parallel, and return their results in order.

    Rounds that are cut off have no result.

    Args:
        passes: Takes the result of a round, and returns whether some candidate passes in it. After such a
            result, the other rounds are cut off soon.

    Raises:
        Exception: The exception of the first round that failed.
    """
    began_s = time.monotonic()
    tasks = [asyncio.create_task(coroutine) for coroutine in rounds]
    try:
        waiting = set(tasks)
        while waiting and not any(task.exception() or passes(task.result()) for task in tasks if task.done()):
            _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if waiting:
            elapsed_s = time.monotonic() - began_s
            await asyncio.wait(waiting, timeout=max(MIN_ROUND_LINGER_S, ROUND_LINGER_SHARE * elapsed_s))
        return [item for task in tasks if task.done() for item in task.result()]
    finally:
        for task in tasks:  # no round continues after a fault
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
