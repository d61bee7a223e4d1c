"""HumanEval tasks with visible examples only, graded by the hidden tests after each run has ended.

SUTURE_DATA=... python benchmarks/humaneval.py --first 10 --recipe greedy --recipe adaptive
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from suture.api import solve
from suture.checks import grade
from suture.records import Result
from suture.sandbox import open_sandbox
from suture.settings import Settings, load_settings


def read_tasks(first: int) -> list[dict[str, Any]]:
    """The first records of the set that `$SUTURE_DATA` holds."""
    folder = os.environ.get("SUTURE_DATA")
    if not folder:
        sys.exit("SUTURE_DATA is not set: it names the folder that holds humaneval/tasks.jsonl.gz")
    with gzip.open(Path(folder) / "humaneval" / "tasks.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines][:first]


async def passes_hidden(record: dict[str, Any], result: Result, settings: Settings) -> bool:
    """Grade outside the run: another sandbox, the split verdict, tests that the loop never saw."""
    if result.candidate is None:
        return False
    sandbox = open_sandbox(settings.sandbox)
    try:
        source = result.candidate.files["solution.py"]
        hidden, name = record["hidden_tests"], record["entry_point"]
        return (await grade(source, hidden, sandbox, settings.sandbox, entry_point=name)).passed
    finally:
        await sandbox.close()


async def run_recipe(recipe: str, records: list[dict[str, Any]], model: str) -> None:
    """Run and grade every record, and print one line each and the sum."""
    flags = {"model.name": model, "loop.recipe": recipe}
    settings = load_settings(Path.cwd(), flags).settings
    solved = claimed = tokens = written = 0
    started_s = time.monotonic()
    for record in records:
        result = await solve(record["prompt"], entry_point=record["entry_point"], settings=settings)
        right = await passes_hidden(record, result, settings)
        solved += right
        claimed += result.ok
        tokens += result.spend.tokens
        written += result.spend.completion_tokens
        print(
            f"{recipe:9} {record['id']:14} {result.outcome:16} hidden {'pass' if right else 'FAIL'} "
            f"attempts {result.spend.attempts} tokens {result.spend.tokens} "
            f"generated {result.spend.completion_tokens} seconds {result.spend.seconds:.0f}",
            flush=True,
        )
    print(
        f"{recipe:9} {model}: solved {solved} of {len(records)}, claimed {claimed}, "
        f"tokens {tokens} ({written} generated), {time.monotonic() - started_s:.0f} s",
        flush=True,
    )


def main() -> None:
    """Read the flags and run each recipe."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--first", type=int, default=10)
    parser.add_argument("--recipe", action="append", default=[])
    parser.add_argument("--model", default="local:qwen2.5-coder-1.5b")
    options = parser.parse_args()
    records = read_tasks(options.first)
    for recipe in options.recipe or ["greedy", "adaptive"]:
        asyncio.run(run_recipe(recipe, records, options.model))


if __name__ == "__main__":
    main()
