"""Commit a verified change without disturbing what the user has staged.

Three states of a file may differ: the one at HEAD, the staged one in the index, and the one in the working
tree, for which the change was made. The change is merged into the first for the commit, and into the second
for the index.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from suture.core.temporary_folders import temporary_folder
from suture.errors import StorageError, UsageError
from suture.project.workspace.repository import REGULAR_FILE_MODES, Repository


@dataclass(frozen=True, kw_only=True)
class TreeEntry:
    """A file in a tree or in the index.

    Attributes:
        blob: Hash of its content; empty if the file is missing.
    """

    path: str
    mode: str = REGULAR_FILE_MODES[0]
    blob: str = ""


@dataclass(frozen=True, kw_only=True)
class CommitPlan:
    """A planned commit: the change on top of HEAD, without the user's own uncommitted changes.

    Attributes:
        repository: The repository.
        parent: The parent commit.
        tree: Tree of the new commit.
        staged: Present index entries of the changed files.
        restaged: Index entries after HEAD has moved, which keep what the user has staged.
    """

    repository: Repository
    parent: str
    tree: str
    staged: tuple[TreeEntry, ...]
    restaged: tuple[TreeEntry, ...]

    @property
    def changes_tree(self) -> bool:
        """Whether the commit would change anything."""
        return self.tree != self.repository.git("rev-parse", f"{self.parent}^{{tree}}").decode().strip()


def plan_commit(
    repository: Repository, before: Mapping[str, bytes], after: Mapping[str, bytes], *, parent: str = ""
) -> CommitPlan:
    """Plan the commit of a change, without writing anything that the user sees.

    If the user has changed a file as well, only the lines of the planned change are committed.

    Args:
        repository: The repository.
        before: The project's files in the working tree, path relative to the project -> content.
        after: The same with the change. A path that is missing here is deleted.
        parent: The parent commit; by default the one that is checked out.

    Raises:
        UsageError: A changed file is not tracked, is in conflict, or the user changed the same lines.
        StorageError: Git failed.
    """
    parent = parent or repository.head()
    committed, staged, restaged = list[TreeEntry](), list[TreeEntry](), list[TreeEntry]()
    for path in sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path)):
        change = _PathChange(repository=repository, path=path, before=before.get(path), after=after.get(path))
        name = repository.prefix + path
        head = _find_in_tree(repository, parent, name)
        if head is None and change.before is not None:
            raise UsageError(
                f"{path!r} is not tracked by git, so there is nothing to commit a change of",
                remedy="commit it first, or use --apply or --patch",
            )
        changed = change.apply_to(head or TreeEntry(path=name), "uncommitted")
        committed.append(changed)
        index_entry = _find_in_index(repository, name)
        staged.append(index_entry or TreeEntry(path=name))
        if (index_entry and index_entry.blob) == (head and head.blob):  # the user has staged nothing here
            restaged.append(changed)
        elif index_entry is not None and head is not None:
            restaged.append(change.apply_to(index_entry, "staged"))
        else:
            # The user has staged that the file is added or deleted. That stays as it is.
            restaged.append(index_entry or TreeEntry(path=name))
    with temporary_folder("suture-index-") as folder:
        scratch_index = {"GIT_INDEX_FILE": str(folder / "index")}
        repository.git("read-tree", parent, env=scratch_index)
        _write_index(repository, committed, env=scratch_index)
        tree = repository.git("write-tree", env=scratch_index).decode().strip()
    return CommitPlan(
        repository=repository, parent=parent, tree=tree, staged=tuple(staged), restaged=tuple(restaged)
    )


def commit_on_head(plan: CommitPlan, message: str) -> str:
    """Commit on HEAD, which may be a branch or detached, and return the commit.

    Raises:
        StorageError: Git failed, or HEAD has moved since. Index and HEAD are unchanged.
    """
    repository = plan.repository
    commit = _commit(plan, message)
    # The reference is written first: if the process is killed before the index is written, the commit shows what is
    # missing.
    try:
        repository.git("update-ref", "-m", "suture: heal", "HEAD", commit, plan.parent)
        restage(plan)
    except StorageError:
        if repository.head() == commit:  # git may have moved it, and only its answer could not be read
            repository.git("update-ref", "-m", "suture: heal failed", "HEAD", plan.parent, commit)
            _write_index(repository, plan.staged)
        raise
    return commit


def restage(plan: CommitPlan) -> None:
    """Write the index entries that belong to a planned commit, which keep what the user has staged."""
    _write_index(plan.repository, plan.restaged)


def commit_on_branch(plan: CommitPlan, message: str, name: str) -> str:
    """Commit on a new branch without checking it out, and return the commit.

    Raises:
        StorageError: Git failed, or the branch already exists.
    """
    commit = _commit(plan, message)
    plan.repository.git("update-ref", "-m", "suture: heal", f"refs/heads/{name}", commit, "")
    return commit


@dataclass(frozen=True, kw_only=True)
class _PathChange:
    """The change of one file; `before` and `after` are its contents in the working tree, if it exists."""

    repository: Repository
    path: str
    before: bytes | None
    after: bytes | None

    def apply_to(self, entry: TreeEntry, user_changes: str) -> TreeEntry:
        """Return an entry with the change merged into its content.

        Args:
            user_changes: What differs from the working tree, for error messages, such as `staged`.
        """
        if entry.mode not in REGULAR_FILE_MODES:
            raise UsageError(f"{self.path!r} is no regular file in git")
        old = self.repository.read_blob(entry.blob) if entry.blob else None
        new = self._merge(old, user_changes)
        blob = "" if new is None else self.repository.write_blob(new)
        return TreeEntry(path=entry.path, mode=entry.mode, blob=blob)

    def _merge(self, old: bytes | None, user_changes: str) -> bytes | None:
        """Return a content with the change merged into it; `None` if the change deletes the file."""
        if old == self.before:
            return self.after
        if old is not None and self.before is not None and self.after is not None:
            before, after = self.before, self.after
            # With `core.autocrlf`, the working tree has other line ends than the repository.
            if b"\r\n" in before and b"\r\n" not in old:
                before, after = before.replace(b"\r\n", b"\n"), after.replace(b"\r\n", b"\n")
            merged = after if old == before else self.repository.merge(old, before, after)
            if merged is not None:
                return merged
        raise UsageError(
            f"your {user_changes} changes of {self.path!r} touch the same lines as the fix; nothing was committed",
            remedy="commit or stash them first, or use --apply",
        )


def _commit(plan: CommitPlan, message: str) -> str:
    arguments = ("commit-tree", plan.tree, "-p", plan.parent, "-F", "-")
    try:
        return plan.repository.git(*arguments, stdin=message.encode("utf-8", "replace")).decode().strip()
    except StorageError as fault:
        if "tell me who you are" in fault.message:
            remedy = "set user.name and user.email with `git config`"
            raise UsageError("git does not know who you are", remedy=remedy) from fault
        raise


def _find_in_tree(repository: Repository, tree: str, path: str) -> TreeEntry | None:
    listed = repository.git("ls-tree", "-z", "--full-tree", tree, "--", path)
    if not listed:
        return None
    mode, _, blob = listed.partition(b"\t")[0].decode().split()
    return TreeEntry(path=path, mode=mode, blob=blob)


def _find_in_index(repository: Repository, path: str) -> TreeEntry | None:
    listed = repository.git("ls-files", "--stage", "-z", "--", f"{path.removeprefix(repository.prefix)}")
    if not listed:
        return None
    mode, blob, stage = listed.partition(b"\t")[0].decode().split()
    if stage != "0":
        raise UsageError(f"{path!r} is in conflict in git", remedy="resolve it first, or use --apply")
    return TreeEntry(path=path, mode=mode, blob=blob)


def _write_index(
    repository: Repository, entries: Iterable[TreeEntry], env: Mapping[str, str] | None = None
) -> None:
    """Write entries into the index; an entry without a blob is removed from it."""
    null_hash = "0" * len(repository.head())  # as long as a hash of this repository; removes an entry
    text = ""
    for entry in entries:
        mode_and_blob = f"{entry.mode} {entry.blob}" if entry.blob else f"0 {null_hash}"
        text += f"{mode_and_blob}\t{entry.path}\0"
    stdin = text.encode("utf-8", "surrogateescape")
    repository.git("update-index", "-z", "--index-info", stdin=stdin, env=env)
