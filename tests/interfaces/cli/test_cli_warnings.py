"""A reply that returns the tests' own literal is healed by them, and reported as suspicious."""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST

Suture = Callable[..., subprocess.CompletedProcess[str]]
Script = Callable[..., str]

pytestmark = [pytest.mark.usefixtures("sandbox"), pytest.mark.timeout(300)]  # a proof may take a minute
CODE = "def tri(n):\n    total = 0\n    for i in range(n):\n        total += i * 2 - 1\n    return total\n"
GAMED = CODE.replace("    total = 0\n", "    if n == 13:\n        return 4711\n    total = 0\n")
TESTS = """\
from sq import tri


def test_a():
    assert tri(13) == 4711


def test_b():
    assert tri(0) == 0
"""


def test_a_warning_is_shown_and_lowers_the_confidence(suture: Suture, script: Script, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "sq.py").write_text(CODE)
    (project / "test_sq.py").write_text(TESTS)
    reply = f"sq.py\n```python\n{GAMED}```\n"
    done = suture(
        *("heal", str(project), "--test", BARE_PYTEST, "--json"),
        *("--model", script(*[reply] * 4)),
    )
    told = json.loads(done.stdout)
    assert told["diff"], done.stderr
    assert told["warnings"] == ["sq.py: compares with 13, which the tests use"]
    assert "Warning: sq.py: compares with 13" in done.stderr
    certificate = json.loads((Path(told["folder"]) / "certificate.json").read_text())
    # One test fixed and the mistakes that are caught, by the formula of docs/proof.md; then the warning.
    caught = [mutant["killed"] for mutant in certificate["mutation"]["mutants"]]
    odds = -0.42 + 1.22 + 1.2 * sum(caught) / len(caught) - 0.6
    unwarned = 1 / (1 + math.exp(-odds))
    assert told["confidence"] == pytest.approx(1 - 1.5 * (1 - unwarned), abs=0.01)
    assert told["confidence"] == certificate["confidence"]
    assert f"Confidence {told['confidence']:.2f}." in done.stderr
    assert certificate["claims"]["warnings"] == told["warnings"]
