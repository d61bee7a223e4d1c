"""The git repository of a project: read its commits and files, and check that a commit can be made."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from suture.core.safe_files import read_regular_file
from suture.core.temporary_folders import temporary_folder
from suture.errors import StorageError, UsageError
from suture.project.workspace.git import build_safe_environment, require_no_pipes, run_git, start_git

REGULAR_FILE_MODES = ("100644", "100755")
LINK_MODES = ("120000",)
"""Git's modes of files: plain and executable. Links and submodules have others."""
PATH_MAX = 4096
"""Max length of a path on Linux, in bytes."""
WRITTEN_PATHS = ("HEAD", "index", "packed-refs", "refs", "logs", "objects")
"""Paths in a `.git` folder that git writes when it commits."""
OPERATIONS = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
}
"""File in the `.git` folder -> the unfinished operation that it shows."""


class RepositoryBusy(UsageError):
    """The working tree or an operation of git in progress prevents this at the moment."""


@dataclass(frozen=True, kw_only=True)
class Repository:
    """The git repository that contains a project.

    Attributes:
        root: The project's folder.
        prefix: Path of the project in the repository, such as `packages/shop/`; empty at the top.
        git_dir: The `.git` folder of this working tree.
        environment: Variables that disable the programs that the repository's configuration names.
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
        """Run a git command in the project's folder and return its stdout.

        Raises:
            StorageError: Its exit code is not in `ok`, or it did not finish.
        """
        return run_git(self.root, *arguments, stdin=stdin, env={**self.environment, **(env or {})}, ok=ok)

    def merge(self, ours: bytes, base: bytes, theirs: bytes) -> bytes | None:
        """Merge three versions of a file; return `None` if both sides changed the same lines, or one is binary."""
        with temporary_folder("suture-merge-") as folder:
            paths = [folder / name for name in ("ours", "base", "theirs")]
            for path, content in zip(paths, (ours, base, theirs), strict=True):
                path.write_bytes(content)
            process = start_git(folder, "merge-file", "-p", "-q", *map(str, paths))
        return process.stdout if process.returncode == 0 else None

    def head(self) -> str:
        """Return the commit that is checked out.

        Raises:
            UsageError: There is no commit yet.
        """
        commit, _, _ = self.commit("HEAD")
        if not commit:
            remedy = "make a first commit, or use --apply or --patch"
            raise UsageError("the repository has no commit yet", remedy=remedy)
        return commit

    def require_quiet(self) -> None:
        """Check that no operation is in progress, so that HEAD may be moved.

        Raises:
            RepositoryBusy: A merge, rebase, cherry-pick or revert is in progress.
        """
        for name, what in OPERATIONS.items():
            if (self.git_dir / name).exists():
                raise RepositoryBusy(
                    f"{what} is in progress in the repository",
                    remedy="finish it first, or use --branch or --patch",
                )

    def require_new_branch(self, name: str) -> None:
        """Check that a branch can be created.

        Raises:
            UsageError: The name is invalid, or the branch exists.
        """
        is_malformed = not name or name.startswith("-")
        output = b"" if is_malformed else self.git("check-ref-format", "--branch", name, ok=(0, 1, 128))
        if is_malformed or os.fsdecode(output).removesuffix("\n") != name:
            raise UsageError(f"{name!r} is no valid name of a branch")
        if self.branch_commit(name):
            remedy = "choose another name, or delete it"
            raise UsageError(f"there is a branch {name!r} already", remedy=remedy)

    def branch_commit(self, name: str) -> str:
        """Return the commit of a branch; empty if there is no such branch."""
        return self.git("rev-parse", "--verify", "--quiet", f"refs/heads/{name}", ok=(0, 1)).decode().strip()

    def commit(self, name: str) -> tuple[str, tuple[str, ...], str]:
        """Return (the commit that a name means, its parents, its message); all empty if there is none."""
        output = self.git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", ok=(0, 1))
        commit = output.decode().strip()
        if not commit:
            return "", (), ""
        header, _, message = self.git("cat-file", "commit", commit).partition(b"\n\n")
        parents = [line.split()[1].decode() for line in header.split(b"\n") if line.startswith(b"parent ")]
        return commit, tuple(parents), message.decode("utf-8", "replace")

    def is_in_history(self, commit: str) -> bool:
        """Return whether a commit is the one that is checked out, or one of its ancestors."""
        base = self.git("merge-base", commit, "HEAD", ok=(0, 1, 128))  # 128: it does not exist any more
        return base.decode().strip() == commit

    def branches_with(self, commit: str) -> list[str]:
        """Return the references of the branches that contain a commit, such as `refs/heads/main`, local ones first."""
        arguments = ("--format=%(refname)", "--contains", commit, "refs/heads", "refs/remotes")
        references = self.git("for-each-ref", *arguments, ok=(0, 128, 129)).decode("utf-8", "replace").split()
        return [
            name for name in references if not (name.startswith("refs/remotes/") and name.endswith("/HEAD"))
        ]

    def find_commits(self, commits: str, text: str) -> list[str]:
        """Return the commits of a range, such as `A..B`, whose message contains a string, the newest first."""
        output = self.git("rev-list", "--fixed-strings", f"--grep={text}", commits, "--", ok=(0, 128))
        return output.decode().split()

    def is_checked_out(self, branch: str) -> bool:
        """Return whether a branch is checked out in any working tree of this repository."""
        lines = self.git("worktree", "list", "--porcelain").decode("utf-8", "replace").splitlines()
        return f"branch refs/heads/{branch}" in lines

    def read_tree(self, tree: str) -> dict[str, bytes]:
        """Return the project's regular files in a tree, path relative to the project -> content."""
        blobs = self.list_blobs(tree)
        return dict(zip(blobs, self.read_blobs(list(blobs.values())), strict=True))

    def list_blobs(self, tree: str, modes: Container[str] = REGULAR_FILE_MODES) -> dict[str, str]:
        """Return the project's regular files in a tree, or others, path relative to the project -> hash of its blob."""
        pathspecs = [self.prefix] if self.prefix else []
        listed = self.git("ls-tree", "-r", "-z", "--full-tree", tree, "--", *pathspecs)
        blobs: dict[str, str] = {}
        for entry in listed.split(b"\0")[:-1]:
            fields, _, name = entry.partition(b"\t")
            mode, _, blob = fields.decode().split()
            if mode in modes:
                blobs[os.fsdecode(name).removeprefix(self.prefix)] = blob
        return blobs

    def list_tracked(self) -> list[str]:
        """Return the project's paths in the index, including those that `.gitignore` names."""
        return [os.fsdecode(name) for name in self.git("ls-files", "-z").split(b"\0")[:-1]]

    def blobs_at(self, tree: str, paths: Iterable[str]) -> dict[str, str]:
        """Return path -> hash of its blob in a tree, for some of the project's paths.

        Paths that are not in the tree are omitted.
        """
        full_paths = [self.prefix + path for path in paths]
        listed = self.git("ls-tree", "-z", "--full-tree", tree, "--", *full_paths) if full_paths else b""
        entries = (entry.partition(b"\t") for entry in listed.split(b"\0")[:-1])
        return {
            os.fsdecode(name).removeprefix(self.prefix): fields.decode().split()[2]
            for fields, _, name in entries
        }

    def read_blobs(self, blobs: Sequence[str]) -> list[bytes]:
        """Return the contents of blobs, in the order of their hashes.

        Raises:
            StorageError: A blob is missing, because the repository is a partial clone or damaged.
        """
        answer = self.git("cat-file", "--batch", stdin="".join(f"{blob}\n" for blob in blobs).encode())
        contents: list[bytes] = []
        position = 0
        for _ in blobs:
            line_end = answer.find(b"\n", position)
            name, *fields = answer[position:line_end].split() or [b""]
            if line_end < 0 or len(fields) != 2:  # `NAME missing`
                raise StorageError(f"the repository lacks its object {os.fsdecode(name)!r}")
            size = int(fields[1])
            contents.append(answer[line_end + 1 : line_end + 1 + size])
            position = line_end + 1 + size + 1
        return contents

    def read_blob(self, blob: str) -> bytes:
        """Return the content of a blob."""
        return self.git("cat-file", "blob", blob)

    def write_blob(self, content: bytes) -> str:
        """Store content as a blob, without running any filter, and return its hash."""
        return self.git("hash-object", "-w", "--stdin", "--no-filters", stdin=content).decode().strip()


def hash_blob(content: bytes, digits: int) -> str:
    """Return git's hash of a content, in a repository whose hashes have this number of digits."""
    algorithm = "sha256" if digits == 64 else "sha1"
    return hashlib.new(algorithm, b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def open_repository(root: Path) -> Repository:
    """Return the repository that contains a project.

    Raises:
        PrerequisiteError: Git is not installed.
        UsageError: There is no repository, git refuses to use it, its `.git` leads to another repository, or
            it contains a pipe.
        StorageError: Its configuration cannot be read.
    """
    require_no_pipes(root)
    queries = ("--show-prefix", "--absolute-git-dir", "--git-common-dir", "--is-inside-work-tree")
    try:
        output = run_git(root, "rev-parse", *queries)
    except StorageError as fault:
        problem = f"{str(root)!r} is in no git repository"
        if "not a git repository (or any" not in fault.message:  # git refuses it, or it is damaged
            problem += f" that can be used: {fault.message}"
        raise UsageError(problem, remedy="use --patch, or make one with `git init`") from fault
    prefix, git_dir, common, is_in_work_tree = os.fsdecode(output).split("\n")[:4]
    if is_in_work_tree != "true":
        raise UsageError(f"{str(root)!r} is inside a .git folder")
    repository = Repository(
        root=root, prefix=prefix, git_dir=Path(git_dir), environment=build_safe_environment(root)
    )
    _require_own(repository, (root / common).resolve())
    return repository


def _require_own(repository: Repository, common: Path) -> None:
    """Refuse a `.git` that leads to the repository of another project.

    Otherwise, a stranger's project could make Suture commit there. A worktree and a submodule do have their
    repository elsewhere, but that repository refers back to them.

    Args:
        common: The `.git` folder that holds the objects and refs; for a worktree, that of the main tree.
    """
    git_dir, root = repository.git_dir.resolve(), repository.root.resolve()
    folder_count = len(Path(repository.prefix).parts)  # between the top of the repository and the project
    entry = (root.parents[folder_count - 1] if folder_count else root) / ".git"
    if entry.is_dir() and not entry.is_symlink():
        is_own = git_dir == entry == common
    elif common != git_dir:
        is_own = git_dir.parent == common / "worktrees" and _refers_to(git_dir / "gitdir", entry)
    else:
        worktree = repository.git("config", "--get", "core.worktree", ok=(0, 1)).strip()
        is_own = bool(worktree) and (git_dir / os.fsdecode(worktree)).resolve() == entry.parent
    try:
        linked = next((path for path in _written_paths(git_dir, common) if path.is_symlink()), None)
    except OSError as fault:
        raise StorageError(f"the repository {str(common)!r} cannot be read: {fault.strerror}") from fault
    if not is_own or linked is not None:
        reason = f"{str(linked)!r} is a link"
        if not is_own:
            reason = f"{str(entry)!r} leads to {str(common)!r}, which does not name it"
        raise UsageError(f"the repository's files are not its own: {reason}", remedy="use --apply or --patch")


def _refers_to(backlink: Path, entry: Path) -> bool:
    """Return whether a worktree's folder in the repository refers back to the worktree."""
    try:
        target = read_regular_file(backlink, PATH_MAX)  # never blocks, even if it is a pipe
        return target is not None and Path(os.fsdecode(target.strip())).resolve() == entry.resolve()
    except (OSError, ValueError):
        return False


def _written_paths(git_dir: Path, common: Path) -> Iterator[Path]:
    """Yield the paths that git writes when it commits. A link there would make it write to another file."""
    for folder in dict.fromkeys((git_dir, common)):
        yield from (folder / name for name in WRITTEN_PATHS)
        for tree in ("refs", "logs"):
            for parent, folders, files in os.walk(folder / tree):
                yield from (Path(parent, name) for name in (*folders, *files))
    with contextlib.suppress(FileNotFoundError):
        yield from (Path(entry.path) for entry in os.scandir(common / "objects"))
