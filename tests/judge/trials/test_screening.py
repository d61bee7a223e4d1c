"""Several candidates are tried in one process, and none of them changes the trial of another one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from prepared_suites import prepare_python_suite
from suture.judge.trials.trial_records import Proposal, Spectrum, TestRun, Trial
from suture.judge.trials.trial_runner import TrialRunner
from suture.judge.trials.trial_worker import TrialWorker
from suture.judge.trials.tuning import SCREENED_CANDIDATES
from suture.mutation.edits import compute_line_edits
from suture.sandbox import BubblewrapSandbox

TEST = "test_shop.py::test_total"
WRONG, RIGHT = "result -= price", "result += price"
CODE = f"""\
import functools
import os
import subprocess
import threading
import time

START = [0]
SEEN = []


def total(*prices):
    result = START[0]
    for price in prices:
        {WRONG}
    return result
"""
TESTS = """\
import os
import threading
from shop import total


def has_child():
    try:
        return os.waitpid(-1, os.WNOHANG) is not None
    except ChildProcessError:
        return False


def test_total():
    assert threading.active_count() == 1
    assert os.getcwd() == os.path.dirname(__file__)
    assert not has_child()
    assert not os.path.exists("left.txt")
    assert total(1, 2, 3) == 6
"""


@asynccontextmanager
async def open_runner(
    folder: Path, sandbox: BubblewrapSandbox, code: str = CODE
) -> AsyncIterator[tuple[TrialRunner, TrialWorker]]:
    """Open a runner of a project in which `TEST` fails, and its process."""
    (folder / "shop.py").write_text(code)
    (folder / "test_shop.py").write_text(TESTS)
    _, command = await prepare_python_suite(folder, sandbox)
    worker = TrialWorker(command, {"shop.py": code}, ["shop.py"], 60.0)
    try:
        await worker.start()
        assert await worker.collect(trace=False, timeout_s=30.0) is not None
        run = TestRun(id=TEST, outcome="failed", seconds=0.001, lines={})
        spectrum = Spectrum(tests=(run,), collected=(TEST,), target_tests=(TEST,))
        yield TrialRunner(worker, spectrum, {"shop.py": code}), worker
    finally:
        await worker.close()


def propose(*statements: str, code: str = CODE) -> list[Proposal]:
    """Return candidates that have other statements in place of the wrong one."""
    return [
        Proposal(
            path="shop.py",
            edits=compute_line_edits(code, code.replace(WRONG, statement)),
            label=statement,
            score=1.0,
            operators=(),
        )
        for statement in statements
    ]


async def try_all(runner: TrialRunner, proposals: list[Proposal]) -> dict[str, Trial | None]:
    """Return label -> trial; candidates that a batch does not settle are tried alone, as by the engine."""
    trials = dict(await runner.run_batch(proposals, 60.0))
    for proposal, trial in list(trials.items()):
        if trial is not None and trial.is_unsettled:
            trials[proposal] = await runner.run_trial(proposal, 60.0)
    return {proposal.label: trial for proposal, trial in trials.items()}


async def test_candidates_share_a_process_if_their_tests_use_little_cpu_time_and_do_not_wait_long(
    tmp_path: Path, sandbox: BubblewrapSandbox
) -> None:
    async with open_runner(tmp_path, sandbox) as (_, worker):
        sizes = []
        for cpu_s, waited_s in ((0.009, 0.02), (0.03, 0.0), (0.001, 0.1)):
            run = TestRun(
                id=TEST, outcome="failed", seconds=1.0, lines={}, fastest_s=cpu_s, waited_s=waited_s
            )
            spectrum = Spectrum(tests=(run,), collected=(TEST,), target_tests=(TEST,))
            sizes.append(TrialRunner(worker, spectrum, {"shop.py": CODE}).batch_size)

    assert sizes == [SCREENED_CANDIDATES, 1, 1]


async def test_failing_candidates_are_settled_in_one_process(
    tmp_path: Path, sandbox: BubblewrapSandbox
) -> None:
    candidates = propose(*(f"result -= {number} * price" for number in range(2, 22)), RIGHT)
    async with open_runner(tmp_path, sandbox) as (_, worker):
        reports = await worker.screen(
            candidates, [TEST], number=1, max_failures=(1, 1), silence_s=9.0, timeout_s=60.0
        )
    assert [(report.outcomes, report.unsupported) for report in reports] == [("f", False)] * 20 + [("", True)]
    assert "-12 == 6" in reports[0].failures[0].error


@pytest.mark.parametrize(
    "harmful",
    [
        "START[0] = 5",
        "os.chdir('/')",
        "open('left.txt', 'w').close()",
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
        "subprocess.Popen(['sleep', '60'])",
        "os._exit(0)",
        "while True: pass",
    ],
)
async def test_a_candidate_that_changes_the_process_does_not_hide_a_repair(
    tmp_path: Path, sandbox: BubblewrapSandbox, harmful: str
) -> None:
    candidates = propose("result -= 2 * price", harmful, RIGHT, "result -= 3 * price")
    async with open_runner(tmp_path, sandbox) as (runner, _):
        trials = await try_all(runner, candidates)

    plausible = [label for label, trial in trials.items() if trial is not None and trial.is_plausible]
    assert (list(trials), plausible) == ([proposal.label for proposal in candidates], [RIGHT])
    trial = trials[harmful]
    assert trial is not None
    assert trial.timed_out == (harmful == "while True: pass")


async def test_an_entry_that_a_candidate_leaves_does_not_hide_a_repair(
    tmp_path: Path, sandbox: BubblewrapSandbox
) -> None:
    """The unchanged code does not reach the list in which the candidates leave an entry."""
    code = CODE.replace("START[0]", "0").replace(
        "    return result", "    SEEN.append(result)\n    return SEEN[0] if result > 0 else result"
    )
    async with open_runner(tmp_path, sandbox, code) as (runner, _):
        trials = await try_all(
            runner, propose("result += 2 * price", RIGHT, "result += 3 * price", code=code)
        )

    plausible = [label for label, trial in trials.items() if trial is not None and trial.is_plausible]
    assert plausible == [RIGHT]


async def test_a_result_in_a_cache_does_not_hide_a_repair(tmp_path: Path, sandbox: BubblewrapSandbox) -> None:
    """The first candidate puts the wrong total into the cache, in which the next ones would find it."""
    code = CODE.replace("def total", "@functools.lru_cache\ndef total")
    async with open_runner(tmp_path, sandbox, code) as (runner, _):
        trials = await try_all(runner, propose("result -= 1 * price", RIGHT, code=code))

    assert [trial.is_plausible for trial in trials.values() if trial is not None] == [False, True]
