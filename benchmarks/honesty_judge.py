"""Judge changes with `suture judge`, and count which cheats it accepts and which honest changes it rejects.

Each project is laid out as a git repository with one commit; the change is what its working tree has beyond that.
`honesty.py --judge` draws the changes and runs this.
"""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from honesty_set.proposals import ENVIRONMENTS, Proposal, write_files
from row_files import append_row, read_rows

from suture.api.judging import JudgeOptions, judge
from suture.core.records.judgement import ChangeFinding, Judgement
from suture.core.settings import PathSettings, Settings
from suture.errors import PrerequisiteError, SutureError

AUTHOR = ("-c", "user.name=Benchmark", "-c", "user.email=benchmark@example.org")
HONEST = "honest"

__all__ = ["JudgedRow", "judge_proposals", "print_judged"]


@dataclass(frozen=True, kw_only=True)
class JudgedRow:
    """The judgement of one change.

    Attributes:
        source: `own`, `tests`, `breaks`, or the name of a data set.
        kind: A kind of cheat, or `honest`.
        project: The project.
        function: The function with the bug.
        passes: Whether the plain test command passes with the change.
        outcome: The verdict; `error` if there was none, `skipped` if the case says nothing here.
        rejecting: `code place detail` of each finding that rejects the change; why a change was not judged.
        remarks: The same of each remark.
        seconds: Wall-clock seconds of the judgement.
    """

    source: str
    kind: str
    project: str
    function: str
    passes: bool
    outcome: str
    rejecting: list[str]
    remarks: list[str]
    seconds: float = 0.0

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What a row is about."""
        return self.source, self.kind, self.project, self.function


def judge_proposals(proposals: Iterable[Proposal], path: Path) -> None:
    """Judge each proposal that has no row yet, append its row, and print the summary."""
    done = {row.key for row in read_rows(path, JudgedRow)}
    keys = set()
    for proposal in proposals:
        keys.add(proposal.key)
        if proposal.key in done:
            continue
        row = judge_proposal(proposal)
        append_row(path, row)
        label = ".".join(filter(None, (row.project, row.function)))
        print(f"{row.kind} {label}: {row.outcome} {row.rejecting} {row.remarks}", flush=True)
    print_judged([row for row in read_rows(path, JudgedRow) if row.key in keys])


def judge_proposal(proposal: Proposal) -> JudgedRow:
    """Judge one proposal in a new repository."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "project"
        try:
            proposal.create(root)
        except PrerequisiteError as fault:
            return _make_row(proposal, passes=False, outcome="skipped", rejecting=[str(fault)])
        _commit(root)
        passes = proposal.passes_plainly(root)
        write_files(proposal.change, root)
        settings = Settings(paths=PathSettings(home=Path(name) / "home"))
        options = JudgeOptions(base="HEAD", test=proposal.command, settings=settings)
        try:
            judgement = asyncio.run(judge(root, options))
        except SutureError as fault:
            return _make_row(proposal, passes=passes, outcome="error", rejecting=[str(fault)])
    return _make_row(
        proposal,
        passes=passes,
        outcome=judgement.outcome,
        rejecting=_list_findings(judgement, "reject")
        or [*filter(None, (judgement.reason, judgement.detail[-200:]))],
        remarks=_list_findings(judgement, "remark"),
        seconds=judgement.seconds,
    )


def _make_row(
    proposal: Proposal,
    *,
    passes: bool,
    outcome: str,
    rejecting: list[str],
    remarks: Sequence[str] = (),
    seconds: float = 0.0,
) -> JudgedRow:
    source, kind, project, function = proposal.key
    return JudgedRow(
        source=source,
        kind=kind,
        project=project,
        function=function,
        passes=passes,
        outcome=outcome,
        rejecting=rejecting,
        remarks=[*remarks],
        seconds=seconds,
    )


def _commit(root: Path) -> None:
    """Make the project a repository with one commit, which leaves out its environment."""
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=root, check=True)
    (root / ".git" / "info" / "exclude").write_text("\n".join([*ENVIRONMENTS, "__pycache__", ""]))
    for arguments in (["add", "-A"], ["commit", "-q", "--no-verify", "-m", "The project"]):
        subprocess.run(["git", *AUTHOR, *arguments], cwd=root, check=True, capture_output=True)


def _list_findings(judgement: Judgement, severity: str) -> list[str]:
    return [_show(finding) for finding in judgement.findings if finding.severity == severity]


def _show(finding: ChangeFinding) -> str:
    place = f"{finding.path}:{finding.line}" if finding.line else finding.path
    return " ".join(filter(None, (finding.code, place, finding.test, finding.detail)))


def print_judged(rows: Sequence[JudgedRow]) -> None:
    """Print the verdicts by kind, and every cheat that is accepted and honest change that is rejected."""
    judged = [row for row in rows if row.outcome != "skipped"]
    # A cheat that the plain tests refuse anyway says nothing.
    cheats = [row for row in judged if row.kind != HONEST and row.passes]
    honest = [row for row in judged if row.kind == HONEST and row.passes]
    _print_groups(cheats, lambda row: row.kind)
    _print_groups(honest, lambda row: f"{HONEST}, {row.source}")
    for row in rows:
        if row.outcome == "skipped":
            print(f"    skipped {row.project}: {row.rejecting[0]}")
    for row in (*cheats, *honest):
        if (row.outcome == "rejected") == (row.kind == HONEST) or row.outcome in ("error", "not_comparable"):
            print(f"    {row.outcome}: {row.kind} {row.project} {row.function} {row.rejecting} {row.remarks}")
    if cheats:
        counts = Counter(row.outcome for row in cheats)
        print(
            f"\ncheats: {len(cheats)} of {len({row.kind for row in cheats})} kinds pass the plain tests; "
            f"{counts['accepted']} accepted without remark, {counts['rejected']} "
            f"({counts['rejected'] / len(cheats):.1%}) rejected"
        )
    if honest:
        rejected = sum(row.outcome == "rejected" for row in honest)
        print(
            f"\nhonest: {len(honest)} pass the plain tests; {rejected} ({rejected / len(honest):.1%}) rejected"
        )


def _print_groups(rows: Sequence[JudgedRow], name: Callable[[JudgedRow], str]) -> None:
    groups: dict[str, list[JudgedRow]] = defaultdict(list)
    for row in rows:
        groups[name(row)].append(row)
    for group, found in sorted(groups.items()):
        counts = Counter(row.outcome for row in found)
        codes = Counter(finding.partition(" ")[0] for row in found for finding in {*row.rejecting})
        print(f"{group:36}{len(found):>4}  {dict(counts)}  {dict(codes)}")
