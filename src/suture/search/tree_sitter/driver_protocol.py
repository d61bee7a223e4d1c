"""What a driver is: a program of ours behind the wall that runs the tests of many candidates in one start."""

from __future__ import annotations

import asyncio
import json
import shlex
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import resources
from typing import Any, TypeVar

from suture.core.records import Language
from suture.judge.trials.trial_records import Proposal
from suture.project.languages import Runner, runner_of, scripts_run_by, without_npm
from suture.search.failing_project import FailingProject
from suture.search.tree_sitter.drivers import golang, node, whole_runners

T = TypeVar("T")
DRIVERS = "suture.search.tree_sitter.drivers"
PLAN, TRIALS = "plan.json", "trials"
START_S = 20.0
"""What a driver may take beside the trials themselves: a compiler's start."""
LEAST_S, SHARE = 1.5, 0.5
"""Where one round has found what passes, others may go on so many seconds, or so much of what it took."""
MOST_MS = 1e7
"""No test is said to take longer."""


@dataclass(frozen=True, kw_only=True)
class Driver:
    """How candidates are tried on the tests of one runner.

    Attributes:
        programs: Its files, of `suture.search.tree_sitter.drivers`.
        argv: What starts it: by the interpreter that runs Suture, and by the lines that start the runner.
        job: What it is told of a candidate; `None` where it cannot try that one.
        common: What it is told once, by the project's files, the test files and the lines.
        round: Candidates of one start.
        at_once: Starts side by side.
        rivals: Changes that are tried after the first that passes.
        least_wall_s: Seconds that a trial has in any case.
        runs: The program of the project's own runner, where that runs the tests, kept loaded, and no stand-in
            of ours; the command's lines must be understood then.
        watched: A file, by its path, text and language, in which it can end a loop; `None` where it cannot.
        fault: What in the words of a failing test says what was wrong.
    """

    programs: tuple[str, ...]
    argv: Callable[[str, Sequence[str], str], tuple[str, ...]]
    job: Callable[[Proposal, str, Language], dict[str, Any] | None]
    common: Callable[[Mapping[str, bytes], Sequence[str], Sequence[str]], dict[str, Any]]
    round: int
    at_once: int
    rivals: int = 120
    least_wall_s: float = 0.3
    runs: str = ""
    watched: Callable[[str, str, Language], str] | None = None
    fault: Callable[[str], str] = lambda words: words


WHOLE = partial(
    Driver,
    argv=whole_runners.argv,
    job=whole_runners.job,
    round=80,
    at_once=2,
    rivals=10,
    least_wall_s=3.0,
)
"""A runner that stays loaded: it is slower than a harness of ours, and does all that the runner does."""
BY_RUNNER: Mapping[str, Driver] = {
    "node:test": Driver(
        programs=node.PROGRAMS,
        argv=node.argv,
        job=node.job,
        common=node.common,
        round=400,
        at_once=2,
        watched=node.watched,
    ),
    "go test": Driver(
        programs=golang.PROGRAMS,
        argv=golang.argv,
        job=golang.job,
        common=golang.common,
        round=600,
        at_once=1,
        fault=golang.fault,
    ),
    "Jest": WHOLE(programs=whole_runners.JEST, common=partial(whole_runners.common, "jest"), runs="jest"),
    "Vitest": WHOLE(
        programs=whole_runners.VITEST, common=partial(whole_runners.common, "vitest"), runs="vitest"
    ),
    "mocha": WHOLE(
        programs=whole_runners.MOCHA,
        common=partial(whole_runners.common, "mocha"),
        runs="mocha",
        least_wall_s=1.0,
    ),
    "tape": WHOLE(
        programs=whole_runners.TAPE,
        common=partial(whole_runners.common, "tape"),
        runs="tape",
        least_wall_s=1.0,
    ),
}
"""Name of a runner -> how candidates are tried on its tests; all others run whole for each candidate."""


def find_driver(argv: Sequence[str], files: Mapping[str, bytes], language: Language) -> Driver | None:
    """The driver for a test command; `None` where each candidate needs a run of the command.

    Args:
        argv: The command.
        files: The project.
        language: What it tests.
    """
    runner: Runner | None = runner_of(argv, files, language)
    lines = shell_lines(argv, files)
    driver = BY_RUNNER.get(runner.name if runner is not None else whole_runners.unreported(lines))
    if driver is None or (driver.runs and whole_runners.started(lines, driver.runs) is None):
        return None
    return driver


def shell_lines(argv: Sequence[str], files: Mapping[str, bytes]) -> list[str]:
    """What a command has a shell run: itself, or the scripts of the project that it starts.

    Args:
        argv: The command.
        files: The project.
    """
    quick = without_npm(argv, files)
    if quick is not None and quick[0] == "/bin/sh":  # of `npm run NAME` that script alone, not also `test`
        return [quick[-1]]
    scripts = [script for script in scripts_run_by(argv, files) if script]
    if len(scripts) == 1 and "--" in argv:
        scripts = [f"{scripts[0]} {shlex.join(argv[argv.index('--') + 1 :])}"]
    return scripts or [shlex.join(argv)]


async def run_driver(
    driver: Driver, project: FailingProject, plan: Mapping[str, Any], seconds: float
) -> list[dict[str, Any]]:
    """Start a driver on a project, and what it says.

    Args:
        driver: The driver.
        project: The project; the command's wall and toolchain are used.
        plan: What it is to do.
        seconds: That it may take.

    Raises:
        SandboxError: The wall failed.
    """
    lines = shell_lines(project.argv, project.files)
    folder = resources.files(DRIVERS)
    own = {name: folder.joinpath(name).read_bytes() for name in driver.programs}
    whole_plan = json.dumps({**plan, "seconds": seconds}).encode("ascii")
    result = await project.command.run_beside(
        lambda python, box: driver.argv(python, lines, box),
        project.files,
        {**own, PLAN: whole_plan},
        collect=TRIALS,
        wall_s=seconds + START_S,
    )
    return list(_told(result))


def select_trial_reports(told: Sequence[dict[str, Any]], count: int) -> dict[int, dict[str, Any]]:
    """What a driver says of each candidate, by their numbers.

    One line of each, as forged ones may be any number: that it passes, which is judged again.

    Args:
        told: Its lines.
        count: How many candidates it was given.
    """
    said: dict[int, dict[str, Any]] = {}
    for line in told:
        number = line.get("number")
        if line.get("event") != "trial" or type(number) is not int or not 0 <= number < count:
            continue
        if number not in said or line.get("ok") is True:
            said[number] = line
    return said


async def run_rounds(
    rounds: Sequence[Coroutine[Any, Any, list[T]]], passes: Callable[[Sequence[T]], bool]
) -> list[T]:
    """What rounds tell, in their order; of one that was not waited for, nothing.

    Args:
        rounds: They, not begun.
        passes: Whether something passes in what one tells.

    Raises:
        Exception: What went wrong in the first of them in which something did.
    """
    began_s, tasks = time.monotonic(), [asyncio.create_task(one) for one in rounds]
    try:
        waiting = set(tasks)
        while waiting and not any(task.exception() or passes(task.result()) for task in tasks if task.done()):
            _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if waiting:
            await asyncio.wait(waiting, timeout=max(LEAST_S, SHARE * (time.monotonic() - began_s)))
        return [pair for task in tasks if task.done() for pair in task.result()]
    finally:
        for task in tasks:  # none goes on behind a fault
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _told(raw: bytes) -> Iterator[dict[str, Any]]:
    """The lines that can be read: whatever shares a process with candidates may write anything there."""
    for line in raw.splitlines():
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and _is_sound(value):
            yield value


def _is_sound(line: Mapping[str, Any]) -> bool:
    """Whether what is read of a line is of the kind that a driver writes; candidates may forge any."""
    if line.get("event") == "look":
        tests = line.get("tests")
        return isinstance(tests, list) and all(isinstance(one, dict) and _is_seen(one) for one in tests)
    return _is_words(line.get("passed", []))


def _is_seen(one: Mapping[str, Any]) -> bool:
    lines, took = one.get("lines") or {}, (one.get("ms", 0), one.get("cpu_ms", 0))
    if not all(isinstance(ms, int | float) and 0 <= ms < MOST_MS for ms in took) or not isinstance(
        lines, dict
    ):
        return False
    return all(isinstance(own, list) and all(type(at) is int for at in own) for own in lines.values())


def _is_words(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)
