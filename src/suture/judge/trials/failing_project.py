"""A project some of whose tests fail, as trials need it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from suture.core.records import CheckOutcome, Language
from suture.judge.runners.test_command import TestCommand
from suture.project.languages import LANGUAGES
from suture.project.workspace import decode_text, is_test_file


@dataclass(frozen=True, kw_only=True)
class FailingProject:
    """A project some of whose tests fail, in any language.

    Attributes:
        command: Its test command, collected.
        argv: The words of the command.
        files: Path -> content of its files.
        texts: Path -> text of the files that may be changed.
        outcomes: The outcomes of the tests on the unchanged code.
        language: The language of `texts`.
        wall_s: Wall-clock seconds that the command took on the unchanged code; 0 if that is not known.
    """

    command: TestCommand
    argv: Sequence[str]
    files: Mapping[str, bytes]
    texts: Mapping[str, str]
    outcomes: Sequence[CheckOutcome]
    language: Language
    wall_s: float = 0.0

    def statuses(self) -> dict[str, str]:
        """Return id of a test -> its status on the unchanged code."""
        return {outcome.check_id: outcome.status for outcome in self.outcomes}

    def failing(self) -> frozenset[str]:
        """Return the ids of the tests that fail on the unchanged code."""
        return frozenset(o.check_id for o in self.outcomes if not o.passed and o.status != "skipped")

    def named_tests(self) -> list[str]:
        """Return the paths of files whose names say that they are tests."""
        endings = LANGUAGES[self.language].extensions
        return [path for path in sorted(self.files) if path.endswith(endings) and is_test_file(path)]

    def test_texts(self) -> dict[str, str]:
        """Return path -> text of the test files.

        Some runners, such as Go's, report only packages; then the names of the files decide.
        """
        tests = self.command.test_files or self.named_tests()
        return {path: decode_text(self.files[path]) for path in tests if path in self.files}
