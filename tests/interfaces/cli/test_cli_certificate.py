"""`suture verify`, `suture undo` and the delivery options of `suture heal`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from interfaces.cli.conftest import ReadFiles, Script, Suture

pytestmark = pytest.mark.usefixtures("sandbox")
TEST_OPTIONS = ("--test", BARE_PYTEST, "--set", "repair.enabled=false", "--set", "certification.mutants=2")


@pytest.mark.timeout(300)
def test_a_healed_run_can_be_verified_and_undone(
    suture: Suture, script: Script, broken_project: Path, fixing_reply: str, home: Path, read_files: ReadFiles
) -> None:
    before = read_files(broken_project)
    result = suture("heal", str(broken_project), *TEST_OPTIONS, "--apply", "--model", script(fixing_reply))
    assert result.returncode == 0, result.stderr
    assert "Your tests run every changed line and catch " in result.stderr
    assert "Confidence 0." in result.stderr
    certificate = next((home / "runs").glob("*/certificate.json"))

    verification = suture("verify", "last")
    assert verification.returncode == 0, verification.stdout + verification.stderr
    assert verification.stdout.splitlines()[-1] == f"confirmed by {BARE_PYTEST}"
    assert "verified  mutation: " in verification.stdout
    assert "claimed   model: scripted:" in verification.stdout

    forged = certificate.parent / "forged.json"
    forged.write_text(certificate.read_text().replace('"fixed": [', '"fixed": ["x", ', 1))
    failed_verification = suture("verify", str(forged), "--json")
    assert failed_verification.returncode == 1
    assert json.loads(failed_verification.stdout)["ok"] is False

    outside = suture("undo")  # the current folder is not in the project
    assert (outside.returncode, read_files(broken_project) == before) == (2, False)
    undo = suture("undo", cwd=broken_project)
    assert undo.returncode == 0, undo.stderr
    assert read_files(broken_project) == before
    assert "Reverted: cart.py" in suture("show", "last").stdout
    second_undo = suture("undo", cwd=broken_project)
    assert (second_undo.returncode, "nothing to undo" in second_undo.stderr) == (2, True)


@pytest.mark.parametrize(
    "forged",
    [
        "def add(a, b): return 0\nif 0:\n    from unittest.__main__ import *\n",
        "if 0:\n    from unittest.__main__ import add\n",
        "def add(a, b): return 0\nif 0:\n    from operator import add\n",
    ],
    ids=["all names", "a missing name", "a name of the standard library"],
)
def test_code_with_dead_imports_is_neither_healed_nor_certified(
    forged: str, suture: Suture, script: Script, home: Path
) -> None:
    task = 'def add(a, b):\n    """The sum.\n\n    >>> add(1, 2)\n    3\n    """\n'
    reply = {"text": f"```python\n{forged}```", "repeat": True}
    result = suture("run", task, "--model", script(reply), "--attempts", "1")
    assert result.returncode != 0, result.stdout
    assert not list(home.glob("runs/*/certificate.json"))


@pytest.mark.parametrize(
    "options", [("--apply", "--commit"), ("--branch", "b", "--patch", "f"), ("--commit", "--branch", "b")]
)
def test_delivery_options_exclude_each_other(
    suture: Suture, broken_project: Path, options: tuple[str, ...]
) -> None:
    result = suture("heal", str(broken_project), *TEST_OPTIONS, *options)
    assert result.returncode == 2
    assert "exclude each other" in result.stderr


def test_verify_refuses_a_missing_run_and_an_empty_certificate(suture: Suture, tmp_path: Path) -> None:
    assert suture("verify", "last").returncode == 2
    (tmp_path / "c.json").write_text("{}")
    refusal = suture("verify", "c.json")
    assert (refusal.returncode, "FALSE" in refusal.stdout) == (1, True)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_healed_result_is_reported_when_its_commit_fails(
    options: tuple[str, ...],
    suture: Suture,
    script: Script,
    broken_project: Path,
    fixing_reply: str,
    home: Path,
    tmp_path: Path,
) -> None:
    (tmp_path / ".gitconfig").write_text("[user]\n\tname = A\n\temail = a@example.org\n")
    for arguments in (("init", "-q"), ("add", "cart.py"), ("commit", "-qm", "without the tests")):
        git_environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
        subprocess.run(["git", *arguments], cwd=broken_project, env=git_environ, check=True)
    model = ("--model", script(fixing_reply), "--set", "certification.seconds=0")
    result = suture("heal", str(broken_project), *TEST_OPTIONS, *model, "--commit", *options)
    (diff,) = home.glob("runs/*/result.diff")
    run = diff.parent.name
    assert result.returncode == 2, result.stderr
    assert f"run {run} is healed and its verified diff is kept: {diff}" in result.stderr

    if options:
        output = json.loads(result.stdout)
        assert (output["run_id"], output["diff"], output["exit_code"]) == (run, diff.read_text(), 2)
        assert output["error"].startswith("nothing was committed")
    else:
        assert result.stdout == diff.read_text()
        assert f"More: suture show {run}" in result.stderr
