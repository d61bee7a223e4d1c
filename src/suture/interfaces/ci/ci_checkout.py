"""What the repository itself says of a change: its commits, who wrote the last one, what it started from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from suture.errors import UsageError
from suture.interfaces.ci.ci_pipeline import Pipeline
from suture.project.workspace import Repository, open_repository

TRAILER = re.compile(r"^Healed-by: suture ", re.MULTILINE)
"""How the message of every commit ends that Suture has made."""
PERSON = re.compile(rb"^(?:author|committer) (.*) <(.*)> \d+ [+-]\d+$", re.MULTILINE)
MOST_COMMITS = 50


@dataclass(frozen=True, kw_only=True)
class Checkout:
    """A checked out commit, and what it started from.

    Attributes:
        repository: Where it is.
        commit: Its hash.
        people: Names and addresses of its author and committer.
        is_heal: Whether Suture has made it.
        heals: How many of the branch's commits Suture has made.
        base: The hash of the commit that the change started from; empty where that is not known.
    """

    repository: Repository
    commit: str
    people: tuple[str, ...]
    is_heal: bool
    heals: int
    base: str


def read_checkout(root: Path, pipeline: Pipeline, base: str | None = None) -> Checkout:
    """Look at what is checked out.

    Args:
        root: The project's folder.
        pipeline: What the service says.
        base: The commit to compare with, where the user names one.

    Raises:
        UsageError: There is no repository, another commit than the service's is checked out, or there is no
            such base.
        PrerequisiteError: Git is not installed.
        StorageError: The repository cannot be read.
    """
    repository = open_repository(root)
    commit, parents, message = repository.commit("HEAD")
    if not commit:
        raise UsageError("the repository has no commit yet", remedy="make a first commit")
    if pipeline.commit and commit != pipeline.commit:
        raise UsageError(
            f"{commit[:12]} is checked out, and the change ends with {pipeline.commit[:12]}",
            remedy="check out the head of the pull request itself (docs/ci.md)",
        )
    said = base if base is not None else pipeline.base or next(iter(parents), "")
    found = _resolved(repository, said) if said else ""
    if base is not None and not found:
        raise UsageError(f"there is no commit {base!r}", remedy="fetch it, or name another")
    header = repository.git("cat-file", "commit", commit).partition(b"\n\n")[0]
    people = [part.decode("utf-8", "replace") for pair in PERSON.findall(header) for part in pair]
    return Checkout(
        repository=repository,
        commit=commit,
        people=tuple(people),
        is_heal=bool(TRAILER.search(message)),
        heals=_heals(repository, found if pipeline.pull is not None else ""),
        base="" if found == commit else found,
    )


def base_files(checkout: Checkout, now: Mapping[str, bytes]) -> dict[str, bytes]:
    """The project as it was at the base: the files that git keeps, beside those that it does not keep now.

    Args:
        checkout: What is checked out; its base is known.
        now: The project's files, path -> content.
    """
    kept = checkout.repository.files_of(checkout.commit)
    unkept = {path: content for path, content in now.items() if path not in kept}
    return {**unkept, **checkout.repository.files_of(checkout.base)}


def _resolved(repository: Repository, name: str) -> str:
    """A commit that is there, or where a branch of its line and ours parted; empty where it is not there."""
    if not name.isprintable() or name.startswith("-"):
        return ""
    commit, _, _ = repository.commit(name)
    if not commit:
        return ""
    return repository.git("merge-base", commit, "HEAD", ok=(0, 1)).decode().strip()


def _heals(repository: Repository, base: str) -> int:
    span = [f"{base}..HEAD"] if base else ["HEAD"]
    listed = repository.git("rev-list", "--first-parent", "-n", str(MOST_COMMITS), "--format=%B", *span, "--")
    return len(TRAILER.findall(listed.decode("utf-8", "replace")))
