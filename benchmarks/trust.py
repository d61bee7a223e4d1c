"""Measure how reliable the trust of generated tests is, on recorded tests and recorded answers.

    SUTURE_DATA=... python benchmarks/trust.py run --outcomes outcomes.json
    python benchmarks/trust.py fit --outcomes outcomes.json       # odd task ids
    python benchmarks/trust.py report --outcomes outcomes.json    # even task ids

The tests were written by gpt-4 and codegen-16B for HumanEval. The candidates are the first answers of five models.
`run` tries each test on each candidate and on the reference, in the sandbox. The reference's result says whether
the test is right, and only `fit` and `report` use it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from data_files import read_data
from script_exit import run_script

from suture.bench.measures.arm_metrics import compute_calibration
from suture.core.records import Candidate, Check, Task
from suture.core.settings import load_settings
from suture.errors import UsageError
from suture.judge import check_candidate, extract_asserts, prepare_suite
from suture.judge.trust.assessment import (
    WEIGHTS,
    AssessedCheck,
    CandidateRow,
    MatrixLimits,
    assess_matrix,
    get_given_checks,
    is_viable,
    run_matrix,
)
from suture.judge.trust.check_filter import filter_checks
from suture.project.python_source.parsing import parse_module
from suture.sandbox import Sandbox, open_sandbox

REFERENCE = "reference"
MOST_CHECKS = 16
"""Max tests of one task and tester, without repetitions: codegen's ten replies contain hundreds."""
THRESHOLDS = (0.5, 0.7, 0.8, 0.9, 0.95)
OWN = ("gpt-4-1106-preview", "reflexion")
WEAKER = ("codellama", "starcoder", "gpt-3.5-turbo-0613")


@dataclass(frozen=True, kw_only=True)
class Case:
    """One task with one tester's checks, and their results."""

    task: Task
    tester: str
    checks: tuple[Check, ...]
    rows: dict[str, CandidateRow]
    right: dict[str, bool]

    @property
    def number(self) -> int:
        """Return the number of the task."""
        return int(self.task.module.removeprefix("task_").removesuffix(".py"))


def build_task(record: dict[str, Any]) -> Task:
    """Return a task as a run sees it."""
    return Task(
        statement=record["prompt"],
        module=f"task_{record['id'].rpartition('/')[2]}.py",
        entry_point=record["entry_point"],
        checks=extract_asserts(record["visible_tests"], "visible")
        if parse_module(record["visible_tests"])
        else (),
    )


def parse_checks(texts: Sequence[str], task: Task) -> tuple[Check, ...]:
    """Return the asserts in a tester's text, including repetitions and contradictions of the examples."""
    found: list[Check] = []
    for text in texts:
        for part in re.split(r"^assert\s", text, flags=re.MULTILINE)[1:]:
            whole = f"assert {part.strip()}"
            source = whole if parse_module(whole) is not None else whole.partition("\n")[0]
            if parse_module(source) is not None:
                found += extract_asserts(source, "spec", 0.0)
    filtered = filter_checks(found, get_given_checks(task), task.entry_point)
    used = {check.source for check in filtered.checks[:MOST_CHECKS]}
    judged_without_a_run = {removed.check.source for removed in filtered.removed}
    return tuple(c for c in found if c.source in used or c.source in judged_without_a_run)


def read_outcomes(outcomes: Path) -> dict[str, Any]:
    """Return what `run` wrote.

    Raises:
        UsageError: The file is missing or damaged.
    """
    try:
        known = json.loads(outcomes.read_text("utf-8"))
    except (OSError, ValueError) as fault:
        raise UsageError(
            f"the outcomes {str(outcomes)!r} cannot be read: {fault}", remedy="make them with `run`"
        ) from fault
    if not isinstance(known, dict):
        raise UsageError(f"{str(outcomes)!r} holds no outcomes", remedy="make them with `run`")
    return known


async def run(outcomes: Path, first: int) -> None:
    """Run everything that the file of outcomes does not contain yet."""
    known = read_outcomes(outcomes) if outcomes.exists() else {}
    tasks = read_data("humaneval/tasks")[:first]
    settings = load_settings(Path.cwd(), {}).settings
    sandbox = open_sandbox(settings.sandbox)
    try:
        for record in tasks:
            for tester, texts in read_testers(record["id"]):
                key = f"{record['id']} {tester}"
                if key not in known:
                    known[key] = await run_case(record, texts, sandbox, settings.sandbox)
                    outcomes.write_text(json.dumps(known), "utf-8")
                    print(key, {name: len(row["statuses"]) for name, row in known[key].items()}, flush=True)
    finally:
        await sandbox.close()


def read_testers(task_id: str) -> Iterator[tuple[str, list[str]]]:
    """Return who wrote tests for a task, and their text."""
    for record in read_data("recordings/generated_tests"):
        if record["task_id"] == task_id:
            yield record["model"], record["tests"]


async def run_case(record: dict[str, Any], texts: list[str], sandbox: Sandbox, settings: Any) -> Any:
    """Return the results of the reference and of each candidate on one tester's checks."""
    task = build_task(record)
    suite = await prepare_suite(task, sandbox, settings)
    filtered = filter_checks(parse_checks(texts, task), get_given_checks(task), task.entry_point)
    programs = {REFERENCE: record["reference"]}
    for seed in read_data("recordings/ldb_seeds"):
        if seed["task_id"] == record["id"]:
            programs[seed["model"]] = seed["attempts"][0]
    told: dict[str, Any] = {}
    for name, program in programs.items():
        candidate = Candidate(files={task.module: program}, origin="sample")
        verdict = await check_candidate(candidate, suite)
        # The reference may take longer than the candidates.
        limits = MatrixLimits(check_timeout_s=10.0 if name == REFERENCE else 2.0, timeout_s=300)
        (row,) = await run_matrix(filtered.checks, [(candidate, verdict)], suite, limits)
        told[name] = {"viable": is_viable(verdict), "code": candidate.hash, "statuses": dict(row.statuses)}
    return told


def load_cases(outcomes: Path) -> list[Case]:
    """Return everything that ran."""
    known = read_outcomes(outcomes)
    cases = []
    for record in read_data("humaneval/tasks"):
        for tester, texts in read_testers(record["id"]):
            told = known.get(f"{record['id']} {tester}")
            if told is None:
                continue
            task = build_task(record)
            rows = {
                name: CandidateRow(candidate=row["code"], viable=row["viable"], statuses=row["statuses"])
                for name, row in told.items()
            }
            right = {check: status == "passed" for check, status in rows.pop(REFERENCE).statuses.items()}
            case = Case(task=task, tester=tester, checks=parse_checks(texts, task), rows=rows, right=right)
            cases.append(case)
    return cases


def kept_checks(case: Case, rows: Sequence[CandidateRow]) -> list[tuple[AssessedCheck, bool]]:
    """Return the checks that were kept for these candidates, and whether each is right."""
    filtered = filter_checks(case.checks, get_given_checks(case.task), case.task.entry_point)
    distinct = {row.candidate: row for row in rows}
    return [
        (one, case.right[one.check.id])
        for one in assess_matrix(filtered, list(distinct.values())).kept
        if one.check.id in case.right
    ]


def draw_candidate_sets(case: Case) -> Iterator[list[CandidateRow]]:
    """Return sets of candidates: all, the weaker models, and some random ones, so that small sets occur too."""
    yield list(case.rows.values())
    yield weaker(case)
    yield own_model(case)
    draw = random.Random(case.number)
    for size in (1, 2, 3):
        yield draw.sample(list(case.rows.values()), min(size, len(case.rows)))


def fit(cases: Sequence[Case], steps: int = 3000, rate: float = 0.5, ridge: float = 0.002) -> None:
    """Fit a logistic regression by gradient descent; the weight of a sign is never negative."""
    data: list[tuple[list[float], bool]] = []
    unheard: list[bool] = []
    names = list(WEIGHTS)
    for case in cases:
        for rows in draw_candidate_sets(case):
            answers = kept_checks(case, rows)
            if any(row.viable and row.passed for row in rows):
                data += [([getattr(one.signals, name) for name in names], right) for one, right in answers]
            else:
                unheard += [right for _, right in answers]
    weights, intercept = [0.0] * len(names), 0.0
    for _ in range(steps):
        slopes, offset = [0.0] * len(names), 0.0
        for values, right in data:
            z = intercept + sum(w * v for w, v in zip(weights, values, strict=True))
            miss = 1 / (1 + math.exp(-z)) - right
            offset += miss
            for at, value in enumerate(values):
                slopes[at] += miss * value
        intercept -= rate * offset / len(data)
        weights = [
            max(0.0, w - rate * (s / len(data) + ridge * w)) for w, s in zip(weights, slopes, strict=True)
        ]
    print(f"{sum(unheard)} of {len(unheard)} are right where no candidate was heard")
    print(f"{len(data)} examples, {sum(right for _, right in data)} right")
    print(f"INTERCEPT = {intercept:.2f}")
    print("WEIGHTS =", {name: round(weight, 2) for name, weight in zip(names, weights, strict=True)})


def report(cases: Sequence[Case]) -> None:
    """Return precision and recall of the score at thresholds, and its calibration."""
    for title, tester, choose in ARMS:
        answers: list[tuple[float, bool]] = []
        wrong_removed = right_removed = 0
        for case in cases:
            if case.tester == tester:
                kept = kept_checks(case, choose(case))
                answers += [(one.check.trust, right) for one, right in kept]
                gone = case.right.keys() - {one.check.id for one, _ in kept}
                right_removed += sum(case.right[check] for check in gone)
                wrong_removed += sum(not case.right[check] for check in gone)
        print_table(title, answers, right_removed, wrong_removed)


def everyone(case: Case) -> list[CandidateRow]:
    """Return all candidates."""
    return list(case.rows.values())


def weaker(case: Case) -> list[CandidateRow]:
    """Return those of the three weaker models."""
    return [case.rows[name] for name in WEAKER if name in case.rows]


def own_model(case: Case) -> list[CandidateRow]:
    """Return two answers of gpt-4, the model that also wrote tests."""
    return [case.rows[name] for name in OWN if name in case.rows]


def unchecked(case: Case) -> list[CandidateRow]:
    """Return the same three, as if no check had been given."""
    return [replace(row, viable=True) for row in weaker(case)]


ARMS = (
    ("gpt-4's tests, five candidates", "gpt-4", everyone),
    ("gpt-4's tests, two answers of gpt-4", "gpt-4", own_model),
    ("codegen-16B's tests, five candidates", "codegen-16B", everyone),
    ("codegen-16B's tests, three weaker candidates", "codegen-16B", weaker),
    ("the same, every candidate heard whatever it passes", "codegen-16B", unchecked),
)


def print_table(
    title: str, answers: Sequence[tuple[float, bool]], right_removed: int, wrong_removed: int
) -> None:
    """Print one table."""
    right = sum(is_right for _, is_right in answers)
    measured = compute_calibration(answers)
    print(f"\n{title}: {len(answers)} checks kept, {right} right ({right / len(answers):.1%});")
    print(f"removed as contradictions: {right_removed} right, {wrong_removed} wrong;")
    print(f"Brier {measured.brier:.3f}, expected calibration error {measured.ece:.3f}")
    print("| trust at least | checks | precision | recall |\n|---|---|---|---|")
    for threshold in THRESHOLDS:
        chosen = [is_right for trust, is_right in answers if trust >= threshold]
        share = f"{sum(chosen) / len(chosen):.1%}" if chosen else "-"
        print(f"| {threshold} | {len(chosen)} | {share} | {sum(chosen) / max(1, right):.1%} |")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("run", "fit", "report"))
    parser.add_argument("--outcomes", type=Path, required=True, help="a file for what ran")
    parser.add_argument("--first", type=int, default=164, help="tasks to run")
    parser.add_argument("--ids", choices=("odd", "even"), help="odd ids to fit and even ones to report")
    options = parser.parse_args()
    if options.what == "run":
        asyncio.run(run(options.outcomes, options.first))
        return
    ids = options.ids or ("odd" if options.what == "fit" else "even")
    cases = [case for case in load_cases(options.outcomes) if case.number % 2 == (ids == "odd")]
    if not cases:
        raise UsageError(
            f"{str(options.outcomes)!r} holds no task of an {ids} id", remedy="make it with `run`"
        )
    if options.what == "fit":
        fit(cases)
    else:
        report(cases)


if __name__ == "__main__":
    sys.exit(run_script(main))
