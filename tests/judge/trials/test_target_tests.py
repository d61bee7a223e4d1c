"""The failing tests that a candidate runs first, and how many failures end its trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from failing_projects import search_python
from prepared_suites import prepare_python_suite
from suture.judge.trials.baseline import run_baseline
from suture.judge.trials.process_reports import TestReport
from suture.judge.trials.target_tests import choose_failure_limits, order_target_tests
from suture.judge.trials.trial_records import Proposal
from suture.judge.trials.trial_runner import TrialRunner
from suture.judge.trials.trial_worker import TrialWorker
from suture.judge.trials.tuning import (
    FIRST_FAILURES_CPU_S,
    FURTHER_FAILURES_CPU_S,
    MAX_FIRST_FAILURES,
    QUICK_TEST_CPU_S,
)
from suture.loop.evaluation.search_setup import editable_texts
from suture.mutation import Edit
from suture.sandbox import BubblewrapSandbox
from suture.search import SearchLimits


def make_report(
    name: str, *, lines: Sequence[int] = (), line: int = 1, error: str = "E: x", seconds: float = 0.001
) -> TestReport:
    packed = bytes.fromhex("")
    for number in lines:
        packed = (int.from_bytes(packed, "little") | 1 << number).to_bytes(8, "little")
    return TestReport(
        test=f"t.py::{name}",
        outcome="failed",
        seconds=seconds,
        wall_s=seconds,
        lines={"m.py": packed.hex()} if lines else {},
        frames=(),
        calls=(),
        error=error,
        traceback=(("t.py", 9), ("m.py", line)),
    )


def order_names(reports: Sequence[TestReport]) -> str:
    reports_by_test = {report.test: report for report in reports}
    return "".join(report.test[-1] for report in order_target_tests(reports, reports_by_test))


def test_one_test_of_each_place_and_exception_comes_first() -> None:
    alike = [make_report(name) for name in "abcdefg"]
    other = [make_report("h", line=2), make_report("i", error="ValueError: x")]
    assert order_names([*alike, *other]) == "ahibcdefg"
    assert order_names(alike) == "abcdefg"


def test_of_similar_failures_tests_of_other_lines_come_first() -> None:
    assert (
        order_names(
            [*(make_report(name, lines=(1, 2, 3)) for name in "abcdef"), make_report("g", lines=(4, 5))]
        )[:2]
        == "ag"
    )


def test_a_slow_test_comes_after_quick_ones() -> None:
    slow = make_report("s", line=7, seconds=2 * QUICK_TEST_CPU_S)
    assert order_names([*(make_report(name) for name in "abc"), slow]) == "abcs"


def test_a_trial_ends_after_few_failures_and_fewer_slow_ones() -> None:
    assert choose_failure_limits([0.001] * 20) == (MAX_FIRST_FAILURES, 20)
    assert choose_failure_limits([FIRST_FAILURES_CPU_S / 2] * 20) == (
        2,
        int(2 * FURTHER_FAILURES_CPU_S / FIRST_FAILURES_CPU_S),
    )
    assert choose_failure_limits([9.0] * 20) == (1, 1)
    assert choose_failure_limits([]) == (1, 1)


MODULE = "def price(n):\n    return n - 1\n\n\ndef weight(n):\n    return n * 2\n"
TESTS = (
    "import pytest\nfrom shop import price, weight\n\n\n"
    "@pytest.mark.parametrize('n', range(9))\ndef test_price(n):\n    assert price(n) == n + 1\n\n\n"
    "def test_weight():\n    sum(range(100_000))  # the slowest of the quick tests\n    assert weight(3) == 5\n"
)


async def test_all_tests_that_a_partial_repair_fixes_are_counted(
    tmp_path: Path, sandbox: BubblewrapSandbox
) -> None:
    (tmp_path / "shop.py").write_text(MODULE)
    (tmp_path / "test_shop.py").write_text(TESTS)
    suite, command = await prepare_python_suite(tmp_path, sandbox)

    result = await search_python(command, editable_texts(suite), (), SearchLimits(max_seconds=60))
    fixed = {frozenset(trial.now_passing) for _, trial in result.partial}

    assert frozenset({"test_shop.py::test_weight"}) in fixed
    assert frozenset(f"test_shop.py::test_price[{n}]" for n in range(9)) in fixed
    assert result.plausible, result.ending


PARCEL = """\
class Parcel:
    def __init__(self, kilos):
        self.kilos = kilos

    def __repr__(self):
        kilos = self.kilos
        return f"Parcel({kilos})"

    def __add__(self, other):
        return twice(self.kilos, others)


def twice(one, other):
    return one + other + other
"""
PARCEL_TESTS = (
    "from parcel import Parcel\n\n\ndef test_sum():\n    assert Parcel(1) + Parcel(2) == 3\n\n\n"
    "def test_one():\n    assert Parcel(1) == 1\n"
)


async def test_traced_lines_are_those_of_the_changed_code_without_reporting(
    tmp_path: Path, sandbox: BubblewrapSandbox
) -> None:
    (tmp_path / "parcel.py").write_text(PARCEL)
    (tmp_path / "test_parcel.py").write_text(PARCEL_TESTS)
    suite, command = await prepare_python_suite(tmp_path, sandbox)
    texts = editable_texts(suite)
    spectrum = await run_baseline(command, list(texts), (), 20)
    before = {test.id: test.lines["parcel.py"] for test in spectrum.tests}
    # Lines 5 to 7 are missing: pytest runs them only to render the failed comparison.
    assert before["test_parcel.py::test_one"] == {2, 3}

    at = texts["parcel.py"].index("others")
    edit = Edit(start=at, end=at + len("others"), text="other.kilos")
    proposal = Proposal(path="parcel.py", edits=(edit,), label="", score=1.0, operators=())
    worker = TrialWorker(command, texts, list(texts), 60)
    try:
        await worker.start()
        await worker.collect(trace=False, timeout_s=30)
        lines = await TrialRunner(worker, spectrum, texts).trace_lines(proposal)
    finally:
        await worker.close()
    assert before["test_parcel.py::test_sum"] == {2, 3, 9, 10}
    assert lines["test_parcel.py::test_sum"]["parcel.py"] == {2, 3, 9, 10, 13, 14}

    moved = replace(proposal, edits=(replace(edit, text="(\nother.kilos)"),))
    assert await TrialRunner(worker, spectrum, texts).trace_lines(moved) == {}
