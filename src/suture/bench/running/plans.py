"""What a benchmark is to measure, fixed before it begins."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from suture.bench.datasets import load_problems
from suture.bench.problem import Problem, Regime
from suture.errors import UsageError

DEFAULT_CAPS = (2000,)


@dataclass(frozen=True, kw_only=True)
class BenchmarkPlan:
    """What a benchmark measures: tasks, recipes, models, seeds and caps, fixed before the first run.

    Attributes:
        ids: Set -> the ids of its tasks, in order; fixed beforehand.
        arms: Names of the recipes that are compared.
        models: Names of the models, as `provider:model`.
        seeds: How often each is repeated with samples of its own.
        caps: The most tokens of replies for each task and arm; each cap is a run of its own.
        regime: What of the checks the loop may see.
        sessions: The circumstances of each session that measured: machine, versions, date, command.
        id: Which benchmark it is, whatever its folder is called; given when the plan is first written.
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
        """The tasks.

        Raises:
            UsageError: A set has no such task any more.
            PrerequisiteError: A set is not on this machine.
        """
        return tuple(problem for name, ids in self.ids.items() for problem in load_problems(name, ids=ids))

    def jobs(self) -> Iterator[tuple[str, str, str, str, int, int]]:
        """Set, task, arm, model, cap and seed of each line of the table.

        Model by model; the largest cap first, because its replies answer most of what a smaller one asks.
        """
        for model, cap in itertools.product(self.models, sorted(self.caps, reverse=True)):
            for dataset, ids in self.ids.items():
                for task, seed, arm in itertools.product(ids, range(self.seeds), self.arms):
                    yield dataset, task, arm, model, cap, seed


def chosen_ids(
    datasets: Sequence[str], ids: Sequence[str] = (), first: int | None = None
) -> dict[str, tuple[str, ...]]:
    """The tasks of some sets: those of the ids, or all, or the first of each.

    Raises:
        UsageError: No set has such a task, there is no such set, or none is named.
        PrerequisiteError: A set is not on this machine.
    """
    if ids and not datasets:
        raise UsageError("tasks are named, but no set that has them", remedy="such as --dataset humaneval")
    known = {name: [problem.id for problem in load_problems(name)] for name in datasets}
    for wanted in ids:
        if not any(wanted in held for held in known.values()):
            raise UsageError(
                f"no task is called {wanted!r}",
                remedy=f"ids look like {', '.join(repr(held[0]) for held in known.values() if held)}",
            )
    chosen = {name: [i for i in ids if i in held] if ids else held for name, held in known.items()}
    return {name: tuple(dict.fromkeys(held))[:first] for name, held in chosen.items() if held}


def extended(plan: BenchmarkPlan, more: BenchmarkPlan) -> BenchmarkPlan:
    """A plan with the tasks, arms, models, caps and seeds of another besides: what is done stays done.

    Raises:
        UsageError: They are not of the same regime.
    """
    if plan.regime != more.regime:
        raise UsageError(
            f"the benchmark was begun with regime {plan.regime!r}, not {more.regime!r}",
            remedy="give it another name",
        )
    ids = {
        name: tuple(dict.fromkeys((*plan.ids.get(name, ()), *more.ids.get(name, ()))))
        for name in (*plan.ids, *(name for name in more.ids if name not in plan.ids))
    }
    return replace(
        plan,
        ids=ids,
        arms=tuple(dict.fromkeys((*plan.arms, *more.arms))),
        models=tuple(dict.fromkeys((*plan.models, *more.models))),
        seeds=max(plan.seeds, more.seeds),
        caps=tuple(dict.fromkeys((*plan.caps, *more.caps))),
        sessions=(*plan.sessions, *(one for one in more.sessions if one not in plan.sessions)),
    )
