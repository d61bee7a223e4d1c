"""A repository's files at a commit, and with a patch applied, as git applies it."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from suture.bench.swe.records import SweTask
from suture.errors import StorageError, UsageError
from suture.project.workspace import PatchRefused, open_repository
from suture.project.workspace.git import run_git
from suture.project.workspace.snapshot import take_snapshot

NAMED = re.compile(r"^diff --git (?:a/(.+?) b/(.+)|\"a/(.+?)\" \"b/(.+)\")$", re.MULTILINE)


def files_at(task: SweTask, repos: Path) -> dict[str, bytes]:
    """The files of a task's repository at its commit: path -> content.

    Raises:
        UsageError: The repository or the commit is not there.
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
    return repository.files_of(commit)


def named_in(patch: str) -> frozenset[str]:
    """The paths that a patch is about."""
    return frozenset(path for found in NAMED.findall(patch) for path in found if path)


def patched(files: Mapping[str, bytes], patch: str) -> dict[str, bytes]:
    """Files with a patch applied, exactly as `git apply` would.

    Args:
        files: Path -> content.
        patch: A diff; an empty one changes nothing.

    Raises:
        PatchRefused: It does not apply, or leads out of the folder.
    """
    if not patch.strip():
        return dict(files)
    touched = named_in(patch)
    with tempfile.TemporaryDirectory(prefix="suture-patch-") as made:
        folder = Path(made).resolve()
        for path in touched & files.keys():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(files[path])
        try:
            run_git(
                folder,
                *("apply", "--whitespace=nowarn", "-"),
                stdin=(patch if patch.endswith("\n") else f"{patch}\n").encode("utf-8", "surrogateescape"),
                env={"GIT_CEILING_DIRECTORIES": str(folder.parent)},
            )
        except StorageError as fault:
            raise PatchRefused(fault.message) from fault
        after = take_snapshot(folder, secrets=("*",)).files if any(folder.iterdir()) else {}
    return {**{path: content for path, content in files.items() if path not in touched}, **after}
