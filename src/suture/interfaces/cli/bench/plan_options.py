"""From the options of `suture bench run` to a plan: a new one, or one that is there with more besides."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import typer

from suture.api import run_sync
from suture.bench.datasets import load_problems
from suture.bench.problem import Regime
from suture.bench.running.bench_folder import BenchFolder
from suture.bench.running.benchmark import grade_references
from suture.bench.running.environment import circumstances
from suture.bench.running.plans import DEFAULT_CAPS, BenchmarkPlan, extended
from suture.core.settings import Settings
from suture.errors import UsageError
from suture.interfaces.cli.terminal.command_options import load_command_settings
from suture.interfaces.cli.terminal.terminal_output import print_json, print_note, print_text
from suture.models import choose_model
from suture.sandbox import open_sandbox


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """What the options say; what they leave out is that of the benchmark to resume, or the default."""

    ids: Mapping[str, tuple[str, ...]]
    arms: Sequence[str]
    models: Sequence[str]
    caps: Sequence[int]
    regime: str | None
    seeds: int


def bench_folder(settings: Settings, name: str) -> BenchFolder:
    """The folder of a benchmark: a path, or a name below `paths.home`."""
    return BenchFolder(Path(name) if "/" in name else settings.paths.home / "benchmarks" / name)


def make_plan(folder: BenchFolder, wanted: PlanOptions, settings: Settings, *, resume: bool) -> BenchmarkPlan:
    """The plan.

    Raises:
        UsageError: There is such a benchmark already, or none to resume; or the options do not make a plan.
    """
    if resume:
        begun = folder.plan()
        return extended(begun, _new(wanted, begun, settings))
    if folder.exists:
        raise UsageError(
            f"a benchmark was begun in {str(folder.path)!r}",
            remedy="--resume goes on with it, or take another name",
        )
    if not wanted.ids:
        raise UsageError("there is nothing to measure", remedy="name a set: --dataset humaneval")
    if not wanted.arms:
        raise UsageError(
            "there is no recipe to measure", remedy="--arm greedy --arm best_of_k --arm adaptive"
        )
    return _new(wanted, BenchmarkPlan(ids={}, arms=(), models=()), settings)


def _new(wanted: PlanOptions, begun: BenchmarkPlan, settings: Settings) -> BenchmarkPlan:
    models = wanted.models or begun.models or (choose_model(settings)[0],)
    return BenchmarkPlan(
        ids=wanted.ids,
        arms=tuple(wanted.arms),
        models=tuple(models),
        seeds=wanted.seeds,
        caps=tuple(wanted.caps) or begun.caps or DEFAULT_CAPS,
        regime=_regime(wanted.regime or begun.regime),
        sessions=(circumstances(sys.argv[1:]),),
    )


def settings_for(models: Sequence[str], assignments: Sequence[str] | None, settings: Settings) -> Settings:
    """The settings with an address that holds for the models that are measured, as with `suture run --model`.

    Where `model.name` is of the provider of one of them, `model.base_url` was said for these. Else it was
    said for the models that are named here: to ask these anywhere else would be to send the tasks, and a
    key, to a host that nobody set.

    Args:
        models: Who is measured.
        assignments: The values of `--set`.
        settings: As they are without these models.

    Raises:
        UsageError: An address is set, and whose it is cannot be told.
    """
    providers = {name.partition(":")[0] for name in models}
    if settings.model.name.partition(":")[0] in providers:
        return settings
    asked = load_command_settings(Path(), assignments, model__name=models[0]).settings
    if asked.model.base_url is not None and len(providers) > 1:
        raise UsageError(
            f"model.base_url is set, and whose address it is cannot be told: {', '.join(sorted(models))}",
            remedy="set model.name to a model of its provider",
        )
    return asked


def _regime(name: str) -> Regime:
    for known in get_args(Regime):
        if name == known:
            regime: Regime = known
            return regime
    raise UsageError(f"there is no regime {name!r}", remedy=f"one of {', '.join(get_args(Regime))}")


def validate_references(
    ids: Mapping[str, tuple[str, ...]], settings: Settings, parallel: int, *, as_json: bool
) -> None:
    """Grade the sets' own solutions, and name those that fail; exits 1 where one does."""
    from suture.interfaces.cli.bench.bench_progress import BenchProgress

    problems = [p for name, chosen in ids.items() for p in load_problems(name, ids=chosen)]

    async def grades() -> dict[str, str]:
        judge = open_sandbox(settings.sandbox, keys=settings.keys, cache=settings.paths.cache)
        try:
            found = await grade_references(problems, judge, settings, parallel=parallel, on_progress=bar)
        finally:
            await judge.close()
        return {p.id: f"{g.standing}: {g.why}" for p in problems if not (g := found[p.content_hash]).right}

    with BenchProgress() as bar:
        failing = run_sync(grades())
    if as_json:
        print_json({"tasks": len(problems), "passing": len(problems) - len(failing), "failing": failing})
    else:
        print_text(f"{len(problems) - len(failing)} of {len(problems)} references pass")
        for task, why in failing.items():
            print_note(f"  {task}: {why}")
    if failing:
        raise typer.Exit(1)
