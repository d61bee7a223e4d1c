"""The languages there are, and which one a command, a file or a whole project speaks of."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath

from suture.core.plugins import load_plugin, plugin_names
from suture.core.records import Language
from suture.errors import PrerequisiteError, UsageError
from suture.project.languages.go import GO
from suture.project.languages.javascript import JAVASCRIPT, TYPESCRIPT
from suture.project.languages.language import LanguageFacts, ProjectOverview
from suture.project.languages.package_scripts import find_started_scripts
from suture.project.languages.python import PYTHON_FACTS
from suture.project.languages.reports import Runner

PASSING_ON = ("npm", "pnpm")
"""Package managers that hand words on to a script only behind `--`."""
BUILT_IN_LANGUAGES: Mapping[Language, LanguageFacts] = {
    "python": PYTHON_FACTS,
    "javascript": JAVASCRIPT,
    "typescript": TYPESCRIPT,
    "go": GO,
}
GROUP = "suture.languages"
MOST_NAME_CHARS = 31
NAME = re.compile(rf"[a-z][a-z0-9_]{{0,{MOST_NAME_CHARS - 1}}}")


class _Languages(Mapping[Language, LanguageFacts]):
    """Ours, then those that installed packages bring; these are loaded when first a language must be told."""

    def __getitem__(self, name: Language) -> LanguageFacts:
        if name not in self:
            raise UsageError(
                f"there is no language {name[:MOST_NAME_CHARS]!r}",
                remedy=f"name one of {', '.join(self)}, or install the package that brings it",
            )
        return BUILT_IN_LANGUAGES[name] if name in BUILT_IN_LANGUAGES else _brought()[name]

    def __contains__(self, name: object) -> bool:
        return name in BUILT_IN_LANGUAGES or name in _brought()

    def __iter__(self) -> Iterator[Language]:
        yield from (*BUILT_IN_LANGUAGES, *_brought())

    def __len__(self) -> int:
        return len(BUILT_IN_LANGUAGES) + len(_brought())


LANGUAGES: Mapping[Language, LanguageFacts] = _Languages()
"""Every language by its name; to ask for another is a `UsageError`."""


@cache
def _brought() -> Mapping[Language, LanguageFacts]:
    found: dict[Language, LanguageFacts] = {}
    for name in plugin_names(GROUP):
        facts = load_plugin(GROUP, name, what="language", where="an installed package")
        if name in BUILT_IN_LANGUAGES or not NAME.fullmatch(name) or not isinstance(facts, LanguageFacts):
            raise PrerequisiteError(
                f"an installed package brings {name!r} as a language, and it is none that can be added",
                remedy="its entry point is to be a LanguageFacts under a name of its own, such as `lua`",
            )
        found[name] = facts
    return found


def find_language(word: str) -> Language:
    """The language that somebody means by a word, such as `node`.

    Raises:
        UsageError: There is none.
    """
    said = word.strip().lower()
    for language, facts in LANGUAGES.items():
        if said in (language, *facts.aliases):
            return language
    raise UsageError(f"there is no language {word!r}", remedy=f"name one of {', '.join(LANGUAGES)}")


def is_source(path: str, language: Language) -> bool:
    """Whether a file is source code of a language, by its name."""
    return path.endswith(LANGUAGES[language].extensions)


def detect_file_languages(paths: Iterable[str]) -> tuple[Language, ...]:
    """The languages of some files, in the order in which `LANGUAGES` has them."""
    names = tuple(paths)
    return tuple(language for language in LANGUAGES if any(is_source(name, language) for name in names))


def detect_language(argv: Sequence[str], paths: Iterable[str] = ()) -> Language | None:
    """The language whose test program a command starts; `None` where its words do not tell.

    Args:
        argv: The command; a word may itself be a line for a shell.
        paths: The project's files. Of languages with the same programs, the one that they are written in.
    """
    names = tuple(paths)
    for word in (part for text in argv for part in re.split(r"[\s;&|()<>'\"]+", text)):
        name = PurePosixPath(word).name
        of_word = [language for language, facts in LANGUAGES.items() if facts.command_pattern.fullmatch(name)]
        if of_word:
            return max(of_word, key=lambda one: sum(is_source(path, one) for path in names))
    return None


def find_runner(argv: Sequence[str], files: Mapping[str, bytes], language: Language) -> Runner | None:
    """The test runner that a command starts, where its report tells of each test.

    Args:
        argv: The command, or a package manager's, whose script then tells.
        files: The project's files.
        language: What the command tests.
    """
    lines = [script for script in find_started_scripts(argv, files) if script] or [" ".join(argv)]
    for runner in LANGUAGES[language].runners:
        if any(runner.starts(line) for line in lines):
            return runner
    return None


def add_report_arguments(argv: Sequence[str], words: Sequence[str]) -> tuple[str, ...]:
    """A command with the words that ask its runner for a report.

    Args:
        argv: The command.
        words: As `Runner.arguments` answers them. A package manager's script gets them behind `--`.
    """
    passes_on = PurePosixPath(argv[0]).name in PASSING_ON and "--" not in argv
    return (*argv, *(("--",) if words and passes_on else ()), *words)


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
        signs = ProjectOverview(files=files, tests=own, has_pytest=has_pytest)
        if facts.detect_test_command is not None and (shown := facts.detect_test_command(signs)):
            found.append(DetectedCommand(command=shown[0], language=language, why=shown[1]))
    if len(found) > 1:
        candidates = " or ".join(f"`{' '.join(one.command)}` ({one.why})" for one in found)
        raise UsageError(
            f"the project is tested in more than one language: {candidates}",
            remedy='say which: --test "COMMAND"',
        )
    return found[0] if found else None
