"""The test command of a project whose user gave none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from suture.errors import UsageError
from suture.languages.known import LANGUAGES, is_source
from suture.languages.language import ProjectSigns
from suture.records import Language


@dataclass(frozen=True, kw_only=True)
class DetectedCommand:
    """A test command that was found.

    Attributes:
        command: The argument vector.
        language: Of the code that it tests.
        why: How it was found, in words for people.
    """

    command: tuple[str, ...]
    language: Language
    why: str


def detect_command(
    files: Mapping[str, bytes], tests: Collection[str], has_pytest: Callable[[], bool]
) -> DetectedCommand | None:
    """The test command of a project; `None` where there is nothing to go by.

    Args:
        files: The project's files.
        tests: Those of them that are tests.
        has_pytest: Whether the project's Python has pytest; asked only where unittest would do.

    Raises:
        UsageError: It is tested in more than one language.
    """
    found: list[DetectedCommand] = []
    for language, facts in LANGUAGES.items():
        own = [name for name in tests if is_source(name, language)]
        signs = ProjectSigns(files=files, tests=own, has_pytest=has_pytest)
        if facts.find_tests is not None and (shown := facts.find_tests(signs)):
            found.append(DetectedCommand(command=shown[0], language=language, why=shown[1]))
    if len(found) > 1:
        candidates = " or ".join(f"`{' '.join(one.command)}` ({one.why})" for one in found)
        raise UsageError(
            f"the project is tested in more than one language: {candidates}",
            remedy='say which: --test "COMMAND"',
        )
    return found[0] if found else None
