"""How rows are run: missing requirements are named, and attacks have only the time that they need."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, closing
from dataclasses import replace

import pytest

from attacks.backends import BACKENDS
from attacks.driver import try_row
from attacks.host_bait import HostBait
from attacks.identities import IDENTITIES, command_for
from attacks.matrix import ROWS
from attacks.rows_verdicts import check_with_pytest
from attacks.test_matrix import apply_outcome
from attacks.trials import (
    ATTACK_TIMEOUT_S,
    BENIGN_TIMEOUT_S,
    AttackContext,
    Row,
    TrialSkipped,
    expect_end,
    expect_output,
    run_row,
)
from requirements import Require
from suture.errors import PrerequisiteError
from suture.sandbox import Capabilities, Channel, RunRequest, RunResult, Sandbox

MAX_SLOW_ROWS = 13


class CompliantSandbox:
    """A sandbox in which every program prints what its trial expects; it records each time limit."""

    name = "compliant"

    def __init__(self) -> None:
        self.wall_times_s: list[float] = []

    async def capabilities(self) -> Capabilities:
        return Capabilities(level="namespace", mode="warm")

    async def run(self, request: RunRequest) -> RunResult:
        self.wall_times_s.append(request.limits.wall_s)
        is_benign = (request.python or "").startswith("print(6 * 7)")
        return RunResult(status="ok", stdout=b"42\n" if is_benign else b"fine\n")

    def open(self, request: RunRequest) -> AbstractAsyncContextManager[Channel]:
        raise NotImplementedError

    async def close(self) -> None:
        pass


class SandboxWithoutPytest(CompliantSandbox):
    """A sandbox that cannot judge a candidate."""

    async def run(self, request: RunRequest) -> RunResult:
        raise PrerequisiteError("pytest is not installed", remedy="install it")


ROW = Row(number=1, attempt="x", attack=expect_end("pass", "ok", says="fine"), twin=expect_output("pass"))


@pytest.fixture
def context() -> Iterator[AttackContext]:
    """The context of a compliant sandbox."""
    with closing(HostBait("canary")) as bait:
        yield make_context(CompliantSandbox(), bait)


def make_context(sandbox: Sandbox, bait: HostBait) -> AttackContext:
    """Return the context of a sandbox."""
    return AttackContext(
        backend="compliant",
        sandbox=sandbox,
        open_another=CompliantSandbox,
        open_broken=CompliantSandbox,
        capabilities=Capabilities(level="namespace", mode="warm"),
        bait=bait,
        marker=f"sx{secrets.token_hex(6)}",
    )


async def test_attacks_have_less_time_than_benign_programs(context: AttackContext) -> None:
    assert isinstance(context.sandbox, CompliantSandbox)
    await run_row(ROW, context)
    await run_row(replace(ROW, slow="it takes its time"), context)
    quick, slow = context.sandbox.wall_times_s[:3], context.sandbox.wall_times_s[3:]
    assert (quick, slow) == ([ATTACK_TIMEOUT_S, BENIGN_TIMEOUT_S, BENIGN_TIMEOUT_S], [BENIGN_TIMEOUT_S] * 3)


def test_few_rows_are_slow() -> None:
    assert len([row for row in ROWS.values() if row.slow]) <= MAX_SLOW_ROWS


async def test_a_missing_requirement_is_named(context: AttackContext) -> None:
    assert await try_row(ROW, context) == ("passed", "", "")
    outcome = await try_row(replace(ROW, needs="no-such-program"), context)
    assert outcome == ("skipped", "no-such-program is not installed", "no-such-program")
    with pytest.raises(TrialSkipped, match="pytest is not installed") as skipped:
        await check_with_pytest(replace(context, sandbox=SandboxWithoutPytest()), {})
    assert skipped.value.requirement == "venv"


@pytest.mark.parametrize("requirement", ["node", ""])
def test_a_skipped_row_fails_if_its_requirement_is_required(
    requirement: str, require: Require, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = {"outcome": "skipped", "detail": "it is not here", "requirement": requirement}
    monkeypatch.setenv("SUTURE_REQUIRE", "bubblewrap,node")

    with pytest.raises(
        pytest.fail.Exception if requirement else pytest.skip.Exception, match="it is not here"
    ):
        apply_outcome(answer, require)

    monkeypatch.delenv("SUTURE_REQUIRE")
    with pytest.raises(pytest.skip.Exception, match="it is not here"):
        apply_outcome(answer, require)


def test_every_mode_is_attacked_as_root_and_as_an_ordinary_user() -> None:
    for name in ("warm", "spare", "cold"):
        assert BACKENDS[name].identities == IDENTITIES


def test_a_missing_identity_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    reason = command_for("ordinary" if os.geteuid() == 0 else "root", "attacks.driver", "warm")
    assert reason in ("unshare is not installed", "the suite does not run as root")
