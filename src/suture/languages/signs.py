"""What a language may go by to tell how a project is tested."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ProjectSigns:
    """A project whose user gave no test command.

    Attributes:
        files: Path -> content.
        tests: Those of them that are tests in the language.
        has_pytest: Whether the project's Python has pytest; it is looked for when asked.
    """

    files: Mapping[str, bytes]
    tests: Collection[str]
    has_pytest: Callable[[], bool]


FindTests = Callable[[ProjectSigns], tuple[tuple[str, ...], str] | None]
"""The test command as an argument vector, and how it was found, in words; `None` where nothing shows one."""
