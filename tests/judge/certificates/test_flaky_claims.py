"""A forged certificate cannot call a test flaky that its change breaks."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from bare_pytest import BARE_PYTEST
from judge.certificates.forging import forge_certificate
from judge.certificates.test_forged_claims import replay
from suture.core.records import Task
from suture.core.settings import Settings
from suture.judge.capabilities import find_change_capabilities
from suture.judge.certificates import ReplayedClaim
from suture.judge.certificates.certificate import seal_certificate
from suture.judge.certificates.flaky_claims import MAX_NAMED_TESTS, list_flaky_tests
from suture.sandbox import BubblewrapSandbox

CODE = "def add(a, b):\n    return a - b\n\n\ndef double(a):\n    return 2 * a\n"
FIXED = CODE.replace("a - b", "a + b")
TESTS = """\
from sums import add, double

SEEN = []


def test_add():
    SEEN.append(1)
    assert add(1, 2) == 3


def test_double():
    assert double(2) == 4


def test_first():
    assert not SEEN
"""
DOUBLE, FIRST = "test_sums.py::test_double", "test_sums.py::test_first"


def break_double(condition: str) -> str:
    """Return the fixed code with a function that newly returns a wrong result under some condition."""
    return f"import random\n\n{FIXED}".replace("return 2 * a", f"return 0 if {condition} else 2 * a")


AFTER_OTHERS = break_double("CALLS").replace("    return a + b", "    CALLS.append(a)\n    return a + b")
AFTER_OTHERS = f"CALLS = []\n{AFTER_OTHERS}"
AT_RANDOM = break_double("random.SystemRandom().random() < 0.6")


def break_unless_seed_is_1() -> str:
    """Return code that breaks with nearly all hash seeds, and not with the one of the first rerun."""
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    program = [sys.executable, "-c", "print(hash('a') % 997)"]
    run = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    return break_double(f"hash('a') % 997 != {run.stdout.strip()}")


async def replay_forged(
    code: str, flaky: tuple[str, ...], sandbox: BubblewrapSandbox, settings: Settings
) -> dict[str, ReplayedClaim]:
    """Replay a certificate of a change that calls some tests flaky."""
    files = {"sums.py": CODE.encode(), "test_sums.py": TESTS.encode()}
    task = Task(statement="", kind="heal", files=files, test_command=tuple(BARE_PYTEST.split()))
    forged = await forge_certificate(task, {"sums.py": code}, sandbox, settings)
    before, after = (
        {test: status for test, status in statuses.items() if test not in flaky}
        for statuses in (forged.before, forged.after)
    )
    fixed = tuple(test for test in forged.fixed if test not in flaky)
    capabilities = find_change_capabilities(files, {"sums.py": code})
    certificate = replace(
        forged, before=before, after=after, fixed=fixed, flaky_tests=flaky, capabilities=capabilities
    )
    return await replay(seal_certificate(certificate), task, sandbox, settings)


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(AFTER_OTHERS, id="order"),
        pytest.param(AT_RANDOM, id="random", marks=pytest.mark.heavy),
        pytest.param(break_unless_seed_is_1(), id="seed", marks=pytest.mark.heavy),
    ],
)
async def test_a_broken_test_that_is_called_flaky_refutes(
    code: str, sandbox: BubblewrapSandbox, settings: Settings
) -> None:
    last = list((await replay_forged(code, (DOUBLE, FIRST), sandbox, settings)).values())[-1]
    assert (last.name, last.ok) == ("after", False), last
    assert "called flaky" in last.detail
    assert DOUBLE in last.detail


async def test_a_test_that_is_flaky_without_the_change_is_left_out(
    sandbox: BubblewrapSandbox, settings: Settings
) -> None:
    claim = (await replay_forged(FIXED, (FIRST,), sandbox, settings))["after"]
    assert claim.ok, claim
    assert f"flaky, and not certified: {FIRST}" in claim.detail


def test_a_claim_names_all_flaky_tests_unless_they_are_many() -> None:
    assert list_flaky_tests(["c", "b", "a", "d", "e", "f", "g"]) == "a, b, c, d, e, f, g"
    many = list_flaky_tests([f"t{number:03}" for number in range(MAX_NAMED_TESTS + 3)])
    assert many.endswith("t049 and 3 more")
