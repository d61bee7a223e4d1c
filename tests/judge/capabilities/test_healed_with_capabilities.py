"""A repair that uses the test machinery is marked in its result, its certificate and the gates of CI."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from bare_pytest import BARE_PYTEST
from suture.api import HealOptions, WriteOptions, heal, solve, verify
from suture.core.ledger import find_run
from suture.core.records import CapabilityCode, CapabilityUse, Result, Task
from suture.core.settings import Settings
from suture.interfaces.ci.delivery_gates import Refusal, check_change_gates
from suture.interfaces.narrative.result_text import result_as_json, warning_lines
from suture.interfaces.narrative.wording import CAPABILITY_TEXTS
from suture.judge.capabilities import is_rule_relevant
from suture.judge.certificates import Certificate
from suture.judge.certificates.certificate import parse_certificate, render_certificate, seal_certificate
from suture.sandbox import BubblewrapSandbox
from suture.testing import ScriptedModel

CODE = "def double(n):\n    return n + 1\n"
TESTS = "from prices import double\n\n\ndef test_double():\n    expected = 42\n    assert double(21) == expected\n"
PEEKING = "import sys\n\n\ndef double(n):\n    return sys._getframe(1).f_locals['expected']\n"
USE = CapabilityUse(code="inspects_callers", path="prices.py", line=5, name="sys._getframe")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "prices.py").write_text(CODE)
    (root / "test_prices.py").write_text(TESTS)
    return root


@pytest.fixture
async def result(project: Path, settings: Settings, sandbox: BubblewrapSandbox) -> Result:
    model = ScriptedModel([f"### prices.py\n```python\n{PEEKING}```"] * 4)
    search_off = settings.model_copy(update={"repair": settings.repair.model_copy(update={"enabled": False})})
    return await heal(
        project, HealOptions(test=BARE_PYTEST, settings=search_off, model=model, sandbox=sandbox)
    )


def load_certificate(result: Result, settings: Settings) -> Certificate:
    path = find_run(settings.paths.home, result.run_id).path / "certificate.json"
    return parse_certificate(path.read_bytes())


def check_gates(result: Result, **ci: object) -> Refusal | None:
    return check_change_gates(
        Settings.model_validate({"ci": ci}),
        files=("prices.py",),
        lines=4,
        confidence=result.confidence,
        evidence=result.evidence,
        capabilities=result.capabilities,
    )


async def test_a_repair_that_reads_its_callers_is_marked(
    result: Result, settings: Settings, project: Path
) -> None:
    assert (result.outcome, result.capabilities) == ("healed", (USE,)), result.reason
    assert 0.2 < result.confidence <= 0.5
    warning = "Warning: prices.py:5: newly inspects its callers, or reads source code (sys._getframe)"
    assert warning in list(warning_lines(result))
    folder = find_run(settings.paths.home, result.run_id)
    assert result_as_json(result, folder, ())["capabilities"][0]["code"] == "inspects_callers"
    certificate = load_certificate(result, settings)
    assert certificate.capabilities == (USE,)
    assert certificate.confidence <= 0.5

    refusal = check_gates(result)
    assert refusal is not None
    assert refusal.reason == "new_capability"
    assert "prices.py:5" in refusal.detail
    assert check_gates(result, new_capabilities=True, confidence=0.2) is None


async def test_a_certificate_that_hides_a_capability_is_rejected(
    result: Result, settings: Settings, sandbox: BubblewrapSandbox, project: Path, tmp_path: Path
) -> None:
    certificate = load_certificate(result, settings)
    honest, forged = tmp_path / "honest.json", tmp_path / "forged.json"
    honest.write_text(render_certificate(certificate))
    forged.write_text(render_certificate(seal_certificate(replace(certificate, capabilities=()))))

    replays = {
        file.stem: [
            claim async for claim in verify(file, project=project, settings=settings, sandbox=sandbox)
        ]
        for file in (honest, forged)
    }

    assert all(claim.ok for claim in replays["honest"]), replays["honest"]
    assert (replays["forged"][-1].name, replays["forged"][-1].ok) == ("files", False)


STACK = """import gc


class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)


def size(items):
    return len(items)
"""


LIVE_TEST = "s = Stack()\ns.push(1)\nassert s.items == [1]\n"


async def write_stack(settings: Settings, sandbox: BubblewrapSandbox, test: str) -> Result:
    model = ScriptedModel([f"```python\n{STACK}```"] * 4)
    return await solve(
        "Write a class Stack and a function size(items).",
        WriteOptions(asserts=test, settings=settings, model=model, sandbox=sandbox),
    )


@pytest.mark.parametrize(
    ("test", "evidence", "codes"),
    [
        (LIVE_TEST, "nonce", ["reaches_memory"]),
        ("assert size([1]) == 1\n", "split", []),
    ],
    ids=["live objects", "data"],
)
async def test_new_code_is_marked_if_a_check_shares_its_process(
    settings: Settings, sandbox: BubblewrapSandbox, test: str, evidence: str, codes: list[str]
) -> None:
    result = await write_stack(settings, sandbox, test)

    assert (result.outcome, result.evidence) == ("healed", evidence), result.reason
    assert [use.code for use in result.capabilities] == codes
    assert load_certificate(result, settings).capabilities == result.capabilities
    path = find_run(settings.paths.home, result.run_id).path / "certificate.json"
    claims = [claim async for claim in verify(path, settings=settings, sandbox=sandbox)]
    assert all(claim.ok for claim in claims), claims


async def test_a_certificate_of_new_code_that_hides_a_capability_is_rejected(
    settings: Settings, sandbox: BubblewrapSandbox, tmp_path: Path
) -> None:
    certificate = load_certificate(await write_stack(settings, sandbox, LIVE_TEST), settings)
    forged = tmp_path / "forged.json"
    forged.write_text(render_certificate(seal_certificate(replace(certificate, capabilities=()))))

    claims = [claim async for claim in verify(forged, project=tmp_path, settings=settings, sandbox=sandbox)]

    assert (claims[-1].name, claims[-1].ok) == ("after", False)


def test_every_capability_has_a_text() -> None:
    assert set(CAPABILITY_TEXTS) == set(get_args(CapabilityCode))


def test_the_rule_applies_to_tests_that_may_run_in_the_process_of_the_code() -> None:
    assert is_rule_relevant(Task(statement="", kind="heal"))
    assert is_rule_relevant(Task(statement="", kind="write", test_command=("pytest",)))
    assert not is_rule_relevant(Task(statement="", kind="write"))
