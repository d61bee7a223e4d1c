"""Suture runs no program that the settings of a hostile git repository name, from heal to undo.

The settings are those that git itself lists, so that this test covers new settings of later git versions.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from interfaces.cli.conftest import Script, Suture

pytestmark = [
    pytest.mark.usefixtures("sandbox"),
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.timeout(600),
]
IDENTITY = "[user]\n\tname = A\n\temail = a@example.org\n"
SIGNATURE = "\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\n"
OPTIONS = ("--test", BARE_PYTEST, "--set", "certification.seconds=0")
HOOKS = (
    "reference-transaction",
    "post-index-change",
    "pre-commit",
    "post-commit",
    "commit-msg",
    "post-checkout",
)
EXCLUDED_SETTINGS = (
    "include",
    "core.worktree",
    "core.bare",
    "extensions.",
    "user.",
    "author.",
    "committer.",
    "safe.",
)
"""Prefixes of settings that move or close the repository, or stop git before it runs a program."""


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """Return the file that a hostile program writes when it runs."""
    return tmp_path / "it ran"


@pytest.fixture(scope="module")
def setting_lines(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the configuration lines of every git setting that can hold a path, with `EVIL` as the path."""
    root = tmp_path_factory.mktemp("tried")
    environ = {"HOME": str(root), "PATH": os.environ["PATH"]}
    (root / ".gitconfig").write_text(IDENTITY)
    for arguments in (("init", "-q"), ("commit", "-qm", "first", "--allow-empty")):
        git(root, environ, *arguments)
    names = select_accepted(root, environ, list_setting_names(root, environ))
    assert len(names) > 100, "git has changed the way in which it lists its settings"
    return [format_setting(name) for name in names]


@pytest.fixture
def hostile_repository(
    broken_project: Path, tmp_path: Path, marker: Path, environ: dict[str, str], setting_lines: list[str]
) -> Path:
    """Create a repository in which every setting that allows it names a program that writes the marker."""
    (tmp_path / ".gitconfig").write_text(IDENTITY)
    for arguments in (("init", "-q"), ("add", "."), ("commit", "-qm", "first")):
        git(broken_project, environ, *arguments)
    first_commit = git(broken_project, environ, "cat-file", "commit", "HEAD")
    signed_commit = git(
        broken_project,
        environ,
        "hash-object",
        "-t",
        "commit",
        "-w",
        "--stdin",
        stdin=first_commit.replace("\n\n", SIGNATURE, 1),
    )
    git(broken_project, environ, "update-ref", "HEAD", signed_commit.strip())
    program = tmp_path / "evil.sh"
    program.write_text(f"#!/bin/sh\ntr '\\0' ' ' </proc/$PPID/cmdline >>'{marker}'\nexec cat\n")
    program.chmod(0o755)
    for name in HOOKS:
        shutil.copy(program, broken_project / ".git" / "hooks" / name)
    (broken_project / ".git" / "info" / "attributes").write_text("* filter=evil merge=evil diff=evil\n")
    with (broken_project / ".git" / "config").open("a") as config:
        config.write("".join(setting_lines).replace("EVIL", str(program)))
        config.write('[protocol "ext"]\n\tallow = always\n[log]\n\tshowSignature = true\n')
    marker.unlink(missing_ok=True)
    return broken_project


def list_setting_names(root: Path, environ: dict[str, str]) -> list[str]:
    """Return the names of the git settings under test."""
    listed_names = git(root, environ, "help", "--config-for-completion").split()
    names = {re.sub(r"<[^>]*>|\*", "evil", name) for name in listed_names}
    names |= {f"{name}evil" for name in listed_names if name.endswith(".") and name.count(".") == 1}
    names |= {f"filter.evil.{name}" for name in ("process", "clean", "smudge")}
    names |= {"gpg.ssh.program", "gpg.ssh.defaultKeyCommand", "trailer.evil.cmd", "merge.evil.driver"}
    return sorted(
        name for name in names if "." in name.strip(".") and not name.lower().startswith(EXCLUDED_SETTINGS)
    )


def format_setting(name: str) -> str:
    """Return the two configuration lines of a setting."""
    section, _, rest = name.partition(".")
    middle, _, variable = rest.rpartition(".")
    head = f'[{section} "{middle}"]' if middle else f"[{section}]"
    return f'{head}\n\t{variable} = "EVIL"\n'


def select_accepted(root: Path, environ: dict[str, str], names: list[str]) -> list[str]:
    """Return the settings with which git works. A message of git usually names the setting that it refuses."""
    while names and (error := find_error(root, environ, names)):
        config = (root / ".git" / "config").read_text()
        refused = [name for name in names if f"'{name.lower()}'" in error.lower()]
        if not refused and (line := re.search(r"bad config line (\d+)", error)):
            refused = [names[(int(line[1]) - config.count("\n") - 1) // 2]]
        if not refused and len(names) > 1:
            middle = len(names) // 2
            return [
                *select_accepted(root, environ, names[:middle]),
                *select_accepted(root, environ, names[middle:]),
            ]
        names = [name for name in names if refused and name not in refused]
    return names


def find_error(root: Path, environ: dict[str, str], names: list[str]) -> str:
    """Return the message of git if it fails in a repository with some settings, else ""."""
    config = root / ".git" / "config"
    original = config.read_text()
    config.write_text(original + "".join(map(format_setting, names)))
    try:
        git(root, environ, "read-tree", "HEAD")
        git(root, environ, "update-ref", "--create-reflog", "refs/heads/x", "HEAD")
        git(root, environ, "update-ref", "-d", "refs/heads/x")
        git(root, environ, "worktree", "list", "--porcelain")
        git(root, environ, "-c", "core.fsmonitor=false", "commit", "-qm", "x", "--allow-empty")
        git(root, environ, "-c", "core.fsmonitor=false", "status")
        git(root, environ, "-c", "core.fsmonitor=false", "log", "-1")
    except subprocess.CalledProcessError as fault:
        # A warning names a setting that git accepts.
        return (
            "\n".join(line for line in str(fault.stderr).splitlines() if "warning:" not in line) or "failed"
        )
    finally:
        config.write_text(original)
    return ""


def git(root: Path, environ: dict[str, str], *arguments: str, stdin: str = "") -> str:
    """Run git, and return its output."""
    result = subprocess.run(
        ["git", *arguments],
        cwd=root,
        env=environ,
        check=True,
        capture_output=True,
        text=True,
        input=stdin,
    )
    return result.stdout


@pytest.mark.heavy
@pytest.mark.parametrize(
    "delivery", [("--apply",), ("--commit",), ("--branch", "mend"), ("--patch", "mend.diff")]
)
@pytest.mark.parametrize("interruption", ["", "before the commit was recorded", "before the commit was made"])
def test_no_program_of_a_hostile_repository_runs_from_heal_to_undo(
    hostile_repository: Path,
    marker: Path,
    delivery: tuple[str, ...],
    interruption: str,
    suture: Suture,
    script: Script,
    fixing_reply: str,
    home: Path,
    environ: dict[str, str],
) -> None:
    if interruption and delivery[0] not in ("--commit", "--branch"):
        pytest.skip("this delivery makes no commit")
    refs = hostile_repository / ".git" / "refs" / "heads"
    before = {path.name: path.read_text() for path in refs.iterdir()}
    result = suture("heal", str(hostile_repository), *OPTIONS, *delivery, "--model", script(fixing_reply))
    assert result.returncode == 0, result.stderr

    if interruption:
        (ledger,) = home.glob("runs/*/ledger.jsonl")
        lines = ledger.read_text().splitlines(keepends=True)
        ledger.write_text("".join(line for line in lines if '"commit.made"' not in line))
    if interruption == "before the commit was made":
        for path in refs.iterdir():
            path.write_text(before[path.name]) if path.name in before else path.unlink()
    undo = suture("undo", cwd=hostile_repository)
    nothing_to_undo = delivery[0] == "--patch" or (
        delivery[0] == "--branch" and interruption == "before the commit was made"
    )
    assert undo.returncode == (2 if nothing_to_undo else 0), undo.stderr
    assert not marker.exists(), marker.read_text()

    (hostile_repository / "cart.py").touch()
    for trap in ("status", "hash-object cart.py", "log -1"):
        subprocess.run(
            ["git", *trap.split()], cwd=hostile_repository, env=environ, check=False, capture_output=True
        )
    assert marker.exists(), "the trap itself does not work"


def test_a_program_named_git_in_the_project_is_not_run(
    hostile_repository: Path,
    marker: Path,
    suture: Suture,
    script: Script,
    fixing_reply: str,
    environ: dict[str, str],
) -> None:
    fake_git = hostile_repository / "git"
    fake_git.write_text(f"#!/bin/sh\necho planted >>'{marker}'\nexec {shutil.which('git')} \"$@\"\n")
    fake_git.chmod(0o755)
    path = os.pathsep.join((".", str(hostile_repository), environ["PATH"]))

    result = suture(
        "heal",
        ".",
        *OPTIONS,
        "--commit",
        "--model",
        script(fixing_reply),
        cwd=hostile_repository,
        env={"PATH": path},
    )

    assert result.returncode == 0, result.stderr
    assert not marker.exists(), marker.read_text()
