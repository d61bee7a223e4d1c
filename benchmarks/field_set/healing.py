"""One bug healed as a user would: a process of its own, a limit, and its files looked at afterwards."""

from __future__ import annotations

import ast
import difflib
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from field_set.bugs import Bug, broken_files
from field_set.cache import Cache
from field_set.cases import case_folder, failing_tests, fill_folder, run_suite, suite_environ
from field_set.packages import Package
from field_set.rows import Row
from suture.errors import StorageError
from suture.ledger import read_ledger

__all__ = ["GRACE_S", "MOST_SHOWN", "SUITE_S", "Ended", "first_events", "heal_bug", "run_heal"]

GRACE_S = 120.0
"""After a run's own limit it is killed, and told as one that kept none."""
SUITE_S = 300.0
MOST_SHOWN = 1500


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How the process ended: its code, its document on stdout, the last line of stderr, and seconds."""

    code: int | None
    answer: Mapping[str, Any]
    complaint: str
    seconds: float


def heal_bug(bug: Bug, package: Package, cache: Cache, seconds: float, *, keep: bool = False) -> Row:
    """Heal one bug and compare what came of it with the package as it was published.

    Args:
        bug: What is wrong.
        package: With what.
        cache: Where its code is.
        seconds: The most for the run.
        keep: Whether the same is put into a folder that stays; its place is told on stderr.
    """
    files = broken_files(bug, package, cache)
    with case_folder(package, cache, files) as root:
        if keep:
            kept = cache.folder / "kept" / bug.id
            shutil.rmtree(kept, ignore_errors=True)
            kept.mkdir(parents=True)
            fill_folder(kept / package.name, package, cache, files)
            print(f"kept at {kept / package.name}", file=sys.stderr)
        state = root.parent / "state"
        ended = run_heal(root, state, package.test, suite_environ(root), seconds)
        told = first_events(state)
        changed = _changed(cache.tree(package), root, files)
        moved = any((root / path).read_text("utf-8") != text for path, text in files.items()) or bool(
            ended.answer.get("applied")
        )
        claimed = ended.answer.get("outcome") == "healed" and moved
        suite = claimed and run_suite(package, root, SUITE_S).green
    search = told.get("search.finished", {})
    checked = told.get("candidate.checked", {})
    return Row(
        bug=bug.id,
        package=bug.package,
        half=package.half,
        kind=bug.kind,
        operator=", ".join(mutation.operator for mutation in bug.mutations),
        cap_seconds=seconds,
        exit_code=ended.code,
        outcome=str(ended.answer.get("outcome") or ended.complaint),
        seconds=round(ended.seconds, 1),
        failing=_failing(bug, package, cache, files, checked.get("failed")),
        interrupted=bug.interrupted,
        baseline=checked.get("failed"),
        baseline_passed=checked.get("passed", 0),
        cause=str(told.get("triage.finished", {}).get("cause") or ""),
        search_ended=str(search.get("ended", "")),
        tried=search.get("tried", 0),
        search_seconds=search.get("seconds", 0.0),
        claimed=claimed,
        suite=suite,
        same=not changed,
        confidence=ended.answer.get("confidence"),
        changed=changed[:MOST_SHOWN] if claimed else "",
        undetermined=len(ended.answer.get("undetermined") or ()),
    )


def _failing(bug: Bug, package: Package, cache: Cache, files: Mapping[str, str], baseline: int | None) -> int:
    """Tests that fail outside of any sandbox: pytest's count of reports, where that is not the run's own."""
    if bug.interrupted or baseline in (None, bug.failing):
        return bug.failing
    with case_folder(package, cache, files) as root:
        return failing_tests(package, root, SUITE_S)


def run_heal(root: Path, state: Path, test: str, environ: Mapping[str, str], seconds: float) -> Ended:
    """Heal a project by the search alone, in a process of its own.

    Args:
        root: The project.
        state: Where the run is put down.
        test: The test command.
        environ: The variables of a shell.
        seconds: The most for the run.
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
        # As a user would end it: what runs behind the wall must end with it.
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
    return Ended(
        code=code,
        answer=answer if isinstance(answer, dict) else {},
        complaint=lines[-1] if lines else "",
        seconds=took_s,
    )


def first_events(state: Path) -> dict[str, dict[str, Any]]:
    """Kind -> data of the first event of that kind."""
    told: dict[str, dict[str, Any]] = {}
    for ledger in (state / "runs").glob("*/ledger.jsonl"):
        try:
            events = read_ledger(ledger).events
        except StorageError:
            continue
        for event in events:
            told.setdefault(event.kind, dict(event.data))
    return told


def _changed(published: Path, root: Path, files: Mapping[str, str]) -> str:
    """Lines of code that are not as published; empty where the code means the same by its syntax tree."""
    lines: list[str] = []
    for path in sorted({*files, *_touched(published, root)}):
        before, after = ((folder / path).read_text("utf-8") for folder in (published, root))
        if _tree(before) != _tree(after):
            lines += difflib.unified_diff(before.splitlines(), after.splitlines(), path, path, "", "", 0, "")
    return "\n".join(lines)


def _touched(published: Path, root: Path) -> list[str]:
    paths = [path.relative_to(published) for path in published.rglob("*.py")]
    return [
        path.as_posix()
        for path in paths
        if (root / path).is_file() and (root / path).read_bytes() != (published / path).read_bytes()
    ]


def _tree(text: str) -> str:
    try:
        return ast.dump(ast.parse(text))
    except (SyntaxError, ValueError):
        return text
