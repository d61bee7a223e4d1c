"""A repository whose every setting names a program: none may run in what we do with it, from heal to undo.

The settings are those that git itself lists, so a later git brings its own new ones into this test.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST

Suture = Callable[..., subprocess.CompletedProcess[str]]
Script = Callable[..., str]

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
ELSEWHERE = (
    "include",
    "core.worktree",
    "core.bare",
    "extensions.",
    "user.",
    "author.",
    "committer.",
    "safe.",
)
"""They move or close the repository, or stop git before it runs something."""


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    return tmp_path / "it ran"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Every setting of git's that can hold a path, as lines of a file with `EVIL` in its place."""
    root = tmp_path_factory.mktemp("tried")
    environ = {"HOME": str(root), "PATH": os.environ["PATH"]}
    (root / ".gitconfig").write_text(IDENTITY)
    for arguments in (("init", "-q"), ("commit", "-qm", "first", "--allow-empty")):
        git(root, environ, *arguments)
    lines = [line for name in names_of_settings(root, environ) if (line := borne(root, environ, name))]
    assert len(lines) > 100, "git lists its settings otherwise now"
    return lines


@pytest.fixture
def hostile(broken: Path, tmp_path: Path, mark: Path, environ: dict[str, str], settings: list[str]) -> Path:
    """A clone of which every setting that bears it is a program that leaves a mark."""
    (tmp_path / ".gitconfig").write_text(IDENTITY)
    for arguments in (("init", "-q"), ("add", "."), ("commit", "-qm", "first")):
        git(broken, environ, *arguments)
    first = git(broken, environ, "cat-file", "commit", "HEAD")
    signed = git(
        broken,
        environ,
        "hash-object",
        "-t",
        "commit",
        "-w",
        "--stdin",
        stdin=first.replace("\n\n", SIGNATURE, 1),
    )
    git(broken, environ, "update-ref", "HEAD", signed.strip())
    evil = tmp_path / "evil.sh"
    evil.write_text(f"#!/bin/sh\ntr '\\0' ' ' </proc/$PPID/cmdline >>'{mark}'\nexec cat\n")
    evil.chmod(0o755)
    for name in HOOKS:
        shutil.copy(evil, broken / ".git" / "hooks" / name)
    (broken / ".git" / "info" / "attributes").write_text("* filter=evil merge=evil diff=evil\n")
    with (broken / ".git" / "config").open("a") as config:
        config.write("".join(settings).replace("EVIL", str(evil)))
        config.write('[protocol "ext"]\n\tallow = always\n[log]\n\tshowSignature = true\n')
    mark.unlink(missing_ok=True)
    return broken


def names_of_settings(root: Path, environ: dict[str, str]) -> list[str]:
    told = git(root, environ, "help", "--config-for-completion").split()
    names = {re.sub(r"<[^>]*>|\*", "evil", name) for name in told}
    names |= {f"{name}evil" for name in told if name.endswith(".") and name.count(".") == 1}
    names |= {f"filter.evil.{name}" for name in ("process", "clean", "smudge")}
    names |= {"gpg.ssh.program", "gpg.ssh.defaultKeyCommand", "trailer.evil.cmd", "merge.evil.driver"}
    return sorted(name for name in names if "." in name.strip(".") and not name.lower().startswith(ELSEWHERE))


def borne(root: Path, environ: dict[str, str], name: str) -> str:
    """The setting as lines of a file, where git goes on in a repository that has it."""
    section, _, rest = name.partition(".")
    middle, _, variable = rest.rpartition(".")
    head = f'[{section} "{middle}"]' if middle else f"[{section}]"
    line = f'{head}\n\t{variable} = "EVIL"\n'
    config = root / ".git" / "config"
    sound = config.read_text()
    config.write_text(sound + line)
    try:
        git(root, environ, "read-tree", "HEAD")
        git(root, environ, "update-ref", "--create-reflog", "refs/heads/x", "HEAD")
        git(root, environ, "update-ref", "-d", "refs/heads/x")
        git(root, environ, "worktree", "list", "--porcelain")
        git(root, environ, "-c", "core.fsmonitor=false", "commit", "-qm", "x", "--allow-empty")
        git(root, environ, "-c", "core.fsmonitor=false", "status")
        git(root, environ, "-c", "core.fsmonitor=false", "log", "-1")
    except subprocess.CalledProcessError:
        return ""
    finally:
        config.write_text(sound)
    return line


def git(root: Path, environ: dict[str, str], *arguments: str, stdin: str = "") -> str:
    done = subprocess.run(
        ["git", *arguments],
        cwd=root,
        env=environ,
        check=True,
        capture_output=True,
        text=True,
        input=stdin,
    )
    return done.stdout


@pytest.mark.heavy
@pytest.mark.parametrize("how", [("--apply",), ("--commit",), ("--branch", "mend"), ("--patch", "mend.diff")])
@pytest.mark.parametrize("killed", ["", "before it was written down", "before it was made"])
def test_nothing_of_it_runs_from_heal_to_undo(
    hostile: Path,
    mark: Path,
    how: tuple[str, ...],
    killed: str,
    suture: Suture,
    script: Script,
    fixing_reply: str,
    home: Path,
    environ: dict[str, str],
) -> None:
    if killed and how[0] not in ("--commit", "--branch"):
        pytest.skip("there is no commit")
    refs = hostile / ".git" / "refs" / "heads"
    before = {path.name: path.read_text() for path in refs.iterdir()}
    done = suture("heal", str(hostile), *OPTIONS, *how, "--model", script(fixing_reply))
    assert done.returncode == 0, done.stderr
    if killed:
        (ledger,) = home.glob("runs/*/ledger.jsonl")
        lines = ledger.read_text().splitlines(keepends=True)
        ledger.write_text("".join(line for line in lines if '"commit.made"' not in line))
    if killed == "before it was made":
        for path in refs.iterdir():
            path.write_text(before[path.name]) if path.name in before else path.unlink()
    undone = suture("undo", cwd=hostile)
    nothing = how[0] == "--patch" or (how[0] == "--branch" and killed == "before it was made")
    assert undone.returncode == (2 if nothing else 0), undone.stderr
    assert not mark.exists(), mark.read_text()
    (hostile / "cart.py").touch()
    for trap in ("status", "hash-object cart.py", "log -1"):
        subprocess.run(["git", *trap.split()], cwd=hostile, env=environ, check=False, capture_output=True)
    assert mark.exists(), "the trap itself does not work"


def test_no_program_called_git_is_taken_from_the_project(
    hostile: Path, mark: Path, suture: Suture, script: Script, fixing_reply: str, environ: dict[str, str]
) -> None:
    planted = hostile / "git"
    planted.write_text(f"#!/bin/sh\necho planted >>'{mark}'\nexec {shutil.which('git')} \"$@\"\n")
    planted.chmod(0o755)
    path = os.pathsep.join((".", str(hostile), environ["PATH"]))
    done = suture(
        "heal", ".", *OPTIONS, "--commit", "--model", script(fixing_reply), cwd=hostile, env={"PATH": path}
    )
    assert done.returncode == 0, done.stderr
    assert not mark.exists(), mark.read_text()
