"""Read the two states of a project between which a change lies: from git, from the index, or from a patch."""

from __future__ import annotations

import os
import posixpath
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from suture.core.temporary_folders import temporary_folder
from suture.errors import PrerequisiteError, StorageError, UsageError
from suture.project.workspace.git import start_git
from suture.project.workspace.repository import LINK_MODES, REGULAR_FILE_MODES, Repository, open_repository
from suture.project.workspace.snapshot import Snapshot

REMOTE = "origin/"
DEFAULT_BRANCHES = (f"{REMOTE}HEAD", f"{REMOTE}main", f"{REMOTE}master", "main", "master")
"""Names of the branch that a change is usually compared with, in the order in which they are tried."""
MAX_SHOWN_DIGITS = 9
MAX_LINK_STEPS = 8
"""Links that lead from one to another; Linux follows 40. Chosen by judgement."""


@dataclass(frozen=True, kw_only=True)
class ProjectStates:
    """A project before and after a change.

    Attributes:
        before: Path -> content.
        after: Path -> content.
        base: What the earlier state is, for people.
        base_commit: The commit of the earlier state; empty if that is not a commit.
        commit: The commit that holds exactly the state after; empty if none is known.
        folder: The project's folder in its repository, with a slash at its end.
    """

    before: Mapping[str, bytes]
    after: Mapping[str, bytes]
    base: str
    base_commit: str = ""
    commit: str = ""
    folder: str = ""


def read_patched_states(snapshot: Snapshot, patch: str) -> ProjectStates:
    """Return the project as it is, and as a patch makes it.

    Args:
        patch: A unified diff, of git or of any other program. Its paths are relative to the user's folder, or to the
            root of the snapshot.

    Raises:
        UsageError: The patch does not apply.
        PrerequisiteError: Git is not installed.
    """
    after = _apply_patch(snapshot, patch) if patch.strip() else snapshot.files
    return ProjectStates(before=snapshot.files, after=after, base="the files as they are")


def _apply_patch(snapshot: Snapshot, patch: str) -> dict[str, bytes]:
    """Return a snapshot's files with a patch applied by git, in its own folder."""
    with temporary_folder("suture-patch-") as unresolved:
        folder = unresolved.resolve()
        for path, content in snapshot.files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        # Inside a repository, git would skip files that are not below the current folder there.
        environment = {"GIT_CEILING_DIRECTORIES": str(folder.parent)}
        text = patch if patch.endswith("\n") else f"{patch}\n"
        problems: list[str] = []
        for place in dict.fromkeys((snapshot.folder, "")):
            process = start_git(
                folder,
                *("apply", "--whitespace=nowarn", f"--directory={place}", "-"),
                stdin=text.encode("utf-8", "surrogateescape"),
                env=environment,
            )
            if process.returncode == 0:
                break
            problems.append(process.stderr.decode("utf-8", "replace").strip().partition("\n")[0])
        else:
            problem = problems[0]
            raise UsageError(
                f"the patch does not apply: {problem.removeprefix('error: ')}",
                remedy="it must be a unified diff against these files",
            )
        return {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file() and not path.is_symlink()  # a patch may create links to anywhere
        }


def read_git_states(
    snapshot: Snapshot,
    base: str | None,
    *,
    since: str = "",
    staged: bool = False,
    refuses_unmerged: bool = True,
) -> ProjectStates:
    """Return the project at a commit, and as it is now.

    Args:
        snapshot: The project as it is now.
        base: The commit to compare with, in any form that git understands; by default the point at which the
            current branch left the default branch.
        since: The tip of the default branch before the change, as `find_default_tip` returned it. The point at which
            HEAD diverged from it is the base unless the default is older.
        staged: Whether to compare what is staged with HEAD, and not the working tree.
        refuses_unmerged: Whether to refuse a branch that is ahead of HEAD if nothing differs from HEAD.

    Raises:
        UsageError: The project is in no repository, there is no such commit, or the branch is not checked out.
        PrerequisiteError: Git is not installed.
    """
    try:
        repository = open_repository(snapshot.root)
        head = repository.head()
    except UsageError as fault:
        raise UsageError(
            fault.message, remedy="make a repository with a first commit, or judge a diff with --patch"
        ) from fault
    commit, label = (head, "HEAD") if staged and base is None else _find_base(repository, base, head)
    if since and base is None and not staged and (start := _find_start(repository, since, head, commit)):
        commit, label = start, "the start of the session"
    committed = _read_commit(repository, commit)
    left_out = {*snapshot.skipped, *snapshot.secrets}
    before = {path: content for path, content in committed.items() if path not in left_out}
    after = _read_index(repository, left_out) if staged else snapshot.files
    # Files that a build makes are in no commit, and belong to both states.
    built = {path: snapshot.files[path] for path in snapshot.built_files if path not in before}
    before = {path: _with_line_ends_of(content, after.get(path)) for path, content in before.items()}
    if refuses_unmerged and base is not None and commit == head and before == after:
        _refuse_unmerged_base(repository, base, head)
    at_head = committed if commit == head else _read_commit(repository, head)
    return ProjectStates(
        before={**built, **before},
        after={**built, **after},
        base=f"{label} ({commit[:MAX_SHOWN_DIGITS]})",
        base_commit=commit,
        commit=head if _are_same(at_head, after, {*left_out, *built}) else "",
        folder=repository.prefix,
    )


def _are_same(committed: Mapping[str, bytes], files: Mapping[str, bytes], left_out: set[str]) -> bool:
    """Return whether a commit holds exactly these files, apart from some paths and from converted line ends."""
    if committed.keys() - left_out != files.keys() - left_out:
        return False
    return all(
        _with_line_ends_of(content, files[path]) == files[path]
        for path, content in committed.items()
        if path not in left_out
    )


def _find_base(repository: Repository, base: str | None, head: str) -> tuple[str, str]:
    """Return `(commit, its name)`: where HEAD diverged from the named commit or branch."""
    if base is not None:
        commit = "" if base.startswith("-") or not base.isprintable() else repository.commit(base)[0]
        if not commit:
            raise UsageError(f"there is no commit {base!r}", remedy="name a branch, a tag or a commit")
        return _merge_base(repository, commit, head) or commit, base
    for name in DEFAULT_BRANCHES:
        commit = repository.commit(name)[0]
        left_at = _merge_base(repository, commit, head) if commit else ""
        if left_at and left_at != head:
            return left_at, name
        if left_at:
            break  # the default branch is checked out
    return head, "HEAD"


def _refuse_unmerged_base(repository: Repository, base: str, head: str) -> None:
    """Refuse to judge nothing where the named branch has commits that the current branch does not have.

    A change is usually compared with a default branch, a remote one or a commit, for example in CI; the current branch
    is then only behind.

    Raises:
        UsageError: HEAD is an ancestor of a local branch, so that the user probably means the branch's changes.
    """
    if base in DEFAULT_BRANCHES:
        return
    # Not `rev-parse`, which understands `agent~1`, too. The pattern also matches `agent/other`.
    reference = f"refs/heads/{base}"
    listed = (
        repository.git("for-each-ref", "--format=%(refname) %(objectname)", reference).decode().splitlines()
    )
    if any(line.startswith(f"{reference} ") and not line.endswith(head) for line in listed):
        raise UsageError(
            f"{base} has changes that are not checked out, and the files here have none",
            remedy=f"git switch {shlex.quote(base)} && suture judge",
        )


def refuse_branch_as_folder(name: str) -> None:
    """Refuse the name of a branch of the current folder's repository in place of a project's folder.

    Raises:
        UsageError: There is no such folder, but such a branch.
    """
    if Path(name).exists() or name.startswith("-") or not name.isprintable():
        return
    try:
        is_commit = bool(open_repository(Path()).commit(name)[0])
    except (UsageError, PrerequisiteError, StorageError):
        return
    if is_commit:
        raise UsageError(
            f"{name!r} is a branch or a commit, and not a folder",
            remedy=f"git switch {shlex.quote(name)} && suture judge",
        )


def find_default_tip(repository: Repository) -> str:
    """Return the commit of the default branch, or HEAD where there is no such branch.

    It is empty if a remote repository has that branch: the default base is then a commit of the remote one, which is
    not part of the change.
    """
    for name in DEFAULT_BRANCHES:
        if tip := repository.commit(name)[0]:
            return "" if name.startswith(REMOTE) else tip
    return repository.head()


def _find_start(repository: Repository, since: str, head: str, base: str) -> str:
    """Return the commit at which HEAD diverged from an earlier tip, if it shows more than the base; else empty.

    An amended first commit has no ancestor in common with its replacement, and is itself the start.
    """
    if not repository.commit(since)[0]:  # it does not exist any more
        return ""
    start = _merge_base(repository, since, head) or since
    return start if _merge_base(repository, start, base) != base else ""


def _merge_base(repository: Repository, commit: str, head: str) -> str:
    return repository.git("merge-base", commit, head, ok=(0, 1)).decode().strip()


def _read_index(repository: Repository, left_out: set[str]) -> dict[str, bytes]:
    """Return the project's files as they are staged."""
    blobs: dict[str, str] = {}
    links: dict[str, str] = {}
    for entry in repository.git("ls-files", "-s", "-z").split(b"\0")[:-1]:
        fields, _, name = entry.partition(b"\t")
        mode, blob, stage = fields.decode().split()
        if stage != "0" or os.fsdecode(name) in left_out:
            continue
        if mode in (*REGULAR_FILE_MODES, *LINK_MODES):
            (links if mode in LINK_MODES else blobs)[os.fsdecode(name)] = blob
    return _read_with_links(repository, blobs, links)


def _read_commit(repository: Repository, commit: str) -> dict[str, bytes]:
    return _read_with_links(
        repository, repository.list_blobs(commit), repository.list_blobs(commit, LINK_MODES)
    )


def _read_with_links(
    repository: Repository, blobs: Mapping[str, str], links: Mapping[str, str]
) -> dict[str, bytes]:
    """Return path -> content of files, and of links to them: a snapshot reads these as second names, too.

    Args:
        blobs: Path -> hash of the content.
        links: Path -> hash of the target's path.
    """
    files = dict(zip(blobs, repository.read_blobs(list(blobs.values())), strict=True))
    targets = dict(zip(links, repository.read_blobs(list(links.values())), strict=True))
    for path in links:
        place = path
        for _ in range(MAX_LINK_STEPS):
            if place in targets:
                target = os.fsdecode(targets[place])
                place = posixpath.normpath(posixpath.join(posixpath.dirname(place), target))
        if place in blobs:
            files[path] = files[place]
    return files


def _with_line_ends_of(committed: bytes, present: bytes | None) -> bytes:
    """Return the present content if it differs from the committed one only by line ends, which git converts."""
    is_same = present is not None and present.replace(b"\r\n", b"\n") == committed.replace(b"\r\n", b"\n")
    return present if is_same and present is not None else committed
