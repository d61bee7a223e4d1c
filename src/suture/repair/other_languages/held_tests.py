"""The texts of a project's tests."""

from __future__ import annotations

from collections.abc import Mapping

from suture.checks.command.test_command import TestCommand
from suture.languages import LANGUAGES
from suture.records import Language
from suture.workspace import is_test_file, text_of


def held_tests(command: TestCommand, files: Mapping[str, bytes], language: Language) -> dict[str, str]:
    """Path -> text of the tests; by their names where a runner tells only their package, as Go's does.

    Args:
        command: The tests' command, collected.
        files: The project.
        language: What it is written in.
    """
    ours = LANGUAGES[language].endings
    by_name = (path for path in sorted(files) if path.endswith(ours) and is_test_file(path))
    return {path: text_of(files[path]) for path in command.test_files or by_name if path in files}
