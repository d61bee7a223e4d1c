"""Heal programs under several arms, one row each. `quixbugs.py`, `humanevalfix.py` and others share this module.

An arm is `search` (no model), `model:NAME` (no search) or `both:NAME` (the search first). A row is appended
to a file as soon as it is known, and a program that has a row is not run again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from healing_rows import BenchmarkRow, format_row, print_rows, sums_of
from row_files import append_row, read_rows

from suture.api import HealOptions, heal
from suture.core.ledger import read_ledger
from suture.core.records import Result
from suture.core.settings import (
    BudgetSettings,
    ModelSettings,
    PathSettings,
    RepairSettings,
    SandboxSettings,
    Settings,
    load_settings,
)
from suture.errors import PrerequisiteError, SandboxError, SutureError, UsageError
from suture.models import Model, open_model
from suture.sandbox import Sandbox, open_sandbox

__all__ = ["COMMAND", "Program", "RepairGrade", "run_benchmark"]

COMMAND = ("python", "-m", "pytest", "-q")
TEST_TIMEOUT_S = 10
SAMPLE_SEED, SAMPLED_FROM = 21, 164
NOT_MEASURED = ("infra_error", "cancelled")
"""Outcomes that say nothing about the arm; such programs run again."""


@dataclass(frozen=True, kw_only=True)
class RepairGrade:
    """How a repair compares with tests or answers that the run never saw.

    Attributes:
        correct: Whether the repair is right.
        compared: Number of compared answers.
        agreed: Number of those that were as expected.
    """

    correct: bool
    compared: int
    agreed: int


Grader = Callable[[Mapping[str, str], Path, Settings, Sandbox], Awaitable[RepairGrade]]
"""Grades the files of a repair (path -> text), given the folder of the original program."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program to heal: its files, including failing tests, and how a repair is graded afterwards."""

    name: str
    files: Mapping[str, str]
    grade: Grader
    command: tuple[str, ...] = COMMAND
    test_timeout_s: float = TEST_TIMEOUT_S


@dataclass(frozen=True, kw_only=True)
class Arm:
    """What repairs: the search, a model (`provider:model`; empty for none), or the search and then the model."""

    name: str
    searches: bool
    model: str = ""


@dataclass(frozen=True, kw_only=True)
class Caps:
    """Limits for one program: seconds of the run, certification included, and tokens of the model."""

    seconds: float
    tokens: int


def parse_arm(text: str) -> Arm:
    """Parse an arm of the command line. A model without a provider is a local one."""
    kind, _, model = text.partition(":")
    if kind == "search" and not model:
        return Arm(name=text, searches=True)
    if kind not in ("model", "both") or not model:
        raise argparse.ArgumentTypeError("search, model:NAME or both:NAME")
    full = model if ":" in model else f"local:{model}"
    return Arm(name=f"{kind}:{full}", searches=kind == "both", model=full)


def run_benchmark(about: str, name: str, programs: Callable[[], Sequence[Program]]) -> None:
    """Run the command line of a benchmark.

    Args:
        about: The description of the script.
        name: The name of the default row file.
        programs: Loads the programs.

    Raises:
        SutureError: Something is missing or failed. The row file has the results so far.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arm", action="append", type=parse_arm, help="may be repeated; default: search")
    parser.add_argument("--only", action="append", metavar="NAME", help="only this program; may be repeated")
    parser.add_argument("--first", type=int, metavar="N", help="only the first N programs")
    parser.add_argument(
        "--sample", type=int, metavar="N", help="only N sampled numbers, the same in each set"
    )
    parser.add_argument("--seconds", type=float, default=240, help="max seconds for each program; 240")
    parser.add_argument("--tokens", type=int, default=12_000, help="max tokens for each program; 12000")
    parser.add_argument(
        "--rows", type=Path, metavar="FILE", help="rows as JSON lines; a rerun continues with it"
    )
    parser.add_argument("--json", action="store_true", help="print the rows and the summary as JSON")
    wanted = parser.parse_args()
    chosen = programs()
    unknown = sorted({*(wanted.only or ())} - {program.name for program in chosen})
    if unknown:
        raise UsageError(
            f"there is no program {', '.join(unknown)}", remedy=f"they look like {chosen[0].name!r}"
        )
    chosen = _sampled(chosen, wanted.sample) if wanted.sample else chosen
    chosen = [p for p in chosen if not wanted.only or p.name in wanted.only][: wanted.first]
    rows = wanted.rows or load_settings(Path()).settings.paths.home / "benchmarks" / f"{name}.jsonl"
    arms = wanted.arm or [parse_arm("search")]
    caps = Caps(seconds=wanted.seconds, tokens=wanted.tokens)
    try:
        found = asyncio.run(_measure_programs(chosen, arms, caps, rows))
    except SutureError:
        print(f"what was measured is in {rows}", file=sys.stderr)
        raise
    if wanted.json:
        print(json.dumps({"rows": [asdict(row) for row in found], "arms": sums_of(found)}, indent=1))
    else:
        print_rows(found)


def _sampled(programs: Sequence[Program], most: int) -> list[Program]:
    """Return the programs with sampled numbers, from 0 to 163: the same problems in each language."""
    drawn = {str(number) for number in random.Random(SAMPLE_SEED).sample(range(SAMPLED_FROM), most)}
    return [program for program in programs if program.name.rpartition("/")[2] in drawn]


async def _measure_programs(
    programs: Sequence[Program], arms: Sequence[Arm], caps: Caps, rows: Path
) -> list[BenchmarkRow]:
    """Measure arm by arm, so that only one model is in memory; programs with a row are skipped."""
    known = {
        (row.program, row.arm): row
        for row in read_rows(rows, BenchmarkRow)
        for arm in arms
        if _is_of(row, arm, caps)
    }
    rows.parent.mkdir(parents=True, exist_ok=True)
    sandbox = open_sandbox(Settings().sandbox)
    try:
        for arm in arms:
            left = [program for program in programs if (program.name, arm.name) not in known]
            model = open_model(_model_settings(arm)) if arm.model and left else None
            try:
                for program in left:
                    row = await _row(program, arm, caps, model, sandbox)
                    known[row.program, row.arm] = row
                    append_row(rows, row)
                    print(format_row(row), file=sys.stderr, flush=True)
            finally:
                if model is not None:
                    await model.close()
    finally:
        await sandbox.close()
    return [known[program.name, arm.name] for arm in arms for program in programs]


def _is_of(row: BenchmarkRow, arm: Arm, caps: Caps) -> bool:
    capped = (row.arm, row.cap_seconds, row.cap_tokens) == (arm.name, caps.seconds, _cap_tokens(arm, caps))
    return capped and row.outcome not in NOT_MEASURED


def _cap_tokens(arm: Arm, caps: Caps) -> int:
    return caps.tokens if arm.model else 0


def _model_settings(arm: Arm) -> Settings:
    return load_settings(Path(), {"model.name": arm.model}).settings


async def _row(program: Program, arm: Arm, caps: Caps, model: Model | None, sandbox: Sandbox) -> BenchmarkRow:
    """Heal one program, and grade the result."""
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as folder:
        for path, text in program.files.items():
            (Path(folder) / path).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / path).write_text(text, "utf-8")
        settings = Settings(
            # This folder has no weights, so that no model is found that was not asked for.
            paths=PathSettings(home=Path(home) / "state", cache=Path(home) / "no-models"),
            model=_model_settings(arm).model if arm.model else ModelSettings(name="none"),
            sandbox=SandboxSettings(test_timeout_s=program.test_timeout_s),
            budget=BudgetSettings(seconds=caps.seconds, tokens=caps.tokens),
            repair=RepairSettings(enabled=arm.searches),
        )
        result, outcome = await _healed(Path(folder), program.command, settings, model, sandbox)
        told, seconds, proved = _times(settings)
        graded = RepairGrade(correct=False, compared=0, agreed=0)
        candidate = result.candidate if result is not None else None
        plausible = result is not None and result.outcome == "healed" and candidate is not None
        if plausible and candidate is not None:
            graded = await program.grade(candidate.files, Path(folder), settings, sandbox)
    return BenchmarkRow(
        program=program.name,
        arm=arm.name,
        cap_seconds=caps.seconds,
        cap_tokens=_cap_tokens(arm, caps),
        outcome=outcome,
        origin=candidate.origin if plausible and candidate is not None else "",
        plausible=plausible,
        correct=graded.correct,
        seconds=round(seconds, 1),
        proof_seconds=round(proved, 1),
        search_seconds=told.get("seconds", 0.0),
        candidates=told.get("candidates_tried", 0),
        plausible_found=told.get("plausible_count", 0),
        tokens=result.spend.tokens if result is not None else 0,
        model_calls=result.spend.model_calls if result is not None else 0,
        compared=graded.compared,
        agreed=graded.agreed,
        label=candidate.label if plausible and candidate is not None else "",
    )


async def _healed(
    folder: Path, command: Sequence[str], settings: Settings, model: Model | None, sandbox: Sandbox
) -> tuple[Result | None, str]:
    """Return the result and the outcome; there is no result if a model is needed and none is available."""
    try:
        result = await heal(
            folder, HealOptions(test=command, settings=settings, sandbox=sandbox, model=model)
        )
    except UsageError as fault:
        return None, f"refused: {fault.message}"
    except PrerequisiteError as fault:
        if isinstance(fault, SandboxError) or model is not None:
            raise
        return None, "needs a model"
    return result, result.outcome


def _times(settings: Settings) -> tuple[dict[str, Any], float, float]:
    """Return the event of the search, the seconds up to the last decision, and the seconds after it."""
    ledger = next((settings.paths.home / "runs").glob("*/ledger.jsonl"), None)
    events = read_ledger(ledger).events if ledger is not None else ()
    if not events:
        return {}, 0.0, 0.0
    search = next((dict(event.data) for event in events if event.kind == "search.finished"), {})
    decided_s = max((e.time_s for e in events if e.kind == "moves.decided"), default=events[-1].time_s)
    return search, decided_s - events[0].time_s, events[-1].time_s - decided_s
