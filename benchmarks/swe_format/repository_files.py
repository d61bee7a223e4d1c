"""Read a repository's files at a commit, and apply patches to files as git does."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from suture.errors import StorageError, UsageError
from suture.project.workspace import DiffDoesNotApply, open_repository
from suture.project.workspace.git import run_git
from suture.project.workspace.snapshot import take_snapshot
from swe_format.swe_tasks import SweTask

DIFF_HEADER = re.compile(r"^diff --git (?:a/(.+?) b/(.+)|\"a/(.+?)\" \"b/(.+)\")$", re.MULTILINE)
"""The first line of a file in a diff of git, which quotes paths with unusual characters."""


def read_commit_files(task: SweTask, repos: Path) -> dict[str, bytes]:
    """Return the files of a task's repository at its commit, path -> content.

    Raises:
        UsageError: The repository or the commit does not exist.
    """
    names = (task.repo.replace("/", "__"), task.repo.rpartition("/")[2], task.repo)
    if ".." in Path(task.repo).parts or Path(task.repo).is_absolute():
        raise UsageError(f"{task.instance_id}: {task.repo!r} is no repository's name")
    folder = next((repos / name for name in names if (repos / name).is_dir()), None)
    if folder is None:
        raise UsageError(f"{task.instance_id}: {str(repos)!r} holds no {names[0]}", remedy="clone it there")
    repository = open_repository(folder)
    commit, _, _ = repository.commit(task.base_commit)
    if not commit:
        raise UsageError(f"{task.instance_id}: {names[0]} has no commit {task.base_commit!r}")
    return repository.read_tree(commit)


def find_patched_paths(patch: str) -> frozenset[str]:
    """Return the paths that a patch changes."""
    return frozenset(path for groups in DIFF_HEADER.findall(patch) for path in groups if path)


def apply_patch(files: Mapping[str, bytes], patch: str) -> dict[str, bytes]:
    """Return files with a patch applied, exactly as `git apply` would do it.

    Args:
        files: Path -> content.
        patch: A diff; an empty one changes nothing.

    Raises:
        DiffDoesNotApply: The patch does not apply, or it leads out of the folder.
    """
    if not patch.strip():
        return dict(files)
    patched_paths = find_patched_paths(patch)
    with tempfile.TemporaryDirectory(prefix="suture-patch-") as temporary:
        folder = Path(temporary).resolve()
        for path in patched_paths & files.keys():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(files[path])
        try:
            run_git(
                folder,
                "apply",
                "--whitespace=nowarn",
                "-",
                stdin=(patch if patch.endswith("\n") else f"{patch}\n").encode("utf-8", "surrogateescape"),
                env={"GIT_CEILING_DIRECTORIES": str(folder.parent)},  # a repository around it must not count
            )
        except StorageError as fault:
            raise DiffDoesNotApply(fault.message) from fault
        # `secrets` names files that are read although they look like secrets: here all, since git committed them.
        patched = take_snapshot(folder, secrets=("*",)).files if any(folder.iterdir()) else {}
    unpatched = {path: content for path, content in files.items() if path not in patched_paths}
    return {**unpatched, **patched}
