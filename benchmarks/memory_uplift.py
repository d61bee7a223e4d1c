"""Measure whether a model heals more with memory than without it, and than with a placebo of its length.

    python benchmarks/memory_uplift.py [--model local:qwen2.5-coder-0.5b] [--attempts 2]

A database is filled with the first bug of each pair of `memory_pairs.py`, repaired. The second bug is then healed
in a separate run with a test of three lines, by a model and without the search: with no memory, with what is recalled,
and with memories whose texts are meaningless. A row is saved as soon as it is known, and a rerun continues.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from memory import PATH, store_first_bugs
from memory_pairs import PAIRS, Side
from row_files import append_row, read_rows
from script_exit import run_script

from suture.api import HealOptions, heal
from suture.bench.measures.paired_statistics import bootstrap_difference
from suture.core.ledger import last_payload, list_runs, read_ledger
from suture.core.ledger.kinds import MemoryRecalled
from suture.core.settings import (
    BudgetSettings,
    CertificationSettings,
    ModelSettings,
    PathSettings,
    RepairSettings,
    Settings,
    StoreSettings,
    load_settings,
)
from suture.core.settings.schema import MemorySettings
from suture.models import Model, open_model
from suture.sandbox import Sandbox, open_sandbox
from suture.storage.database.store import open_store

ARMS = ("no memory", "memory", "placebo")
COMMAND = ("python", "-m", "pytest", "-q")


@dataclass(frozen=True, kw_only=True)
class UpliftRow:
    """The result of one pair's second bug under one arm.

    Attributes:
        limit: Attempts of the model.
        model: The model.
        pair: The name of the pair.
        arm: One of `ARMS`.
        healed: Whether the run ended as healed.
        right: Whether the code is that of the right side, except for its layout.
        tokens: Tokens of the model.
        seconds: Seconds of the run.
        told_chars: Characters about earlier runs in prompts.
    """

    limit: int
    model: str
    pair: str
    arm: str
    healed: bool
    right: bool
    tokens: int
    seconds: float
    told_chars: int


def write_project(folder: Path, side: Side) -> None:
    """Write the bug, and a test of it."""
    name = side.call.partition("(")[0]
    names: dict[str, Any] = {}
    exec(compile(side.right, PATH, "exec"), names)  # functions of our own
    wanted = eval(side.call, names)
    test = f"from code_here import {name}\n\n\ndef test_it():\n    assert {side.call} == {wanted!r}\n"
    (folder / "code_here.py").write_text(side.wrong, "utf-8")
    (folder / "test_code.py").write_text(test, "utf-8")


def create_settings(limit: int, model: ModelSettings, arm: str, home: Path, stores: Path) -> Settings:
    """Return a run's settings; its memory is a copy of its own."""
    file = home / "memory.db"
    file.write_bytes((stores / f"{'placebo' if arm == 'placebo' else 'memory'}.db").read_bytes())
    return Settings(
        paths=PathSettings(home=home / "state", cache=home / "no-models"),
        model=model,
        store=StoreSettings(url=f"sqlite:///{file}"),
        memory=MemorySettings(use="off" if arm == "no memory" else "prompts"),
        budget=BudgetSettings(attempts=limit),
        repair=RepairSettings(enabled=False),
        certification=CertificationSettings(seconds=0, minimising_runs=0),
    )


async def measure_rows(
    limit: int, name: str, pairs: Sequence[str], rows: Path, parallel: int
) -> list[UpliftRow]:
    """Return all rows, in the order of pairs and arms."""
    known = {_key(row): row for row in read_rows(rows, UpliftRow)}
    rows.parent.mkdir(parents=True, exist_ok=True)
    loaded = load_settings(Path(), {"model.name": name}).settings
    model = open_model(loaded)
    sandbox = open_sandbox(Settings().sandbox)
    with tempfile.TemporaryDirectory() as folder:
        for file in ("memory", "placebo"):
            with open_store(f"sqlite:///{folder}/{file}.db", Path(folder)) as store:
                await asyncio.to_thread(store_first_bugs, store, is_placebo=file == "placebo")
        try:
            turn = asyncio.Semaphore(parallel)

            async def one(pair: str, arm: str) -> UpliftRow:
                key = (limit, name, pair, arm)
                if key in known:
                    return known[key]
                async with turn:
                    row = await _row(key, loaded.model, model, sandbox, Path(folder))
                append_row(rows, row)
                print(f"{pair}, {arm}: {'healed' if row.healed else '-'}", file=sys.stderr, flush=True)
                return row

            return list(await asyncio.gather(*(one(pair, arm) for pair in pairs for arm in ARMS)))
        finally:
            await model.close()
            await sandbox.close()


def _key(row: UpliftRow) -> tuple[int, str, str, str]:
    return row.limit, row.model, row.pair, row.arm


async def _row(
    key: tuple[int, str, str, str],
    asked: ModelSettings,
    model: Model,
    sandbox: Sandbox,
    stores: Path,
) -> UpliftRow:
    limit, name, pair, arm = key
    side = PAIRS[pair][1]
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as folder:
        write_project(Path(folder), side)
        settings = create_settings(limit, asked, arm, Path(home), stores)
        began = time.perf_counter()
        result = await heal(
            folder, HealOptions(test=COMMAND, settings=settings, sandbox=sandbox, model=model)
        )
        seconds = time.perf_counter() - began
        runs = list_runs(settings.paths.home)
        events = read_ledger(runs[-1].ledger_path).events if runs else ()
    recalled = last_payload(events, MemoryRecalled)
    if recalled is not None and recalled.fault:
        raise SystemExit(f"memory failed: {recalled.fault}")
    healed = result.outcome == "healed"
    files = result.candidate.files if healed and result.candidate else {}
    return UpliftRow(
        limit=limit,
        model=name,
        pair=pair,
        arm=arm,
        healed=healed,
        right=_same(files.get("code_here.py", ""), side.right),
        tokens=result.spend.tokens,
        seconds=round(seconds, 1),
        told_chars=sum(map(len, recalled.prompt_texts)) if recalled is not None else 0,
    )


def _same(code: str, right: str) -> bool:
    with suppress(SyntaxError):
        return bool(code) and ast.dump(ast.parse(code)) == ast.dump(ast.parse(right))
    return False


def summarise_arms(rows: Iterable[UpliftRow]) -> dict[str, Any]:
    """Return the shares of each arm, and what memory adds to both others, with 95 % intervals over pairs."""
    found: dict[str, Any] = {}
    rows = list(rows)
    for limit in dict.fromkeys(row.limit for row in rows):
        arms = {arm: [row for row in rows if (row.limit, row.arm) == (limit, arm)] for arm in ARMS}
        said: dict[str, Any] = {
            arm: {
                "healed": f"{sum(row.healed for row in of_arm)} of {len(of_arm)}",
                "right": sum(row.right for row in of_arm),
                "mean told chars": round(mean(row.told_chars for row in of_arm)),
                "tokens": sum(row.tokens for row in of_arm),
            }
            for arm, of_arm in arms.items()
        }
        for what in ("healed", "right"):
            scores = {arm: [[float(getattr(row, what))] for row in of_arm] for arm, of_arm in arms.items()}
            for other in ("no memory", "placebo"):
                gain = bootstrap_difference(scores[other], scores["memory"])
                said[f"{what}, memory less {other}"] = [
                    round(number, 3) for number in (gain.estimate, gain.low, gain.high)
                ]
        found[str(limit)] = said
    return found


def main() -> None:
    """Measure, and print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--attempts", type=int, default=2, help="attempts of the model; 2")
    parser.add_argument("--model", default="local:qwen2.5-coder-0.5b")
    parser.add_argument("--first", type=int, help="only the first N pairs")
    parser.add_argument("--parallel", type=int, default=1, help="simultaneous runs")
    parser.add_argument("--rows", type=Path, metavar="FILE", help="rows as JSON lines")
    given = parser.parse_args()
    rows = given.rows or load_settings(Path()).settings.paths.home / "benchmarks" / "memory_uplift.jsonl"
    pairs = list(PAIRS)[: given.first]
    found = asyncio.run(measure_rows(given.attempts, given.model, pairs, rows, given.parallel))
    print(json.dumps(summarise_arms(found), indent=1))


if __name__ == "__main__":
    sys.exit(run_script(main))
