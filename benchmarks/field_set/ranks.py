"""The rank of the right edit among the proposals of a search. Bugs are localised once; no candidate runs.

The result of localisation is cached, so that another order of the same proposals is measured in seconds.
"""

from __future__ import annotations

import ast
import asyncio
import hashlib
import pickle
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from field_set.bugs import Bug, broken_files, read_text
from field_set.cache import Cache
from field_set.cases import case_folder
from field_set.packages import Package
from suture.core.settings import load_settings
from suture.judge import prepare_suite
from suture.judge.trials.baseline import BaselineRun
from suture.judge.trials.trial_records import Proposal, Spectrum
from suture.judge.trials.trial_worker import TrialWorker
from suture.loop.evaluation.search_setup import editable_texts
from suture.loop.intake.heal_task import build_heal_task
from suture.mutation import apply_edits
from suture.sandbox import discover_interpreter, open_sandbox
from suture.search.languages.tree_adapter import get_adapter
from suture.search.localisation.fault_ranking import find_clues, rank_suspects, score_lines
from suture.search.ordering.candidate_order import ObservedValues, order_single_changes

__all__ = ["LocalisedBug", "Rank", "format_rank", "localise_bug", "print_ranks", "rank_bug", "sums_of"]

MAX_PROPOSALS = 4000
"""Number of proposals that a search holds."""
LOCALISATION_TIMEOUT_S = 20.0
NEARBY_LINES = 3
"""Lines around a bug within which the right edit begins."""


@dataclass(frozen=True, kw_only=True)
class LocalisedBug:
    """A localised bug: the input of the search, and its expected result.

    Attributes:
        texts: Path -> text of the files that may change.
        wanted: For each edit of the bug, the path and the text without this edit (the other edits stay).
        spectrum: The data of localisation.
        seconds: Seconds that localisation took.
    """

    texts: Mapping[str, str]
    wanted: tuple[tuple[str, str], ...]
    spectrum: Spectrum
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Rank:
    """The ranks of the right edits of one bug.

    Attributes:
        bug: The id of the bug.
        half: `tune` or `report`.
        kind: `one` or `two`.
        operator: The operators of the mutation tool.
        ranks: For each edit of the bug, the rank of its inverse, from 1; `None` if it is not proposed.
        lines: For each edit, how many lines are at least as suspicious; `None` if its line is not suspicious.
        proposals: Number of proposals.
        located_s: Seconds of localisation.
        seconds: Seconds of generating and ordering the proposals.
        labels: The right proposals, as text.
    """

    bug: str
    half: str
    kind: str
    operator: str
    ranks: tuple[int | None, ...]
    lines: tuple[int | None, ...]
    proposals: int
    located_s: float
    seconds: float
    labels: tuple[str, ...]


def localise_bug(bug: Bug, package: Package, cache: Cache, *, again: bool = False) -> LocalisedBug:
    """Localise a bug, or return the cached result.

    Args:
        bug: The bug.
        package: Its package.
        cache: The cache with its code.
        again: Whether to ignore a cached result.
    """
    folder = cache.folder / "seen"
    folder.mkdir(parents=True, exist_ok=True)
    # The meaning of an id may change when bugs are drawn again.
    mark = hashlib.sha256(repr((package.sha256, bug.mutations)).encode()).hexdigest()[:10]
    place = folder / f"{bug.id}-{mark}.pickle"
    if place.exists() and not again:
        kept: LocalisedBug = pickle.loads(place.read_bytes())
        return kept
    with case_folder(package, cache, broken_files(bug, package, cache)) as root:
        texts, spectrum, seconds = asyncio.run(localise(root, package.test))
    wanted = tuple(_wanted(bug, number, package, cache) for number in range(len(bug.mutations)))
    seen = LocalisedBug(texts=texts, wanted=wanted, spectrum=spectrum, seconds=seconds)
    place.write_bytes(pickle.dumps(seen))
    return seen


async def localise(root: Path, test: str) -> tuple[dict[str, str], Spectrum, float]:
    """Return the files of a project that a search may change, the data of localisation, and its seconds."""
    settings = load_settings(Path()).settings
    task, _ = build_heal_task(root, test=test)
    sandbox = open_sandbox(settings.sandbox)
    suite = await prepare_suite(task, sandbox, settings.sandbox, discover_interpreter(root, {}))
    assert suite.command is not None
    texts = editable_texts(suite)
    workers = [TrialWorker(suite.command, texts, list(texts), 4 * LOCALISATION_TIMEOUT_S) for _ in range(2)]
    looking, began_s = BaselineRun(workers, texts, (), None, LOCALISATION_TIMEOUT_S), time.monotonic()
    try:
        await looking.run_failing_tests()
        spectrum = await looking.run_all_tests()
    finally:
        await looking.close()
        await asyncio.gather(*(worker.close() for worker in workers))
        await sandbox.close()
    return texts, spectrum, round(time.monotonic() - began_s, 1)


def _wanted(bug: Bug, number: int, package: Package, cache: Cache) -> tuple[str, str]:
    """Return the file of one edit of a bug, and its text with all edits but this one."""
    path = bug.mutations[number].file
    others = tuple(m for n, m in enumerate(bug.mutations) if n != number)
    published = read_text(cache.tree(package) / path)
    texts = broken_files(replace(bug, mutations=others), package, cache) if others else {}
    return path, texts.get(path, published)


def rank_bug(bug: Bug, package: Package, seen: LocalisedBug) -> Rank:
    """Generate and order all proposals for a localised bug, and find the right ones."""
    began_s = time.monotonic()
    faults = rank_suspects(seen.spectrum, seen.texts)
    scores = score_lines(faults, seen.spectrum, seen.texts)
    clues = find_clues(seen.spectrum)
    singles = asyncio.run(
        order_single_changes(
            scores,
            seen.texts,
            seen.spectrum.import_lines,
            limit=MAX_PROPOSALS,
            clues=clues,
            observed=ObservedValues(kinds=seen.spectrum.kinds),
            generate=get_adapter("python").generate_mutants,
        )
    )
    took_s = time.monotonic() - began_s
    found = [find_place(singles, seen.texts, path, text) for path, text in seen.wanted]
    return Rank(
        bug=bug.id,
        half=package.half,
        kind=bug.kind,
        operator=", ".join(mutation.operator.removeprefix("core/") for mutation in bug.mutations),
        ranks=tuple(found),
        lines=tuple(
            _line_rank(scores, path, m.line) for (path, _), m in zip(seen.wanted, bug.mutations, strict=True)
        ),
        proposals=len(singles),
        located_s=seen.seconds,
        seconds=round(took_s, 1),
        labels=tuple(singles[place - 1].label if place else "" for place in found),
    )


def find_place(singles: Sequence[Proposal], texts: Mapping[str, str], path: str, wanted: str) -> int | None:
    """Return the rank, from 1, of the first proposal with the same syntax tree as a text."""
    goal, plain = ast.dump(ast.parse(wanted)), _plain(wanted)
    changed = _changed_lines(texts[path], wanted)
    starts = texts[path].encode("utf-8", "surrogatepass")
    for place, proposal in enumerate(singles, 1):
        if proposal.path != path:
            continue
        first = starts.count(b"\n", 0, proposal.edits[0].start) + 1
        if not changed[0] - NEARBY_LINES <= first <= changed[1] + NEARBY_LINES:
            continue
        text = apply_edits(texts[path], proposal.edits)
        if _plain(text) != plain:  # parsing a file takes a hundred times as long
            continue
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            continue
        if ast.dump(tree) == goal:
            return place
    return None


def _plain(source: str) -> str:
    """Return a source without what may differ between equal trees: space, brackets, commas, kinds of quotes."""
    source = "".join(line for line in source.splitlines() if not line.lstrip().startswith("#"))
    return "".join(source.replace('"', "'").split()).replace("(", "").replace(")", "").replace(",", "")


def _changed_lines(before: str, after: str) -> tuple[int, int]:
    """Return the first and the last line, from 1, that differ."""
    old, new = before.splitlines(), after.splitlines()
    first = next(
        (n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new))
    )
    last = next(
        (n for n, (a, b) in enumerate(zip(old[::-1], new[::-1], strict=False)) if a != b),
        min(len(old), len(new)),
    )
    return first + 1, max(first + 1, len(old) - last)


def _line_rank(scores: Mapping[str, Mapping[int, float]], path: str, line: int) -> int | None:
    own = scores.get(path, {}).get(line)
    return None if own is None else sum(score >= own for lines in scores.values() for score in lines.values())


def print_ranks(ranks: Sequence[Rank]) -> None:
    """Print a summary of each half and kind."""
    for name, told in sums_of(ranks).items():
        print(
            f"{name:14} {told['edits']:3} edits, {told['found']} among the proposals; ranks: median "
            f"{told['median']}, in 100 {told['in_100']}, in 500 {told['in_500']}, MRR {told['mrr']}; "
            f"lines: median {told['median_line']}; {told['seconds']} s to make and order"
        )


def format_rank(rank: Rank) -> str:
    """Return the rank of one bug as text."""
    places = ", ".join("-" if place is None else str(place) for place in rank.ranks)
    lines = ", ".join("-" if place is None else str(place) for place in rank.lines)
    return (
        f"{rank.bug:20} rank {places:>12} of {rank.proposals:5}, line {lines:>10}  {rank.seconds:5.1f} s  "
        f"{rank.operator}  {'; '.join(filter(None, rank.labels))}"
    )


def sums_of(ranks: Sequence[Rank]) -> dict[str, dict[str, Any]]:
    """Return a summary by half and kind. An edit that is not found counts as infinitely far."""
    groups: dict[str, list[Rank]] = {}
    for rank in ranks:
        groups.setdefault(f"{rank.half}, {rank.kind}", []).append(rank)
    return {name: _sum(members) for name, members in sorted(groups.items(), reverse=True)}


def _sum(ranks: Sequence[Rank]) -> dict[str, Any]:
    places = [place for rank in ranks for place in rank.ranks]
    found = [place for place in places if place is not None]
    endless = [float("inf") if place is None else place for place in places]
    lines = [float("inf") if place is None else place for rank in ranks for place in rank.lines]
    return {
        "edits": len(places),
        "found": len(found),
        "median": statistics.median(endless),
        "in_100": sum(place <= 100 for place in found),
        "in_500": sum(place <= 500 for place in found),
        "mrr": round(sum(1 / place for place in found) / len(places), 4),
        "median_line": statistics.median(lines),
        "seconds": round(statistics.median(rank.seconds for rank in ranks), 1),
    }
