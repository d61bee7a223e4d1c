"""Measure whether the grading can be trusted: right solutions pass, and wrong ones are caught.

    SUTURE_DATA=... nice -n 15 python benchmarks/grading.py [--set NAME ...] [--first N] [--json FILE]

Graded are the references of each set (all must pass), the given code of sets to heal (all must fail), and for
sets to write the wrong solutions of `wrong_solutions.py` and small mutants of the references,
`--mutants` per task, drawn with a fixed seed. A mutant may be equivalent to its reference, so the mutants that
pass are only counted, by operator.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from script_exit import run_script
from wrong_solutions import make_wrong_solutions

from suture.bench import Grade, Problem, grade_code, load_problems
from suture.bench.problem import MODULE
from suture.core.settings import SandboxSettings, Settings
from suture.mutation import OperatorName, apply_edits, generate_mutants
from suture.sandbox import Sandbox, open_sandbox

SETS = ("humaneval", "mbpp", "quixbugs", "humanevalfix", "suture", "suture-heal")
SEED = 20261
FAULTS: tuple[OperatorName, ...] = (
    "comparison", "boolean_operator", "negation", "condition", "arithmetic_operator", "operand",
    "off_by_one", "constant", "missing_term", "variable", "sequence_part", "return_value",
    "delete_statement",
)  # fmt: skip
"""Operators that create a fault; the others fix one, and mostly add harmless code."""
SLOW_S = 30.0
"""One reference of QuixBugs needs about 5 s on a fast machine."""


def list_codes(problem: Problem, count: int) -> list[tuple[str, str, dict[str, str]]]:
    """Yield what is graded: a group, how the code was made, and the code."""
    codes = [("reference", "", problem.solution)]
    if problem.kind == "heal":
        return [*codes, ("given", "", problem.given_files)]
    for how, text in make_wrong_solutions(problem).items():
        codes.append(("wrong", how, {**problem.solution, MODULE: text}))
    made = list(generate_mutants(problem.reference, operators=FAULTS))
    for mutant in random.Random(f"{SEED} {problem.id}").sample(made, min(count, len(made))):
        text = apply_edits(problem.reference, mutant.edits)
        codes.append(("mutant", mutant.operator, {**problem.solution, MODULE: text}))
    return codes


async def measure_all(sets: Mapping[str, Sequence[Problem]], options: argparse.Namespace) -> None:
    """Grade set by set, each with its own sandbox; results so far are printed and saved."""
    results = []
    for name, problems in sets.items():
        sandbox = open_sandbox(Settings().sandbox)
        try:
            results.append(await measure(name, problems, options, sandbox))
        finally:
            await sandbox.close()
        print_results(results[-1])
        if options.json:
            options.json.write_text(json.dumps(results, indent=1), "utf-8")


async def measure(
    name: str, problems: Sequence[Problem], options: argparse.Namespace, sandbox: Sandbox
) -> dict[str, Any]:
    """Grade all of one set, a few at a time, and print the result."""
    started_s = time.monotonic()
    room = asyncio.Semaphore(options.workers)
    tally: Counter[tuple[str, str, str]] = Counter()
    evidence: Counter[str] = Counter()
    odd: list[str] = []

    async def judge(problem: Problem) -> None:
        async with room:
            reference: Grade | None = None
            for group, how, code in list_codes(problem, options.mutants):
                settings = SandboxSettings(check_timeout_s=SLOW_S)
                grade = await grade_code(problem, code, sandbox, settings, reference=reference)
                tally[group, how, grade.status] += 1
                if group == "reference":
                    reference = grade
                    evidence[grade.evidence] += 1
                if group != "mutant" and grade.right != (group == "reference"):
                    odd.append(f"{problem.id}: {group} {how}: {grade.status} {grade.reason}".strip())

    await asyncio.gather(*map(judge, problems))
    return {
        "set": name,
        "tasks": sum(evidence.values()),
        "evidence": dict(evidence),
        "seconds": round(time.monotonic() - started_s),
        "tally": [[*key, count] for key, count in sorted(tally.items())],
        "odd": odd,
    }


def print_results(result: dict[str, Any]) -> None:
    """Print one set: how much was caught, by group and by operator."""
    print(f"{result['set']}: {result['tasks']} tasks, {result['evidence']}, {result['seconds']} s")
    sums: dict[tuple[str, str], Counter[str]] = {}
    for group, how, standing, count in result["tally"]:
        for key in dict.fromkeys(((group, ""), (group, how))):
            sums.setdefault(key, Counter())[standing] += count
    for (group, how), standings in sorted(sums.items()):
        print(f"  {group:9} {how:28} {dict(standings)}")
    for line in result["odd"]:
        print(f"  ! {line}")
    sys.stdout.flush()


def main() -> None:
    """Measure the given sets, or all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--set", action="append", choices=[*SETS, "leetcode"], default=[])
    parser.add_argument("--first", type=int)
    parser.add_argument("--mutants", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    # Load all sets before grading starts: nobody wants to learn an hour later that the last one is missing.
    sets = {name: load_problems(name, first=options.first) for name in options.set or SETS}
    asyncio.run(measure_all(sets, options))


if __name__ == "__main__":
    sys.exit(run_script(main))
