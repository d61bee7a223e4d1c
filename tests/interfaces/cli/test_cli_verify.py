"""`suture verify` shows what decided, what did not, and which files of a project a certificate is not about."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bare_pytest import BARE_PYTEST
from interfaces.cli.conftest import Cli
from interfaces.cli.test_cli_escaping import HOSTILE, assert_harmless
from judge.certificates.forging import forge_certificate, make_checks, write_project
from suture.core.ledger import Ledger, new_run
from suture.core.records import Task
from suture.core.settings import PathSettings, Settings
from suture.interfaces.narrative.wording import render_judge
from suture.judge.certificates.certificate import Certificate, UnverifiedClaims, seal_certificate
from suture.sandbox import open_sandbox

Forge = Callable[..., Certificate]
LENGTH = b"def total(xs):\n    return len(xs)\n"
DOUBLED = {"sums.py": "def total(xs):\n    return xs[-1] * 2\n"}
TEST = b"from sums import total\n\n\ndef test_a():\n    assert total([1, 2, 3]) == 6\n"


@pytest.fixture
def settings(home: Path) -> Settings:
    return Settings(paths=PathSettings(home=home))


@pytest.fixture
def forge(sandbox: None, settings: Settings, tmp_path: Path) -> Forge:
    """Return a function that makes the certificate of a change: `forge(task, changes, claims=...)`."""

    async def run(task: Task, changes: Mapping[str, str], **claims: Any) -> Certificate:
        opened = open_sandbox(settings.sandbox, keys=settings.keys, cache=tmp_path / "cache")
        try:
            return await forge_certificate(task, changes, opened, settings, **claims)
        finally:
            await opened.close()

    return lambda task, changes, **claims: asyncio.run(run(task, changes, **claims))


def test_a_check_that_does_not_decide_is_shown_as_ignored(cli: Cli, forge: Forge, tmp_path: Path) -> None:
    checks = (
        *make_checks("assert total([1, 2, 3]) == 6"),
        *make_checks("assert total([4, 6]) == 10", trust=0.0, prefix="weak"),
    )
    task = Task(statement="", kind="heal", module="sums.py", files={"sums.py": LENGTH}, checks=checks)
    certificate = forge(task, DOUBLED)
    path = write_project(tmp_path / "project", certificate, task.files)

    result = cli("verify", str(path), "--project", str(tmp_path / "project"))

    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[-4:] == [
        "ignored   a check that does not decide (trust 0.00): failed",
        "ignored   | assert total([4, 6]) == 10",
        "check     | assert total([1, 2, 3]) == 6",
        "confirmed by the checks above",
    ]
    assert "verified  after: 1 test passes, 1 of them only with the change" in result.stdout
    assert "1 more do not decide, and 1 of these do not pass" in result.stdout
    answer = json.loads(cli("verify", str(path), "--project", str(tmp_path / "project"), "--json").stdout)
    assert answer["judged_by"]["checks"] == ["assert total([1, 2, 3]) == 6\n"]
    assert answer["judged_by"]["not_deciding"] == [
        {"source": "assert total([4, 6]) == 10\n", "status": "failed"}
    ]


def test_further_files_of_a_project_are_named_for_new_code(cli: Cli, forge: Forge, tmp_path: Path) -> None:
    command = (*BARE_PYTEST.split(), "test_a.py")
    task = Task(statement="", module="sums.py", files={"test_a.py": TEST}, test_command=command)
    certificate = forge(task, DOUBLED)
    changed = {path: text.encode() for path, text in DOUBLED.items()}
    files = {**task.files, **changed, "test_b.py": b"", "conftest.py": b"raise SystemExit(1)\n"}
    path = write_project(tmp_path / "project", certificate, files)

    result = cli("verify", str(path), "--project", str(tmp_path / "project"))

    assert result.exit_code == 0, result.output
    assert "new code, judged without your own conftest.py, test_b.py" in result.stdout
    assert result.stdout.splitlines()[-1] == (
        f"confirmed by {BARE_PYTEST} test_a.py, for new code with the certified files alone"
    )


def test_no_text_of_an_accepted_certificate_controls_the_terminal(
    cli: Cli, forge: Forge, tmp_path: Path
) -> None:
    checks = (
        *make_checks(*(f"assert total([{n}]) == {2 * n}" for n in range(3, 9)), prefix=HOSTILE),
        *make_checks(f"assert total([4]) == 8, {HOSTILE!r}", f"# {HOSTILE}\nassert False", trust=0.0),
    )
    task = Task(statement=HOSTILE, module="sums.py", checks=checks)
    claims = UnverifiedClaims(
        run=HOSTILE,
        suture=HOSTILE,
        model=HOSTILE,
        warnings=(HOSTILE,),
        rival_labels=(HOSTILE,),
        accepted_tests=(HOSTILE,),
    )
    certificate = forge(task, DOUBLED, claims=claims)
    path = write_project(tmp_path / "project", certificate, {})

    accepted = cli("verify", str(path), "--project", str(tmp_path / "project"))
    assert accepted.exit_code == 0, accepted.output
    assert_harmless(accepted.output)
    assert "cHduZWQ=" in accepted.output

    target = write_project(
        tmp_path / "forged", seal_certificate(replace(certificate, after={HOSTILE: "passed"})), {}
    )
    refuted = cli("verify", str(target), "--project", str(tmp_path / "forged"))
    assert (refuted.exit_code, "cHduZWQ=" in refuted.output) == (1, True)
    assert_harmless(refuted.output)


def test_verify_says_what_its_words_mean_and_leaves_out_what_says_nothing(
    cli: Cli, forge: Forge, tmp_path: Path
) -> None:
    command = (*BARE_PYTEST.split(), "test_a.py")
    files = {"sums.py": LENGTH, "test_a.py": TEST}
    task = Task(statement="", kind="heal", module="sums.py", files=files, test_command=command)
    path = write_project(tmp_path / "project", forge(task, DOUBLED), task.files)

    result = cli("verify", str(path), "--project", str(tmp_path / "project"))

    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert render_judge("nonce", has_diff=True) in lines
    claimed = [line for line in lines if line.startswith("claimed")]
    assert lines[lines.index(claimed[0]) - 1].endswith("running the tests again cannot confirm it:")
    assert not any(line.endswith((": ", ": none", ": 0", ": completed", "nothing new")) for line in lines)
    (confidence,) = [line for line in lines if line.startswith("verified  confidence: ")]
    assert "The run itself may show more" in confidence
    assert not re.search(r"nonce|seed|rivals|at least", result.stdout)


def test_a_run_that_is_still_running_has_no_certificate_yet(cli: Cli, home: Path) -> None:
    with Ledger(new_run(home, run_id="20260101-100000000-abcdef").ledger_path):
        running = cli("verify", "last")
    stopped = cli("verify", "last")

    assert "is still running, so it has no certificate yet" in running.output
    assert "20260101-100000000-abcdef has no certificate\n" in stopped.output
