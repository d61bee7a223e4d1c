"""A state of a project's files in the past."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Earlier:
    """Files as they were at a commit.

    Attributes:
        commit: The commit's hash, 12 digits of it.
        subject: The first line of its message.
        files: Path relative to the project -> text, of files that are otherwise now.
    """

    commit: str
    subject: str
    files: Mapping[str, str]
