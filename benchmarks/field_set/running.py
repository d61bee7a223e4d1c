"""Shared by both field sets: `suture heal` in a separate process with a limit, and a row of its result."""

from __future__ import annotations

import argparse
import difflib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from row_files import append_row, read_rows

from field_set.bugs import Bug, read_text
from field_set.rows import Row, format_row
from suture.core.ledger import read_ledger
from suture.errors import StorageError

__all__ = [
    "SUITE_S",
    "HealProcessResult",
    "create_parser",
    "create_row",
    "diff_changed_files",
    "first_events",
    "run_heal",
    "run_rows",
]

GRACE_S = 120.0
"""Seconds after the limit of a run at which it is killed, because it did not keep its limit."""
SUITE_S = 300.0
MOST_SHOWN = 1500


@dataclass(frozen=True, kw_only=True)
class HealProcessResult:
    """How the process ended: its exit code, its JSON document, the last line of stderr, and its seconds."""

    code: int | None
    answer: Mapping[str, Any]
    complaint: str
    seconds: float

    def claims(self, root: Path, files: Mapping[str, str]) -> bool:
        """Return whether the run reports a repair, and has changed the broken files or says that it applied it."""
        moved = any(read_text(root / path) != text for path, text in files.items())
        return self.answer.get("outcome") == "healed" and (moved or bool(self.answer.get("applied")))


def create_parser(about: str | None) -> argparse.ArgumentParser:
    """Return the options that both field sets share.

    Args:
        about: The description of the script.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", action="append", metavar="NAME", help="only this one; may be repeated")
    parser.add_argument("--bug", action="append", metavar="ID", help="only this one; may be repeated")
    parser.add_argument(
        "--seconds", type=float, default=60, help="limit of each run, certification included; 60"
    )
    parser.add_argument(
        "--rows", type=Path, metavar="FILE", help="rows as JSON lines; a rerun continues with them"
    )
    parser.add_argument("--cache", type=Path, metavar="FOLDER", help="the folder for downloaded packages")
    parser.add_argument("--offline", action="store_true", help="download nothing")
    parser.add_argument(
        "--keep", action="store_true", help="keep the folder of each case, and print its path"
    )
    parser.add_argument("--json", action="store_true", help="print the rows and the summary as JSON")
    return parser


def run_rows(bugs: Sequence[Bug], path: Path, seconds: float, heal: Callable[[Bug], Row]) -> list[Row]:
    """Return a row for each bug: known rows of a file with the same limit, and new ones, which are appended.

    Args:
        bugs: The bugs, in the order in which they are healed.
        path: The file of rows.
        seconds: The time limit of each run.
        heal: Heals one bug.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    known = {row.bug: row for row in read_rows(path, Row) if row.cap_seconds == seconds}
    for bug in bugs:
        if bug.id not in known:
            row = known[bug.id] = heal(bug)
            append_row(path, row)
            print(format_row(row), file=sys.stderr, flush=True)
    return [known[bug.id] for bug in bugs]


def create_row(
    bug: Bug,
    half: str,
    seconds: float,
    ended: HealProcessResult,
    told: Mapping[str, Mapping[str, Any]],
    *,
    failing: int,
    claimed: bool,
    suite: bool,
    changed: str,
) -> Row:
    """Return the result of one run as a row.

    Args:
        bug: The bug.
        half: The group of the row in summaries.
        seconds: The time limit of the run.
        ended: How the process ended.
        told: The first event of each kind.
        failing: Number of tests that fail outside any sandbox.
        claimed: Whether the run reports a repair and has changed the files.
        suite: Whether the suite passes then.
        changed: The lines that are not as published; empty if the code means the same.
    """
    search = told.get("search.finished", {})
    checked = told.get("candidate.checked", {})
    return Row(
        bug=bug.id,
        package=bug.package,
        half=half,
        kind=bug.kind,
        operator=", ".join(mutation.operator for mutation in bug.mutations),
        cap_seconds=seconds,
        exit_code=ended.code,
        outcome=str(ended.answer.get("outcome") or ended.complaint),
        seconds=round(ended.seconds, 1),
        failing=failing,
        interrupted=bug.interrupted,
        baseline=checked.get("failed"),
        baseline_passed=checked.get("passed", 0),
        cause=str(told.get("triage.finished", {}).get("cause") or ""),
        search_ended=str(search.get("ending") or ""),
        tried=search.get("candidates_tried", 0),
        search_seconds=search.get("seconds", 0.0),
        claimed=claimed,
        suite=suite,
        same=not changed,
        confidence=ended.answer.get("confidence"),
        changed=changed[:MOST_SHOWN] if claimed else "",
        share=told.get("candidate.proposed", {}).get("score_share"),
        undetermined=len(ended.answer.get("rivals") or ()),
    )


def diff_changed_files(
    published: Path, root: Path, paths: Iterable[str], meaning: Callable[[str, str], Any]
) -> str:
    """Return a diff of the files whose meaning differs from the published ones; empty if none does.

    Args:
        published: The published package.
        root: The healed project.
        paths: The files to compare.
        meaning: Returns the meaning of a text, given the text and the path of the file.
    """
    lines: list[str] = []
    for path in sorted({*paths}):
        before, after = read_text(published / path), read_text(root / path)
        if meaning(before, path) != meaning(after, path):
            lines += difflib.unified_diff(before.splitlines(), after.splitlines(), path, path, "", "", 0, "")
    return "\n".join(lines)


def run_heal(
    root: Path, state: Path, test: str, environ: Mapping[str, str], seconds: float
) -> HealProcessResult:
    """Heal a project by the search alone, in a separate process.

    Args:
        root: The project.
        state: The folder for the run.
        test: The test command.
        environ: The variables of a shell.
        seconds: The time limit of the run.
    """
    command = [str(Path(sys.executable).parent / "suture"), "heal", str(root), "--test", test]
    command += ["--no-model", "--apply", "--json", "--seconds", str(seconds)]
    environ = {**environ, "SUTURE_HOME": str(state)}
    began_s = time.monotonic()
    process = subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace"
    )
    code: int | None
    try:
        out, err = process.communicate(timeout=seconds + GRACE_S)
        code = process.returncode
    except subprocess.TimeoutExpired:
        # Stop it as a user would, so that what runs inside the sandbox ends too.
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        code = None
    took_s = time.monotonic() - began_s
    try:
        answer = json.loads(out)
    except ValueError:
        answer = {}
    lines = [line for line in err.splitlines() if line.startswith("error")] or err.splitlines()[-1:]
    return HealProcessResult(
        code=code,
        answer=answer if isinstance(answer, dict) else {},
        complaint=lines[-1] if lines else "",
        seconds=took_s,
    )


def first_events(state: Path) -> dict[str, dict[str, Any]]:
    """Return kind -> data of the first event of that kind."""
    told: dict[str, dict[str, Any]] = {}
    for ledger in (state / "runs").glob("*/ledger.jsonl"):
        try:
            events = read_ledger(ledger).events
        except StorageError:
            continue
        for event in events:
            told.setdefault(event.kind, dict(event.data))
    return told
