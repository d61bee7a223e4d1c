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
def git_identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
        process = subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True)
        return process.stdout

    return git


def commit_change(folder: Path, change: Mapping[str, bytes]) -> str:
    """Plan a commit of a change, apply the change and commit it, as `--commit` does."""
    before = take_snapshot(folder).files
    plan = plan_commit(open_repository(folder), before, {**before, **change})
    apply_changes(folder, before, {**before, **change})
    return commit_on_head(plan, MESSAGE)


def test_a_clean_tree_gets_one_commit_of_the_change(root: Path) -> None:
    git = git_in(root)
    commit = commit_change(root, {"code.py": FIXED})

    assert git("rev-parse", "HEAD", "main").split() == [commit, commit]
    assert git("status", "--porcelain") == ""
    assert git("show", "HEAD:code.py").encode() == FIXED
    assert git("log", "-1", "--format=%(trailers:key=Healed-by)").strip() == "Healed-by: suture 0 (run x)"
    assert git("diff", "--name-only", "HEAD~1", "HEAD").split() == ["code.py"]


def test_changes_of_the_user_stay_uncommitted(root: Path) -> None:
    git = git_in(root)
    (root / "other.py").write_bytes(b"o = 2\n")
    git("add", "other.py")
    (root / "other.py").write_bytes(b"o = 3\n")
    (root / "new.py").write_bytes(b"n = 1\n")
    # One file in three states: committed, staged and in the working tree.
    (root / "code.py").write_bytes(CODE.replace(b"line 1\n", b"line one\n"))
    git("add", "code.py")
    edited = CODE.replace(b"line 1\n", b"line one\n").replace(b"line 20\n", b"line twenty\n")
    (root / "code.py").write_bytes(edited)
    status = git("status", "--porcelain")
    staged = git("diff", "--cached", "-U0")
    unstaged = git("diff", "-U0")

    commit_change(root, {"code.py": edited.replace(b"line 10\n", b"line ten\n")})

    assert git("show", "HEAD:code.py").encode() == FIXED
    assert git("diff", "--name-only", "HEAD~1", "HEAD").split() == ["code.py"]
    assert git("status", "--porcelain") == status
    assert hunks(git("diff", "--cached", "-U0")) == hunks(staged)
    assert hunks(git("diff", "-U0")) == hunks(unstaged)
    assert (root / "code.py").read_bytes() == edited.replace(b"line 10\n", b"line ten\n")


def hunks(diff: str) -> list[str]:
    return [line for line in diff.splitlines() if not line.startswith("index ")]


@pytest.mark.parametrize("stage", [True, False])
def test_a_change_of_lines_that_the_user_edited_is_refused(root: Path, stage: bool) -> None:
    git = git_in(root)
    edited = CODE.replace(b"line 10\n", b"line X\n")
    (root / "code.py").write_bytes(edited)
    if stage:
        git("add", "code.py")

    before = git("rev-parse", "HEAD"), git("status", "--porcelain")

    with pytest.raises(UsageError, match="same lines"):
        commit_change(root, {"code.py": edited.replace(b"line X\n", b"line Y\n")})
    assert (git("rev-parse", "HEAD"), git("status", "--porcelain")) == before
    assert (root / "code.py").read_bytes() == edited


def test_a_change_of_staged_lines_is_refused(root: Path) -> None:
    (root / "code.py").write_bytes(CODE.replace(b"line 10\n", b"line X\n"))
    git_in(root)("add", "code.py")
    (root / "code.py").write_bytes(CODE)
    with pytest.raises(UsageError, match="staged changes"):
        commit_change(root, {"code.py": FIXED})
    assert (root / "code.py").read_bytes() == CODE


def test_new_and_deleted_files_are_committed(root: Path) -> None:
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
        commit_change(root, {"new.py": FIXED})


def test_a_detached_head_moves_without_its_branch(root: Path) -> None:
    git = git_in(root)
    git("checkout", "-q", "--detach")
    main = git("rev-parse", "main")

    commit = commit_change(root, {"code.py": FIXED})

    assert git("rev-parse", "HEAD").strip() == commit
    assert git("rev-parse", "main") == main
    assert git("status", "--porcelain") == ""


def test_a_subfolder_of_a_repository_can_be_a_project(root: Path) -> None:
    git = git_in(root)
    (root / "code.py").write_bytes(FIXED)
    git("add", "code.py")
    (root / "pkg" / "inner.py").write_bytes(CODE + b"mine\n")

    commit_change(root / "pkg", {"inner.py": FIXED + b"mine\n"})

    assert git("diff", "--name-only", "HEAD~1", "HEAD").split() == ["pkg/inner.py"]
    assert git("show", "HEAD:pkg/inner.py").encode() == FIXED
    assert git("status", "--porcelain") == "M  code.py\n M pkg/inner.py\n"


def test_a_linked_worktree_moves_its_own_branch(root: Path, tmp_path: Path) -> None:
    git_in(root)("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    commit = commit_change(tmp_path / "side", {"code.py": FIXED})
    assert git_in(root)("rev-parse", "side").strip() == commit
    assert git_in(root)("log", "-1", "--format=%s", "main").strip() == "first"
    assert git_in(tmp_path / "side")("status", "--porcelain") == git_in(root)("status", "--porcelain") == ""


def test_a_commit_in_a_submodule_leaves_the_outer_repository_alone(root: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git_in(outer)("init", "-q")
    git_in(outer)("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(root), "sub")
    git_in(outer)("commit", "-qm", "outer")

    commit = commit_change(outer / "sub", {"code.py": FIXED})

    assert git_in(outer / "sub")("rev-parse", "HEAD").strip() == commit
    assert git_in(outer)("log", "--format=%s").split() == ["outer"]


def test_windows_line_ends_are_not_committed(root: Path) -> None:
    git = git_in(root)
    git("config", "core.autocrlf", "true")
    (root / "code.py").write_bytes(CODE.replace(b"\n", b"\r\n"))
    git("add", "code.py")
    commit_change(root, {"code.py": FIXED.replace(b"\n", b"\r\n")})

    blob = subprocess.run(
        ["git", "cat-file", "blob", "HEAD:code.py"], cwd=root, capture_output=True, check=True
    )

    assert blob.stdout == FIXED
    assert git("status", "--porcelain") == ""


def test_a_commit_on_a_new_branch_changes_nothing_else(root: Path) -> None:
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
def test_an_invalid_branch_name_is_refused(root: Path, name: str) -> None:
    with pytest.raises(UsageError, match="no valid name of a branch"):
        open_repository(root).require_new_branch(name)


def test_the_planned_tree_can_be_read(root: Path) -> None:
    (root / "pkg" / "inner.py").write_bytes(b"mine\n")
    before = take_snapshot(root).files
    plan = plan_commit(open_repository(root), before, {**before, "code.py": FIXED})
    files = plan.repository.read_tree(plan.tree)
    assert files == {"code.py": FIXED, "other.py": b"o = 1\n", "pkg/inner.py": CODE}
    assert open_repository(root / "pkg").read_tree(plan.tree) == {"inner.py": CODE}


def plant_programs(root: Path, folder: Path) -> Path:
    """Configure a program wherever git may run one, and return the file that the program writes."""
    marker = folder / "it ran"
    script = folder / "evil.sh"
    script.write_text(f"#!/bin/sh\ntr '\\0' ' ' </proc/$PPID/cmdline >>'{marker}'\nexec cat\n")
    script.chmod(0o755)
    hooks = root / ".git" / "hooks"
    for name in ("reference-transaction", "post-index-change", "pre-commit", "post-commit", "commit-msg"):
        shutil.copy(script, hooks / name)
    git = git_in(root)
    for key in (
        "core.fsmonitor",
        "filter.evil.clean",
        "filter.e=v.i l.process",
        "filter.evil.smudge",
        "merge.evil.driver",
        "gpg.program",
        "diff.external",
        "core.pager",
        "core.editor",
    ):
        git("config", key, str(script))
    git("config", "commit.gpgSign", "true")
    (root / ".gitattributes").write_text("*.py filter=evil merge=evil diff=evil\n")
    marker.unlink(missing_ok=True)  # setting the configuration may have run it
    return marker


def test_programs_of_a_hostile_repository_do_not_run(root: Path, tmp_path: Path) -> None:
    marker = plant_programs(root, tmp_path)
    (root / "code.py").write_bytes(CODE + b"mine\n")

    commit = commit_change(root, {"code.py": FIXED + b"mine\n"})
    repository = open_repository(root)

    assert repository.head() == commit
    repository.require_new_branch("b")
    assert not repository.is_checked_out("b")
    assert not marker.exists(), marker.read_text()

    git_in(root)("status")
    assert marker.exists(), "the trap itself does not work"


def test_configured_hooks_are_switched_off(root: Path) -> None:
    for key in ("hook.evil.command", "hook.E v.i=l.command"):  # git before 2.54 has no such hooks
        git_in(root)("config", key, "touch it-ran")
        git_in(root)("config", key.replace(".command", ".event"), "reference-transaction")
        git_in(root)("config", key.replace(".command", ".enabled"), "true")
    git_in(root)("config", "hook.jobs", "2")
    repository = open_repository(root)
    for name in ("hook.evil.enabled", "hook.E v.i=l.enabled"):
        assert repository.git("config", "--get", name) == b"false\n"
    assert "hook.enabled" not in repository.environment.values()

    commit_change(root, {"code.py": FIXED})
    assert not (root / "it-ran").exists()


def test_git_variables_of_the_environment_are_ignored(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    assert open_repository(root).head()
    assert not (tmp_path / "index").exists()


def test_a_head_that_moved_since_the_plan_is_not_overwritten(root: Path) -> None:
    git = git_in(root)
    before = take_snapshot(root).files
    plan = plan_commit(open_repository(root), before, {**before, "code.py": FIXED})

    git("commit", "-q", "--allow-empty", "-m", "theirs")

    with pytest.raises(StorageError, match="update-ref"):
        commit_on_head(plan, MESSAGE)
    assert git("log", "-1", "--format=%s").strip() == "theirs"
    assert git("status", "--porcelain") == ""


@pytest.mark.parametrize("name", ["MERGE_HEAD", "rebase-merge"])
def test_no_commit_during_a_merge_or_rebase(root: Path, name: str) -> None:
    repository: Repository = open_repository(root)
    repository.require_quiet()
    (root / ".git" / name).write_text("")
    with pytest.raises(UsageError, match="in progress"):
        repository.require_quiet()


def test_a_repository_a_first_commit_and_an_identity_are_required(tmp_path: Path, root: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(UsageError, match=r"is in no git repository \(use "):  # what git says would repeat it
        open_repository(empty)

    git_in(empty)("init", "-q")
    with pytest.raises(UsageError, match="no commit yet"):
        open_repository(empty).head()

    (tmp_path / ".gitconfig").write_text("[user]\n\tuseConfigOnly = true\n")
    with pytest.raises(UsageError, match="who you are"):
        commit_change(root, {"code.py": FIXED})


@pytest.mark.parametrize(
    "variant",
    ["gitfile", "link", "commondir", "linked refs", "linked index", "stolen worktree", "piped worktree"],
)
def test_a_repository_that_points_into_another_one_is_refused(
    root: Path, tmp_path: Path, variant: str
) -> None:
    source = root / ".git"
    clone = tmp_path / "clone"
    clone.mkdir()
    (clone / "code.py").write_bytes(CODE)
    target = clone / ".git"
    if variant == "gitfile":
        target.write_text(f"gitdir: {source}\n")
    elif variant == "link":
        target.symlink_to(source)
    elif variant == "piped worktree":
        git_in(root)("worktree", "add", "-q", str(tmp_path / "side"))
        target.write_text((tmp_path / "side" / ".git").read_text())
        backlink = source / "worktrees" / "side" / "gitdir"
        backlink.unlink()
        os.mkfifo(backlink)
    elif variant == "stolen worktree":
        git_in(root)("worktree", "add", "-q", str(tmp_path / "side"))
        target.write_text(f"gitdir: {source}/worktrees/side\n")
    else:
        shutil.copytree(source, target)
    if variant == "commondir":
        (target / "commondir").write_text(f"{source}\n")
    elif variant == "linked refs":
        shutil.rmtree(target / "refs")
        (target / "refs").symlink_to(source / "refs")
    elif variant == "linked index":
        (target / "index").unlink()
        (target / "index").symlink_to(source / "index")

    with pytest.raises(UsageError, match="is a pipe" if variant == "piped worktree" else "not its own"):
        open_repository(clone)


@pytest.mark.parametrize(
    "location",
    [
        "HEAD",
        "config",
        "config.worktree",
        "index",
        "packed-refs",
        "shallow",
        "commondir",
        "refs/heads/x",
        "info/exclude",
        "info/attributes",
        "objects/info/alternates",
        "objects/pack/a.idx",
        "logs/HEAD",
        "borrowed",
        "included",
        "linked",
        "device",
    ],
)
def test_a_pipe_that_git_would_read_is_refused_before_git_runs(
    root: Path, tmp_path: Path, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = root / ".git" / location
    if location == "borrowed":
        pipe = tmp_path / "elsewhere" / "pack" / "a.pack"
        (root / ".git/objects/info/alternates").write_text(f"# none\n{tmp_path}/elsewhere\n")
    elif location == "included":
        pipe = tmp_path / "more"
        git_in(root)("config", "include.path", "../../more")
    pipe.parent.mkdir(parents=True, exist_ok=True)
    pipe.unlink(missing_ok=True)
    if location == "device":
        pipe.symlink_to("/dev/zero")
    else:
        os.mkfifo(pipe if location != "linked" else tmp_path / "pipe")
    if location == "linked":
        pipe.symlink_to(tmp_path / "pipe")

    monkeypatch.setattr("suture.project.workspace.git.GIT_TIMEOUT_S", 0.0)  # any call of git would time out

    with pytest.raises(UsageError, match="is a pipe or a device"):
        open_repository(root)


def test_a_socket_and_a_null_device_are_allowed_in_a_repository(root: Path, tmp_path: Path) -> None:
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as server:
        monitor = root / ".git" / "fsmonitor--daemon.ipc"
        server.bind(str(monitor))
    (root / ".git" / "info").mkdir(exist_ok=True)
    (root / ".git" / "info" / "exclude").unlink(missing_ok=True)

    (root / ".git" / "info" / "exclude").symlink_to("/dev/null")

    assert open_repository(root).head()


def test_only_plumbing_commands_may_run(root: Path) -> None:
    with pytest.raises(ValueError, match="git log may run"):
        open_repository(root).git("log", "-1")


def test_git_is_stopped_if_it_hangs_or_prints_too_much(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (root / ".git" / "config").open("a") as config:
        config.write(f"[include]\npath = {tmp_path}/pi\\\npe\n")  # written so that only git can parse it
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr("suture.project.workspace.git.GIT_TIMEOUT_S", 1.0)
    with pytest.raises(UsageError, match="did not end within 1 s"):
        open_repository(root)

    (root / ".git" / "config").write_text("[core]\n\trepositoryformatversion = 0\n")
    repository = open_repository(root)
    monkeypatch.setattr("suture.project.workspace.git.MAX_GIT_OUTPUT_BYTES", 10)
    with pytest.raises(StorageError, match="prints more than"):
        repository.git("cat-file", "blob", "HEAD:code.py")
