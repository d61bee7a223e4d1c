"""Read the checked-out commit of a pipeline from git: its author and committer, its base, and earlier heals."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from suture.errors import UsageError
from suture.interfaces.ci.ci_pipeline import GITHUB_API_URL, Pipeline
from suture.interfaces.ci.tuning import MAX_COMMITS
from suture.project.workspace import Repository, open_repository

HEAL_TRAILER = re.compile(r"^Healed-by: suture ", re.MULTILINE)
"""The last line of the message of every commit that Suture makes."""
COMMIT_PERSON = re.compile(rb"^(?:author|committer) (.*) <(.*)> \d+ [+-]\d+$", re.MULTILINE)
"""A line of a commit with a name and an address."""

GITHUB_REMOTE = re.compile(
    r"(?:https://(?:[^@/\s]+@)?github\.com/|ssh://git@github\.com/|git@github\.com:)([\w.-]{1,100}/[\w.-]{1,100}?)(?:\.git)?/?",
    re.ASCII,
)
"""The address of a repository on GitHub, as git has it; the group is the repository's name."""


@dataclass(frozen=True, kw_only=True)
class Checkout:
    """A checked-out commit and its base.

    Attributes:
        people: Names and addresses of its author and committer, in one list.
        is_heal: Whether Suture made the commit.
        heals: The number of the branch's commits that Suture made.
        base: The hash of the commit that the change started from; empty if unknown.
    """

    repository: Repository
    commit: str
    people: tuple[str, ...]
    is_heal: bool
    heals: int
    base: str


def read_checkout(root: Path, pipeline: Pipeline, base: str | None = None) -> Checkout:
    """Read the state of the checkout."""
    repository = open_repository(root)
    commit, parents, message = repository.commit("HEAD")
    if not commit:
        raise UsageError("the repository has no commit yet", remedy="make a first commit")
    if pipeline.commit and commit != pipeline.commit:
        raise UsageError(
            f"{commit[:12]} is checked out, but the change ends with {pipeline.commit[:12]}",
            remedy="check out the head of the pull request itself (docs/ci.md)",
        )
    base_name = base if base is not None else pipeline.base or next(iter(parents), "")
    base_commit = _resolve_commit(repository, base_name) if base_name else ""
    if base is not None and not base_commit:
        raise UsageError(f"there is no commit {base!r}", remedy="fetch it, or name another commit")
    header = repository.git("cat-file", "commit", commit).partition(b"\n\n")[0]
    people = [text.decode("utf-8", "replace") for person in COMMIT_PERSON.findall(header) for text in person]
    return Checkout(
        repository=repository,
        commit=commit,
        people=tuple(people),
        is_heal=bool(HEAL_TRAILER.search(message)),
        # Without a pull request the base is only the commit before this push, but earlier heals count too.
        heals=_count_heals(repository, base_commit if pipeline.pull is not None else ""),
        base="" if base_commit == commit else base_commit,  # nothing has changed since such a base
    )


def read_remote(root: Path, environ: Mapping[str, str]) -> Pipeline:
    """Return the pipeline of a person's own checkout of a branch from GitHub, for a command outside of CI.

    Raises:
        UsageError: No branch is checked out, or `origin` is not a repository on GitHub.
    """
    repository = open_repository(root)
    url = repository.git("config", "--get", "remote.origin.url", ok=(0, 1)).decode("utf-8", "replace").strip()
    match = GITHUB_REMOTE.fullmatch(url)
    branch = repository.git("rev-parse", "--abbrev-ref", "HEAD").decode("utf-8", "replace").strip()
    # A checkout names its own remote, so the token may go only to an address that it does not choose.
    api_url = environ.get("GITHUB_API_URL", GITHUB_API_URL).rstrip("/")
    if match is None or branch == "HEAD":
        raise UsageError(
            "this is no checkout of a branch from github.com",
            remedy="set ci.delivery=artifact, or run it in CI",
        )
    return Pipeline(
        host="github", api_url=api_url, repository=match[1], branch=branch, commit=repository.head()
    )


def base_files(checkout: Checkout, current_files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the project's files at the known base commit, plus the current files that git does not track."""
    tracked = checkout.repository.read_tree(checkout.commit)
    untracked = {path: content for path, content in current_files.items() if path not in tracked}
    return {**untracked, **checkout.repository.read_tree(checkout.base)}


def _resolve_commit(repository: Repository, name: str) -> str:
    """Return the merge base of a commit and HEAD, or an empty string if the commit does not exist."""
    if not name.isprintable() or name.startswith("-"):  # git would take it for an option
        return ""
    commit, _, _ = repository.commit(name)
    if not commit:
        return ""
    # Exit code 1: the two have no common ancestor, and nothing is printed.
    return repository.git("merge-base", commit, "HEAD", ok=(0, 1)).decode().strip()


def _count_heals(repository: Repository, base: str) -> int:
    """Return how many of the commits after the base are heals; without a base, of the newest commits."""
    commit_range = f"{base}..HEAD" if base else "HEAD"
    messages = repository.git(
        "rev-list", "--first-parent", "-n", str(MAX_COMMITS), "--format=%B", commit_range, "--"
    )
    return len(HEAL_TRAILER.findall(messages.decode("utf-8", "replace")))
