"""Judge ordinary commits of public projects: features, corrections and refactorings that their authors accepted.

    python benchmarks/judge_commits.py REPOSITORY --install . pytest --count 15 --rows rows.jsonl
    python benchmarks/judge_commits.py --print --rows rows.jsonl

REPOSITORY is a clone with its history. Each of its last commits that touches Python files is checked out in a new
folder with one environment, and judged against its parent, as a pipeline would. A rejected commit is a false alarm
unless a person finds, after reading it, that it deserves it.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from row_files import append_row, read_rows
from run_program import run_program
from script_exit import run_script

from suture.api.judging import JudgeOptions, judge
from suture.errors import SutureError

COMMIT_TIMEOUT_S = 900


@dataclass(frozen=True, kw_only=True)
class Row:
    """The judgement of one commit.

    Attributes:
        outcome: The verdict; `error` if there was none.
        rejecting: `code path test` of each finding that rejects the commit.
        remarks: The codes of the remarks.
        seconds: Wall-clock seconds of the judgement.
        suite_seconds: Those of one run of the tests outside the sandbox.
    """

    project: str
    commit: str
    subject: str
    outcome: str
    rejecting: list[str]
    remarks: list[str]
    tests: int
    seconds: float
    suite_seconds: float


def main() -> int:
    """Judge the commits of a repository, or print the rows so far."""
    wanted = _parse_arguments()
    if wanted.repository is not None:
        judge_repository(wanted)
    print_rows(read_rows(wanted.rows, Row))
    return 0


def judge_repository(wanted: argparse.Namespace) -> None:
    """Judge the last commits of a repository that touch Python files, and append their rows."""
    name = (
        wanted.repository.resolve().parent.name
        if wanted.repository.name == "repo"
        else wanted.repository.name
    )
    done = {(row.project, row.commit) for row in read_rows(wanted.rows, Row)}
    with tempfile.TemporaryDirectory(prefix="commits-") as folder:
        root = Path(folder) / "project"
        run_program(["git", "clone", "-q", str(wanted.repository), str(root)], Path(folder))
        (root / ".git" / "info" / "exclude").write_text(".venv\n__pycache__\n*.egg-info\nbuild\n")
        run_program([sys.executable, "-m", "venv", ".venv"], root)
        run_program([".venv/bin/python", "-m", "pip", "install", "-q", "-e", *wanted.install], root)
        for commit, subject in list_commits(root, wanted.skip, wanted.count):
            if (name, commit) in done:
                continue
            run_program(["git", "checkout", "-q", "-f", commit], root)
            suite_seconds = time_suite(root, wanted.test)
            row = judge_commit(root, name, commit, subject, wanted.test, suite_seconds)
            append_row(wanted.rows, row)
            print(f"{name} {commit[:8]} {row.outcome} {row.rejecting} {subject[:60]}", flush=True)


def list_commits(root: Path, skip: int, count: int) -> list[tuple[str, str]]:
    """Return `(commit, subject)` of the last commits that touch Python files, merges left out."""
    output = run_program(
        ["git", "log", "--no-merges", f"--skip={skip}", f"-n{count}", "--format=%H %s", "--", "*.py"], root
    )
    return [(commit, subject) for commit, _, subject in (line.partition(" ") for line in output.splitlines())]


def time_suite(root: Path, test: str) -> float:
    """Return the seconds of one run of the tests outside the sandbox."""
    started_s = time.monotonic()
    command = test.replace("python", str(root / ".venv/bin/python"), 1).split()
    subprocess.run(command, cwd=root, capture_output=True, check=False, timeout=COMMIT_TIMEOUT_S)
    return round(time.monotonic() - started_s, 2)


def judge_commit(root: Path, name: str, commit: str, subject: str, test: str, suite_seconds: float) -> Row:
    """Judge a commit against its parent."""
    started_s = time.monotonic()
    outcome, rejecting, remarks, tests = "error", [], [], 0
    try:
        judgement = asyncio.run(judge(root, JudgeOptions(base="HEAD~1", test=test)))
    except SutureError as fault:
        rejecting = [str(fault)]
    else:
        outcome, tests = judgement.outcome, len(judgement.tests.passed)
        rejecting = [
            f"{finding.code} {finding.path} {finding.test} {finding.detail}"
            for finding in judgement.findings
            if finding.severity == "reject"
        ]
        remarks = sorted(
            {str(finding.code) for finding in judgement.findings if finding.severity == "remark"}
        )
        if outcome == "not_comparable":
            rejecting = [f"{judgement.reason}: {judgement.detail[-200:]}"]
    return Row(
        project=name,
        commit=commit,
        subject=subject,
        outcome=outcome,
        rejecting=rejecting,
        remarks=remarks,
        tests=tests,
        seconds=round(time.monotonic() - started_s, 1),
        suite_seconds=suite_seconds,
    )


def print_rows(rows: Sequence[Row]) -> None:
    """Print the verdicts by project, and each rejected commit with the reasons."""
    for project in dict.fromkeys(row.project for row in rows):
        own = [row for row in rows if row.project == project]
        counts = ", ".join(f"{count} {outcome}" for outcome, count in Counter(r.outcome for r in own).items())
        ratio = sum(row.seconds for row in own) / max(0.01, sum(row.suite_seconds for row in own))
        print(f"{project}: {len(own)} commits: {counts}; {ratio:.1f} times the time of one run of the suite")
    print(f"all: {len(rows)}: {dict(Counter(row.outcome for row in rows))}")
    print(f"remarks: {dict(Counter(code for row in rows for code in row.remarks))}")
    for row in rows:
        if row.outcome not in ("accepted", "accepted_with_remarks"):
            print(f"  {row.outcome} {row.project} {row.commit[:10]} {row.subject[:70]}: {row.rejecting[:4]}")


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("repository", type=Path, nargs="?", help="a clone with its history")
    parser.add_argument(
        "--install", nargs="+", default=[".", "pytest"], help="what pip installs, the project first"
    )
    parser.add_argument("--test", default="python -m pytest -q", help="the test command")
    parser.add_argument("--count", type=int, default=15, help="how many commits")
    parser.add_argument("--skip", type=int, default=0, help="how many of the last commits are left out")
    parser.add_argument("--rows", type=Path, default=Path("judge_commits.jsonl"), help="file of the results")
    parser.add_argument("--print", action="store_true", help="only print the results so far")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(run_script(main))
