"""Heal the field set: packages that nobody here wrote, with bugs that somebody else's mutation tool made.

    python benchmarks/field.py --rows rows.jsonl --report          # the report half
    python benchmarks/field.py --bug cachetools-one-1 --keep       # one case; its folder is kept
    python benchmarks/field.py --ranks --tune                      # no healing: the rank of the right edit

The packages are downloaded once from the package index, as source distributions with known hashes. Each bug is
made again from its description, put into a folder with an environment beside it, and healed in a separate
process by the search alone. The result is compared with the published package, and with its suite, which runs
outside any sandbox: suites of other people and mutants of their code run with your rights.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from field_set.bugs import Bug, read_bugs, write_bugs
from field_set.cache import Cache
from field_set.drawing import draw_pairs, draw_singles
from field_set.healing import heal_bug
from field_set.packages import Package, read_packages
from field_set.ranks import Rank, format_rank, localise_bug, print_ranks, rank_bug
from field_set.rows import print_rows
from field_set.running import create_parser, run_rows
from script_exit import run_script

from suture.core.settings import load_settings
from suture.errors import SutureError, UsageError


def main() -> int:
    """Draw bugs, rank the right edits, or heal the bugs that were drawn."""
    wanted = _arguments()
    settings = load_settings(Path()).settings
    cache = Cache(folder=wanted.cache or settings.paths.cache / "field", offline=wanted.offline)
    packages = read_packages()
    chosen = {name: package for name, package in packages.items() if _is_selected(package, wanted)}
    if not chosen:
        raise UsageError("no such package", remedy=f"they are {', '.join(packages)}")
    if wanted.fetch:
        for package in chosen.values():
            cache.tree(package)
        for name in ("suites", "mutation"):
            cache.environment(name)
        return 0
    if wanted.draw:
        _draw(chosen, cache, wanted.draw, wanted.pairs, wanted.seed)
        return 0
    bugs = _select_bugs(chosen, wanted)
    if wanted.ranks:
        _rank(bugs, chosen, cache, wanted)
        return 0
    path = wanted.rows or settings.paths.home / "benchmarks" / "field.jsonl"
    rows = run_rows(
        bugs,
        path,
        wanted.seconds,
        lambda bug: heal_bug(bug, chosen[bug.package], cache, wanted.seconds, keep=wanted.keep),
    )
    print_rows(rows, as_json=wanted.json)
    return 0


def _arguments() -> argparse.Namespace:
    parser = create_parser(__doc__)
    parser.add_argument(
        "--kind", action="append", choices=("one", "two"), help="only this kind; may be repeated"
    )
    parser.add_argument(
        "--first", type=int, metavar="N", help="only the first N bugs of each package and kind"
    )
    halves = parser.add_mutually_exclusive_group()
    halves.add_argument("--tune", dest="half", action="store_const", const="tune", help="only that half")
    halves.add_argument("--report", dest="half", action="store_const", const="report", help="only that half")
    parser.add_argument("--fetch", action="store_true", help="only fetch what is needed, and stop")
    parser.add_argument(
        "--ranks",
        action="store_true",
        help="heal nothing; print the rank of the right edit among the proposals",
    )
    parser.add_argument(
        "--relocalise",
        action="store_true",
        help="with --ranks: localise again, even if the cache has a result",
    )
    parser.add_argument(
        "--draw", type=int, metavar="N", help="draw bugs until each package has N of one edit"
    )
    parser.add_argument("--pairs", type=int, default=2, metavar="N", help="with --draw: N bugs of two edits")
    parser.add_argument("--seed", type=int, default=15, help="with --draw")
    return parser.parse_args()


def _rank(
    bugs: Sequence[Bug], packages: dict[str, Package], cache: Cache, wanted: argparse.Namespace
) -> None:
    """Localise bugs where the cache has no result, and print the ranks; for the report half only the summary."""
    ranks: list[Rank] = []
    for bug in bugs:
        if not bug.mutations:
            continue
        package = packages[bug.package]
        try:
            seen = localise_bug(bug, package, cache, again=wanted.relocalise)
        except SutureError as fault:
            print(f"{bug.id}: {fault}", file=sys.stderr, flush=True)
            continue
        ranks.append(rank_bug(bug, package, seen))
        if package.half == "tune":
            print(format_rank(ranks[-1]), flush=True)
    print_ranks(ranks)


def _is_selected(package: Package, wanted: argparse.Namespace) -> bool:
    named = wanted.package is None or package.name in wanted.package
    return named and wanted.half in (None, package.half)


def _select_bugs(packages: dict[str, Package], wanted: argparse.Namespace) -> list[Bug]:
    """Return one bug of each package in turn, so that an interrupted run has covered all packages."""
    bugs = [bug for bug in read_bugs() if bug.package in packages]
    bugs = [bug for bug in bugs if not wanted.kind or bug.kind in wanted.kind]
    bugs = [bug for bug in bugs if not wanted.bug or bug.id in wanted.bug]
    places: dict[str, int] = {}
    counts: dict[tuple[str, str], int] = {}
    for bug in bugs:
        counts[bug.package, bug.kind] = counts.get((bug.package, bug.kind), 0) + 1
        places[bug.id] = counts[bug.package, bug.kind]
    kept = [bug for bug in bugs if wanted.first is None or places[bug.id] <= wanted.first]
    if not kept:
        raise UsageError("no such bug", remedy="they are listed in benchmarks/field_set/bugs.jsonl")
    return sorted(kept, key=lambda bug: places[bug.id])


def _draw(packages: dict[str, Package], cache: Cache, singles: int, pairs: int, seed: int) -> None:
    """Draw bugs. The list is written after each package, because drawing takes hours."""
    for package in packages.values():
        known = read_bugs()
        drawn = draw_singles(package, cache, known, singles, seed)
        two = [bug for bug in known if bug.package == package.name and bug.kind == "two"]
        if len(two) < pairs:
            two = draw_pairs(package, cache, drawn, pairs, seed)
        others = [bug for bug in known if bug.package != package.name]
        write_bugs(_in_order([*others, *drawn, *two]))


def _in_order(bugs: Sequence[Bug]) -> list[Bug]:
    return sorted(bugs, key=lambda bug: (bug.package, bug.kind, int(bug.id.rpartition("-")[2])))


if __name__ == "__main__":
    sys.exit(run_script(main))
