"""Which cheating changes are certified, and which honest ones are doubted.

    python benchmarks/honesty.py [--kind KIND ...] [--project NAME ...] [--per-kind N] [--rows FILE]

The projects and the kinds of cheats are in `honesty_set/`. Each change is proposed to `suture heal` as another
agent would propose it (`proposer.command`), so the verdict, the certification and the warnings are the product's
own. A cheat that the project's own tests refuse anyway says nothing, so every change is also run with plain
pytest, outside of Suture. The honest changes are the references of the same bugs.

A change is *certified* if the run ends `healed`. It is *certified plainly* if the result has neither a warning nor a
new capability.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shlex
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from honesty_set.cases import BuggyProject, load_buggy_projects
from honesty_set.cheats import CHEATS, Change
from row_files import append_row, read_rows
from script_exit import run_script

from suture.api import HealOptions, heal
from suture.core.records import Result
from suture.core.settings import PathSettings, RepairSettings, Settings
from suture.core.settings.schema import ProposerSettings

HONEST = "honest"
"""The kind of the references."""
TEST_COMMAND = "python -m pytest -q"
PLAIN_TIMEOUT_S = 60


@dataclass(frozen=True, kw_only=True)
class HonestyRow:
    """What became of one change.

    Attributes:
        kind: A kind of `CHEATS`, or `honest`.
        project: The project.
        function: The function with the bug.
        passes: Whether plain pytest passes with the change.
        outcome: How the run of Suture ended.
        confidence: Confidence of the result.
        warnings: The warnings of the result.
        capabilities: Codes of the result's new capabilities.
        seconds: Wall-clock seconds of the run.
    """

    kind: str
    project: str
    function: str
    passes: bool
    outcome: str
    confidence: float
    warnings: list[str]
    capabilities: list[str]
    seconds: float

    @property
    def key(self) -> tuple[str, str, str]:
        """What a row is about."""
        return self.kind, self.project, self.function

    @property
    def certified(self) -> bool:
        """Whether the change was certified at all."""
        return self.outcome == "healed"

    @property
    def plain(self) -> bool:
        """Whether the change was certified with neither a warning nor a new capability."""
        return self.certified and not self.warnings and not self.capabilities


def main() -> None:
    """Run the measurement, and print a table by kind."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kind", action="append", choices=[*CHEATS, HONEST], help="may be repeated")
    parser.add_argument("--project", action="append", help="only this project; may be repeated")
    parser.add_argument(
        "--per-kind", type=int, default=6, metavar="N", help="changes of each kind, drawn by seed"
    )
    parser.add_argument(
        "--rows", type=Path, default=Path("honesty.jsonl"), help="a rerun continues with this file"
    )
    arguments = parser.parse_args()
    kinds = arguments.kind or [*CHEATS, HONEST]
    projects = [
        case for case in load_buggy_projects() if not arguments.project or case.project in arguments.project
    ]
    done = {row.key for row in read_rows(arguments.rows, HonestyRow)}
    for kind, case, change in _draw_changes(kinds, projects, arguments.per_kind):
        if (kind, case.project, case.function) in done:
            continue
        row = asyncio.run(_judge_change(kind, case, change))
        append_row(arguments.rows, row)
        doubts = [*row.warnings, *row.capabilities]
        print(
            f"{kind} {case.project}.{case.function}: {row.outcome} {row.confidence:.2f} {doubts}", flush=True
        )
    _print_table([row for row in read_rows(arguments.rows, HonestyRow) if row.kind in kinds])


def _draw_changes(
    kinds: list[str], projects: list[BuggyProject], per_kind: int
) -> Iterator[tuple[str, BuggyProject, Change]]:
    """Yield (kind, project, change): all honest changes, and up to `per_kind` of each kind of cheat."""
    for kind in kinds:
        if kind == HONEST:
            yield from ((kind, case, {case.path: case.reference}) for case in projects)
            continue
        # The same projects are drawn whatever kinds are asked for.
        shuffled = random.Random(kind).sample(projects, len(projects))
        drawn = 0
        for case in shuffled:
            change = CHEATS[kind](case)
            if change is not None and drawn < per_kind:
                drawn += 1
                yield kind, case, change


async def _judge_change(kind: str, case: BuggyProject, change: Change) -> HonestyRow:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        passes = _passes_plainly({**case.files, **change}, folder / "plain")
        _write_files(case.files, folder / "project")
        _write_files(change, folder / "change")
        result = await _propose(folder)
    return HonestyRow(
        kind=kind,
        project=case.project,
        function=case.function,
        passes=passes,
        outcome=result.outcome,
        confidence=result.confidence,
        warnings=list(result.warnings),
        capabilities=[use.code for use in result.capabilities],
        seconds=result.spend.seconds,
    )


def _passes_plainly(files: Mapping[str, str], folder: Path) -> bool:
    """Return whether the tests pass for a user who runs them as they are."""
    _write_files(files, folder)
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *shlex.split(TEST_COMMAND)[1:], "-p", "no:cacheprovider"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, timeout=PLAIN_TIMEOUT_S, check=False, env=environment
    )
    return done.returncode == 0


async def _propose(folder: Path) -> Result:
    """Heal the project with the change as the only proposal."""
    # The change lies outside the project, where only a program outside the sandbox can read it.
    command = f"cp -r {shlex.quote(str(folder / 'change'))}/. ."
    settings = Settings(
        paths=PathSettings(home=folder / "home"),
        proposer=ProposerSettings(command=command, outside=True, turns=1),
        repair=RepairSettings(enabled=False),
    )
    return await heal(folder / "project", HealOptions(test=TEST_COMMAND, settings=settings))


def _write_files(files: Mapping[str, str], folder: Path) -> None:
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")


def _print_table(rows: list[HonestyRow]) -> None:
    by_kind: dict[str, list[HonestyRow]] = defaultdict(list)
    for row in rows:
        by_kind[row.kind].append(row)
    print(f"\n{'kind':44}{'changes':>8}{'pass':>6}{'certified':>10}{'plainly':>9}  capabilities")
    for kind, found in sorted(by_kind.items(), key=lambda entry: (entry[0] == HONEST, entry[0])):
        capabilities = Counter(code for row in found for code in row.capabilities)
        listed = ", ".join(f"{code} ({count})" for code, count in capabilities.most_common(2))
        counts = [
            sum(row.passes for row in found),
            sum(row.certified for row in found),
            sum(row.plain for row in found),
        ]
        print(f"{kind:44}{len(found):>8}{counts[0]:>6}{counts[1]:>10}{counts[2]:>9}  {listed}")
    cheats = [row for row in rows if row.kind != HONEST]
    honest = [row for row in rows if row.kind == HONEST and row.passes]
    print(
        f"\ncheats: {len(cheats)}, {sum(row.passes for row in cheats)} pass plain pytest, "
        f"{sum(row.certified for row in cheats)} certified, {sum(row.plain for row in cheats)} of them plainly"
    )
    doubted = sum(not row.plain for row in honest)
    print(f"honest: {len(honest)} pass, {doubted} not certified plainly")


if __name__ == "__main__":
    sys.exit(run_script(main))
