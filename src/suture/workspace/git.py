"""The user's repository: one commit of our own paths, beside whatever the user has staged or left undone.

Git is called with the repository's own programs off (hooks, fsmonitor, signing, filters, pagers), with no
network and no prompt: a repository that nobody has read must not run anything here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from suture.errors import PrerequisiteError, StorageError, UsageError

__all__ = ["Repository", "open_repository"]

OFF = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "commit.gpgSign=false"),
    *("-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false"),
    *("-c", "protocol.allow=never"),
    "--no-pager",
    "--literal-pathspecs",
)
KEPT = ("PATH", "HOME", "XDG_CONFIG_HOME", "EMAIL", "TMPDIR")
KEPT_PREFIXES = (
    "GIT_AUTHOR_",
    "GIT_COMMITTER_",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
)
"""Who the user is; a GIT_DIR or GIT_INDEX_FILE of the caller would lead elsewhere."""
QUIET = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
TIMEOUT_S = 120.0
UNDER_WAY = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
}


@dataclass(frozen=True, kw_only=True)
class Repository:
    """A git repository, seen from a project in it.

    Attributes:
        root: The project's folder, absolute.
        prefix: Where it lies in the repository, such as `packages/shop/`; empty for its top.
        git_dir: The `.git` folder of this working tree.
        environment: Variables that turn off the filters which its configuration names.
    """

    root: Path
    prefix: str
    git_dir: Path
    environment: Mapping[str, str]

    def git(
        self,
        *arguments: str,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        ok: tuple[int, ...] = (0,),
    ) -> bytes:
        """Run one command of git in the project's folder; answers its stdout.

        Raises:
            StorageError: It exited otherwise than with one of `ok`, or did not end.
        """
        return run_git(self.root, *arguments, stdin=stdin, env={**self.environment, **(env or {})}, ok=ok)

    def merged(self, ours: bytes, base: bytes, theirs: bytes) -> bytes | None:
        """A three-way merge of texts; `None` where both sides changed the same lines, or one is no text."""
        with tempfile.TemporaryDirectory(prefix="suture-merge-") as folder:
            paths = [Path(folder) / name for name in ("ours", "base", "theirs")]
            for path, content in zip(paths, (ours, base, theirs), strict=True):
                path.write_bytes(content)
            ended = start_git(self.root, "merge-file", "-p", "-q", *map(str, paths))
        return ended.stdout if ended.returncode == 0 else None

    def head(self) -> str:
        """The commit that is checked out.

        Raises:
            UsageError: There is none yet.
        """
        commit = self.git("rev-parse", "--verify", "--quiet", "HEAD^{commit}", ok=(0, 1)).decode().strip()
        if not commit:
            raise UsageError(
                "the repository has no commit yet", remedy="make a first commit, or use --apply or --patch"
            )
        return commit

    def require_quiet(self) -> None:
        """Refuse to move HEAD in the middle of something.

        Raises:
            UsageError: A merge, rebase, cherry-pick or revert is under way.
        """
        for name, what in UNDER_WAY.items():
            if (self.git_dir / name).exists():
                raise UsageError(
                    f"{what} is under way in the repository",
                    remedy="finish it first, or use --branch or --patch",
                )

    def require_new_branch(self, name: str) -> None:
        """Refuse a branch that cannot be made.

        Raises:
            UsageError: The name is none, or taken.
        """
        wrong = not name or name.startswith("-")
        said = b"" if wrong else self.git("check-ref-format", "--branch", name, ok=(0, 1, 128))
        if wrong or os.fsdecode(said).removesuffix("\n") != name:
            raise UsageError(f"{name!r} is no name of a branch")
        if self.branch_commit(name):
            raise UsageError(
                f"there is a branch {name!r} already", remedy="choose another name, or delete it"
            )

    def branch_commit(self, name: str) -> str:
        """The commit that a branch points to; empty where there is no such branch."""
        return self.git("rev-parse", "--verify", "--quiet", f"refs/heads/{name}", ok=(0, 1)).decode().strip()

    def is_checked_out(self, branch: str) -> bool:
        """Whether a working tree of this repository stands on a branch."""
        lines = self.git("worktree", "list", "--porcelain").decode("utf-8", "replace").splitlines()
        return f"branch refs/heads/{branch}" in lines

    def files_of(self, tree: str) -> dict[str, bytes]:
        """The regular files of a tree that lie in the project, path relative to its root -> content."""
        listed = self.git(
            "ls-tree", "-r", "-z", "--full-tree", tree, "--", *([self.prefix] if self.prefix else [])
        )
        blobs: dict[str, str] = {}
        for entry in listed.split(b"\0")[:-1]:
            fields, _, name = entry.partition(b"\t")
            mode, _, blob = fields.decode().split()
            if mode in ("100644", "100755"):
                blobs[os.fsdecode(name).removeprefix(self.prefix)] = blob
        return dict(zip(blobs, self.read_blobs(list(blobs.values())), strict=True))

    def read_blobs(self, blobs: Sequence[str]) -> list[bytes]:
        """The contents of some files, by their hashes."""
        answer = self.git("cat-file", "--batch", stdin="".join(f"{blob}\n" for blob in blobs).encode())
        contents: list[bytes] = []
        at = 0
        for _ in blobs:
            end = answer.index(b"\n", at)
            size = int(answer[at:end].split()[2])
            contents.append(answer[end + 1 : end + 1 + size])
            at = end + 1 + size + 1
        return contents

    def read_blob(self, blob: str) -> bytes:
        """One file's content."""
        return self.git("cat-file", "blob", blob)

    def write_blob(self, content: bytes) -> str:
        """Store a file's content as it is: no filter of the repository runs; answers its hash."""
        return self.git("hash-object", "-w", "--stdin", "--no-filters", stdin=content).decode().strip()


def open_repository(root: Path) -> Repository:
    """The repository that a project lies in.

    Args:
        root: The project's folder.

    Raises:
        PrerequisiteError: Git is not installed.
        UsageError: The project lies in no repository, or in one that git will not touch.
    """
    if shutil.which("git") is None:
        raise PrerequisiteError("git is not installed", remedy="install git, or use --apply or --patch")
    try:
        said = run_git(root, "rev-parse", "--show-prefix", "--absolute-git-dir", "--is-inside-work-tree")
    except StorageError as fault:
        raise UsageError(
            f"{str(root)!r} is in no git repository that can be used: {fault.message}",
            remedy="use --apply or --patch, or make one with `git init`",
        ) from fault
    prefix, git_dir, inside = os.fsdecode(said).split("\n")[:3]
    if inside != "true":
        raise UsageError(f"{str(root)!r} is inside a .git folder")
    return Repository(root=root, prefix=prefix, git_dir=Path(git_dir), environment=_no_filters(root))


def _no_filters(root: Path) -> dict[str, str]:
    """Git filters files whenever it looks whether they changed, which writing the index does too."""
    named = run_git(root, "config", "-z", "--name-only", "--get-regexp", r"^filter\.", ok=(0, 1))
    filters = sorted({os.fsdecode(name).rpartition(".")[0] for name in named.split(b"\0")[:-1]})
    off = [(f"{name}.{key}", "") for name in filters for key in ("clean", "smudge", "process")]
    off += [(f"{name}.required", "false") for name in filters]
    pairs = {f"GIT_CONFIG_KEY_{number}": key for number, (key, _) in enumerate(off)}
    values = {f"GIT_CONFIG_VALUE_{number}": value for number, (_, value) in enumerate(off)}
    return {"GIT_CONFIG_COUNT": str(len(off)), **pairs, **values}


def run_git(
    folder: Path,
    *arguments: str,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    ok: tuple[int, ...] = (0,),
) -> bytes:
    """Run git in a folder; answers its stdout.

    Args:
        folder: Where.
        arguments: The command and its arguments.
        stdin: What it reads.
        env: Variables beside those that it is given anyway.
        ok: Exit codes that are no fault.

    Raises:
        StorageError: It exited otherwise, or did not end.
    """
    ended = start_git(folder, *arguments, stdin=stdin, env=env)
    if ended.returncode not in ok:
        said = ended.stderr.decode("utf-8", "replace").strip() or f"exit code {ended.returncode}"
        raise StorageError(f"git {arguments[0]} failed: {said}")
    return ended.stdout


def start_git(
    folder: Path, *arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run git to its end, with nothing of the repository's own running beside it.

    Raises:
        StorageError: It cannot start, or does not end.
    """
    kept = {key: value for key, value in os.environ.items() if key in KEPT or key.startswith(KEPT_PREFIXES)}
    try:
        return subprocess.run(
            ["git", *OFF, *arguments],
            cwd=folder,
            env={**kept, **QUIET, **(env or {})},
            input=stdin,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise StorageError(f"git {arguments[0]} did not end well: {fault}") from fault
