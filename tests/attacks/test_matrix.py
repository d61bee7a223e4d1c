"""The attack list against every sandbox of this machine, as root and as an ordinary user.

Each row runs in a driver process (`driver.py`): the attack, a check of the bait, a benign run in the same
sandbox, a search for survivors, and the benign twin of the row. `SUTURE_REQUIRE` names the sandboxes, programs
and users that must be available.
"""

from __future__ import annotations

import json
import selectors
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from attacks.backends import BACKENDS
from attacks.identities import command_for, driver_environment
from attacks.matrix import ROWS
from attacks.trials import Row
from requirements import Require

ROW_TIMEOUT_S = 150.0
"""A row that takes longer hangs; all programs of one row together need less."""
HARMLESS_ROWS = (1, 2, 22, 23, 24, 25, 26, 31, 48, 53, 51, 4)
"""Rows that must fail without a sandbox and do no harm to this machine."""
ROW_WITHOUT_CODE = 51
"""A row that runs no attack code: it requests a sandbox that cannot work."""
TARGETS = [
    pytest.param((name, identity), marks=() if (name, identity) == ("warm", "root") else pytest.mark.heavy)
    for name, backend in BACKENDS.items()
    for identity in backend.identities
]
"""Each back end with each identity. Only the warm sandbox of root is fast enough for `make test`."""
CONCURRENT_DRIVERS = 2
"""How many drivers run at once; most rows wait more than they compute."""
Answer = dict[str, Any]


class Driver:
    """A driver process, which is restarted after a row that broke it."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> Answer:
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd="/",
            env=driver_environment(),
        )
        return self._answer()

    def run_row(self, number: int) -> Answer:
        if self._process is None:
            self.start()
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(f"{number}\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Answer:
        assert self._process is not None
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            line = self._process.stdout.readline() if selector.select(ROW_TIMEOUT_S) else ""
        if line:
            answer: Answer = json.loads(line)
            return answer
        reason = "it hung" if self._process.poll() is None else f"it ended with {self._process.returncode}"
        self.close()
        return {"outcome": "failed", "detail": f"the driver: {reason}"}

    def close(self) -> None:
        if self._process is None:
            return
        process, self._process = self._process, None
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


class RowScheduler:
    """Runs the rows of all selected tests in the background, with one driver for each target.

    Args:
        rows_by_target: Sandbox and identity -> the numbers of the rows to run.
    """

    def __init__(self, rows_by_target: dict[tuple[str, str], list[int]]) -> None:
        self._is_stopped = False
        self._pool = ThreadPoolExecutor(CONCURRENT_DRIVERS)
        self._answers: dict[tuple[str, str, int], Future[Answer]] = {
            (*target, number): Future() for target, numbers in rows_by_target.items() for number in numbers
        }
        for target, numbers in rows_by_target.items():
            self._pool.submit(self._try_all, target, numbers)

    def answer(self, name: str, identity: str, number: int) -> Answer:
        return self._answers[name, identity, number].result()

    def stop(self) -> None:
        self._is_stopped = True
        self._pool.shutdown()

    def _try_all(self, target: tuple[str, str], numbers: list[int]) -> None:
        futures = [self._answers[(*target, number)] for number in numbers]
        try:
            command = command_for(target[1], "attacks.driver", target[0])
            if isinstance(command, str):
                self._answer_all(
                    futures, {"outcome": "skipped", "detail": command, "requirement": "identities"}
                )
                return
            driver = Driver(command)
            try:
                first = driver.start()
                if first["outcome"] != "passed":
                    self._answer_all(futures, first)
                for number, future in zip(numbers, futures, strict=True):
                    if not (future.done() or self._is_stopped):
                        future.set_result(driver.run_row(number))
            finally:
                driver.close()
        except Exception as fault:  # a test waits for each answer, whatever happens
            self._answer_all(futures, {"outcome": "failed", "detail": repr(fault)})

    @staticmethod
    def _answer_all(futures: list[Future[Answer]], answer: Answer) -> None:
        for future in futures:
            if not future.done():
                future.set_result(answer)


def apply_outcome(answer: Answer, require: Require) -> None:
    """Skip or fail the test according to the answer of a driver."""
    if answer["outcome"] == "skipped":
        if requirement := answer["requirement"]:
            require(requirement, False, answer["detail"])
        pytest.skip(answer["detail"])
    assert answer["outcome"] == "passed", answer["detail"]


@pytest.fixture(scope="module")
def scheduler(request: pytest.FixtureRequest) -> Iterator[RowScheduler]:
    """A scheduler of the rows of all selected tests."""
    rows_by_target: dict[tuple[str, str], list[int]] = {}
    for item in request.session.items:
        if isinstance(item, pytest.Function) and item.originalname == ROW_TEST:
            params: dict[str, Any] = item.callspec.params
            rows_by_target.setdefault(params["target"], []).append(params["row"].number)
    scheduler = RowScheduler(rows_by_target)
    try:
        yield scheduler
    finally:
        scheduler.stop()


@pytest.mark.timeout(2 * ROW_TIMEOUT_S)  # the driver may have to start first
@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: f"{row.number}: {row.attempt}")
@pytest.mark.parametrize("target", TARGETS, ids="-".join)
def test_the_attack_fails_and_its_twin_works(
    scheduler: RowScheduler, target: tuple[str, str], row: Row, require: Require
) -> None:
    apply_outcome(scheduler.answer(*target, row.number), require)


ROW_TEST = test_the_attack_fails_and_its_twin_works.__name__


def test_attacks_succeed_without_a_sandbox(require: Require) -> None:
    command = command_for("ordinary", "attacks.driver", "none")
    require("identities", not isinstance(command, str), str(command))
    assert not isinstance(command, str)

    driver = Driver(command)
    try:
        assert driver.start()["outcome"] == "passed"
        outcomes = {number: driver.run_row(number) for number in HARMLESS_ROWS}
    finally:
        driver.close()

    successful = {
        number
        for number, answer in outcomes.items()
        if "BREACH" in answer["detail"] or number == ROW_WITHOUT_CODE
    }

    assert {number: answer for number, answer in outcomes.items() if number not in successful} == {}
    assert {answer["outcome"] for answer in outcomes.values()} == {"failed"}


def test_the_list_has_no_gaps() -> None:
    assert sorted(ROWS) == list(range(1, 55))
