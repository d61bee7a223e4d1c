"""Read a project's files at earlier commits, to find the change that broke a test.

Find the folder above a project's folder whose files decide its tests, too.

Pytest loads the nearest configuration above a test, and each conftest.py up to it; the packages of a Go or npm
workspace find one another through a file of its root.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from itertools import takewhile
from pathlib import Path

from suture.core.records import EarlierVersion
from suture.core.safe_files import read_regular_file
from suture.errors import StorageError, SutureError, UsageError
from suture.project.languages.python import PYTEST_CONFIGURATION
from suture.project.tuning import (
    MAX_COMMIT_SUBJECT_CHARS,
    MAX_COMMITS,
    MAX_FOLDER_DEPTH,
    MAX_HISTORY_BYTES,
    MAX_RUNNER_CONFIG_BYTES,
)
from suture.project.workspace.repository import Repository, hash_blob, open_repository


def find_earlier_versions(
    root: Path, files: Mapping[str, bytes], since: str | None, is_relevant: Callable[[str], bool]
) -> tuple[EarlierVersion, ...]:
    """Return a project's files at its last commits, the newest first.

    Args:
        root: The project's folder.
        files: Its present files, path relative to `root` -> content.
        since: The oldest commit to read, in any form that git understands. If `None`, the last few are read,
            and a project without a usable history has none.
        is_relevant: Returns whether the versions contain the file at a path.

    Returns:
        The versions, each with the commit that created it. Versions with equal files are returned once. The
        first version has no files if everything is committed. If there are more than `MAX_COMMITS` commits
        since `since`, the newest ones and the oldest one are returned.

    Raises:
        UsageError: `since` is not in the project's history, or the project is in no repository.
        PrerequisiteError: `since` is given and git is not installed.
    """
    try:
        repository = open_repository(root)
        return _VersionReader(repository, files, is_relevant).read(_commits(repository, since))
    except SutureError:
        if since is not None:
            raise
        return ()


def _commits(repository: Repository, since: str | None) -> list[tuple[str, str]]:
    """Return hash and subject of the commits to read, the newest first."""
    revisions = ["-n", str(MAX_COMMITS), "HEAD"]
    if since is not None:
        oldest = _resolve(repository, since)
        revisions = [f"{oldest}..HEAD"]
    # Git prints a line `commit HASH` before each formatted line, which repeats the hash because git omits
    # empty lines. Not `git log`: the configuration decides which programs that runs.
    output = os.fsdecode(repository.git("rev-list", "--first-parent", "--format=%H %s", *revisions, "--"))
    lines = output.removesuffix("\n").split("\n") if output else []
    fields = (line.partition(" ") for line in lines if not line.startswith("commit "))
    commits = [(commit, subject) for commit, _, subject in fields]
    if since is not None:
        commits = [*commits[: MAX_COMMITS - 1], (oldest, "")]
    return commits


def _resolve(repository: Repository, since: str) -> str:
    """Return the commit that a revision names, which must be in the history of HEAD."""
    output = b""
    if since.isprintable() and since and not since.startswith("-"):
        # With 128, git says that a revision such as `HEAD~99` cannot name a commit.
        output = repository.git("rev-parse", "--verify", "--quiet", f"{since}^{{commit}}", ok=(0, 1, 128))
    commit = output.decode("ascii", "replace").strip()
    if not commit:
        raise UsageError(
            f"{since!r} is no commit of this repository", remedy="such as HEAD~3, a tag or a branch"
        )
    try:
        repository.git("merge-base", "--is-ancestor", commit, "HEAD")
    except StorageError as fault:
        raise UsageError(
            f"{since!r} is not in the history of what is checked out", remedy="name an earlier commit of it"
        ) from fault
    return commit


class _VersionReader:
    """Reads versions of files by the hashes of their contents, so that equal contents are read once."""

    def __init__(
        self, repository: Repository, files: Mapping[str, bytes], is_relevant: Callable[[str], bool]
    ) -> None:
        self._repository = repository
        self._present = {path: content for path, content in files.items() if is_relevant(path)}
        self._texts: dict[str, str | None] = {}
        self._bytes = 0

    def read(self, commits: list[tuple[str, str]]) -> tuple[EarlierVersion, ...]:
        """Return the versions that differ from the previous one."""
        versions: list[EarlierVersion] = []
        for commit, subject in commits:
            blobs = self._repository.list_blobs(commit)
            texts = self._changed({path: blob for path, blob in blobs.items() if path in self._present})
            if texts is None:
                break  # too large to store; the newer versions have been read
            if versions and dict(versions[-1].files) == texts:
                versions.pop()  # of two commits with equal files, the older one created them
            subject = subject[:MAX_COMMIT_SUBJECT_CHARS]
            versions.append(EarlierVersion(commit=commit[:12], subject=subject, files=texts))
        return tuple(versions)

    def _changed(self, blobs: Mapping[str, str]) -> dict[str, str] | None:
        """Return the contents of files that have changed since, or `None` if they are too large."""
        present = self._present
        changed = {path: blob for path, blob in blobs.items() if hash_blob(present[path], len(blob)) != blob}
        missing = [blob for blob in dict.fromkeys(changed.values()) if blob not in self._texts]
        for blob, content in zip(missing, self._repository.read_blobs(missing), strict=True):
            self._bytes += len(content)
            self._texts[blob] = _decode_text(content)
        if self._bytes > MAX_HISTORY_BYTES:
            return None
        texts: dict[str, str] = {}
        for path, blob in changed.items():
            text = self._texts[blob]
            if text is not None and text != _decode_text(present[path]):
                texts[path] = text
        return texts


def _decode_text(content: bytes) -> str | None:
    try:
        return content.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return None


CONFTEST = "conftest.py"
SETUP = "setup.py"
WORKSPACE_FILES: Mapping[str, bytes] = {
    "go.work": b"",
    "pnpm-workspace.yaml": b"",
    "package.json": b'"workspaces"',
}
"""Files at the root of a workspace -> text that they must contain for that."""
MODULE_FILES = ("go.mod",)
"""Files that make all folders below part of one project, unless these have such a file too."""

FOREIGN_MANIFESTS = ("go.mod", "package.json")
"""Files of a folder whose tests pytest does not run."""


def find_project_root(folder: Path) -> Path:
    """Return the topmost folder whose files decide the tests of a project; the project's own folder if none does.

    Only the folders of the same git repository are considered.

    Args:
        folder: The project's folder, absolute and without links.
    """
    parents = _list_repository_parents(folder)
    deciding = [parent for parent in parents if _holds_workspace(parent, folder)]
    deciding += _find_pytest_root(folder, parents)
    return min(deciding, key=lambda parent: len(parent.parts), default=folder)


def _holds_workspace(parent: Path, folder: Path) -> bool:
    is_module = any(
        _read(parent / name) is not None and _read(folder / name) is None for name in MODULE_FILES
    )
    return is_module or _holds_any(parent, WORKSPACE_FILES)


def _find_pytest_root(folder: Path, parents: list[Path]) -> list[Path]:
    """Return the nearest folder with pytest's configuration; pytest loads nothing from above it.

    Without any configuration, pytest loads each conftest.py up to the nearest `setup.py`.
    """
    is_foreign = any(_read(folder / name) is not None for name in FOREIGN_MANIFESTS)
    if is_foreign or _holds_any(folder, PYTEST_CONFIGURATION):
        return []
    configured = [parent for parent in parents if _holds_any(parent, PYTEST_CONFIGURATION)]
    if configured or _read(folder / SETUP) is not None:
        return configured[:1]
    below = list(takewhile(lambda parent: _read(parent / SETUP) is None, parents))
    loaded = parents[: len(below) + 1] if len(below) < len(parents) else []
    return loaded[-1:] if any(_read(parent / CONFTEST) is not None for parent in loaded) else []


def _list_repository_parents(folder: Path) -> list[Path]:
    """Return the folders above one, up to the root of its git repository; none if it is in no repository."""
    parents: list[Path] = []
    for parent in (folder, *folder.parents[:MAX_FOLDER_DEPTH]):
        parents.append(parent)
        if (parent / ".git").exists():
            return parents[1:]
    return []


def _holds_any(folder: Path, markers: Mapping[str, bytes]) -> bool:
    for name, marker in markers.items():
        content = _read(folder / name)
        if content is not None and marker in content:
            return True
    return False


def _read(path: Path) -> bytes | None:
    """Return the beginning of a regular file; `None` if there is none."""
    try:
        return read_regular_file(path, MAX_RUNNER_CONFIG_BYTES)
    except OSError:
        return None
