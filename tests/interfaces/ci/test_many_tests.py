"""With a thousand tests, a candidate first runs only the failing ones, and old failures are ignored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from interfaces.ci.failing_pipelines import ADA, FailingPipeline, commit, git, make_repository
from requirements import Require
from suture.core.settings import Settings
from suture.interfaces.ci import HealRequest, heal_in_pipeline
from suture.interfaces.ci.ci_pipeline import Pipeline
from suture.sandbox import BubblewrapSandbox, Requirement, RunRequest, RunResult

CODE = """def clipped(value, low, high):
    if value < low:
        return low
    if value {sign} high:
        return high
    return value
"""
TESTS = """import pytest
from shop import clipped


@pytest.mark.parametrize("n", range(1000))
def test_clipped(n):
    assert clipped(n, 5, 990) == max(5, min(990, n))


def test_of_old():
    assert clipped("a", 5, 990) == "a"
"""


class CountingSandbox(BubblewrapSandbox):
    """A real sandbox that records how many tests each pytest run selects; -1 stands for all tests."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[int] = []

    async def run(self, request: RunRequest) -> RunResult:
        if request.stdin and b'"only"' in request.stdin:
            selected_tests = json.loads(request.stdin)["only"]
            collects = "--collect-only" in request.env.get("PYTEST_ADDOPTS", "")
            if not collects:
                self.runs.append(len(selected_tests) or -1)
        return await super().run(request)


@pytest.mark.heavy
async def test_most_candidates_run_only_the_new_failing_tests(
    tmp_path: Path, require: Require, sandbox_requirement: Requirement
) -> None:
    require("bubblewrap", sandbox_requirement.ok, sandbox_requirement.detail)
    files = {"shop.py": CODE.format(sign=">"), "test_shop.py": TESTS}
    folder = tmp_path / "checkout"
    base = make_repository(FailingPipeline(name="", outcome="healed", status=0, files=files), folder)[1]
    (folder / "shop.py").write_text(CODE.format(sign="> 2 *"))
    commit(folder, ADA, "Clip later")
    counting_sandbox = CountingSandbox()
    basic_settings = {
        "paths": {"home": tmp_path / "home"},
        "model": {"name": "none"},
        "certification": {"seconds": 0},
    }
    settings = Settings.model_validate(
        {**basic_settings, "ci": {"confidence": 0}, "repair": {"candidates": 60}}
    )
    try:
        report = await heal_in_pipeline(
            HealRequest(root=folder, test=BARE_PYTEST, base=base),
            Pipeline(),
            settings,
            print,
            sandbox=counting_sandbox,
        )
    finally:
        await counting_sandbox.close()
    assert report.verdict is not None
    assert (report.outcome, len(report.failing), len(report.verdict.outcomes)) == ("healed", 10, 1001)
    assert report.old_failures == ("test_shop.py::test_of_old",)

    candidates_tried = json.loads(
        next(
            line
            for line in (tmp_path / "home" / "runs" / report.run / "ledger.jsonl").read_text().splitlines()
            if "search.finished" in line
        )
    )["data"]["candidates_tried"]
    full_runs = counting_sandbox.runs.count(-1)
    assert candidates_tried > 10
    assert full_runs < 10, counting_sandbox.runs
    assert git(folder, "status", "--porcelain") == ""
