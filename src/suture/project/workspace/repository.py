"""The user's repository: one commit of our own paths, beside whatever the user has staged or left undone."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from suture.core.safe_files import read_regular_file
from suture.errors import StorageError, UsageError
from suture.project.workspace.git import build_safe_environment, require_no_pipes, run_git, start_git

PATH_MAX = 4096
"""Bytes of a path, as Linux bounds it."""
WRITTEN = ("HEAD", "index", "packed-refs", "refs", "logs", "objects")
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
        root: The project's folder.
        prefix: Where it lies in the repository, such as `packages/shop/`; empty for its top.
        git_dir: The `.git` folder of this working tree.
        environment: Variables that switch off the programs which its configuration names.
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
            ended = start_git(Path(folder), "merge-file", "-p", "-q", *map(str, paths))
        return ended.stdout if ended.returncode == 0 else None

    def head(self) -> str:
        """The commit that is checked out.

        Raises:
            UsageError: There is none yet.
        """
        commit, _, _ = self.commit("HEAD")
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

    def commit(self, name: str) -> tuple[str, tuple[str, ...], str]:
        """What a name stands for: the commit, its parents and its message; empty where it is none."""
        found = self.git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", ok=(0, 1)).decode().strip()
        if not found:
            return "", (), ""
        header, _, message = self.git("cat-file", "commit", found).partition(b"\n\n")
        parents = [line.split()[1].decode() for line in header.split(b"\n") if line.startswith(b"parent ")]
        return found, tuple(parents), message.decode("utf-8", "replace")

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

    def tracked(self) -> list[str]:
        """The paths of the project that the next commit would hold, whatever `.gitignore` says of them."""
        return [os.fsdecode(name) for name in self.git("ls-files", "-z").split(b"\0")[:-1]]

    def blobs_at(self, tree: str, paths: Iterable[str]) -> dict[str, str]:
        """Which blobs a tree holds for some paths of the project; one that it does not hold is left out."""
        named = [self.prefix + path for path in paths]
        listed = self.git("ls-tree", "-z", "--full-tree", tree, "--", *named) if named else b""
        entries = (entry.partition(b"\t") for entry in listed.split(b"\0")[:-1])
        return {
            os.fsdecode(name).removeprefix(self.prefix): fields.decode().split()[2]
            for fields, _, name in entries
        }

    def read_blobs(self, blobs: Sequence[str]) -> list[bytes]:
        """The contents of some files, by their hashes.

        Raises:
            StorageError: The repository lacks one: it was cloned in part, or is damaged.
        """
        answer = self.git("cat-file", "--batch", stdin="".join(f"{blob}\n" for blob in blobs).encode())
        contents: list[bytes] = []
        at = 0
        for _ in blobs:
            end = answer.find(b"\n", at)
            name, *fields = answer[at:end].split() or [b""]
            if end < 0 or len(fields) != 2:  # `NAME missing`
                raise StorageError(f"the repository lacks its object {os.fsdecode(name)!r}")
            size = int(fields[1])
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

    Raises:
        PrerequisiteError: Git is not installed.
        UsageError: The project lies in no repository, in one that git will not touch, its `.git` leads
            into another one, or holds a pipe.
        StorageError: Its configuration cannot be read.
    """
    require_no_pipes(root)
    asked = ("--show-prefix", "--absolute-git-dir", "--git-common-dir", "--is-inside-work-tree")
    try:
        said = run_git(root, "rev-parse", *asked)
    except StorageError as fault:
        raise UsageError(
            f"{str(root)!r} is in no git repository that can be used: {fault.message}",
            remedy="use --apply or --patch, or make one with `git init`",
        ) from fault
    prefix, git_dir, common, inside = os.fsdecode(said).split("\n")[:4]
    if inside != "true":
        raise UsageError(f"{str(root)!r} is inside a .git folder")
    repository = Repository(
        root=root, prefix=prefix, git_dir=Path(git_dir), environment=build_safe_environment(root)
    )
    _require_own(repository, (root / common).resolve())
    return repository


def _require_own(repository: Repository, common: Path) -> None:
    """Refuse a `.git` that leads elsewhere: a project nobody has read would have us commit in another one."""
    git_dir = repository.git_dir.resolve()
    top = (
        repository.root.resolve().parents[len(Path(repository.prefix).parts) - 1]
        if repository.prefix
        else None
    )
    entry = (top or repository.root.resolve()) / ".git"
    if entry.is_dir() and not entry.is_symlink():
        own = git_dir == entry == common
    elif common != git_dir:
        own = git_dir.parent == common / "worktrees" and _names(git_dir / "gitdir", entry)
    else:
        worktree = repository.git("config", "--get", "core.worktree", ok=(0, 1)).strip()
        own = bool(worktree) and (git_dir / os.fsdecode(worktree)).resolve() == entry.parent
    linked = next((path for path in _written(git_dir, common) if path.is_symlink()), None)
    if not own or linked is not None:
        reason = (
            f"{str(linked)!r} is a link"
            if own
            else f"{str(entry)!r} leads to {str(common)!r}, which does not name it"
        )
        raise UsageError(f"the repository's files are not its own: {reason}", remedy="use --apply or --patch")


def _names(backlink: Path, entry: Path) -> bool:
    """Whether a worktree's folder in the repository names the worktree that led to it."""
    try:
        named = read_regular_file(backlink, PATH_MAX)  # never waited for: it may be a pipe
        return named is not None and Path(os.fsdecode(named.strip())).resolve() == entry.resolve()
    except (OSError, ValueError):
        return False


def _written(git_dir: Path, common: Path) -> Iterator[Path]:
    """What git writes through when it commits; a link there would have it write to another file."""
    for folder in dict.fromkeys((git_dir, common)):
        yield from (folder / name for name in WRITTEN)
        for tree in ("refs", "logs"):
            for here, folders, files in os.walk(folder / tree):
                yield from (Path(here, name) for name in (*folders, *files))
    with contextlib.suppress(FileNotFoundError):
        yield from (Path(entry.path) for entry in os.scandir(common / "objects"))
