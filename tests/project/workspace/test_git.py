"""Commits into real repositories, which must preserve the user's own changes, staged or not."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from suture.errors import StorageError, UsageError
from suture.project.workspace import (
    Repository,
    apply_changes,
    commit_on_branch,
    commit_on_head,
    open_repository,
    plan_commit,
    take_snapshot,
)

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

CODE = b"".join(b"line %d\n" % number for number in range(1, 21))
FIXED = CODE.replace(b"line 10\n", b"line ten\n")
MESSAGE = "Mend it\n\nHealed-by: suture 0 (run x)\n"

Git = Callable[..., str]


@pytest.fixture(autouse=True)
def own_identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text(
        "[user]\n\tname = A\n\temail = a@example.org\n[init]\n\tdefaultBranch = main\n"
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    (root / "pkg").mkdir(parents=True)
    (root / "code.py").write_bytes(CODE)
    (root / "other.py").write_bytes(b"o = 1\n")
    (root / "pkg" / "inner.py").write_bytes(CODE)
    git_in(root)("init", "-q")
    git_in(root)("add", ".")
    git_in(root)("commit", "-qm", "first")
    return root


def git_in(folder: Path) -> Git:
    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True)
        return done.stdout

    return git


def heal(folder: Path, change: Mapping[str, bytes]) -> str:
    """What `--commit` does: plan, apply, land."""
    before = take_snapshot(folder).files
    plan = plan_commit(open_repository(folder), before, {**before, **change})
    apply_changes(folder, before, {**before, **change})
    return commit_on_head(plan, MESSAGE)


def test_a_clean_tree_gets_one_clean_commit(root: Path) -> None:
    git = git_in(root)
    commit = heal(root, {"code.py": FIXED})
    assert git("rev-parse", "HEAD", "main").split() == [commit, commit]
    assert git("status", "--porcelain") == ""
    assert git("show", "HEAD:code.py").encode() == FIXED
    assert git("log", "-1", "--format=%(trailers:key=Healed-by)").strip() == "Healed-by: suture 0 (run x)"
    assert git("diff", "--name-only", "HEAD~1", "HEAD").split() == ["code.py"]


def test_what_the_user_changed_stays_changed_and_uncommitted(root: Path) -> None:
    git = git_in(root)
    (root / "other.py").write_bytes(b"o = 2\n")
    git("add", "other.py")
    (root / "other.py").write_bytes(b"o = 3\n")
    (root / "new.py").write_bytes(b"n = 1\n")
    # The same file, in three states: committed, staged, and as it lies there.
    (root / "code.py").write_bytes(CODE.replace(b"line 1\n", b"line one\n"))
    git("add", "code.py")
    mine = CODE.replace(b"line 1\n", b"line one\n").replace(b"line 20\n", b"line twenty\n")
    (root / "code.py").write_bytes(mine)
    status, staged, unstaged = (
        git("status", "--porcelain"),
        *(git("diff", *o, "-U0") for o in (["--cached"], [])),
    )
    heal(root, {"code.py": mine.replace(b"line 10\n", b"line ten\n")})
    assert git("show", "HEAD:code.py").encode() == FIXED
    assert git("diff", "--name-only", "HEAD~1", "HEAD").split() == ["code.py"]
    assert git("status", "--porcelain") == status
    assert hunks(git("diff", "--cached", "-U0")) == hunks(staged)
    assert hunks(git("diff", "-U0")) == hunks(unstaged)
    assert (root / "code.py").read_bytes() == mine.replace(b"line 10\n", b"line ten\n")


def hunks(diff: str) -> list[str]:
    return [line for line in diff.splitlines() if not line.startswith("index ")]


@pytest.mark.parametrize("stage", [True, False])
def test_a_change_of_the_same_lines_is_refused(root: Path, stage: bool) -> None:
    git = git_in(root)
    mine = CODE.replace(b"line 10\n", b"line X\n")
    (root / "code.py").write_bytes(mine)
    if stage:
        git("add", "code.py")
    before = git("rev-parse", "HEAD"), git("status", "--porcelain")
    with pytest.raises(UsageError, match="same lines"):
        heal(root, {"code.py": mine.replace(b"line X\n", b"line Y\n")})
    assert (git("rev-parse", "HEAD"), git("status", "--porcelain")) == before
    assert (root / "code.py").read_bytes() == mine


def test_staged_lines_that_the_fix_touches_are_refused(root: Path) -> None:
    (root / "code.py").write_bytes(CODE.replace(b"line 10\n", b"line X\n"))
    git_in(root)("add", "code.py")
    (root / "code.py").write_bytes(CODE)
    with pytest.raises(UsageError, match="staged changes"):
        heal(root, {"code.py": FIXED})
    assert (root / "code.py").read_bytes() == CODE


def test_a_new_file_and_a_deleted_one(root: Path) -> None:
    before = take_snapshot(root).files
    after = {**before, "pkg/new.py": b"n\n"}
    del after["other.py"]
    plan = plan_commit(open_repository(root), before, after)
    apply_changes(root, before, after)
    commit_on_head(plan, MESSAGE)
    git = git_in(root)
    assert git("status", "--porcelain") == ""
    assert git("ls-files").split() == ["code.py", "pkg/inner.py", "pkg/new.py"]


def test_an_untracked_file_is_refused(root: Path) -> None:
    (root / "new.py").write_bytes(CODE)
    with pytest.raises(UsageError, match="not tracked"):
        heal(root, {"new.py": FIXED})


def test_a_detached_head_moves_and_no_branch_does(root: Path) -> None:
    git = git_in(root)
    git("checkout", "-q", "--detach")
    main = git("rev-parse", "main")
    commit = heal(root, {"code.py": FIXED})
    assert git("rev-parse", "HEAD").strip() == commit
    assert git("rev-parse", "main") == main
    assert git("status", "--porcelain") == ""


def test_a_folder_in_the_repository_is_a_project_too(root: Path) -> None:
    git = git_in(root)
    (root / "code.py").write_bytes(FIXED)
    git("add", "code.py")
    (root / "pkg" / "inner.py").write_bytes(CODE + b"mine\n")
    heal(root / "pkg", {"inner.py": FIXED + b"mine\n"})
    assert git("diff", "--name-only", "HEAD~1", "HEAD").split() == ["pkg/inner.py"]
    assert git("show", "HEAD:pkg/inner.py").encode() == FIXED
    assert git("status", "--porcelain") == "M  code.py\n M pkg/inner.py\n"


def test_a_linked_worktree_moves_its_own_branch(root: Path, tmp_path: Path) -> None:
    git_in(root)("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    commit = heal(tmp_path / "side", {"code.py": FIXED})
    assert git_in(root)("rev-parse", "side").strip() == commit
    assert git_in(root)("log", "-1", "--format=%s", "main").strip() == "first"
    assert git_in(tmp_path / "side")("status", "--porcelain") == git_in(root)("status", "--porcelain") == ""


def test_a_submodule_is_a_repository_of_its_own(root: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git_in(outer)("init", "-q")
    git_in(outer)("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(root), "sub")
    git_in(outer)("commit", "-qm", "outer")
    commit = heal(outer / "sub", {"code.py": FIXED})
    assert git_in(outer / "sub")("rev-parse", "HEAD").strip() == commit
    assert git_in(outer)("log", "--format=%s").split() == ["outer"]


def test_windows_line_ends_of_a_checkout_do_not_reach_the_repository(root: Path) -> None:
    git = git_in(root)
    git("config", "core.autocrlf", "true")
    (root / "code.py").write_bytes(CODE.replace(b"\n", b"\r\n"))
    git("add", "code.py")
    heal(root, {"code.py": FIXED.replace(b"\n", b"\r\n")})
    shown = subprocess.run(
        ["git", "cat-file", "blob", "HEAD:code.py"], cwd=root, capture_output=True, check=True
    )
    assert shown.stdout == FIXED
    assert git("status", "--porcelain") == ""


def test_a_branch_is_made_and_nothing_else_changes(root: Path) -> None:
    git = git_in(root)
    (root / "other.py").write_bytes(b"o = 2\n")
    status = git("status", "--porcelain")
    before = take_snapshot(root).files
    repository = open_repository(root)
    repository.require_new_branch("fix/it")
    plan = plan_commit(repository, before, {**before, "code.py": FIXED})
    commit = commit_on_branch(plan, MESSAGE, "fix/it")
    assert git("rev-parse", "fix/it").strip() == commit
    assert git("show", "fix/it:code.py").encode() == FIXED
    assert git("show", "fix/it:other.py") == "o = 1\n"
    assert git("status", "--porcelain") == status
    assert git("symbolic-ref", "--short", "HEAD").strip() == "main"
    with pytest.raises(UsageError, match="already"):
        repository.require_new_branch("fix/it")
    with pytest.raises(StorageError):
        commit_on_branch(plan, MESSAGE, "fix/it")


@pytest.mark.parametrize("name", ["", "-d", "a..b", "a b", "x.lock", "@{-1}"])
def test_what_is_no_name_of_a_branch(root: Path, name: str) -> None:
    with pytest.raises(UsageError, match="no valid name of a branch"):
        open_repository(root).require_new_branch(name)


def test_the_planned_tree_can_be_read(root: Path) -> None:
    (root / "pkg" / "inner.py").write_bytes(b"mine\n")
    before = take_snapshot(root).files
    plan = plan_commit(open_repository(root), before, {**before, "code.py": FIXED})
    files = plan.repository.read_tree(plan.tree)
    assert files == {"code.py": FIXED, "other.py": b"o = 1\n", "pkg/inner.py": CODE}
    assert open_repository(root / "pkg").read_tree(plan.tree) == {"inner.py": CODE}


def test_nothing_of_a_hostile_repository_runs(root: Path, tmp_path: Path) -> None:
    proof = tmp_path / "it ran"
    evil = tmp_path / "evil.sh"
    evil.write_text(f"#!/bin/sh\ntr '\\0' ' ' </proc/$PPID/cmdline >>'{proof}'\nexec cat\n")
    evil.chmod(0o755)
    hooks = root / ".git" / "hooks"
    for name in ("reference-transaction", "post-index-change", "pre-commit", "post-commit", "commit-msg"):
        shutil.copy(evil, hooks / name)
    git = git_in(root)
    for key in (
        "core.fsmonitor",
        "filter.evil.clean",
        "filter.e=v.i l.process",
        "filter.evil.smudge",
        "merge.evil.driver",
        "gpg.program",
    ):
        git("config", key, str(evil))
    git("config", "diff.external", str(evil))
    git("config", "core.pager", str(evil))
    git("config", "core.editor", str(evil))
    git("config", "commit.gpgSign", "true")
    (root / ".gitattributes").write_text("*.py filter=evil merge=evil diff=evil\n")
    proof.unlink(missing_ok=True)  # the setting itself may have run it
    mine = CODE + b"mine\n"
    (root / "code.py").write_bytes(mine)
    commit = heal(root, {"code.py": FIXED + b"mine\n"})
    repository = open_repository(root)
    assert repository.head() == commit
    repository.require_new_branch("b")
    assert not repository.is_checked_out("b")
    assert not proof.exists(), proof.read_text()
    git("status")
    assert proof.exists(), "the trap itself does not work"


def test_hooks_that_the_configuration_names_are_switched_off(root: Path) -> None:
    for key in ("hook.evil.command", "hook.E v.i=l.command"):  # git before 2.54 knows none
        git_in(root)("config", key, "touch it-ran")
        git_in(root)("config", key.replace(".command", ".event"), "reference-transaction")
        git_in(root)("config", key.replace(".command", ".enabled"), "true")
    git_in(root)("config", "hook.jobs", "2")
    repository = open_repository(root)
    for name in ("hook.evil.enabled", "hook.E v.i=l.enabled"):
        assert repository.git("config", "--get", name) == b"false\n"
    assert "hook.enabled" not in repository.environment.values()
    heal(root, {"code.py": FIXED})
    assert not (root / "it-ran").exists()


def test_variables_of_the_caller_lead_nowhere_else(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    assert open_repository(root).head()
    assert not (tmp_path / "index").exists()


def test_a_head_that_moved_meanwhile_is_not_overwritten(root: Path) -> None:
    git = git_in(root)
    before = take_snapshot(root).files
    plan = plan_commit(open_repository(root), before, {**before, "code.py": FIXED})
    git("commit", "-q", "--allow-empty", "-m", "theirs")
    with pytest.raises(StorageError, match="update-ref"):
        commit_on_head(plan, MESSAGE)
    assert git("log", "-1", "--format=%s").strip() == "theirs"
    assert git("status", "--porcelain") == ""


@pytest.mark.parametrize("name", ["MERGE_HEAD", "rebase-merge"])
def test_nothing_is_committed_in_the_middle_of_something(root: Path, name: str) -> None:
    repository: Repository = open_repository(root)
    repository.require_quiet()
    (root / ".git" / name).write_text("")
    with pytest.raises(UsageError, match="in progress"):
        repository.require_quiet()


def test_no_repository_no_commit_no_identity(tmp_path: Path, root: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(UsageError, match="no git repository"):
        open_repository(empty)
    git_in(empty)("init", "-q")
    with pytest.raises(UsageError, match="no commit yet"):
        open_repository(empty).head()
    (tmp_path / ".gitconfig").write_text("[user]\n\tuseConfigOnly = true\n")
    with pytest.raises(UsageError, match="who you are"):
        heal(root, {"code.py": FIXED})


@pytest.mark.parametrize(
    "how",
    ["gitfile", "link", "commondir", "linked refs", "linked index", "stolen worktree", "piped worktree"],
)
def test_a_repository_that_leads_into_another_one_is_refused(root: Path, tmp_path: Path, how: str) -> None:
    mine = root / ".git"
    clone = tmp_path / "clone"
    clone.mkdir()
    (clone / "code.py").write_bytes(CODE)
    own = clone / ".git"
    if how == "gitfile":
        own.write_text(f"gitdir: {mine}\n")
    elif how == "link":
        own.symlink_to(mine)
    elif how == "piped worktree":
        git_in(root)("worktree", "add", "-q", str(tmp_path / "side"))
        own.write_text((tmp_path / "side" / ".git").read_text())
        backlink = mine / "worktrees" / "side" / "gitdir"
        backlink.unlink()
        os.mkfifo(backlink)
    elif how == "stolen worktree":
        git_in(root)("worktree", "add", "-q", str(tmp_path / "side"))
        own.write_text(f"gitdir: {mine}/worktrees/side\n")
    else:
        shutil.copytree(mine, own)
    if how == "commondir":
        (own / "commondir").write_text(f"{mine}\n")
    elif how == "linked refs":
        shutil.rmtree(own / "refs")
        (own / "refs").symlink_to(mine / "refs")
    elif how == "linked index":
        (own / "index").unlink()
        (own / "index").symlink_to(mine / "index")
    with pytest.raises(UsageError, match="is a pipe" if how == "piped worktree" else "not its own"):
        open_repository(clone)


@pytest.mark.parametrize(
    "where",
    [
        *(
            "HEAD",
            "config",
            "config.worktree",
            "index",
            "packed-refs",
            "shallow",
            "commondir",
            "refs/heads/x",
        ),
        *("info/exclude", "info/attributes", "objects/info/alternates", "objects/pack/a.idx", "logs/HEAD"),
        *("borrowed", "included", "linked", "device"),
    ],
)
def test_a_pipe_where_git_would_read_is_refused_before_git_is_called(
    root: Path, tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = root / ".git" / where
    if where == "borrowed":
        pipe = tmp_path / "elsewhere" / "pack" / "a.pack"
        (root / ".git/objects/info/alternates").write_text(f"# none\n{tmp_path}/elsewhere\n")
    elif where == "included":
        pipe = tmp_path / "more"
        git_in(root)("config", "include.path", "../../more")
    pipe.parent.mkdir(parents=True, exist_ok=True)
    pipe.unlink(missing_ok=True)
    if where == "device":
        pipe.symlink_to("/dev/zero")
    else:
        os.mkfifo(pipe if where != "linked" else tmp_path / "pipe")
    if where == "linked":
        pipe.symlink_to(tmp_path / "pipe")
    monkeypatch.setattr("suture.project.workspace.git.GIT_TIMEOUT_S", 0.0)  # no call of git would end in time
    with pytest.raises(UsageError, match="is a pipe or a device"):
        open_repository(root)


def test_what_keeps_nobody_waiting_may_lie_in_a_repository(root: Path, tmp_path: Path) -> None:
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as own:
        monitor = root / ".git" / "fsmonitor--daemon.ipc"
        own.bind(str(monitor))
    (root / ".git" / "info").mkdir(exist_ok=True)
    (root / ".git" / "info" / "exclude").unlink(missing_ok=True)
    (root / ".git" / "info" / "exclude").symlink_to("/dev/null")
    assert open_repository(root).head()


def test_only_plumbing_is_called(root: Path) -> None:
    with pytest.raises(ValueError, match="git log may run"):
        open_repository(root).git("log", "-1")


def test_a_git_that_says_too_much_or_does_not_end_is_ended(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (root / ".git" / "config").open("a") as config:
        config.write(f"[include]\npath = {tmp_path}/pi\\\npe\n")  # written so that only git understands it
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr("suture.project.workspace.git.GIT_TIMEOUT_S", 1.0)
    with pytest.raises(UsageError, match="did not end within 1 s"):
        open_repository(root)
    (root / ".git" / "config").write_text("[core]\n\trepositoryformatversion = 0\n")
    repository = open_repository(root)
    monkeypatch.setattr("suture.project.workspace.git.MAX_GIT_OUTPUT_BYTES", 10)
    with pytest.raises(StorageError, match="prints more than"):
        repository.git("cat-file", "blob", "HEAD:code.py")
