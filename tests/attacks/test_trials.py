"""How rows are run: missing requirements are reported by name, and attacks get only the time they need."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, closing
from dataclasses import replace

import pytest

from attacks.backends import BACKENDS
from attacks.driver import outcome
from attacks.host_bait import Ground
from attacks.identities import IDENTITIES, command_for
from attacks.matrix import ROWS
from attacks.rows_verdicts import pytest_verdict
from attacks.test_matrix import settle
from attacks.trials import ATTACK_S, PATIENT_S, Row, Skipped, World, allowed, ends, face
from requirements import Require
from suture.errors import PrerequisiteError
from suture.sandbox import Capabilities, Channel, RunRequest, RunResult, Sandbox

MOST_SLOW = 13


class Obliging:
    """A sandbox in which every program says what its trial wants to hear; it keeps how long each had."""

    name = "obliging"

    def __init__(self) -> None:
        self.had_s: list[float] = []

    async def capabilities(self) -> Capabilities:
        return Capabilities(level="namespace", mode="warm")

    async def run(self, request: RunRequest) -> RunResult:
        self.had_s.append(request.limits.wall_s)
        honest = (request.python or "").startswith("print(6 * 7)")
        return RunResult(status="ok", stdout=b"42\n" if honest else b"fine\n")

    def open(self, request: RunRequest) -> AbstractAsyncContextManager[Channel]:
        raise NotImplementedError

    async def close(self) -> None:
        pass


class Bare(Obliging):
    """One that lacks what a verdict needs."""

    async def run(self, request: RunRequest) -> RunResult:
        raise PrerequisiteError("pytest is not installed", remedy="install it")


ROW = Row(number=1, attempt="x", attack=ends("pass", "ok", says="fine"), twin=allowed("pass"))


@pytest.fixture
def world() -> Iterator[World]:
    with closing(Ground("canary")) as ground:
        yield world_of(Obliging(), ground)


def world_of(sandbox: Sandbox, ground: Ground) -> World:
    return World(
        backend="obliging",
        sandbox=sandbox,
        another=Obliging,
        broken=Obliging,
        able=Capabilities(level="namespace", mode="warm"),
        ground=ground,
        marker=f"sx{secrets.token_hex(6)}",
    )


async def test_an_attack_has_little_time_and_what_is_honest_has_much(world: World) -> None:
    assert isinstance(world.sandbox, Obliging)
    await face(ROW, world)
    await face(replace(ROW, slow="it takes its time"), world)
    quick, slow = world.sandbox.had_s[:3], world.sandbox.had_s[3:]
    assert (quick, slow) == ([ATTACK_S, PATIENT_S, PATIENT_S], [PATIENT_S] * 3)


def test_few_rows_are_slow() -> None:
    assert len([row for row in ROWS.values() if row.slow]) <= MOST_SLOW


async def test_what_is_missing_is_told_by_its_name(world: World) -> None:
    assert await outcome(ROW, world) == ("passed", "", "")
    told = await outcome(replace(ROW, needs="no-such-program"), world)
    assert told == ("skipped", "no-such-program is not installed", "no-such-program")
    with pytest.raises(Skipped, match="pytest is not installed") as skipped:
        await pytest_verdict(replace(world, sandbox=Bare()), {})
    assert skipped.value.word == "venv"


@pytest.mark.parametrize("word", ["node", ""])
def test_a_row_that_is_skipped_fails_where_what_it_lacks_is_required(
    word: str, require: Require, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = {"outcome": "skipped", "detail": "it is not here", "word": word}
    monkeypatch.setenv("SUTURE_REQUIRE", "bubblewrap,node")
    with pytest.raises(pytest.fail.Exception if word else pytest.skip.Exception, match="it is not here"):
        settle(answer, require)
    monkeypatch.delenv("SUTURE_REQUIRE")
    with pytest.raises(pytest.skip.Exception, match="it is not here"):
        settle(answer, require)


def test_each_way_of_building_sandboxs_is_tried_as_root_and_as_an_ordinary_user() -> None:
    for name in ("warm", "spare", "cold"):
        assert BACKENDS[name].identities == IDENTITIES


def test_why_there_is_no_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    told = command_for("ordinary" if os.geteuid() == 0 else "root", "attacks.driver", "warm")
    assert told in ("unshare is not installed", "the suite does not run as root")
