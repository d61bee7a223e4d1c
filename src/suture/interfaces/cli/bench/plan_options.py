"""Turn the options of `suture bench run` into a plan, or extend an existing one."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, get_args

import typer
from typer import Argument, Option

from suture.api import run_sync
from suture.bench.datasets import load_problems
from suture.bench.problem import Regime
from suture.bench.running.bench_folder import BenchFolder
from suture.bench.running.benchmark import grade_references
from suture.bench.running.benchmark_plan import DEFAULT_CAPS, BenchmarkPlan, describe_environment, extend_plan
from suture.core.settings import Settings
from suture.errors import UsageError
from suture.interfaces.cli.terminal.command_options import load_command_settings
from suture.interfaces.cli.terminal.terminal_output import print_json, print_note, print_text
from suture.models import choose_model
from suture.sandbox import open_sandbox


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """The options about the plan; missing ones come from the benchmark to resume, or from the defaults."""

    ids: Mapping[str, tuple[str, ...]]
    arms: Sequence[str]
    models: Sequence[str]
    caps: Sequence[int]
    regime: str | None
    seeds: int


def bench_folder(settings: Settings, name: str) -> BenchFolder:
    """Return the folder of a benchmark, given as a path or as a name below `paths.home`."""
    return BenchFolder(Path(name) if "/" in name else settings.paths.home / "benchmarks" / name)


def make_plan(
    folder: BenchFolder, options: PlanOptions, settings: Settings, *, resume: bool
) -> BenchmarkPlan:
    """Return the plan of a new benchmark, or with `resume` the extended plan of an existing one."""
    if resume:
        existing = folder.plan()
        return extend_plan(existing, _new_plan(options, existing, settings))
    if folder.exists:
        raise UsageError(
            f"there is already a benchmark in {str(folder.path)!r}",
            remedy="add --resume to continue it, or choose another name",
        )
    if not options.ids:
        raise UsageError("there is nothing to measure", remedy="name a dataset: --dataset humaneval")
    if not options.arms:
        raise UsageError(
            "there is no recipe to measure", remedy="--arm greedy --arm best_of_k --arm adaptive"
        )
    return _new_plan(options, BenchmarkPlan(ids={}, arms=(), models=()), settings)


def _new_plan(options: PlanOptions, existing: BenchmarkPlan, settings: Settings) -> BenchmarkPlan:
    models = options.models or existing.models or (choose_model(settings)[0],)
    return BenchmarkPlan(
        ids=options.ids,
        arms=tuple(options.arms),
        models=tuple(models),
        seeds=options.seeds,
        caps=tuple(options.caps) or existing.caps or DEFAULT_CAPS,
        regime=_parse_regime(options.regime or existing.regime),
        sessions=(describe_environment(sys.argv[1:], settings),),
    )


def settings_for(models: Sequence[str], assignments: Sequence[str] | None, settings: Settings) -> Settings:
    """Return the settings with a base URL that applies to the measured models, as `suture run --model` does.

    If `model.name` has the provider of a measured model, `model.base_url` was set for it and applies.
    Otherwise the URL must have been set for the models that are named here: sending the tasks and a key to a
    host that nobody set for them would leak both.
    """
    providers = {name.partition(":")[0] for name in models}
    if settings.model.name.partition(":")[0] in providers:
        return settings
    loaded = load_command_settings(Path(), assignments, model__name=models[0]).settings
    if loaded.model.base_url is not None and len(providers) > 1:
        raise UsageError(
            f"model.base_url is set, but it is ambiguous which model it is for: {', '.join(sorted(models))}",
            remedy="set model.name to a model of its provider",
        )
    return loaded


def _parse_regime(name: str) -> Regime:
    regimes: Mapping[str, Regime] = {regime: regime for regime in get_args(Regime)}
    if name in regimes:
        return regimes[name]
    raise UsageError(f"there is no regime {name!r}", remedy=f"one of {', '.join(get_args(Regime))}")


def validate_references(
    ids: Mapping[str, tuple[str, ...]], settings: Settings, parallel: int, *, as_json: bool
) -> None:
    """Grade the datasets' own solutions and list those that fail; exits with 1 if one fails."""
    from suture.interfaces.cli.bench.bench_progress import BenchProgress

    problems = [problem for name, task_ids in ids.items() for problem in load_problems(name, ids=task_ids)]

    async def grade_all() -> dict[str, str]:
        """Return why each failing reference fails, by the task's id."""
        sandbox = open_sandbox(settings.sandbox, keys=settings.keys, cache=settings.paths.cache)
        try:
            grades = await grade_references(
                problems, sandbox, settings, parallel=parallel, on_progress=progress
            )
        finally:
            await sandbox.close()
        graded = [(problem.id, grades[problem.content_hash]) for problem in problems]
        return {task: f"{grade.status}: {grade.reason}" for task, grade in graded if not grade.right}

    with BenchProgress() as progress:
        failing = run_sync(grade_all())
    passing = len(problems) - len(failing)
    if as_json:
        print_json({"tasks": len(problems), "passing": passing, "failing": failing})
    else:
        print_text(f"{passing} of {len(problems)} references pass")
        for task, reason in failing.items():
            print_note(f"  {task}: {reason}")
    if failing:
        raise typer.Exit(1)


Benchmark = Annotated[str, Argument(metavar="RUN", help="A benchmark: its name or its folder.")]
Parallel = Annotated[int, Option("--parallel", metavar="N", min=1, help="Number of parallel tasks.")]
Recordings = Annotated[
    list[Path] | None, Option("--recording", metavar="FILE", help="Recorded replies to use; repeatable.")
]
Replayed = Annotated[
    bool, Option("--replayed", help="Use recorded replies only; a missing reply is an error.")
]
