"""What is asked of a service of code, whichever it is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from suture.core.records import content_hash
from suture.errors import UsageError
from suture.interfaces.ci.edits import LineEdit
from suture.interfaces.ci.surroundings import Pipeline

MOST_PAGES = 5
PAGE = 100
"""Entries of a page: the most that either service answers at once."""


@dataclass(frozen=True, kw_only=True)
class ChangedFile:
    """A file as it is to be committed."""

    path: str
    content: bytes
    is_program: bool
    is_new: bool


@dataclass(frozen=True, kw_only=True)
class HandOver:
    """What is handed over.

    Attributes:
        parent: The commit that it is a change of.
        title: One line.
        message: Of the commit.
        text: Markdown, for people.
        files: The files that it changes, by their paths in the repository.
        suggestions: The same as replacements of lines, where all of it can be told so.
    """

    parent: str
    title: str
    message: str
    text: str
    files: tuple[ChangedFile, ...]
    suggestions: tuple[LineEdit, ...]


class CodeHost(Protocol):
    """Where a repository lives: GitHub or GitLab, behind its REST interface."""

    def heals(self) -> list[str]:
        """The commits of the branch whose heals are handed over and still there."""
        ...

    def open_draft(self, handed: HandOver) -> str:
        """Make a branch with the change, and a draft of a pull request; answers its address."""
        ...

    def comment(self, handed: HandOver) -> str:
        """Comment on the pull request; answers the comment's address."""
        ...


def branch_stem(branch: str) -> str:
    """How the names of all branches with heals of one branch begin: a few words of it, and its hash."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", branch)[:40].strip("-")
    return f"suture/heal-{words}-{content_hash(branch)[:8]}-"


def require_pull(pipeline: Pipeline) -> int:
    """The number of the pull request.

    Raises:
        UsageError: The pipeline is of none.
    """
    if pipeline.pull is None:
        raise UsageError(
            "this pipeline is of no pull request, so there is nothing to comment on",
            remedy="set ci.hand_over=pull_request",
        )
    return pipeline.pull
