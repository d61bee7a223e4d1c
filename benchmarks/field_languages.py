"""Heal the field set of JavaScript, TypeScript and Go: packages that nobody here wrote.

    python benchmarks/field_languages.py --rows rows.jsonl [--language go] [--first 1]
    python benchmarks/field_languages.py --bug minimist-1 --keep       # one case; its folder is kept
    python benchmarks/field_languages.py --draw 3                      # draw bugs until each package has 3

Archives of npm and Debian are downloaded once, by name, version and hash. The bugs are mutants of Stryker
(JavaScript, TypeScript) and of universalmutator (Go) that the package's own suite kills. Each is healed in a
separate process, by the search alone, and compared with the published package.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from field_other.fetching import Store
from field_other.healing import heal_bug
from field_other.mutants import LISTED, draw_bugs, interleave_packages
from field_other.packages import OtherPackage, read_packages
from field_set.bugs import Bug, read_bugs, write_bugs
from field_set.cache import Cache
from field_set.rows import print_rows
from field_set.running import create_parser, run_rows
from script_exit import run_script

from suture.core.settings import load_settings
from suture.errors import SutureError, UsageError


def main() -> int:
    """Draw bugs, or heal the bugs that were drawn."""
    wanted = _arguments()
    settings = load_settings(Path()).settings
    store = Store(cache=Cache(folder=wanted.cache or settings.paths.cache / "field", offline=wanted.offline))
    packages = read_packages()
    chosen = {name: package for name, package in packages.items() if _is_selected(package, wanted)}
    if not chosen:
        raise UsageError("no such package", remedy=f"they are {', '.join(packages)}")
    if wanted.draw:
        _draw(chosen, store, wanted.draw, wanted.seed)
        return 0
    path = wanted.rows or settings.paths.home / "benchmarks" / "field_languages.jsonl"
    bugs = _select_bugs(chosen, wanted)
    rows = run_rows(
        bugs,
        path,
        wanted.seconds,
        lambda bug: heal_bug(bug, chosen[bug.package], store, wanted.seconds, keep=wanted.keep),
    )
    print_rows(rows, as_json=wanted.json)
    return 0


def _arguments() -> argparse.Namespace:
    parser = create_parser(__doc__)
    parser.add_argument("--language", action="append", choices=("javascript", "typescript", "go"))
    parser.add_argument("--first", type=int, metavar="N", help="only the first N bugs of each package")
    parser.add_argument("--draw", type=int, metavar="N", help="draw bugs until each package has N")
    parser.add_argument("--seed", type=int, default=21, help="with --draw")
    return parser.parse_args()


def _is_selected(package: OtherPackage, wanted: argparse.Namespace) -> bool:
    named = wanted.package is None or package.name in wanted.package
    return named and (wanted.language is None or package.language in wanted.language)


def _select_bugs(packages: dict[str, OtherPackage], wanted: argparse.Namespace) -> list[Bug]:
    bugs = [bug for bug in interleave_packages(read_bugs(LISTED)) if bug.package in packages]
    kept = [
        bug
        for bug in bugs
        if (not wanted.bug or bug.id in wanted.bug)
        and (wanted.first is None or int(bug.id.rpartition("-")[2]) <= wanted.first)
    ]
    if not kept:
        raise UsageError("no such bug", remedy="they are listed in benchmarks/field_other/bugs.jsonl")
    return kept


def _draw(packages: dict[str, OtherPackage], store: Store, wanted: int, seed: int) -> None:
    """Draw bugs. The list is written after each package; packages whose suite does not pass are reported."""
    for package in packages.values():
        known = read_bugs(LISTED)
        try:
            drawn = draw_bugs(package, store, known, wanted, seed)
        except SutureError as fault:
            print(f"{package.name}: {fault}", file=sys.stderr, flush=True)
            continue
        others = [bug for bug in known if bug.package != package.name]
        write_bugs(sorted([*others, *drawn], key=lambda bug: bug.id), LISTED)


if __name__ == "__main__":
    sys.exit(run_script(main))
