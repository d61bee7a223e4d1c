"""The mutants of a package, made by somebody else's tool, and the bugs that are drawn from them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from field_set.bugs import Bug, Mutation
from field_set.drawing import in_drawn_order

from field_other.cases import case_folder, run_suite
from field_other.fetching import RULES, STRYKER_SCRIPT, Store
from field_other.packages import FOLDER, OtherPackage, code_files, read_packages
from suture.errors import PrerequisiteError, UsageError

__all__ = ["LISTED", "broken_files", "draw_bugs"]

LISTED = FOLDER / "bugs.jsonl"
TOOL_S = 300
SUITE_S = 300
LEAST_S, PATIENCE = 20.0, 4.0


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A mutation, and the whole text of its file."""

    mutation: Mutation
    text: str


@cache
def list_mutants(package_name: str, store: Store) -> tuple[Mutant, ...]:
    """Return all mutants of a package that the tool of its language knows.

    Raises:
        PrerequisiteError: The tool failed.
    """
    package = read_packages()[package_name]
    tree = store.tree(package)
    if package.language == "go":
        argv = [str(store.cache.environment("universal") / "bin" / "python"), "-P", str(RULES)]
    else:
        argv = ["node", str(STRYKER_SCRIPT), str(store.stryker().parent)]
    job = json.dumps(code_files(package, tree))
    answer = subprocess.run(
        argv, cwd=tree, input=job, capture_output=True, text=True, timeout=TOOL_S, check=False
    )
    if answer.returncode:
        raise PrerequisiteError(
            f"the mutation tool failed: {answer.stderr[-300:]}", remedy="remove its environment"
        )
    told = json.loads(answer.stdout)
    texts = [one.pop("text") for one in told]
    return tuple(Mutant(mutation=Mutation(**one), text=text) for one, text in zip(told, texts, strict=True))


def broken_files(bug: Bug, package: OtherPackage, store: Store) -> dict[str, str]:
    """Return path -> text of the file that contains the bug.

    Raises:
        UsageError: The bug belongs to another release, or cannot be made.
    """
    if bug.version != package.version:
        raise UsageError(f"{bug.id} is a bug of {bug.package} {bug.version}, not of {package.version}")
    (wanted,) = bug.mutations
    for mutant in list_mutants(package.name, store):
        if mutant.mutation == wanted:
            return {wanted.file: mutant.text}
    raise UsageError(f"{bug.id}: the tool knows no such mutant")


def draw_bugs(package: OtherPackage, store: Store, known: Iterable[Bug], wanted: int, seed: int) -> list[Bug]:
    """Return bugs of a package: the known ones, and new ones up to a number, in an order that the seed decides.

    Raises:
        UsageError: The suite does not pass on the published package.
    """
    kept = [bug for bug in known if bug.package == package.name]
    texts = {mutant.mutation: mutant.text for mutant in list_mutants(package.name, store)}
    with case_folder(package, store, {}) as root:
        began_s = time.monotonic()
        suite = run_suite(package, root, SUITE_S)
        limit_s = max(LEAST_S, PATIENCE * (time.monotonic() - began_s))
        if suite.failing != 0:
            raise UsageError(f"the suite of {package.name} {package.version} does not pass here: {suite}")
        order = in_drawn_order([*texts], seed)
        last = max((order.index(bug.mutations[0]) for bug in kept), default=-1)
        for mutation in order[last + 1 :]:
            if len(kept) >= wanted:
                break
            own = (root / mutation.file).read_bytes()
            (root / mutation.file).write_text(texts[mutation], "utf-8", newline="")
            suite = run_suite(package, root, limit_s)
            (root / mutation.file).write_bytes(own)
            _tell(package, mutation, suite.failing)
            if suite.failing:
                kept.append(_bug(package, len(kept) + 1, mutation, suite.failing, seed))
    return kept[:wanted]


def _tell(package: OtherPackage, mutation: Mutation, failing: int | None) -> None:
    place = f"{mutation.file}:{mutation.line} {mutation.operator} {mutation.occurrence}"
    how = "does not end, or does not compile" if failing is None else failing
    print(f"{package.name} {place}: {how}", file=sys.stderr, flush=True)


def _bug(package: OtherPackage, number: int, mutation: Mutation, failing: int, seed: int) -> Bug:
    return Bug(
        id=f"{package.folder_name}-{number}",
        package=package.name,
        version=package.version,
        kind="one",
        failing=failing,
        seed=seed,
        mutations=(mutation,),
    )


def interleave_packages(bugs: Sequence[Bug]) -> list[Bug]:
    """Return one bug of each package in turn, so that an interrupted run has covered all packages."""
    return sorted(bugs, key=lambda bug: int(bug.id.rpartition("-")[2]))
