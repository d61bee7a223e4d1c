"""The plan of a benchmark, fixed before it begins, and the environment in which it is measured."""

from __future__ import annotations

import itertools
import os
import platform
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Literal

from suture.api import run_sync
from suture.bench.datasets import load_problems
from suture.bench.problem import Problem, Regime
from suture.bench.rows import BenchmarkRow, RowKey
from suture.core.processors import count_usable_cores
from suture.core.settings import Settings
from suture.errors import UsageError
from suture.models.llama_server.thread_calibration import cpu_name
from suture.sandbox import open_sandbox

DEFAULT_CAPS = (2000,)
"""Reply tokens for each task. Chosen by judgement; not measured."""


@dataclass(frozen=True, kw_only=True)
class BenchmarkPlan:
    """What a benchmark measures, fixed before the first run.

    Attributes:
        ids: Data set -> ids of its tasks, in order.
        arms: Names of the recipes to compare.
        seeds: Number of independent repetitions.
        caps: Maximum reply tokens for each task and arm; each cap is a run of its own.
        sessions: The environment of each call that measured a part of the plan: machine, versions, date,
            command.
        id: Id of the benchmark, which does not change if the folder is renamed; set when the plan is first written.
    """

    ids: Mapping[str, tuple[str, ...]]
    arms: tuple[str, ...]
    models: tuple[str, ...]
    seeds: int = 1
    caps: tuple[int, ...] = DEFAULT_CAPS
    regime: Regime = "visible"
    sessions: tuple[Mapping[str, str], ...] = ()
    id: str = ""

    def problems(self) -> tuple[Problem, ...]:
        """Load the tasks."""
        return tuple(problem for name, ids in self.ids.items() for problem in load_problems(name, ids=ids))

    def row_keys(self) -> Iterator[RowKey]:
        """Yield the keys of all rows, in the order in which they are measured.

        The largest cap comes first, because its replies answer most calls of a smaller one.
        """
        for model, cap in itertools.product(self.models, sorted(self.caps, reverse=True)):
            for dataset, ids in self.ids.items():
                for task, seed, arm in itertools.product(ids, range(self.seeds), self.arms):
                    yield RowKey(dataset, task, arm, model, cap, seed)


def choose_ids(
    datasets: Sequence[str], ids: Sequence[str] = (), first: int | None = None
) -> dict[str, tuple[str, ...]]:
    """Return data set -> ids of the chosen tasks: the named ones, or the first ones of each set, or all."""
    if ids and not datasets:
        raise UsageError("tasks are named, but no data set", remedy="such as --dataset humaneval")
    ids_by_dataset = {name: [problem.id for problem in load_problems(name)] for name in datasets}
    for task in ids:
        if not any(task in known_ids for known_ids in ids_by_dataset.values()):
            examples = ", ".join(repr(known_ids[0]) for known_ids in ids_by_dataset.values() if known_ids)
            raise UsageError(f"there is no task {task!r}", remedy=f"ids look like {examples}")
    chosen: dict[str, tuple[str, ...]] = {}
    for name, known_ids in ids_by_dataset.items():
        chosen_ids = [task for task in ids if task in known_ids] if ids else known_ids
        if chosen_ids:
            chosen[name] = tuple(dict.fromkeys(chosen_ids))[:first]
    return chosen


def extend_plan(plan: BenchmarkPlan, more: BenchmarkPlan) -> BenchmarkPlan:
    """Return a plan with the tasks, arms, models, caps and seeds of both plans."""
    if plan.regime != more.regime:
        raise UsageError(
            f"the benchmark was begun with regime {plan.regime!r}, not {more.regime!r}",
            remedy="give it another name",
        )
    ids = {
        name: tuple(dict.fromkeys((*plan.ids.get(name, ()), *more.ids.get(name, ()))))
        for name in dict.fromkeys((*plan.ids, *more.ids))
    }
    return replace(
        plan,
        ids=ids,
        arms=tuple(dict.fromkeys((*plan.arms, *more.arms))),
        models=tuple(dict.fromkeys((*plan.models, *more.models))),
        seeds=max(plan.seeds, more.seeds),
        caps=tuple(dict.fromkeys((*plan.caps, *more.caps))),
        sessions=(*plan.sessions, *(session for session in more.sessions if session not in plan.sessions)),
    )


def describe_environment(arguments: Sequence[str], settings: Settings) -> dict[str, str]:
    """Return the machine, the sandbox, versions, date and command (from its arguments without the program).

    No number is published without them.

    Raises:
        PrerequisiteError: There is no sandbox.
        SandboxError: The sandbox could not be tested.
    """
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": cpu_name(),
        "cores": str(count_usable_cores()),
        "memory": f"{memory_bytes / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "sandbox": run_sync(_describe_sandbox(settings)),
        "python": platform.python_version(),
        "suture": version("suture"),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "command": shlex.join(("suture", *arguments)),
    }


async def _describe_sandbox(settings: Settings) -> str:
    """Return the sandbox in which programs run here, which may be the substitute of the preferred one."""
    sandbox = open_sandbox(settings.sandbox, keys=settings.keys, cache=settings.paths.cache)
    try:
        capabilities = await sandbox.capabilities()
        return f"{sandbox.name} (level {capabilities.level})"
    finally:
        await sandbox.close()


BenchmarkPhase = Literal["references", "controls", "tasks", "grading"]
"""What is being done: grading the references, running the control solvers, measuring, or grading again."""


@dataclass(frozen=True, kw_only=True)
class BenchmarkProgress:
    """The progress of a benchmark.

    Attributes:
        done: Number of finished steps of the phase, including those of earlier sessions.
        total: Number of all steps of the phase.
        row: The row that was just finished, if any.
    """

    phase: BenchmarkPhase
    done: int
    total: int
    row: BenchmarkRow | None = None


ProgressListener = Callable[[BenchmarkProgress], None]
