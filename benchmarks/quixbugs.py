"""QuixBugs healed by search alone: plausible and correct apart, seconds, candidates, no token.

    SUTURE_DATA=... python benchmarks/quixbugs.py [PROGRAM ...] [--json FILE]

Wanted: `SUTURE_DATA`, a folder with `quixbugs/tasks.jsonl.gz`. A record's tests play the user's failing
suite, as a pytest file that may run for 10 s. After a run has ended, its repair is compared with the
reference on inputs that the run never saw: values near those of the tests, and random graphs where the tests
make objects. Inputs on which the reference raises or does not end in time are outside its domain.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import gzip
import json
import os
import random
import statistics
import sys
import tempfile
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from quixbugs_graphs import WRAPPERS

from suture.api import heal
from suture.checks import prepare_suite
from suture.checks.inputs import inputs_near, read_arguments
from suture.checks.test_command import TestCommand
from suture.ledger import read_ledger
from suture.loop.tasks import heal_task
from suture.records import Result
from suture.repair import Edit
from suture.repair.trials import Proposal, compare, locate
from suture.sandbox import Sandbox, discover_interpreter, open_sandbox
from suture.settings import PathSettings, SandboxSettings, Settings

WANTED = 500
"""Inputs asked for; at least `ENOUGH` must be in the domain."""
ENOUGH = 200
GRADER_SEED = 20261
REACH = 400
LONG_S = 3.0
"""CPU seconds for each answer of a repair; where the reference needs `CALL_S`, the input does not count."""
COMMAND = ("python", "-m", "pytest", "-q")
SHIM = ("_approx", "pytest")


@dataclass(frozen=True, kw_only=True)
class Row:
    """How one program fared: `agreed` of `inputs` answers were the reference's; the proof's time is apart."""

    program: str
    outcome: str
    plausible: bool
    correct: bool
    seconds: float
    proof_seconds: float
    search_seconds: float
    candidates: int
    plausible_found: int
    tokens: int
    inputs: int
    agreed: int
    label: str


def project_of(record: dict[str, Any]) -> dict[str, str]:
    """The program and its tests, as a user would have them; the records' stand-in for pytest is taken out."""
    name = record["entry_point"]
    kept = []
    for node in ast.parse(record["hidden_tests"]).body:
        stand_in = isinstance(node, ast.ClassDef) and node.name in SHIM
        if not stand_in and "_qb_abs" not in ast.unparse(node) and not _calls_a_test(node):
            kept.append(node)
    tests = ast.unparse(ast.Module(body=kept, type_ignores=[]))
    header = f"import pytest\nfrom {name} import *\nfrom {name} import {name}\n\npytest.run_slow = False\n\n"
    return {f"{name}.py": record["buggy"], f"test_{name}.py": f"{header}{tests}\n"}


def _calls_a_test(node: ast.stmt) -> bool:
    called = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
    return isinstance(called, ast.Name) and called.id.startswith("test")


async def measure(record: dict[str, Any], sandbox: Sandbox, home: Path) -> Row:
    """Heal one program without a model, then compare it with the reference."""
    paths = PathSettings(home=home / "state", cache=home / "no-models")
    settings = Settings(paths=paths, sandbox=SandboxSettings(test_wall_s=10))
    with tempfile.TemporaryDirectory() as folder:
        for path, text in project_of(record).items():
            (Path(folder) / path).write_text(text, "utf-8")
        result = await _healed(Path(folder), settings, sandbox)
        told, seconds, proved = _times(settings)
        inputs = agreed = 0
        if result is not None and result.ok and result.candidate is not None:
            inputs, agreed = await grade(record, result.candidate.files, Path(folder), settings, sandbox)
    return Row(
        program=record["entry_point"],
        outcome=result.outcome if result is not None else "needs a model",
        plausible=result is not None and result.ok,
        correct=ENOUGH <= inputs == agreed,
        seconds=round(seconds, 1),
        proof_seconds=round(proved, 1),
        search_seconds=told.get("seconds", 0.0),
        candidates=told.get("tried", 0),
        plausible_found=told.get("plausible", 0),
        tokens=result.spend.tokens if result is not None else 0,
        inputs=inputs,
        agreed=agreed,
        label=result.candidate.label if result is not None and result.candidate else "",
    )


async def _healed(folder: Path, settings: Settings, sandbox: Sandbox) -> Result | None:
    """A run that ends where a model would be needed: there is none here."""
    from suture.errors import PrerequisiteError

    try:
        return await heal(folder, test=COMMAND, settings=settings, sandbox=sandbox)
    except PrerequisiteError:
        return None


def _times(settings: Settings) -> tuple[dict[str, Any], float, float]:
    """What the search said; seconds of a run to its last decision, and from there to its end."""
    ledger = max((settings.paths.home / "runs").glob("*/ledger.jsonl"), key=lambda path: path.stat().st_mtime)
    events = read_ledger(ledger).events
    search = next((dict(event.data) for event in events if event.kind == "search.finished"), {})
    decided_s = max((e.time_s for e in events if e.kind == "decided"), default=events[-1].time_s)
    return search, decided_s - events[0].time_s, events[-1].time_s - decided_s


async def grade(
    record: dict[str, Any], files: Any, folder: Path, settings: Settings, sandbox: Sandbox
) -> tuple[int, int]:
    """How many inputs are in the reference's domain, and on how many of them a repair agrees with it."""
    name = record["entry_point"]
    path = f"{name}.py"
    wrapper = WRAPPERS.get(name)
    if wrapper is not None:
        (folder / "graded.py").write_text(wrapper, "utf-8")
    task, _ = heal_task(folder, test=COMMAND)
    suite = await prepare_suite(task, sandbox, settings.sandbox, discover_interpreter(folder, os.environ))
    assert suite.command is not None
    buggy = record["buggy"]
    whole = [_instead(path, buggy, text) for text in (record["reference"], files[path])]
    if wrapper is not None:
        calls = [("graded.py", "graded", f"({seed},)") for seed in range(WANTED)]
    else:
        calls = await _calls(suite.command, path, name, buggy)
    texts = {path: buggy}
    right = await compare(suite.command, whole[:1], calls, texts, 240)
    given = await compare(suite.command, whole[1:], calls, texts, 240, call_s=LONG_S)
    pairs = list(zip_longest(right.get(0, []), given.get(0, []), fillvalue="!none"))
    domain = [(one, two) for one, two in pairs if not one.startswith("!")]
    return len(domain), sum(one == two for one, two in domain)


async def _calls(command: TestCommand, path: str, name: str, text: str) -> list[tuple[str, str, str]]:
    seen = (await locate(command, [path], (), 60)).calls
    texts = [call.arguments for call in seen if call.function == name]
    seeds = read_arguments(list(dict.fromkeys(texts)))
    return [
        (path, name, repr(new)) for new in inputs_near(seeds, WANTED, random.Random(GRADER_SEED), reach=REACH)
    ]


def _instead(path: str, old: str, new: str) -> Proposal:
    edit = Edit(start=0, end=len(old.encode("utf-8")), text=new)
    return Proposal(path=path, edits=(edit,), label="", score=1.0, operators=())


async def main() -> int:
    """Measure the programs that were named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    data = os.environ.get("SUTURE_DATA")
    if not data:
        print("set SUTURE_DATA to the folder of the data sets", file=sys.stderr)
        return 2
    with gzip.open(Path(data) / "quixbugs" / "tasks.jsonl.gz", "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    rows = []
    sandbox = open_sandbox(Settings().sandbox)
    with tempfile.TemporaryDirectory() as home:
        for record in records:
            if not options.programs or record["entry_point"] in options.programs:
                rows.append(await measure(record, sandbox, Path(home)))
                print(_line(rows[-1]), flush=True)
    await sandbox.close()
    _summary(rows)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1), "utf-8")
    return 0


def _line(row: Row) -> str:
    verdict = "correct" if row.correct else "plausible" if row.plausible else "-"
    agreed = f"{row.agreed}/{row.inputs}"
    return (
        f"{row.program:27} {verdict:9} {agreed:>9} {row.seconds:6.1f} s (search {row.search_seconds:5.1f}, "
        f"proof {row.proof_seconds:5.1f}) {row.candidates:5} tried {row.plausible_found:3} found  {row.label}"
    )


def _summary(rows: list[Row]) -> None:
    count = len(rows)
    print(
        f"correct {sum(r.correct for r in rows)}, plausible {sum(r.plausible for r in rows)} of {count}; "
        f"median {statistics.median(r.seconds for r in rows):.1f} s a run, "
        f"{statistics.median(r.search_seconds for r in rows):.1f} s of search; "
        f"{sum(r.tokens for r in rows)} tokens"
    )


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
