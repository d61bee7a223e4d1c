"""Draw bugs: mutants in an order that a seed decides; those that the suite kills are kept."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from field_set.bugs import Bug, Mutation, broken_files, list_mutations
from field_set.cache import Cache
from field_set.cases import Suite, case_folder, run_suite
from field_set.packages import Package
from suture.errors import SutureError, UsageError

__all__ = ["draw_pairs", "draw_singles"]

SUITE_S = 300
PATIENCE = 4.0
LEAST_S = 30.0
"""Time limit of a suite with a mutant, as a multiple of the time without it, and its minimum in seconds."""


def in_drawn_order(mutations: Sequence[Mutation], seed: int) -> list[Mutation]:
    """Return mutants in a seeded order, one family of operators at a time, so that no operator dominates."""
    drawn = random.Random(seed)
    families: dict[str, list[Mutation]] = {}
    for mutation in mutations:
        families.setdefault(mutation.operator.partition("_")[0], []).append(mutation)
    for members in families.values():
        drawn.shuffle(members)
    order = []
    while families:
        for name in drawn.sample(sorted(families), len(families)):
            order.append(families[name].pop())
            if not families[name]:
                del families[name]
    return order


def draw_singles(package: Package, cache: Cache, known: Iterable[Bug], wanted: int, seed: int) -> list[Bug]:
    """Return one-edit bugs of a package: the known ones, and new ones up to a number.

    Raises:
        UsageError: The suite does not pass on the published package.
    """
    kept = [bug for bug in known if bug.package == package.name and bug.kind == "one"]
    if len(kept) >= wanted:
        return kept[:wanted]
    with case_folder(package, cache, {}) as root:
        began_s = time.monotonic()
        suite = run_suite(package, root, SUITE_S)
        limit_s = max(LEAST_S, PATIENCE * (time.monotonic() - began_s))
        if not suite.passes:
            raise UsageError(f"the suite of {package.name} {package.version} does not pass here: {suite}")
        # Drawing continues after the last mutant that was kept, because the order is always the same.
        order = in_drawn_order(list_mutations(package, cache), seed)
        last = max((order.index(bug.mutations[0]) for bug in kept), default=-1)
        for mutation in order[last + 1 :]:
            bug = _bug(package, len(kept) + 1, (mutation,), seed)
            killed = _measure_bug(bug, package, cache, root, limit_s)
            if killed is not None:
                kept.append(killed)
            if len(kept) >= wanted:
                break
    return kept


def draw_pairs(package: Package, cache: Cache, singles: Sequence[Bug], wanted: int, seed: int) -> list[Bug]:
    """Return two-edit bugs: pairs of one-edit bugs in one file, each of which is killed alone."""
    mutations = [bug.mutations[0] for bug in singles]
    pairs = [pair for pair in combinations(mutations, 2) if pair[0].file == pair[1].file]
    random.Random(seed).shuffle(pairs)
    kept: list[Bug] = []
    with case_folder(package, cache, {}) as root:
        for pair in pairs[: 3 * wanted]:
            bug = _bug(package, len(kept) + 1, pair, seed)
            killed = _measure_bug(bug, package, cache, root, SUITE_S)
            if killed is not None:
                kept.append(killed)
            if len(kept) >= wanted:
                break
    return kept


def _bug(package: Package, number: int, mutations: tuple[Mutation, ...], seed: int) -> Bug:
    kind = "one" if len(mutations) == 1 else "two"
    return Bug(
        id=f"{package.name}-{kind}-{number}",
        package=package.name,
        version=package.version,
        kind="one" if len(mutations) == 1 else "two",
        failing=0,
        seed=seed,
        mutations=mutations,
    )


def _measure_bug(bug: Bug, package: Package, cache: Cache, root: Path, limit_s: float) -> Bug | None:
    """Return the bug with the number of failing tests; `None` if none fails or the suite does not end."""
    try:
        files = broken_files(bug, package, cache)
    except SutureError:
        return None
    own = {path: (root / path).read_bytes() for path in files}
    for path, text in files.items():
        (root / path).write_text(text, "utf-8", newline="")
    try:
        suite = run_suite(package, root, limit_s)
    finally:
        for path, content in own.items():
            (root / path).write_bytes(content)
    _told(bug, suite)
    if not (suite.ran and suite.failing):
        return None
    return replace(bug, failing=suite.failing, interrupted=suite.interrupted)


def _told(bug: Bug, suite: Suite) -> None:
    places = ", ".join(f"{m.file}:{m.line} {m.operator} {m.occurrence}" for m in bug.mutations)
    print(f"{bug.id} {places}: {suite.failing if suite.ran else 'does not end'}", file=sys.stderr, flush=True)
