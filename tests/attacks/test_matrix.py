"""The attack list against every sandbox of this machine, as root and as an ordinary user.

Each row runs in a driver process (`driver.py`): the attack, a look at the ground, an honest run in the same
sandbox, a scan for survivors, and the row's honest twin. `SUTURE_REQUIRE` names sandboxes, programs and users
that must be there.
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

PATIENCE_S = 150.0
"""A row that hangs has failed; all that one may wait for, slow programs and honest ones, takes less."""
WITHOUT_SANDBOX = (1, 2, 22, 23, 24, 25, 26, 31, 48, 53, 51, 4)
"""Rows that do no harm to this machine where nothing stands against them, and must fail there."""
NO_CODE = 51
"""This row runs no attack code: it asks for a sandbox where there is none."""
TRIED = [
    pytest.param((name, identity), marks=() if (name, identity) == ("warm", "root") else pytest.mark.heavy)
    for name, backend in BACKENDS.items()
    for identity in backend.identities
]
"""Every back end with every identity. Only the warm sandbox of root is fast enough for `make test`."""
AT_ONCE = 2
"""Drivers that work at the same time; most rows wait more than they compute."""
Answer = dict[str, Any]


class Driver:
    """A driver process, started again when a row has broken it."""

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

    def face(self, number: int) -> Answer:
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
            line = self._process.stdout.readline() if selector.select(PATIENCE_S) else ""
        if line:
            answer: Answer = json.loads(line)
            return answer
        why = "it hung" if self._process.poll() is None else f"it ended with {self._process.returncode}"
        self.close()
        return {"outcome": "failed", "detail": f"the driver: {why}"}

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


class Campaign:
    """Tries every row that was asked for, a driver for each sandbox and identity, ahead of the tests.

    Args:
        wanted: Wall and identity -> numbers of rows.
    """

    def __init__(self, wanted: dict[tuple[str, str], list[int]]) -> None:
        self._stopped = False
        self._pool = ThreadPoolExecutor(AT_ONCE)
        self._answers: dict[tuple[str, str, int], Future[Answer]] = {
            (*pair, number): Future() for pair, numbers in wanted.items() for number in numbers
        }
        for pair, numbers in wanted.items():
            self._pool.submit(self._try_all, pair, numbers)

    def answer(self, name: str, identity: str, number: int) -> Answer:
        return self._answers[name, identity, number].result()

    def stop(self) -> None:
        self._stopped = True
        self._pool.shutdown()

    def _try_all(self, pair: tuple[str, str], numbers: list[int]) -> None:
        waiting = [self._answers[(*pair, number)] for number in numbers]
        try:
            command = command_for(pair[1], "attacks.driver", pair[0])
            if isinstance(command, str):
                self._give_all(waiting, {"outcome": "skipped", "detail": command, "word": "identities"})
                return
            driver = Driver(command)
            try:
                first = driver.start()
                if first["outcome"] != "passed":
                    self._give_all(waiting, first)
                for number, future in zip(numbers, waiting, strict=True):
                    if not (future.done() or self._stopped):
                        future.set_result(driver.face(number))
            finally:
                driver.close()
        except Exception as fault:  # whatever it is, somebody waits for an answer
            self._give_all(waiting, {"outcome": "failed", "detail": repr(fault)})

    @staticmethod
    def _give_all(waiting: list[Future[Answer]], answer: Answer) -> None:
        for future in waiting:
            if not future.done():
                future.set_result(answer)


def settle(answer: Answer, require: Require) -> None:
    """Make a driver's answer a test's outcome."""
    if answer["outcome"] == "skipped":
        if word := answer["word"]:
            require(word, False, answer["detail"])
        pytest.skip(answer["detail"])
    assert answer["outcome"] == "passed", answer["detail"]


@pytest.fixture(scope="module")
def campaign(request: pytest.FixtureRequest) -> Iterator[Campaign]:
    wanted: dict[tuple[str, str], list[int]] = {}
    for item in request.session.items:
        if isinstance(item, pytest.Function) and item.originalname == ROW_TEST:
            given: dict[str, Any] = item.callspec.params
            wanted.setdefault(given["tried"], []).append(given["row"].number)
    campaign = Campaign(wanted)
    try:
        yield campaign
    finally:
        campaign.stop()


@pytest.mark.timeout(2 * PATIENCE_S)  # its driver may have to be started for it
@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: f"{row.number}: {row.attempt}")
@pytest.mark.parametrize("tried", TRIED, ids="-".join)
def test_the_attack_fails_and_its_twin_works(
    campaign: Campaign, tried: tuple[str, str], row: Row, require: Require
) -> None:
    settle(campaign.answer(*tried, row.number), require)


ROW_TEST = test_the_attack_fails_and_its_twin_works.__name__


def test_attacks_get_through_where_there_is_no_sandbox(require: Require) -> None:
    command = command_for("ordinary", "attacks.driver", "none")
    require("identities", not isinstance(command, str), str(command))
    assert not isinstance(command, str)
    driver = Driver(command)
    try:
        assert driver.start()["outcome"] == "passed"
        outcomes = {number: driver.face(number) for number in WITHOUT_SANDBOX}
    finally:
        driver.close()
    through = {number for number, told in outcomes.items() if "BREACH" in told["detail"] or number == NO_CODE}
    assert {number: told for number, told in outcomes.items() if number not in through} == {}
    assert {told["outcome"] for told in outcomes.values()} == {"failed"}


def test_the_list_is_whole() -> None:
    assert sorted(ROWS) == list(range(1, 55))
