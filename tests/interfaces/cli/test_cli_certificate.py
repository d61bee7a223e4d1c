"""`suture verify`, `suture undo` and the ways of delivery, as a user types them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST

Suture = Callable[..., subprocess.CompletedProcess[str]]
Script = Callable[..., str]
FilesOf = Callable[[Path], dict[str, bytes]]

pytestmark = pytest.mark.usefixtures("sandbox")
TEST = ("--test", BARE_PYTEST, "--set", "repair.enabled=false", "--set", "certification.mutants=2")


@pytest.mark.timeout(300)
def test_heal_verify_and_undo(
    suture: Suture, script: Script, broken: Path, fixing_reply: str, home: Path, files_of: FilesOf
) -> None:
    before = files_of(broken)
    done = suture("heal", str(broken), *TEST, "--apply", "--model", script(fixing_reply))
    assert done.returncode == 0, done.stderr
    assert "Your tests run every changed line and catch " in done.stderr
    assert "Confidence 0." in done.stderr
    certificate = next((home / "runs").glob("*/certificate.json"))

    accepted = suture("verify", "last")
    assert accepted.returncode == 0, accepted.stdout + accepted.stderr
    assert accepted.stdout.splitlines()[-1] == f"accepted: {BARE_PYTEST}"
    assert "verified  mutation: " in accepted.stdout
    assert "claimed   model: scripted:" in accepted.stdout

    forged = certificate.parent / "forged.json"
    forged.write_text(certificate.read_text().replace('"fixed": [', '"fixed": ["x", ', 1))
    rejected = suture("verify", str(forged), "--json")
    assert rejected.returncode == 1
    assert json.loads(rejected.stdout)["ok"] is False

    assert (suture("undo").returncode, files_of(broken) == before) == (2, False)  # not in the project
    undone = suture("undo", cwd=broken)
    assert undone.returncode == 0, undone.stderr
    assert files_of(broken) == before
    assert "Reverted: cart.py" in suture("show", "last").stdout
    again = suture("undo", cwd=broken)
    assert (again.returncode, "nothing to undo" in again.stderr) == (2, True)


@pytest.mark.parametrize(
    "forged",
    [
        "def add(a, b): return 0\nif 0:\n    from unittest.__main__ import *\n",
        "if 0:\n    from unittest.__main__ import add\n",
        "def add(a, b): return 0\nif 0:\n    from operator import add\n",
    ],
    ids=["all names", "a name that is not there", "a name of the library"],
)
def test_dead_imports_are_neither_healed_nor_certified(
    forged: str, suture: Suture, script: Script, home: Path
) -> None:
    task = 'def add(a, b):\n    """The sum.\n\n    >>> add(1, 2)\n    3\n    """\n'
    reply = {"text": f"```python\n{forged}```", "repeat": True}
    done = suture("run", task, "--model", script(reply), "--attempts", "1")
    assert done.returncode != 0, done.stdout
    assert not list(home.glob("runs/*/certificate.json"))


@pytest.mark.parametrize(
    "options", [("--apply", "--commit"), ("--branch", "b", "--patch", "f"), ("--commit", "--branch", "b")]
)
def test_options_that_exclude_each_other(suture: Suture, broken: Path, options: tuple[str, ...]) -> None:
    done = suture("heal", str(broken), *TEST, *options)
    assert done.returncode == 2
    assert "exclude each other" in done.stderr


def test_no_certificate_no_run_no_project(suture: Suture, tmp_path: Path) -> None:
    assert suture("verify", "last").returncode == 2
    (tmp_path / "c.json").write_text("{}")
    refused = suture("verify", "c.json")
    assert (refused.returncode, "FALSE" in refused.stdout) == (1, True)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_healed_result_is_told_also_where_it_cannot_be_handed_over(
    options: tuple[str, ...],
    suture: Suture,
    script: Script,
    broken: Path,
    fixing_reply: str,
    home: Path,
    tmp_path: Path,
) -> None:
    (tmp_path / ".gitconfig").write_text("[user]\n\tname = A\n\temail = a@example.org\n")
    for arguments in (("init", "-q"), ("add", "cart.py"), ("commit", "-qm", "without the tests")):
        git = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
        subprocess.run(["git", *arguments], cwd=broken, env=git, check=True)
    model = ("--model", script(fixing_reply), "--set", "certification.seconds=0")
    done = suture("heal", str(broken), *TEST, *model, "--commit", *options)
    (diff,) = home.glob("runs/*/result.diff")
    run = diff.parent.name
    assert done.returncode == 2, done.stderr
    assert f"run {run} is healed and its verified diff is kept: {diff}" in done.stderr
    if options:
        said = json.loads(done.stdout)
        assert (said["run_id"], said["diff"], said["exit_code"]) == (run, diff.read_text(), 2)
        assert said["error"].startswith("nothing was committed")
    else:
        assert done.stdout == diff.read_text()
        assert f"More: suture show {run}" in done.stderr
