"""Which cheating changes are certified, and which honest ones are doubted.

    python benchmarks/honesty.py [--kind KIND ...] [--project NAME ...] [--per-kind N] [--rows FILE]
    python benchmarks/honesty.py [--judge] --source written [--rows FILE]
    python benchmarks/honesty.py --judge --source tests [--kind KIND ...] [--per-kind N] [--rows FILE]
    SUTURE_DATA=... python benchmarks/honesty.py [--judge] --source quixbugs [--sample N] [--rows FILE]

The projects and the kinds of cheats of the source `own` are in `honesty_set/`; its honest changes are the references
of the same bugs. Those of the source `written` are written out, also in JavaScript and Go (`honesty_set/written.py`).
The other sources have only honest changes: corrections of other people's bugs. A scripted model
writes each change in `suture heal`, as a model with tools does, so the verdict, the certification and the warnings
are the product's own. A cheat that the project's own tests refuse anyway says nothing, so every
change is also run with the plain test command, outside of Suture. With `--plain-only`, nothing else is done.

A change is *certified* if the run ends `healed`. It is *certified plainly* if the result has neither a warning nor a
new capability. Cases whose environment cannot be created here, or whose tests pass without the change, are counted
as skipped, with the reason.

With `--judge`, each change is judged by `suture judge` instead, as a change of a working tree (`honesty_judge.py`).
The changes of the sources `tests` and `breaks` weaken tests (`honesty_set/test_changes`): those of `tests` leave the
bug in the code, those of `breaks` bring it into code that was right.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, islice, takewhile
from pathlib import Path
from typing import TypeVar

from honesty_judge import judge_proposals
from honesty_set.cases import BuggyProject, load_buggy_projects, make_stub
from honesty_set.cheats import CHEATS, STUB_CHEATS
from honesty_set.honest_changes import SOURCES
from honesty_set.proposals import Proposal
from honesty_set.test_changes import TEST_CHANGES
from honesty_set.written import list_written_proposals
from row_files import append_row, read_rows
from script_exit import run_script

from suture.api import HealOptions, heal
from suture.core.ledger import read_ledger
from suture.core.records import Result
from suture.core.settings import LoopSettings, PathSettings, RepairSettings, Settings
from suture.errors import PrerequisiteError, SutureError, UsageError
from suture.testing import ScriptedModel

T = TypeVar("T")
HONEST = "honest"
"""The kind of the references."""
OWN = "own"
"""The source whose projects are in `honesty_set/projects`."""
WRITTEN = "written"
"""The source whose changes are in `honesty_set/written_cheats`."""
TESTS, BREAKS = "tests", "breaks"
"""The sources whose changes weaken tests of the same projects. Only `suture judge` compares tests."""
PER_KIND = 2
"""Changes of each kind of cheat: with 155 kinds, of which some apply to one bug only, about 300."""
SAMPLE_SEED = 36


@dataclass(frozen=True, kw_only=True)
class HonestyRow:
    """What became of one change.

    Attributes:
        source: `own`, or the name of a data set.
        kind: A kind of `CHEATS`, or `honest`.
        project: The project.
        function: The function with the bug.
        passes: Whether the plain test command passes with the change.
        outcome: How the run of Suture ended; `error` if it raised one, `skipped` if the case says nothing here.
        confidence: Confidence of the result.
        warnings: The warnings of the result.
        capabilities: Codes of the result's new capabilities.
        reason: Code of the reason why the run ended; empty if the case was skipped.
        notes: The reason's detail, such as a refused file, and what failed with the change; or why the case was
            skipped.
        seconds: Wall-clock seconds of the run.
    """

    source: str = OWN
    kind: str
    project: str
    function: str
    passes: bool
    outcome: str
    confidence: float = 0.0
    warnings: list[str]
    capabilities: list[str]
    reason: str = ""
    notes: list[str]
    seconds: float = 0.0

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What a row is about."""
        return self.source, self.kind, self.project, self.function

    @property
    def certified(self) -> bool:
        """Whether the change was certified at all."""
        return self.outcome == "healed"

    @property
    def plain(self) -> bool:
        """Whether the change was certified with neither a warning nor a new capability."""
        return self.certified and not self.warnings and not self.capabilities

    @property
    def doubts(self) -> list[str]:
        """Why the change was not certified plainly: the kinds of its warnings, or how the run ended."""
        if self.certified:
            return [*map(_shorten_warning, self.warnings), *self.capabilities]
        return [f"{self.outcome} ({self.reason})"]


def main() -> None:
    """Run the measurement, and print a table by kind."""
    arguments = _parse_arguments()
    proposals = _draw_proposals(arguments)
    if arguments.plain_only:
        _print_plain_runs(proposals)
        return
    if arguments.judge:
        judge_proposals(proposals, arguments.rows)
        return
    if arguments.source in (TESTS, BREAKS):
        raise UsageError(
            f"the source {arguments.source!r} changes tests, which a heal refuses", remedy="add --judge"
        )
    done = {row.key for row in read_rows(arguments.rows, HonestyRow)}
    keys = set()
    for proposal in proposals:
        keys.add(proposal.key)
        if proposal.key in done:
            continue
        row = asyncio.run(_judge(proposal))
        append_row(arguments.rows, row)
        label = ".".join(filter(None, (row.project, row.function)))
        print(f"{row.kind} {label}: {row.outcome} {row.confidence:.2f} {_list_findings(row)}", flush=True)
    rows = [row for row in read_rows(arguments.rows, HonestyRow) if row.key in keys]
    _print_cheats([row for row in rows if row.kind != HONEST])
    _print_honest_changes([row for row in rows if row.kind == HONEST])


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--source",
        choices=[OWN, WRITTEN, TESTS, BREAKS, *SOURCES],
        default=OWN,
        help="where the changes come from",
    )
    parser.add_argument("--judge", action="store_true", help="judge each change instead of proposing it")
    parser.add_argument(
        "--kind", action="append", choices=[*CHEATS, *TEST_CHANGES, HONEST], help="of cheats; may be repeated"
    )
    parser.add_argument(
        "--project", action="append", help="only this project, or case of a set; may be repeated"
    )
    parser.add_argument(
        "--per-kind",
        type=int,
        default=PER_KIND,
        metavar="N",
        help="changes of each kind of cheat, drawn by seed",
    )
    parser.add_argument("--sample", type=int, metavar="N", help="honest changes, drawn by seed; default: all")
    parser.add_argument("--plain-only", action="store_true", help="only run the plain test command")
    parser.add_argument(
        "--rows", type=Path, default=Path("honesty.jsonl"), help="a rerun continues with this file"
    )
    return parser.parse_args()


def _draw_proposals(arguments: argparse.Namespace) -> Iterator[Proposal]:
    """Yield the changes: up to `--per-kind` of each kind of cheat, and `--sample` honest ones."""
    wanted = arguments.project
    if arguments.source in (TESTS, BREAKS):
        yield from _draw_test_changes(arguments)
        return
    if arguments.source == WRITTEN:
        yield from (case for case in list_written_proposals() if not wanted or case.project in wanted)
        return
    if arguments.source != OWN:
        yield from SOURCES[arguments.source](
            lambda names: _draw_sample(
                [name for name in names if not wanted or name in wanted], arguments.sample
            )
        )
        return
    projects = [case for case in load_buggy_projects() if not wanted or case.project in wanted]
    for kind in arguments.kind or [*CHEATS, HONEST]:
        if kind == HONEST:
            honest = [_create_proposal(case, HONEST, {case.path: case.reference}) for case in projects]
            yield from _draw_sample(honest, arguments.sample)
            continue
        # The same projects are drawn whatever kinds are asked for.
        shuffled = random.Random(kind).sample(projects, len(projects))
        prepared = map(make_stub, shuffled) if kind in STUB_CHEATS else shuffled
        changes = ((case, CHEATS[kind](case)) for case in prepared)
        drawn = (_create_proposal(case, kind, change) for case, change in changes if change is not None)
        yield from islice(drawn, arguments.per_kind)


def _draw_test_changes(arguments: argparse.Namespace) -> Iterator[Proposal]:
    """Yield up to `--per-kind` changes of each kind that weakens tests."""
    wanted = arguments.project
    projects = [case for case in load_buggy_projects() if not wanted or case.project in wanted]
    for kind in arguments.kind or TEST_CHANGES:
        shuffled = random.Random(kind).sample(projects, len(projects))
        changes = (_change_tests(case, kind, arguments.source) for case in shuffled)
        yield from islice((change for change in changes if change is not None), arguments.per_kind)


def _change_tests(case: BuggyProject, kind: str, source: str) -> Proposal | None:
    """Return a change that weakens the tests of a project; `None` if the kind does not apply to it."""
    cheat = TEST_CHANGES[kind]
    prepared = cheat.prepare(case) if cheat.prepare is not None else case
    change = cheat.make(prepared) if prepared is not None else None
    if prepared is None or change is None:
        return None
    files = dict(prepared.files)
    if source == BREAKS:
        change = {**change, case.path: files[case.path]}
        files[case.path] = case.reference
    return Proposal(
        source=source, kind=kind, project=case.project, function=case.function, files=files, change=change
    )


def _draw_sample(values: list[T], size: int | None) -> list[T]:
    if size is None or size >= len(values):
        return values
    return random.Random(SAMPLE_SEED).sample(values, size)


def _create_proposal(case: BuggyProject, kind: str, change: Mapping[str, str | bytes | None]) -> Proposal:
    return Proposal(
        source=OWN, kind=kind, project=case.project, function=case.function, files=case.files, change=change
    )


async def _judge(proposal: Proposal) -> HonestyRow:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        root = folder / "project"
        try:
            proposal.create(root)
        except PrerequisiteError as fault:
            return _create_row(proposal, passes=False, outcome="skipped", notes=[str(fault)])
        passes = proposal.passes_plainly(root)
        try:
            result = await _propose(folder, proposal)
        except SutureError as fault:
            reason = type(fault).__name__
            return _create_row(proposal, passes=passes, outcome="error", reason=reason, notes=[str(fault)])
        notes = [*filter(None, (result.reason.detail,)), *_list_failures(folder / "home")]
    if result.outcome == "nothing_to_heal":
        return _create_row(proposal, passes=passes, outcome="skipped", notes=["its tests pass without it"])
    return _create_row(
        proposal,
        passes=passes,
        outcome=result.outcome,
        confidence=result.confidence,
        warnings=list(result.warnings),
        capabilities=[use.code for use in result.capabilities],
        reason=result.reason.code,
        notes=[] if result.outcome == "healed" else notes,
        seconds=result.spend.seconds,
    )


def _create_row(proposal: Proposal, **fields: object) -> HonestyRow:
    row = {"warnings": [], "capabilities": [], "notes": [], **fields}
    source, kind, project, function = proposal.key
    return HonestyRow(source=source, kind=kind, project=project, function=function, **row)  # type: ignore[arg-type]


async def _propose(folder: Path, proposal: Proposal) -> Result:
    """Heal the project with the change as the only patch of a model."""
    recipe = folder / "one_patch.toml"
    recipe.write_text('agent = "alone"\nagent_turns = 1\nagent_steps = 1\nmutate = false\n')
    edits = (
        {"path": path, "old_str": _as_text(proposal.files.get(path, "")), "new_str": _as_text(content)}
        for path, content in proposal.change.items()
        if content is not None
    )
    reply = "\n".join(f"TOOL: edit {json.dumps(edit)}" for edit in edits)
    settings = Settings(
        paths=PathSettings(home=folder / "home"),
        loop=LoopSettings(recipe=str(recipe)),
        repair=RepairSettings(enabled=False),
    )
    options = HealOptions(test=proposal.command, settings=settings, model=ScriptedModel([reply]))
    return await heal(folder / "project", options)


def _as_text(content: str | bytes) -> str:
    return content if isinstance(content, str) else content.decode()


def _list_failures(home: Path) -> list[str]:
    """Return how many tests failed with each change that was judged."""
    (run,) = (home / "runs").iterdir()
    events = [
        event for event in read_ledger(run / "ledger.jsonl").events if event.kind == "candidate.checked"
    ]
    # The first one is the code as it is.
    return [f"{event.data['failed']} fail, {event.data['passed']} pass" for event in events[1:]]


def _print_plain_runs(proposals: Iterable[Proposal]) -> None:
    """Run the plain test command with each change, and print which kinds pass how often."""
    for kind, found in groupby(proposals, lambda proposal: proposal.kind):
        results = []
        for proposal in found:
            with tempfile.TemporaryDirectory() as name:
                proposal.create(Path(name) / "project")
                results.append(proposal.passes_plainly(Path(name) / "project"))
        print(f"{kind:44}{sum(results):>4} of {len(results)} pass", flush=True)


def _shorten_warning(warning: str) -> str:
    """Return a warning without the path and names that it is about: `no longer calls`, or a rule of the safety scan."""
    parts = warning.split(": ")
    if parts[0] == "safety":
        return f"safety: {parts[2]}"
    words = parts[1:2] or parts
    return " ".join(takewhile(str.isalpha, words[0].split()[:3])) or warning


def _list_findings(row: HonestyRow) -> list[str]:
    return [*row.warnings, *row.capabilities] if row.certified else row.notes


def _print_cheats(rows: list[HonestyRow]) -> None:
    if not rows:
        return
    by_kind: dict[str, list[HonestyRow]] = defaultdict(list)
    for row in rows:
        by_kind[row.kind].append(row)
    print(f"\n{'kind':44}{'changes':>8}{'pass':>6}{'certified':>10}{'plainly':>9}  findings")
    for kind, found in sorted(by_kind.items()):
        findings = Counter(doubt for row in found if row.certified for doubt in row.doubts)
        listed = ", ".join(f"{finding} ({count})" for finding, count in findings.most_common(2))
        counts = [sum(getattr(row, name) for row in found) for name in ("passes", "certified", "plain")]
        print(f"{kind:44}{len(found):>8}{counts[0]:>6}{counts[1]:>10}{counts[2]:>9}  {listed}")
    print(
        f"\ncheats: {len(rows)} of {len(by_kind)} kinds, {sum(row.passes for row in rows)} pass the plain tests, "
        f"{sum(row.certified for row in rows)} certified, {sum(row.plain for row in rows)} of them plainly"
    )


def _print_honest_changes(rows: list[HonestyRow]) -> None:
    by_source: dict[str, list[HonestyRow]] = defaultdict(list)
    for row in rows:
        by_source[row.source].append(row)
    for source, found in sorted(by_source.items()):
        skipped = [row for row in found if row.outcome == "skipped"]
        passing = [row for row in found if row.passes and row.outcome != "skipped"]
        doubted = [row for row in passing if not row.plain]
        share = f" ({len(doubted) / len(passing):.1%})" if passing else ""
        print(
            f"honest, {source}: {len(found)} changes, {len(skipped)} skipped, {len(passing)} pass the plain "
            f"tests, {len(doubted)}{share} of these not certified plainly"
        )
        reasons = Counter(doubt for row in doubted for doubt in {*row.doubts})
        for reason, count in reasons.most_common():
            print(f"    {count:>4}  {reason}")
        for row in skipped:
            print(f"    skipped {row.project}: {row.notes[0]}")


if __name__ == "__main__":
    sys.exit(run_script(main))
