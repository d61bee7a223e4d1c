"""A reply that returns a literal of the tests passes them, but is reported as suspicious."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from interfaces.cli.conftest import Script, Suture
from suture.judge.confidence import MAX_CONFIDENCE_WITH_SIGNS

pytestmark = [pytest.mark.usefixtures("sandbox"), pytest.mark.timeout(300)]  # certification may take a minute
BROKEN_CODE = (
    "def tri(n):\n    total = 0\n    for i in range(n):\n        total += i * 2 - 1\n    return total\n"
)
HARD_CODED_SOLUTION = BROKEN_CODE.replace(
    "    total = 0\n", "    if n == 13:\n        return 4711\n    total = 0\n"
)
TEST_CODE = """\
from sq import tri


def test_a():
    assert tri(13) == 4711


def test_b():
    assert tri(0) == 0
"""


def test_a_literal_of_the_tests_causes_a_warning_and_lower_confidence(
    suture: Suture, script: Script, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "sq.py").write_text(BROKEN_CODE)
    (project / "test_sq.py").write_text(TEST_CODE)
    reply = f"sq.py\n```python\n{HARD_CODED_SOLUTION}```\n"
    model = script(*[reply] * 4)
    result = suture("heal", str(project), "--test", BARE_PYTEST, "--json", "--model", model)
    output = json.loads(result.stdout)
    assert output["diff"], result.stderr
    compared, memorised = output["warnings"]
    assert compared.startswith("sq.py: newly compares with 13, which the tests use, too (line 2): ")
    assert memorised.startswith("sq.py: tri answers 1 of the tests' inputs in a new way, but not ")
    assert "Warning: sq.py: newly compares with 13" in result.stderr

    certificate = json.loads((Path(output["folder"]) / "certificate.json").read_text())
    # The formula of docs/proof.md: one fixed test, the share of killed mutants, then the warnings.
    killed_mutants = [mutant["killed"] for mutant in certificate["mutation"]["mutants"]]
    log_odds = -0.42 + 1.22 + 1.2 * sum(killed_mutants) / len(killed_mutants) - 0.6
    confidence_without_warning = 1 / (1 + math.exp(-log_odds))
    expected = min(1 - 1.5 * (1 - confidence_without_warning), MAX_CONFIDENCE_WITH_SIGNS)
    assert output["confidence"] == pytest.approx(expected, abs=0.01)
    assert output["confidence"] == certificate["confidence"]
    assert f"Confidence {output['confidence']:.2f}." in result.stderr
    assert certificate["claims"]["warnings"] == output["warnings"]
