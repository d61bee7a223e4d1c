"""The project that a search is for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from suture.core.records import CheckOutcome, Language
from suture.judge.runners.test_command import TestCommand
from suture.project.languages import LANGUAGES
from suture.project.workspace import is_test_file, text_of


@dataclass(frozen=True, kw_only=True)
class FailingProject:
    """A project some of whose tests fail, in any language.

    Attributes:
        command: Its test command, collected.
        argv: The command's words.
        files: The project.
        texts: Path -> text of the files that may be changed.
        outcomes: What the tests said of the project as it is.
        language: What `texts` are written in.
    """

    command: TestCommand
    argv: Sequence[str]
    files: Mapping[str, bytes]
    texts: Mapping[str, str]
    outcomes: Sequence[CheckOutcome]
    language: Language

    def named_tests(self) -> list[str]:
        """Paths of what are tests by their names."""
        ours = LANGUAGES[self.language].endings
        return [path for path in sorted(self.files) if path.endswith(ours) and is_test_file(path)]

    def test_texts(self) -> dict[str, str]:
        """Path -> text of the tests; by their names where a runner tells only their package, as Go's does."""
        tests = self.command.test_files or self.named_tests()
        return {path: text_of(self.files[path]) for path in tests if path in self.files}
