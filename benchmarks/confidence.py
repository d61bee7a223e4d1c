"""Measure what the confidence is worth: claimed repairs, their evidence, and whether they are right.

    SUTURE_DATA=... nice -n 15 python benchmarks/confidence.py gather --rows FILE [--set NAME ...] [--most N]
    python benchmarks/confidence.py fit --rows FILE

`SUTURE_DATA` must have `quixbugs`, `debugbench` and `refactory`. Programs are healed without a model, on the
visible tests of their set, within a few seconds each. A claim is right if the tests that no run saw pass (for
QuixBugs: if it answers as the reference does). Programs with odd numbers are for fitting, the others for
reporting. A row contains only numbers, nothing of a program.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from confidence_fit import print_fit
from data_files import read_data
from healing import COMMAND, TEST_TIMEOUT_S, Program, RepairGrade
from public_bugs import MODULE, create_project, grade
from quixbugs import programs as quixbugs_programs
from script_exit import run_script

from suture.api import HealOptions, heal
from suture.core.ledger import read_ledger
from suture.core.records import Result
from suture.core.settings import (
    BudgetSettings,
    CertificationSettings,
    PathSettings,
    RepairSettings,
    SandboxSettings,
    Settings,
)
from suture.errors import PrerequisiteError, SandboxError, UsageError
from suture.project.python_source.parsing import parse_module
from suture.sandbox import Sandbox, open_sandbox

SEARCH_S, CERTIFICATION_S, RUN_S = 8.0, 25.0, 60.0
"""Limits of the search, of the certification, and of the run with both."""
SEED = 20261
SETS = ("quixbugs", "debugbench", "refactory")


@dataclass(frozen=True, kw_only=True)
class SampledProgram:
    """A program of a set, and its purpose: `fit` or `report`."""

    set: str
    part: str
    program: Program


def sample_programs(name: str) -> list[SampledProgram]:
    """Return the programs of a set in a fixed random order, with their purpose."""
    if name == "quixbugs":
        made = list(enumerate(quixbugs_programs()))
    else:
        records = [
            (n, record) for n, record in enumerate(read_data(f"{name}/tasks")) if _has_failing_test(record)
        ]
        made = [(n, _program(record)) for n, record in records]
    found = [
        SampledProgram(set=name, part="fit" if n % 2 else "report", program=program) for n, program in made
    ]
    random.Random(SEED).shuffle(found)
    return found


def _program(record: Mapping[str, Any]) -> Program:
    return Program(name=record["id"], files=create_project(record), grade=partial(_grade, record))


def _has_failing_test(record: Mapping[str, Any]) -> bool:
    """Return whether there is something to heal: the code parses, and a visible test fails."""
    meta = record["meta"]
    first = meta.get("buggy_detail", "").removeprefix("AssertionError ")
    if (
        record["set"] == "refactory"
        and meta["buggy_verdict"] == "fail"
        and first not in record["visible_tests"]
    ):
        return False
    return meta.get("buggy_visible_verdict", "") != "pass" and parse_module(record["buggy"]) is not None


async def _grade(
    record: Mapping[str, Any], files: Mapping[str, str], folder: Path, settings: Settings, sandbox: Sandbox
) -> RepairGrade:
    """Run the tests that no run saw, first on the reference: if that fails, they say nothing."""
    reference = await grade(record, {MODULE: record["reference"]}, folder, settings, sandbox)
    if not reference.correct:
        return RepairGrade(correct=False, compared=0, agreed=0)
    return await grade(record, files, folder, settings, sandbox)


async def _row(one: SampledProgram, sandbox: Sandbox) -> dict[str, Any]:
    """Heal a program, and record the inputs of its confidence and whether it is right."""
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as folder:
        for path, text in one.program.files.items():
            (Path(folder) / path).write_text(text, "utf-8")
        settings = Settings(
            paths=PathSettings(home=Path(home) / "state", cache=Path(home) / "no-models"),
            sandbox=SandboxSettings(test_timeout_s=TEST_TIMEOUT_S),
            budget=BudgetSettings(seconds=RUN_S),
            repair=RepairSettings(seconds=SEARCH_S),
            certification=CertificationSettings(seconds=CERTIFICATION_S),
        )
        result, outcome = await _healed(Path(folder), settings, sandbox)
        row: dict[str, Any] = {"set": one.set, "part": one.part, "program": one.program.name}
        row["outcome"] = outcome
        candidate = result.candidate if result is not None else None
        if result is None or candidate is None or result.outcome != "healed":
            return row
        graded = await one.program.grade(candidate.files, Path(folder), settings, sandbox)
        run = next((settings.paths.home / "runs").glob("*"))
        return {**row, "right": graded.correct, "compared": graded.compared, **_evidence(result, run)}


async def _healed(folder: Path, settings: Settings, sandbox: Sandbox) -> tuple[Result | None, str]:
    try:
        result = await heal(folder, HealOptions(test=COMMAND, settings=settings, sandbox=sandbox))
    except UsageError as fault:
        return None, f"refused: {fault.message}"
    except PrerequisiteError as fault:
        if isinstance(fault, SandboxError):
            raise
        return None, "needs a model"
    return result, result.outcome


def _evidence(result: Result, run: Path) -> dict[str, Any]:
    """Return the numbers of a run that speak for its result or against it."""
    events = read_ledger(run / "ledger.jsonl").events
    told = {event.kind: event.data for event in events}
    search, certificate = told["search.finished"], told.get("certificate.written", {})
    label = result.candidate.label if result.candidate is not None else ""
    labels = [repair["label"] for repair in search["repairs"]]
    return {
        "fixed": certificate.get("fixed", 0),
        "passed": len(result.verdict.passed) if result.verdict else 0,
        "plausible": search["plausible_count"],
        "behaviours": len(search["repairs"]),
        "scores": [repair["score"] for repair in search["repairs"]],
        "alike": [len(repair["equivalents"]) for repair in search["repairs"]],
        "operators": [repair["operators"] for repair in search["repairs"]],
        "share": told.get("candidate.proposed", {}).get("score_share"),
        "rivals": told.get("candidate.proposed", {}).get("rivals"),
        "chosen": next((number for number, one in enumerate(labels) if one in label), -1),
        "differs": search["distinguishing_input"] is not None,
        "ended": search["ending"],
        "warnings": len(result.warnings),
        "mutants": certificate.get("mutants", 0),
        "killed": certificate.get("killed", 0),
        "mutation_unmeasured": certificate.get("mutation_unmeasured", "no certificate"),
        "statements": certificate.get("statements", 0),
        "covered": certificate.get("covered", 0),
        "evidence": result.evidence,
        "confidence": result.confidence,
    }


async def gather(sets: Sequence[str], most: int, rows: Path) -> None:
    """Measure one program after another; those with a row are skipped."""
    known = {row["program"] for row in read_rows(rows)}
    sandbox = open_sandbox(Settings().sandbox)
    try:
        turns = zip_longest(
            *(sample_programs(name)[:most] for name in sets)
        )  # so that each set has its share whenever the script is stopped
        for one in filter(None, chain.from_iterable(turns)):
            if one.program.name in known:
                continue
            row = await _row(one, sandbox)
            with rows.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(row) + "\n")
            print(one.program.name, row["outcome"], row.get("right", ""), file=sys.stderr, flush=True)
    finally:
        await sandbox.close()


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def main() -> None:
    """Gather rows, or fit the model to them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["gather", "fit"])
    parser.add_argument("--rows", type=Path, required=True, metavar="FILE", help="rows as JSON lines")
    parser.add_argument("--set", action="append", choices=SETS, help="a set; may be repeated; default: all")
    parser.add_argument("--most", type=int, default=60, metavar="N", help="max programs of each set; 60")
    wanted = parser.parse_args()
    if wanted.what == "gather":
        asyncio.run(gather(wanted.set or SETS, wanted.most, wanted.rows))
    else:
        print_fit(read_rows(wanted.rows))


if __name__ == "__main__":
    sys.exit(run_script(main))
